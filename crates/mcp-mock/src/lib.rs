//! A mock MCP server for tests: scripted answers, delays, errors, notifications and misbehavior, over stdio and HTTP,
//! in both eras of the protocol.
//!
//! A [`MockServer`] offers [`MockTool`]s, [`MockPrompt`]s and [`MockResource`]s. Each has a list of [`MockReply`]s, the
//! first for the first request and the last for all further ones; a [`Misbehavior`] breaks one message. The protocol is
//! implemented by `mcp-server`, so everything that is not scripted is correct. Clients in the same process
//! [`connect`](MockServer::connect), others use [`http`](MockServer::http) or [`serve_stdio`](MockServer::serve_stdio).
//! Received messages are [counted](MockServer::calls) and can be [waited for](MockServer::wait_for_calls). Delays use
//! tokio's clock, so a paused clock makes them free. A YAML file describes the same: [`MockServer::from_yaml`].
//!
//! # Examples
//!
//! ```
//! use mcp_client::{Connection, ConnectionOptions, HttpEndpoint, RequestOptions};
//! use mcp_mock::{Misbehavior, MockReply, MockServer, MockTool};
//! use raw_json::RawJson;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first call is answered with 503, the second one works.
//! let server = MockServer::builder()
//!     .tool(
//!         MockTool::new("forecast")
//!             .reply(MockReply::usual().misbehave(Misbehavior::status(503)))
//!             .reply(MockReply::text("sunny")),
//!     )
//!     .build();
//! let http = server.http().await?;
//! let endpoint = HttpEndpoint::new(&http.url())?;
//! let connection = Connection::http(&endpoint, ConnectionOptions::default()).await?;
//!
//! let call = RawJson::parse(r#"{"name":"forecast"}"#)?;
//! let first = connection.request("tools/call", Some(call.clone()), RequestOptions::default()).await;
//! assert!(first.is_err());
//! let second = connection.request("tools/call", Some(call), RequestOptions::default()).await?;
//! assert!(second.as_str().contains("sunny"));
//! assert_eq!(server.calls("forecast").len(), 2);
//! # Ok(())
//! # }
//! ```

mod reply;
mod scenario;
mod server;
mod transport;

pub use self::{
    reply::{Misbehavior, MockReply},
    scenario::ScenarioError,
    server::{MockPrompt, MockResource, MockServer, MockServerBuilder, MockTool, ReceivedMessage},
    transport::MockHttp,
};
pub use mcp_server::ServerIdentity;
pub use mcp_wire::RpcError;
