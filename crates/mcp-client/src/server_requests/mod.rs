//! Requests of servers to the client, and the handlers that answer them.

mod handlers;
mod input_required;
mod responder;

pub(crate) use self::responder::oversize_response;
pub use self::{
    handlers::{Handlers, ServerRequest},
    input_required::InputRequiredResult,
};
