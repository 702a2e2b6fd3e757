//! Scripted replies: the answers to requests, and their misbehaviors.

mod misbehavior;
pub(crate) mod mock_reply;
pub(crate) mod plan;
pub(crate) mod script;
pub(crate) mod template;

pub use self::{misbehavior::Misbehavior, mock_reply::MockReply};
