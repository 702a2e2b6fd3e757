//! What was called and how it went. [`Watch`] stands outermost and tells of whole calls, [`WatchAttempt`] stands
//! around one attempt; both tell every [`tool_core::Observe`] that they were given, also when the call's future is
//! dropped, and [`Watch`] opens the one `tracing` span that a call has.

mod attempt;
mod call;
mod watch;

pub use self::{
    attempt::{WatchAttempt, WatchingAttempt},
    call::{Watch, Watching},
};
