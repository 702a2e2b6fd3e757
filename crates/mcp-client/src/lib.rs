//! MCP client that relays bytes untouched: stdio and Streamable HTTP, lazy start, supervision, deadlines.
//!
//! A [`Connection`] is one open connection: over a child process ([`Connection::spawn`]), over HTTP
//! ([`Connection::http`], for old servers [`Connection::sse`]), over WebSocket ([`Connection::websocket`], with the
//! feature `websocket`) or over any pair of byte streams ([`Connection::from_streams`]).
//! [`call_tool`](Connection::call_tool) calls a tool, [`request`](Connection::request) sends any request.
//!
//! An [`Upstream`] is a supervised server: started when it is first needed, and restarted with backoff after a failure.
//! Results are slices of the message that the server sent: no member is lost, no number is rounded. Both eras of the
//! protocol are spoken; [`EraChoice`] selects one or detects it. Requests of a server reach [`Handlers`], its
//! notifications arrive at an [`EventReceiver`].
//!
//! # Examples
//!
//! A complete program:
//!
//! ```no_run
//! use std::error::Error;
//!
//! use mcp_client::{Command, Connection, ConnectionOptions, RequestOptions, serde_json::json};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn Error>> {
//!     let command = Command::new("mcp-server-time").args(["--local-timezone", "UTC"]);
//!     let connection = Connection::spawn(&command, ConnectionOptions::default()).await?;
//!     for tool in connection.list_tools().await? {
//!         println!("{}", tool.get("name").unwrap_or_default());
//!     }
//!     let arguments = json!({"timezone": "Asia/Tokyo"});
//!     let options = RequestOptions::default();
//!     let time = connection.call_tool("get_current_time", &arguments, options).await?;
//!     println!("{}", time.text());
//!     connection.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! Progress and questions of the server take a closure each, in both eras of the protocol:
//!
//! ```no_run
//! use mcp_client::{ConnectionOptions, Handlers, RawJson, RequestOptions, mcp_wire::RpcError, serde_json::json};
//!
//! let call = RequestOptions::default().on_progress(|progress| println!("{progress}"));
//! let handlers = Handlers::new().elicitation(RawJson::object(), |question| async move {
//!     Ok::<_, RpcError>(json!({"action": "accept", "content": question.defaults()}).into())
//! });
//! let connection = ConnectionOptions::default().handlers(handlers);
//! ```
//!
//! The examples `list_tools` and `in_process` are complete programs, too.
//!
//! # Features
//!
//! | feature | brings |
//! |---|---|
//! | `stdio` | [`Command`], [`Connection::spawn`]: servers that are started as child processes, or by a [`Spawner`] in a place of their own |
//! | `http` | [`HttpEndpoint`], [`Connection::http`], [`Connection::sse`]: servers over HTTP |
//! | `tls` | `https://` and HTTP/2, with the certificates that the machine trusts; implies `http` |
//! | `websocket` | [`Connection::websocket`]; implies `tls` |
//!
//! All but `websocket` are on by default. [`Connection::from_streams`] is always there. With `default-features = false,
//! features = ["stdio"]` the crate compiles no HTTP and no TLS.
//!
//! # Maximum cost of a server
//!
//! No server can make a call outlive its deadline, make memory grow without bound, or leave a process behind.
//!
//! | a server that | costs at most |
//! |---|---|
//! | does not respond | [`RequestOptions::timeout`]; with progress, [`RequestOptions::max_total`] |
//! | does not open the connection | [`ConnectionOptions::start_timeout`] |
//! | does not read | the call until its deadline, and the connection after [`ConnectionOptions::write_stall`] |
//! | sends too large a response | the call; a message has at most [`ConnectionOptions::max_message`] bytes |
//! | writes lines that are not messages | the connection, after [`ConnectionOptions::max_garbage`] of them in a row |
//! | sends a batch in revision 2025-03-26 | [`mcp_wire::MAX_BATCH`] messages, each handled as if sent alone; in other revisions a batch is not a message |
//! | lists without end | the list; see [`PageLimits`] |
//! | sends notifications without end | the events that exceed the queue of an [`EventReceiver`] |
//! | sends requests without end | the requests beyond 64 that are open |
//! | ends again and again | six starts in the first minute, then one a minute; see [`StartBudget`] |
//! | does not end | [`ConnectionOptions::shutdown_grace`], then it is killed with all its descendants, including those that left its process group; see [`Command`] |
//!
//! A [`ClientError`] tells whether the request may have run ([`ClientError::was_sent`]): only then is it a risk to
//! repeat it.

#![cfg_attr(
    not(any(feature = "stdio", feature = "http")),
    expect(dead_code, reason = "without a transport nothing is supervised or reopened")
)]

mod connection;
mod error;
mod exchange;
mod format_duration;
#[cfg(feature = "http")]
mod http;
mod notifications;
#[cfg(feature = "stdio")]
mod process;
#[cfg(not(feature = "stdio"))]
#[path = "process/unsupported.rs"]
mod process;
mod server_requests;
mod stream;
#[cfg(any(feature = "stdio", feature = "http"))]
mod supervisor;
mod unbuffered_read;

#[doc(no_inline)]
pub use mcp_wire;
#[doc(no_inline)]
pub use raw_json::{self, RawJson};
#[doc(no_inline)]
pub use serde_json;
#[doc(no_inline)]
pub use tokio;

#[cfg(feature = "http")]
pub use self::http::HttpEndpoint;
#[cfg(feature = "stdio")]
pub use self::process::{
    BASE_VARIABLES, Command, CommandOutput, ProgramControl, SpawnFuture, SpawnedProgram, Spawner,
    base_environment,
};
#[cfg(any(feature = "stdio", feature = "http"))]
pub use self::supervisor::{
    Endpoint, HealthCheck, OnStatus, ServerState, ServerStatus, StartBudget, StartLimit, Upstream,
    UpstreamOptions,
};
pub use self::{
    connection::{
        Connection, ConnectionOptions, ConnectionStats, EraChoice, ListResult, ListTruncation,
        OnNotification, OnProgress, PageLimits, RequestHook, RequestOptions, ServerInfo, ToolResult,
    },
    error::{ClientError, ClientErrorKind},
    notifications::{ChangeCounts, ConnectionEvent, EventReceiver},
    server_requests::{Handlers, InputRequiredResult, ServerRequest},
};

#[cfg(all(doctest, feature = "stdio"))]
#[doc = include_str!("../README.md")]
struct Readme;
