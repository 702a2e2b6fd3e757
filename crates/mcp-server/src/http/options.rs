use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderValue, StatusCode, request::Parts};

use super::SharedAllowList;
use crate::{Notifier, Principal};

/// How requests over HTTP are served. The defaults suit a server on loopback.
#[derive(Clone)]
pub struct HttpServerOptions {
    /// The path that is served, such as `/mcp`; every path when it is nothing, for a service that a router mounts.
    pub path: Option<String>,
    /// The path at which clients of 2024-11-05 open their stream (HTTP+SSE), such as `/sse`: nothing, so that they are
    /// not served. What such a client is told and asked goes over that stream, and its calls end with it.
    pub old_clients: Option<String>,
    /// The names by which the server may be called, those of loopback, and the origins of web pages that may use it, its
    /// own. Keep a clone to change it while requests are served.
    pub allowed: SharedAllowList,
    /// The name of the server's own address, by which it may be called whatever else is allowed.
    pub own_host: Option<String>,
    /// Tells on whose behalf a request is made; without it every request is `anonymous`'s.
    pub identify: Option<Identify>,
    /// The largest request body in bytes: 4 MiB. A larger one is answered with 413.
    pub max_body: usize,
    /// How long a request body may take to arrive: 30 s.
    pub body_timeout: Duration,
    /// How many sessions are kept: 1,024. When there is no room, the one that has been idle longest goes of those of the
    /// principal that has the most.
    pub max_sessions: usize,
    /// How long an idle session is kept: 30 min.
    pub session_idle: Duration,
    /// Whether legacy requests must belong to a session: no. Sessions are opened for every client that initializes.
    pub requires_session: bool,
    /// How many streams may stand open on which clients listen, or wait for the rest of an answer: 768. Calls need
    /// connections, too, so this is best kept below [`ServeOptions::max_connections`](crate::ServeOptions::max_connections).
    pub max_streams: usize,
    /// How many of them may be one principal's: 512.
    pub max_streams_each: usize,
    /// How often a quiet stream is given a sign of life: 15 s.
    pub keep_alive: Duration,
    /// How many legacy requests whose connection was lost may work on: 256. The protocol does not take a lost
    /// connection of that era for a cancellation.
    pub max_detached: usize,
    /// What listening clients are told about changes.
    pub notices: Notifier,
}

/// Tells on whose behalf a request is made, from the head of the request; the extensions hold what layers in front
/// have found out.
pub type Identify = Arc<dyn Fn(&Parts) -> Result<Principal, RequestRefusal> + Send + Sync>;

/// Why a request is not served.
#[derive(Debug, Clone)]
pub struct RequestRefusal {
    /// The status to answer with, such as 401.
    pub status: StatusCode,
    /// The `WWW-Authenticate` header of the answer.
    pub authenticate: Option<HeaderValue>,
    /// What to tell the client.
    pub message: String,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            path: None,
            old_clients: None,
            allowed: SharedAllowList::default(),
            own_host: None,
            identify: None,
            max_body: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            max_sessions: 1024,
            session_idle: Duration::from_secs(30 * 60),
            requires_session: false,
            max_streams: 768,
            max_streams_each: 512,
            keep_alive: Duration::from_secs(15),
            max_detached: 256,
            notices: Notifier::default(),
        }
    }
}

impl fmt::Debug for HttpServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("path", &self.path)
            .field("old_clients", &self.old_clients)
            .field("allowed", &self.allowed)
            .field("own_host", &self.own_host)
            .field("identify", &self.identify.is_some())
            .field("max_body", &self.max_body)
            .field("max_sessions", &self.max_sessions)
            .finish_non_exhaustive()
    }
}
