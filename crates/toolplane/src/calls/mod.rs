//! Requests of callers: calls, turns, views, lists and subscriptions.

pub(crate) mod call;
pub(crate) mod listing;
pub(crate) mod lookup;
pub(crate) mod reentry;
pub(crate) mod request;
pub(crate) mod subscriptions;
pub(crate) mod turn;
pub(crate) mod view;
pub(crate) mod views;
