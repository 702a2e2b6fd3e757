//! HTTP APIs as tools: an [`Executor`](tool_core::Executor) that makes a request of a call's arguments and a result of
//! the response. Arguments are encoded for the place where they stand, responses are relayed as they were written, and
//! only public addresses are connected to.

mod address;
mod body;
mod call;
mod client;
mod compile;
mod dispatch;
mod encode;
mod executor;
mod failure;
mod fixed;
mod header;
mod json_path;
mod mapping;
mod network;
mod options;
mod plan;
mod preview;
mod problems;
mod query;
mod redact;
mod request;
mod resolve;
mod response;
mod settings;
mod status;
mod text;
mod traffic;

pub use self::{
    executor::HttpExecutor,
    network::{Network, NetworkError},
    options::HttpExecutorOptions,
    resolve::{Resolve, SystemResolver},
    traffic::Traffic,
};
