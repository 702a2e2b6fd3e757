//! The serving side of MCP: stdio and Streamable HTTP in front of one [`Service`].
//!
//! A service answers methods with text. This crate does the rest of the protocol in both of its eras: opening connections
//! and discovery, versions and headers, ids, sessions, progress, log messages, requests to the client and rounds of input,
//! subscriptions, streams that are resumed, cancellation, limits, and the checks that keep web pages away from servers on
//! loopback. Parameters and results are the bytes of the client and the service.
//!
//! # Examples
//!
//! ```
//! use mcp_server::{Answer, RequestContext, ServerIdentity, Service, StdioOptions, serve_stdio, unknown_method};
//! use mcp_wire::{Request, Revision, RpcError, method};
//! use raw_json::RawJson;
//!
//! struct Greeter;
//!
//! impl Service for Greeter {
//!     fn info(&self) -> ServerIdentity {
//!         ServerIdentity::new("greeter", "1.0.0")
//!     }
//!     fn capabilities(&self, _: Revision) -> RawJson {
//!         RawJson::parse(r#"{"tools":{}}"#).expect("valid JSON")
//!     }
//!     async fn call(&self, request: Request, _: &RequestContext) -> Result<Answer, RpcError> {
//!         match request.method.as_str() {
//!             method::TOOLS_LIST => Ok(RawJson::parse(r#"{"tools":[]}"#).expect("valid JSON").into()),
//!             other => Err(unknown_method(other)),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (input, mut output) = (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n"[..], Vec::new());
//! serve_stdio(Greeter, input, &mut output, StdioOptions::default(), std::future::pending()).await?;
//! assert_eq!(output, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}\n");
//! # Ok(())
//! # }
//! ```
//!
//! The example `echo` is a complete server for both transports. Requests over HTTP come through an [`HttpService`], which
//! [`serve_http`] serves, and which any server of `hyper` services can mount next to other routes.
//!
//! # What a client can cost
//!
//! | a client that | costs at most |
//! |---|---|
//! | sends too much | [`HttpServerOptions::max_body`] or [`StdioOptions::max_message`] bytes at a time |
//! | sends too slowly | a connection for [`ServeOptions::header_timeout`] or [`HttpServerOptions::body_timeout`] |
//! | does not read | a connection for [`ServeOptions::write_timeout`]; over stdio its input is not read either |
//! | opens connections | [`ServeOptions::max_connections`]; more wait |
//! | opens streams | [`HttpServerOptions::max_streams_each`] connections; [`HttpServerOptions::max_streams`] in all, so that calls have the rest |
//! | opens sessions | [`HttpServerOptions::max_sessions`]; the longest idle one of the principal with the most sessions makes room, and those idle for [`HttpServerOptions::session_idle`] are ended |
//! | sends a batch, in a session of 2025-03-26 | [`mcp_wire::MAX_BATCH`] messages, each as if it had come alone |
//! | is away while much changes | 64 KiB of notifications for its session: of each list and resource the latest only |
//! | calls and does not wait | [`StdioOptions::max_in_flight`], [`HttpServerOptions::max_detached`] |
//! | is a web page of another origin | nothing: [`HttpServerOptions::allowed`] is checked first |

mod client;
mod limits;
mod notifications;
mod protocol;
mod request;
mod service;
mod stdio;
mod streamable_http;
mod tools;

pub use self::{
    client::{ClientHandle, ClientRequestError, Peer, Principal, ProgressReporter},
    notifications::Notifier,
    request::{InputRequired, RequestContext, StateKey, StateSeal},
    service::{Answer, HeaderParams, ServerIdentity, Service, unknown_method},
    stdio::{StdioOptions, serve_stdio},
    streamable_http::{
        AllowList, AllowedHosts, AuthenticateRequest, AuthenticateRequestFuture, HttpServerOptions,
        HttpService, Identify, RequestBody, RequestRefusal, ResponseBody, ServeOptions, SharedAllowList,
        serve_http,
    },
    tools::{AddToolError, ArgumentsError, ToolCall, ToolDefinition, ToolOutput, Tools},
};
pub use bytes;
pub use http;
pub use mcp_wire;
pub use raw_json::{self, RawJson};
pub use serde_json;

/// Compiles the examples of the page that the package shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
