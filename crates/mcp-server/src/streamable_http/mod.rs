//! The Streamable HTTP transport.

mod endpoint;
mod head;
mod options;
mod refusal;
mod response;
mod server;
mod service;
mod session;
mod sse;

pub use self::{
    head::{AllowList, AllowedHosts, SharedAllowList},
    options::HttpServerOptions,
    refusal::{AuthenticateRequest, AuthenticateRequestFuture, Identify, RequestRefusal},
    response::ResponseBody,
    server::{RequestBody, ServeOptions, serve_http},
    service::HttpService,
};
