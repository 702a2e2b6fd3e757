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

mod asked;
mod client;
mod context;
mod declared;
mod http;
mod in_flight;
mod input_required;
mod notices;
mod outline;
mod progress;
mod protocol;
mod service;
mod state_seal;
mod stdio;
mod wants;
mod way;

pub use self::{
    asked::AskError,
    context::{Principal, RequestContext},
    http::{
        AllowedHosts, HttpOptions, HttpService, Identify, MirroredParams, Refusal, ResponseBody,
        ServeOptions, serve_http,
    },
    input_required::InputRequired,
    notices::Notices,
    progress::Progress,
    service::{Answer, ServerInfo, Service, unknown_method},
    state_seal::StateSeal,
    stdio::{StdioOptions, serve_stdio},
};
