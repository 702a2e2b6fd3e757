//! Notifications of servers: their filter, queue, notifier and router.

mod changes;
mod filter;
mod notifier;
mod queue;
mod router;
pub(crate) mod stream_backoff;

pub use self::{
    changes::Changes,
    queue::{ConnectionEvent, Events},
};
pub(crate) use self::{
    filter::listen_filter,
    notifier::ChangeSink,
    router::{Incoming, progress_of},
};
