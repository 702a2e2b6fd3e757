//! The Streamable HTTP transport.

mod body;
mod endpoint;
mod exchange;
mod guard;
mod headers;
mod options;
mod response;
mod serve;
mod service;
mod session;
mod subscription;
mod watch;

pub use self::{
    options::{AllowedHosts, HttpOptions, Identify, Refusal},
    response::ResponseBody,
    serve::{ServeOptions, serve_http},
    service::HttpService,
};
