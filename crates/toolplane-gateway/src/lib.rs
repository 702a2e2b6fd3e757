//! The MCP gateway in front of a toolplane: its tools, listed and called over stdio and Streamable HTTP.
//!
//! [`Gateway`] is an [`mcp_server::Service`]: it puts the facade's tools into the protocol's words and nothing more.
//! What a server answers reaches the client in the server's own bytes.
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

mod call;
mod client;
mod dialogue;
mod fault;
mod gateway;
mod legacy;
mod list;
mod modern;
mod parked;
mod render;
mod routes;
mod subject;

pub use mcp_server::{
    AllowedHosts, HttpOptions, HttpService, Identify, Principal, Refusal, ResponseBody, ServeOptions,
    StdioOptions,
};

pub use self::gateway::{Callers, Gateway, GatewayOptions};
