use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderValue, StatusCode, request::Parts};

use super::SharedAllowList;
use crate::{Notifier, Principal};

/// Options of an [`HttpService`](crate::HttpService). The defaults suit a server on loopback.
#[derive(Clone)]
pub struct HttpServerOptions {
    /// Path that is served, such as `/mcp`. With `None` any path is, for a service that a router mounts.
    pub path: Option<String>,
    /// Path at which clients of revision 2024-11-05 open their stream (HTTP+SSE), such as `/sse`: `None`, so that they are not
    /// served. All messages to such a client use this stream, and its calls end with it.
    pub sse_path: Option<String>,
    /// Host names under which the server may be called: those of loopback; and origins of web pages that may use it: its own.
    /// Keep a clone to change the list while requests are served.
    pub allowed: SharedAllowList,
    /// Name of the server's own address, which is always allowed.
    pub own_host: Option<String>,
    /// Identifies the principal of a request. Without it, the principal of all requests is `anonymous`.
    pub identify: Option<Identify>,
    /// Maximum size of a request body, in bytes: 4 MiB. A larger one is answered with 413.
    pub max_body: usize,
    /// Maximum time for a request body to arrive: 30 s.
    pub body_timeout: Duration,
    /// Maximum number of sessions: 1,024. If there is no room, the longest idle session of the principal with the most
    /// sessions is ended.
    pub max_sessions: usize,
    /// Time for which an idle session is kept: 30 min.
    pub session_idle: Duration,
    /// `true` if legacy requests must belong to a session: `false`. Every client that initializes gets a session.
    pub requires_session: bool,
    /// Maximum number of streams on which clients listen, or resume a response: 768. Calls need connections, too, so this is
    /// best kept below [`ServeOptions::max_connections`](crate::ServeOptions::max_connections).
    pub max_streams: usize,
    /// Maximum number of such streams of one principal: 512.
    pub max_streams_each: usize,
    /// Interval of the comments that keep a quiet stream open: 15 s.
    pub keep_alive: Duration,
    /// Maximum number of legacy requests that go on after their connection was lost: 256. In that era, a lost connection does
    /// not cancel a request.
    pub max_detached: usize,
    /// Source of the notifications that listening clients receive.
    pub notifier: Notifier,
}

/// Function that identifies the principal of a request by its head. The extensions of the head have the findings of layers
/// in front.
pub type Identify = Arc<dyn Fn(&Parts) -> Result<Principal, RequestRefusal> + Send + Sync>;

/// Refusal of a request whose principal is not identified.
#[derive(Debug, Clone)]
pub struct RequestRefusal {
    /// Status of the response, such as 401.
    pub status: StatusCode,
    /// `WWW-Authenticate` header of the response.
    pub authenticate: Option<HeaderValue>,
    /// Message to the client.
    pub message: String,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            path: None,
            sse_path: None,
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
            notifier: Notifier::default(),
        }
    }
}

impl fmt::Debug for HttpServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServerOptions")
            .field("path", &self.path)
            .field("sse_path", &self.sse_path)
            .field("allowed", &self.allowed)
            .field("own_host", &self.own_host)
            .field("identify", &self.identify.is_some())
            .field("max_body", &self.max_body)
            .field("max_sessions", &self.max_sessions)
            .finish_non_exhaustive()
    }
}
