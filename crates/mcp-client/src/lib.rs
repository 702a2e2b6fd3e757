//! MCP client that relays bytes untouched: stdio and Streamable HTTP, lazy start, supervision, deadlines.
//!
//! A [`Connection`] is one open connection: over a child process ([`Connection::spawn`]), over HTTP
//! ([`Connection::http`], for old servers [`Connection::sse`]), over WebSocket ([`Connection::websocket`], with the
//! feature `websocket`) or over any pair of byte streams ([`Connection::from_streams`]).
//!
//! An [`Upstream`] is a supervised server: started when it is first needed, and restarted with backoff after a failure.
//! Results are slices of the message that the server sent: no member is lost, no number is rounded. Both eras of the
//! protocol are spoken; [`EraChoice`] selects one or detects it. Requests of a server reach [`Handlers`], its
//! notifications arrive at an [`EventReceiver`].
//!
//! # Examples
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
//! The examples `list_tools` and `in_process` are complete programs.
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

mod connection;
mod error;
mod exchange;
mod format_duration;
mod http;
mod notifications;
mod process;
mod server_requests;
mod stream;
mod supervisor;
mod unbuffered_read;

pub use self::{
    connection::{
        Connection, ConnectionOptions, ConnectionStats, EraChoice, ListResult, ListTruncation,
        OnNotification, OnProgress, PageLimits, RequestHook, RequestOptions, ServerInfo,
    },
    error::{ClientError, ClientErrorKind},
    http::HttpEndpoint,
    notifications::{ChangeCounts, ConnectionEvent, EventReceiver},
    process::{BASE_VARIABLES, Command, base_environment},
    server_requests::{Handlers, InputRequiredResult, ServerRequest},
    supervisor::{
        Endpoint, HealthCheck, OnStatus, ServerState, ServerStatus, StartBudget, StartLimit, Upstream,
        UpstreamOptions,
    },
};
