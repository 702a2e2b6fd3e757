//! The Streamable HTTP transport.

mod allowed;
mod batch;
mod body;
mod cors;
mod endpoint;
mod exchange;
mod guard;
mod headers;
mod news;
mod old_clients;
mod old_endpoint;
mod options;
mod repoll;
mod response;
mod resumable;
mod seats;
mod serve;
mod service;
mod session;
mod standing;
mod subscription;
mod watch;

pub(crate) use self::news::News;
pub use self::{
    allowed::{AllowList, AllowedHosts, SharedAllowList},
    options::{HttpServerOptions, Identify, RequestRefusal},
    response::ResponseBody,
    serve::{ServeOptions, serve_http},
    service::HttpService,
    watch::RequestBody,
};
