mod connect;
mod exchange;
mod handshake;
mod list;
mod methods;
mod options;
mod request;
mod request_options;
mod server_info;
mod stats;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, OnceLock},
};

use mcp_wire::{Era, with_meta};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{sync::watch, time::Instant};

pub(crate) use self::{
    exchange::{Exchange, catch_panic},
    stats::StatCounters,
};
pub use self::{
    list::{ListResult, ListTruncation, PageLimits},
    options::{ConnectionOptions, EraChoice},
    request_options::{OnNotification, OnProgress, RequestHook, RequestOptions},
    server_info::ServerInfo,
    stats::ConnectionStats,
};
use crate::{
    ChangeCounts, ClientError, EventReceiver,
    http::HttpLink,
    notifications::{Notifier, subscription_filter},
    stream::StreamLink,
};

/// One open connection to an MCP server, over which any number of requests run at once.
///
/// Cloning shares the connection. When the last clone is dropped the connection ends at once, and a child process is
/// killed with everything it has started; [`shutdown`](Self::shutdown) ends both in order.
///
/// # Cancellation
/// Dropping the future of a request cancels it: nothing waits for it any longer, and the server is told if it may
/// have seen it.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    link: Link,
    options: ConnectionOptions,
    notifier: Notifier,
    established: OnceLock<Established>,
    /// The resources of which a modern server is asked for news.
    subscribed_uris: Mutex<BTreeSet<String>>,
}

pub(crate) enum Link {
    Stream(StreamLink),
    Http(HttpLink),
}

struct Established {
    server: ServerInfo,
    /// What `_meta` of a modern request says.
    meta: Vec<(&'static str, RawJson)>,
    /// The same as an object.
    meta_object: RawJson,
}

impl Connection {
    /// Tells a modern server what news are wanted now.
    pub(crate) fn renew_subscription(&self) {
        let opened = self
            .0
            .established
            .get()
            .expect("a connection is open when it listens");
        // The lock is held until the wish is queued, so that of two wishes the later one counts.
        let subscribed = self.subscribed_uris();
        let params = subscription_filter(&opened.server, &subscribed)
            .map(|filter| with_meta(Some(&filter), &opened.meta));
        match &self.0.link {
            Link::Stream(link) => link.set_subscription(params.as_ref()),
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

    /// Takes note of a list of tools, and takes out what cannot be called.
    pub(crate) fn register_tools(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        match &self.0.link {
            Link::Http(link) if self.server().era() == Era::Modern => link.register_tools(tools),
            _ => tools,
        }
    }

    /// What the server said of itself.
    #[must_use]
    pub fn server(&self) -> &ServerInfo {
        &self
            .0
            .established
            .get()
            .expect("a connection is handed out when it is open")
            .server
    }

    /// How often the server's lists have changed; follow it to keep a list fresh.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<ChangeCounts> {
        self.0.notifier.subscribe()
    }

    /// What the server tells that belongs to no request that is under way, from now on.
    #[must_use]
    pub fn events(&self) -> EventReceiver {
        self.0.notifier.events.subscribe()
    }

    /// What the server sent that nobody waited for.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        match &self.0.link {
            Link::Stream(link) => link.stats(),
            Link::Http(link) => link.stats(),
        }
    }

    /// How many requests wait for an answer.
    #[must_use]
    pub fn pending(&self) -> usize {
        match &self.0.link {
            Link::Stream(link) => link.pending(),
            Link::Http(link) => link.pending(),
        }
    }

    /// The end of what a child process wrote to stderr; nothing for other connections.
    #[must_use]
    pub fn stderr_tail(&self) -> Option<String> {
        match &self.0.link {
            Link::Stream(link) => link.stderr_tail(),
            Link::Http(_) => None,
        }
    }

    /// Whether no request can be made any longer.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.0.link {
            Link::Stream(link) => link.is_closed(),
            Link::Http(link) => link.is_closed(),
        }
    }

    /// Why the connection is closed, and since when.
    pub(crate) fn close_reason(&self) -> (ClientError, Instant) {
        match &self.0.link {
            Link::Stream(link) => link.close_reason(),
            Link::Http(_) => (ClientError::shut_down(), Instant::now()),
        }
    }

    /// Waits until the connection is closed and says why.
    pub async fn closed(&self) -> ClientError {
        match &self.0.link {
            Link::Stream(link) => link.closed().await,
            Link::Http(link) => link.closed().await,
        }
    }

    /// Turns true when the connection closes; keeps nothing open.
    pub(crate) fn closed_signal(&self) -> watch::Receiver<bool> {
        match &self.0.link {
            Link::Stream(link) => link.closed_signal(),
            Link::Http(link) => link.closed_signal(),
        }
    }

    /// Ends the connection in order: requests that are under way fail, a child's input is closed, and a child that
    /// does not end by itself is sent SIGTERM and then SIGKILL, with all processes of its group. Returns when
    /// nothing is left.
    pub async fn shutdown(&self) {
        match &self.0.link {
            Link::Stream(link) => link.shutdown().await,
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
