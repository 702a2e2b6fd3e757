//! An MCP client that relays bytes untouched: stdio and Streamable HTTP, lazy start, supervision, deadlines.
//!
//! A [`Connection`] is one open connection, over a child process ([`Connection::spawn`]), over HTTP
//! ([`Connection::http`], for old servers [`Connection::sse`]), over WebSocket ([`Connection::websocket`], with the feature
//! `websocket`) or over any pair of byte streams ([`Connection::from_streams`]).
//! An [`Upstream`] is a server that is started when it is first needed, and started again when it has failed, but not
//! too often. Results are slices of the message that the server sent: no member is lost, no number rounded. Both eras of
//! the protocol are spoken, and which one is found out ([`EraChoice`]); servers that ask for something reach
//! [`Handlers`], what they tell comes as [`Events`].
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
//!
//! The examples `list_tools` and `in_process` are whole programs.
//!
//! # What a server can cost
//!
//! No server can make a call outlive its deadline, let memory grow without bound, or leave a process behind.
//!
//! | a server that | costs at most |
//! |---|---|
//! | does not answer | [`RequestOptions::timeout`]; with progress, [`RequestOptions::max_total`] |
//! | does not open the connection | [`ConnectionOptions::start_timeout`] |
//! | does not read | the call its deadline, and the connection after [`ConnectionOptions::write_stall`] |
//! | answers with too much | the call; a message holds [`ConnectionOptions::max_message`] bytes |
//! | writes what is no message | nothing, and the connection after [`ConnectionOptions::max_garbage`] lines in a row |
//! | sends a batch, where 2025-03-26 was agreed on | [`mcp_wire::MAX_BATCH`] messages, each as if it had come alone; elsewhere it is no message |
//! | lists without end | the list; see [`PageLimits`] |
//! | tells without end | those of its [`Events`] that come while too many wait |
//! | asks without end | the questions beyond 64 that are open |
//! | ends again and again | six starts in the first minute, then one a minute; see [`StartBudget`] |
//! | does not end | the grace of [`ConnectionOptions::shutdown_grace`], then it is killed with all that it has started, also what left its process group; see [`Command`] |
//!
//! An [`ClientError`] tells whether the request may have run ([`ClientError::was_sent`]): only then is it a risk to repeat it.

mod changes;
mod command;
mod connection;
mod counters;
mod duration;
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
mod pauses;
mod process;
mod server;
mod stderr;
mod stream;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(not(target_os = "linux"))]
#[path = "tree_unknown.rs"]
mod tree;
mod unbuffered;
mod upstream;

pub use self::{
    changes::Changes,
    command::{BASE_VARIABLES, Command, base_environment},
    connection::Connection,
    counters::Counters,
    error::{ClientError, ClientErrorKind},
    events::{ConnectionEvent, Events},
    handlers::{Handlers, ServerRequest},
    http::HttpEndpoint,
    input::InputRequiredResult,
    list::{ListCut, Listed, PageLimits},
    options::{ConnectionOptions, EraChoice, Hook, OnNotification, OnProgress, RequestOptions},
    server::ServerInfo,
    upstream::{
        Endpoint, HealthCheck, OnStatus, StartBudget, StartLimit, State, Status, Upstream, UpstreamOptions,
    },
};
