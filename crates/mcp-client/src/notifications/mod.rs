//! Notifications of servers: subscription filter, event queue, notifier and router.

mod changes;
mod filter;
mod notifier;
mod queue;
mod router;
pub(crate) mod stream_backoff;

pub use self::{
    changes::ChangeCounts,
    queue::{ConnectionEvent, EventReceiver},
};
pub(crate) use self::{
    filter::subscription_filter,
    notifier::Notifier,
    router::{MessageRouter, progress_target},
};
