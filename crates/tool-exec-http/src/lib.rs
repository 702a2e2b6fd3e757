//! HTTP APIs as tools.
//!
//! [`HttpExecutor`] is the [`Executor`](tool_core::Executor) of kind `http`: it builds a request from the arguments of a call
//! and a result from the response. Arguments are percent-encoded or JSON-encoded for their place in the request. Responses
//! are relayed with the bytes that the upstream sent. Only public addresses are connected to, which prevents server-side
//! request forgery (SSRF).

mod call;
mod client;
mod compile;
mod executor;
mod mapping;
mod options;
mod redaction;
mod request;
mod response;
mod template;

pub use self::{
    client::{Network, NetworkError, Resolve, SystemResolver, Traffic},
    executor::HttpExecutor,
    options::HttpExecutorOptions,
};
