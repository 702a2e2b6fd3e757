use std::time::Duration;

use crate::{Alert, CallContext, Outcome, ToolError};

/// Something that happened, mostly to a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call has begun.
    CallStarted {
        /// The call.
        cx: &'a CallContext,
    },
    /// A call has ended.
    CallFinished {
        /// The call.
        cx: &'a CallContext,
        /// How it ended; nothing if its future was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// How long it took.
        elapsed: Duration,
    },
    /// One attempt of a call has ended.
    AttemptFinished {
        /// The call; [`CallContext::attempt`] tells which attempt.
        cx: &'a CallContext,
        /// How it ended; nothing if its future was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// How long it took.
        elapsed: Duration,
    },
    /// An operator should know something, whatever call it was that showed it.
    Alert {
        /// What.
        alert: &'a Alert,
    },
}

/// The port through which what happens is told: metrics, health, audit and breakers listen here.
///
/// It is called on the path of every call: return at once and never block.
pub trait Observe: Send + Sync {
    /// Takes note of an event.
    fn observe(&self, event: &Event<'_>);
}
