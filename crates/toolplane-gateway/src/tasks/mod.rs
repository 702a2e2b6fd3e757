//! Tasks of clients: the experiment of 2025-11-25, and the extension of the modern era.

mod client_task;
mod creation;
mod requests;
mod state;
mod store;
mod watcher;

pub(crate) use self::{
    requests::TaskMethodRequest, state::outward_task, store::TaskStore, watcher::watch_task,
};
