//! MCP gateway in front of a toolplane: offers its tools, prompts and resources over stdio and Streamable HTTP, in both eras
//! of the protocol.
//!
//! [`Gateway`] is an [`mcp_server::Service`]: it translates between the protocol and the facade, and decides nothing else.
//! Results of servers reach the client in the server's own bytes.
//!
//! # Clients and servers of different eras
//! A legacy server asks by a request in the middle of a call. A legacy client receives the question as a request. A modern
//! client receives it as the answer to its own request, while the call is parked; its next request brings the answer and
//! continues the same call.
//!
//! A modern server asks by its answer. A modern client receives that answer. A legacy client is asked by requests, and the
//! gateway makes the next round itself.
//!
//! No client is asked anything that it did not declare to answer.
//!
//! # Examples
//! ```
//! use toolplane::Toolplane;
//! use toolplane_gateway::{Gateway, GatewayOptions, StdioOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let plane = Toolplane::from_yaml(
//!     r#"
//! tools:
//!   hello:
//!     description: Greets.
//!     input_schema: {type: object}
//!     executor: {kind: mock, result: {text: hello}}
//! "#,
//! )?;
//! let gateway = Gateway::new(plane, GatewayOptions::default());
//! let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello"}}"#;
//! let mut output = Vec::new();
//! gateway
//!     .serve_stdio(request.as_bytes(), &mut output, StdioOptions::default(), std::future::pending())
//!     .await?;
//! assert!(String::from_utf8(output)?.contains(r#""structuredContent":{"text":"hello"}"#));
//! # Ok(())
//! # }
//! ```

mod abort_on_drop;
mod client;
mod discovery;
mod eras;
mod gateway;
mod lists;
mod notifications;
mod operator;
mod pages;
mod render;
mod requests;
mod tasks;

pub use mcp_server::{
    AllowList, AllowedHosts, HttpServerOptions, HttpService, Identify, Notifier, Principal, RequestRefusal,
    ResponseBody, ServeOptions, ServerIdentity, SharedAllowList, StateKey, StdioOptions, http,
};
pub use raw_json::RawJson;
pub use toolplane;

pub use self::{
    client::CallerResolver,
    gateway::{EmbeddedGateway, Gateway, GatewayOptions},
    lists::FirstAnswers,
    operator::{OperatorClient, OperatorClientError},
    pages::serve_metrics,
};

/// Compiles the examples of the page that the package shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
