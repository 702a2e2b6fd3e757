//! Notifications to clients: the router receives updates of servers, the notifiers send them to clients, and subscriptions
//! decide which resources servers report on.
//!
//! Filters and coalescing queues of single clients belong to `mcp-server`.

mod notifiers;
mod router;
mod subscriptions;

pub(crate) use self::{notifiers::Notifiers, router::Router, subscriptions::ResourceSubscriptions};
