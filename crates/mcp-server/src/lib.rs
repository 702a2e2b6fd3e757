//! The serving side of MCP: stdio and Streamable HTTP in front of one [`Service`].
//!
//! A service answers methods with text; this crate does the rest of the protocol in both of its eras: opening
//! connections and discovery, versions and headers, ids, sessions, progress, log messages, questions to the client and
//! rounds of input, subscriptions, streams that are resumed, cancellation, limits and the checks that keep web pages
//! away from servers on loopback. Parameters and results are the client's and the service's own bytes.
//!
//! ```
//! use mcp_server::{Answer, RequestContext, ServerInfo, Service, StdioOptions, serve_stdio, unknown_method};
//! use mcp_wire::{Request, Revision, RpcError, method};
//! use raw_json::RawJson;
//!
//! struct Greeter;
//!
//! impl Service for Greeter {
//!     fn info(&self) -> ServerInfo {
//!         ServerInfo::new("greeter", "1.0.0")
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
//! The example `echo` is a whole server, for both transports. Requests over HTTP come through an [`HttpService`], which
//! [`serve_http`] serves, and which any server of `hyper` services can mount beside other routes.
//!
//! # What a client can cost
//!
//! | a client that | costs at most |
//! |---|---|
//! | sends too much | [`HttpServerOptions::max_body`] or [`StdioOptions::max_message`] bytes at a time |
//! | sends too slowly | a connection for [`ServeOptions::header_timeout`] or [`HttpServerOptions::body_timeout`] |
//! | does not read | a connection for [`ServeOptions::write_timeout`]; over stdio it is not read from either |
//! | opens connections | [`ServeOptions::max_connections`]; more wait |
//! | opens streams | [`HttpServerOptions::max_streams_each`] connections; [`HttpServerOptions::max_streams`] in all, so that calls have the rest |
//! | opens sessions | [`HttpServerOptions::max_sessions`]; the one that has been idle longest of the principal with the most makes room, and those idle for [`HttpServerOptions::session_idle`] are ended |
//! | sends a batch, in a session of 2025-03-26 | [`mcp_wire::MAX_BATCH`] messages, each as if it had come alone |
//! | is away while much happens | 64 KiB of news for its session: of a list or a resource the latest only |
//! | calls and does not wait | [`StdioOptions::max_in_flight`], [`HttpServerOptions::max_detached`] |
//! | is another one's web page | nothing: [`HttpServerOptions::allowed`] comes first |

mod asked;
mod client;
mod client_handle;
mod context;
mod declared;
mod http;
mod in_flight;
mod input_required;
mod missed;
mod notices;
mod outline;
mod peer;
mod progress;
mod protocol;
mod service;
mod state_seal;
mod stdio;
mod wants;
mod way;

pub use self::{
    asked::ClientRequestError,
    client_handle::ClientHandle,
    context::{Principal, RequestContext},
    http::{
        AllowList, AllowedHosts, HttpServerOptions, HttpService, Identify, RequestBody, RequestRefusal,
        ResponseBody, ServeOptions, SharedAllowList, serve_http,
    },
    input_required::InputRequired,
    notices::Notices,
    peer::Peer,
    progress::ProgressReporter,
    service::{Answer, Mirrored, ServerIdentity, Service, unknown_method},
    state_seal::StateSeal,
    stdio::{StdioOptions, serve_stdio},
};
