//! The MCP gateway in front of a toolplane: its tools, prompts and resources, over stdio and Streamable HTTP, in both eras
//! of the protocol.
//!
//! [`Gateway`] is an [`mcp_server::Service`]: it puts what the facade has into the protocol's words and nothing more.
//! What a server answers reaches the client in the server's own bytes.
//!
//! # Clients and servers of different eras
//! A server that asks in the middle of a call has its question put to the client of that call: by a request if the
//! client is of the legacy era; else the call waits, the client gets the question as the answer to its request, and
//! the request that brings what it gives goes on with the same call. A server that asks by its answer has that passed
//! on to a modern client, and gets from a legacy one what real requests bring. Nobody is asked what was not declared.
//!
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

mod approvals;
mod call;
mod client;
mod dialogue;
mod fault;
mod followed;
mod gateway;
mod gauges;
mod health;
mod identity;
mod legacy;
mod list;
mod metrics;
mod mirrors;
mod missing;
mod modern;
mod news;
mod operator;
mod operator_client;
mod parked;
mod render;
mod routes;
mod subject;
mod task_requests;
mod tasks;
mod watches;

pub use mcp_server::{
    AllowList, AllowedHosts, HttpServerOptions, HttpService, Identify, Principal, RequestRefusal, ResponseBody,
    ServeOptions, SharedAllowList, StdioOptions,
};

pub use self::{
    gateway::{Callers, Gateway, GatewayOptions},
    metrics::serve_metrics,
    operator_client::{OperatorClient, OperatorClientError},
};
