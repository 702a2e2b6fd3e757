//! A mock MCP server for tests: scripted answers, delays, errors, notifications and misbehavior, over stdio and HTTP,
//! in both eras of the protocol.
//!
//! A [`MockServer`] offers [`MockTool`]s, [`MockPrompt`]s and [`MockResource`]s. Each has a list of [`MockReply`]s, the
//! first for the first request and the last for all further ones; a [`Misbehavior`] breaks one message. The protocol is
//! implemented by `mcp-server`, so everything that is not scripted is correct. Clients in the same process
//! [`connect`](MockServer::connect), others use [`http`](MockServer::http) or [`serve_stdio`](MockServer::serve_stdio).
//! Received messages are [counted](MockServer::calls), can be [waited for](MockServer::wait_for_calls_within) and
//! [asserted](MockServer::assert_called). A YAML file describes the same: [`MockServer::from_yaml`].
//!
//! # Delays that take no time
//!
//! Delays use tokio's clock. In a test whose clock is paused they take no time: the clock jumps to the next timer whenever
//! nothing else can go on. That needs the feature `test-util` of tokio among the `[dev-dependencies]`, such as
//! `tokio = { version = "1", features = ["macros", "rt", "test-util"] }`, and
//! `#[tokio::test(start_paused = true)]`:
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use mcp_client::{Connection, ConnectionOptions, RequestOptions};
//! use mcp_mock::{MockReply, MockServer, MockTool};
//!
//! // A test has `#[tokio::test(start_paused = true)]` here.
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let slow = MockReply::text("sunny").delay(Duration::from_secs(25));
//!     let server = MockServer::builder().tool(MockTool::new("forecast").reply(slow)).build();
//!     let (reader, writer) = tokio::io::split(server.connect());
//!     let connection = Connection::from_streams(reader, writer, ConnectionOptions::default()).await?;
//!     let call = mcp_mock::RawJson::parse(r#"{"name":"forecast"}"#)?;
//!     let begin = Instant::now();
//!     connection.request("tools/call", Some(call), RequestOptions::default()).await?;
//!     assert!(begin.elapsed() < Duration::from_secs(20), "the delay took no time");
//!     Ok(())
//! }
//! ```
//!
//! A paused clock and real sockets do not fit together: the clock jumps while the other end is still working. Use
//! [`connect`](MockServer::connect) in such tests, not [`http`](MockServer::http).
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

mod json;
mod reply;
mod scenario;
mod server;
mod transport;

pub use self::{
    reply::{Misbehavior, MockReply},
    scenario::ScenarioError,
    server::{
        MockPrompt, MockResource, MockServer, MockServerBuilder, MockTool, ReceivedMessage, TooFewCalls,
    },
    transport::MockHttp,
};
pub use http;
pub use mcp_server::ServerIdentity;
pub use mcp_wire::{Era, RpcError};
pub use raw_json::{self, RawJson};

/// Compiles the examples of the page that the package shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
