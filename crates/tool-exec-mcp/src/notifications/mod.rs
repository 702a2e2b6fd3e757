//! Notifications of servers: which ones clients subscribe to, and the way from a connection to those who listen.

mod client_subscriptions;
mod filter;
mod notifier;
mod queue;
mod router;
mod shared_subscriptions;

pub(crate) use self::{
    filter::{ClientFilters, SharedFilter},
    notifier::Notifier,
    queue::UpdateQueue,
    router::{NotificationRouter, NotificationSink},
};
