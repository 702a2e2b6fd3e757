mod connect;
mod handshake;
mod list;
mod methods;
mod options;
#[cfg(feature = "http")]
mod over_http;
mod request;
mod request_options;
mod server_info;
mod stats;
mod tool_result;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, OnceLock},
};

use mcp_wire::with_meta;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{sync::watch, time::Instant};

pub(crate) use self::stats::StatCounters;
pub use self::{
    list::{ListResult, ListTruncation, PageLimits},
    options::{ConnectionOptions, EraChoice},
    request_options::{OnNotification, OnProgress, RequestHook, RequestOptions},
    server_info::ServerInfo,
    stats::ConnectionStats,
    tool_result::ToolResult,
};
#[cfg(feature = "http")]
use crate::http::HttpLink;
use crate::{
    ChangeCounts, ClientError, EventReceiver,
    notifications::{Notifier, subscription_filter},
    stream::StreamLink,
};

/// Open connection to an MCP server. Runs any number of requests concurrently.
///
/// Cloning shares the connection. Dropping the last clone closes the connection at once and kills a child process with
/// all its descendants; [`shutdown`](Self::shutdown) ends both gracefully.
///
/// # Cancellation
/// Dropping the future of a request cancels it: nothing waits for it any longer, and the server is notified if it may
/// have received the request.
///
/// # Examples
///
/// ```no_run
/// use mcp_client::{Connection, ConnectionOptions, HttpEndpoint, RequestOptions, serde_json::json};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = HttpEndpoint::new("http://127.0.0.1:7301/mcp")?;
/// let connection = Connection::http(&endpoint, ConnectionOptions::default()).await?;
/// let result = connection.call_tool("echo", &json!({"text": "hello"}), RequestOptions::default()).await?;
/// println!("{}", result.text());
/// connection.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    link: Link,
    options: ConnectionOptions,
    notifier: Notifier,
    established: OnceLock<Established>,
    /// URIs of the resources that are subscribed to at a modern server.
    subscribed_uris: Mutex<BTreeSet<String>>,
}

pub(crate) enum Link {
    Stream(StreamLink),
    #[cfg(feature = "http")]
    Http(HttpLink),
}

struct Established {
    server: ServerInfo,
    /// Members of `_meta` of a modern request.
    meta: Vec<(&'static str, RawJson)>,
    /// The members of `meta` as one object.
    meta_object: RawJson,
}

impl Connection {
    /// Replaces the subscription at a modern server by what is wanted now.
    pub(crate) fn renew_subscription(&self) {
        let opened = self
            .0
            .established
            .get()
            .expect("a connection is open when it listens");
        // The lock is held until the subscription is queued, so that the later of two counts.
        let subscribed = self.subscribed_uris();
        let params = subscription_filter(&opened.server, &subscribed)
            .map(|filter| with_meta(Some(&filter), &opened.meta));
        match &self.0.link {
            Link::Stream(link) => link.set_subscription(params.as_ref()),
            #[cfg(feature = "http")]
            Link::Http(link) => link.set_subscription(params),
        }
    }

    pub(crate) fn subscribed_uris(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.subscribed_uris.lock()
    }

    pub(crate) fn options(&self) -> &ConnectionOptions {
        &self.0.options
    }

    pub(crate) fn link(&self) -> &Link {
        &self.0.link
    }

    /// Records which arguments of tools are mirrored as headers. Returns the tools that can be called.
    pub(crate) fn register_tools(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        match &self.0.link {
            #[cfg(feature = "http")]
            Link::Http(link) if self.server().era() == mcp_wire::Era::Modern => link.register_tools(tools),
            _ => tools,
        }
    }

    /// Information about the server from the handshake.
    #[must_use]
    pub fn server(&self) -> &ServerInfo {
        &self
            .0
            .established
            .get()
            .expect("a connection is handed out when it is open")
            .server
    }

    /// Watches the change counters of the server's lists. A counter that went up means that the list should be read
    /// again.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<ChangeCounts> {
        self.0.notifier.subscribe()
    }

    /// Subscribes to the notifications of the server that belong to no request in progress, from now on.
    #[must_use]
    pub fn events(&self) -> EventReceiver {
        self.0.notifier.events.subscribe()
    }

    /// Statistics of messages that no request waited for.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        match &self.0.link {
            Link::Stream(link) => link.stats(),
            #[cfg(feature = "http")]
            Link::Http(link) => link.stats(),
        }
    }

    /// Number of requests that wait for a response.
    #[must_use]
    pub fn pending(&self) -> usize {
        match &self.0.link {
            Link::Stream(link) => link.pending(),
            #[cfg(feature = "http")]
            Link::Http(link) => link.pending(),
        }
    }

    /// Tail of the stderr of a child process, or `None` for other connections.
    #[must_use]
    pub fn stderr_tail(&self) -> Option<String> {
        match &self.0.link {
            Link::Stream(link) => link.stderr_tail(),
            #[cfg(feature = "http")]
            Link::Http(_) => None,
        }
    }

    /// `true` if the connection is closed, so that no request can be made.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.0.link {
            Link::Stream(link) => link.is_closed(),
            #[cfg(feature = "http")]
            Link::Http(link) => link.is_closed(),
        }
    }

    /// Reason and time of the end of the connection.
    pub(crate) fn close_reason(&self) -> (ClientError, Instant) {
        match &self.0.link {
            Link::Stream(link) => link.close_reason(),
            #[cfg(feature = "http")]
            Link::Http(_) => (ClientError::shut_down(), Instant::now()),
        }
    }

    /// Waits until the connection is closed, and returns the reason.
    ///
    /// # Cancellation
    /// Dropping the future only stops waiting.
    pub async fn closed(&self) -> ClientError {
        match &self.0.link {
            Link::Stream(link) => link.closed().await,
            #[cfg(feature = "http")]
            Link::Http(link) => link.closed().await,
        }
    }

    /// Signal that turns `true` when the connection closes. It does not keep the connection open.
    pub(crate) fn closed_signal(&self) -> watch::Receiver<bool> {
        match &self.0.link {
            Link::Stream(link) => link.closed_signal(),
            #[cfg(feature = "http")]
            Link::Http(link) => link.closed_signal(),
        }
    }

    /// Ends the connection gracefully: requests in progress fail, the stdin of a child process is closed, and a child
    /// that does not end is sent SIGTERM and then SIGKILL, with its process group. Returns when no process is left.
    ///
    /// # Cancellation
    /// The connection is closed as soon as the future is polled. If it is dropped then, a child process goes on ending in
    /// the background, and is killed with the last clone of the connection. Over HTTP, the session may be left to expire
    /// at the server.
    pub async fn shutdown(&self) {
        match &self.0.link {
            Link::Stream(link) => link.shutdown().await,
            #[cfg(feature = "http")]
            Link::Http(link) => link.shutdown().await,
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.0.established.get().map(|opened| &opened.server);
        f.debug_struct("Connection")
            .field("server", &server)
            .field("closed", &self.is_closed())
            .finish()
    }
}
