//! Notifications of changes: the *filter* says which a client wants, the *queue* holds those that it has not read, and the
//! *notifier* sends them to all clients.

mod filter;
mod notifier;
mod queue;
mod session_queue;
mod subscription;
mod uri_set;

pub use self::notifier::Notifier;
pub(crate) use self::{
    filter::SubscriptionFilter,
    queue::CoalescingQueue,
    session_queue::{SessionQueue, SessionQueueReader},
    subscription::{Subscription, Subscriptions},
};
