//! Long-running operations: work of an API that goes on after its first answer. See [`OperationSettings`].
//!
//! | call | what happens to the operation |
//! |---|---|
//! | its client supports tasks | it becomes a task, which the client polls |
//! | any other | the call waits for it |
//! | its time is nearly over | the call ends as pending, and the operation is parked |
//! | is dropped | the operation is parked |
//! | the same call, of the same principal | goes on with the parked operation |

mod begin;
mod callback;
mod operations;
mod plan;
mod running;
mod settings;
mod task;

pub use self::operations::{CallbackError, Operations};
pub(crate) use self::{
    begin::FirstAnswer,
    callback::Callback,
    plan::{CALLBACK_URL, OperationPlan, with_callback_url},
    running::Operation,
    settings::OperationSettings,
};
