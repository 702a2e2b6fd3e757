//! A mock MCP server for tests: scripted answers, delays, errors, notifications and misbehaviour, over stdio and HTTP,
//! in both eras of the protocol.
//!
//! A [`MockServer`] offers [`MockTool`]s, [`MockPrompt`]s and [`MockResource`]s. Each has its [`MockReply`]s, the first for the first
//! request and the last for all that follow; a [`Misbehavior`] breaks one message. The protocol itself is
//! `mcp-server`'s, so what is not scripted is right. Clients in the same process [`connect`](MockServer::connect),
//! others come over [`http`](MockServer::http) or [`serve_stdio`](MockServer::serve_stdio); what they asked is
//! [counted](MockServer::calls) and can be [waited for](MockServer::wait_for_calls). Delays are tokio's, so a paused
//! clock makes them free. A file describes the same in YAML: [`MockServer::from_yaml`].
//!
//! ```
//! use mcp_client::{Connection, ConnectionOptions, HttpEndpoint, RequestOptions};
//! use mcp_mock::{Misbehaviour, MockServer, Reply, Tool};
//! use raw_json::RawJson;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first call is answered with 503, the second one works.
//! let server = MockServer::builder()
//!     .tool(
//!         Tool::new("forecast")
//!             .reply(Reply::usual().misbehave(Misbehaviour::status(503)))
//!             .reply(Reply::text("sunny")),
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

mod delivery;
mod guard;
mod http;
mod item;
mod log;
mod misbehaviour;
mod offer;
mod old_http;
mod plan;
mod reply;
mod scenario;
mod script;
mod server;
mod service;
mod shape;
mod state;
mod stdio;
mod template;
mod usual;

pub use self::{
    http::MockHttp,
    item::{MockPrompt, MockResource, MockTool},
    log::Received,
    misbehaviour::Misbehavior,
    reply::MockReply,
    scenario::ScenarioError,
    server::{MockServer, MockServerBuilder},
};
pub use mcp_server::ServerIdentity;
pub use mcp_wire::RpcError;
