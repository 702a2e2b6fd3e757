//! The gateway in front of scripted and mock tools, with messages as bytes.

mod authentication;
mod calls;
mod chained;
mod eras;
mod lists;
mod search;
mod serving;
mod subscriptions;
mod support;
mod tasks;
