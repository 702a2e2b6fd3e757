//! Connections to one server: which one a call uses, the pool of dedicated connections, and the calls on each.

mod acquire;
mod call_slots;
mod choose;
mod connect_error;
mod connections;
mod pool;
mod pool_key;
mod resolved_endpoint;
mod server_connection;
mod server_requests;
mod wait_queue;

pub(crate) use self::{
    call_slots::{InternalUse, PendingWork, TaskHold},
    choose::Checkout,
    connect_error::ConnectError,
    connections::Connections,
    pool_key::PoolKey,
    server_connection::ServerConnection,
};
