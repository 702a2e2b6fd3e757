//! An MCP client that relays bytes untouched: stdio and Streamable HTTP, lazy start, supervision, deadlines.
//!
//! A [`Connection`] is one open connection, over a child process ([`Connection::spawn`]), over HTTP
//! ([`Connection::http`], for old servers [`Connection::sse`]) or over any pair of byte streams ([`Connection::over`]). An [`Upstream`] is a server that is
//! started when it is first needed, and started again when it has failed, but not too often. Results are slices of the
//! message that the server sent: no member is lost, no number rounded. Both eras of the protocol are spoken, and which
//! one is found out ([`EraChoice`]); servers that ask for something reach [`Handlers`], what they tell comes as
//! [`Events`]. No server can make a call outlive its deadline, let memory grow without bound, or leave a process
//! behind.
//!
//! ```no_run
//! use mcp_client::{Command, Connection, ConnectionOptions, RequestOptions};
//! use raw_json::RawJson;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let command = Command::new("mcp-server-time").args(["--local-timezone", "UTC"]);
//! let connection = Connection::spawn(&command, ConnectionOptions::default()).await?;
//! for tool in connection.list_tools().await? {
//!     tracing::info!(%tool);
//! }
//! let params = RawJson::parse(r#"{"name":"get_current_time","arguments":{"timezone":"UTC"}}"#)?;
//! let result = connection.request("tools/call", Some(params), RequestOptions::default()).await?;
//! connection.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod changes;
mod command;
mod connection;
mod counters;
mod error;
mod events;
mod exchange;
mod features;
mod handlers;
mod http;
mod incoming;
mod input;
mod list;
mod opening;
mod options;
mod process;
mod server;
mod stderr;
mod stream;
mod upstream;

pub use self::{
    changes::Changes,
    command::{BASE_VARIABLES, Command, base_environment},
    connection::Connection,
    counters::Counters,
    error::{Error, ErrorKind},
    events::{Event, Events},
    handlers::{Handlers, ServerRequest},
    http::HttpEndpoint,
    input::InputRequired,
    list::ListLimits,
    options::{ConnectionOptions, EraChoice, Hook, OnNotification, OnProgress, RequestOptions},
    server::ServerInfo,
    upstream::{Endpoint, State, Status, Upstream, UpstreamOptions},
};
