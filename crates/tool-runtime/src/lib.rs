//! The execution layers of a governed call: [`Deadline`] bounds the whole of it, [`Timeout`] one attempt. Both work
//! alone around anything that implements [`tool_core::Invoke`], and [`TokioClock`] is the clock they measure with.
//!
//! ```
//! use tool_core::Layer;
//! use tool_runtime::{Deadline, Timeout};
//!
//! # fn stack<S>(executor: S) {
//! let stack = Deadline.layer(Timeout.layer(executor));
//! # }
//! ```

mod clock;
mod deadline;
mod timeout;
mod within;

pub use self::{
    clock::TokioClock,
    deadline::{Deadline, Deadlined},
    timeout::{Timeout, Timing},
};
