//! Scripted replies: what a request is answered with, and how the answer misbehaves.

mod misbehavior;
pub(crate) mod mock_reply;
pub(crate) mod plan;
pub(crate) mod script;
pub(crate) mod template;

pub use self::{misbehavior::Misbehavior, mock_reply::MockReply};
