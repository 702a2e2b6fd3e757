use std::{fmt, sync::Arc, time::Duration};

use http::request::Parts;

use super::{AuthenticateRequest, Identify, RequestRefusal, SharedAllowList};
use crate::{Notifier, Principal};

/// Options of an [`HttpService`](crate::HttpService). The defaults suit a server on loopback.
///
/// # Examples
///
/// ```
/// use mcp_server::{HttpServerOptions, Principal, RequestRefusal};
///
/// /// User of the program's own login, which a layer in front has put into the extensions of the request.
/// #[derive(Clone)]
/// struct User(String);
///
/// let options = HttpServerOptions::default()
///     .allow_host("tools.example.com")
///     .identify(|head| match head.extensions.get::<User>() {
///         Some(User(name)) => Ok(Principal::new(name.as_str())),
///         None => Err(RequestRefusal::unauthorized()),
///     })
///     .max_sessions(100);
/// assert_eq!(options.max_sessions, 100);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpServerOptions {
    /// Path that is served, such as `/mcp`. With `None` any path is, for a service that a router mounts.
    pub path: Option<String>,
    /// Path at which clients of revision 2024-11-05 open their stream (HTTP+SSE), such as `/sse`: `None`, so that they are not
    /// served. All messages to such a client use this stream, and its calls end with it.
    pub sse_path: Option<String>,
    /// Host names under which the server may be called: those of loopback; and origins of web pages that may use it: its own.
    /// Keep a clone to change the list while requests are served.
    pub allowed: SharedAllowList,
    /// Setting that admits a host name, as the refusal of a request names it: `HttpServerOptions::allow_host`. A program
    /// whose users set [`allowed`](Self::allowed) by a setting of its own gives the name of that one.
    pub host_setting: &'static str,
    /// Setting that admits an origin, likewise: `HttpServerOptions::allow_origin`.
    pub origin_setting: &'static str,
    /// Name of the server's own address, which is always allowed.
    pub own_host: Option<String>,
    /// Authenticates every request before its body is read, with time to ask a store or a server. Takes precedence over
    /// [`identify`](Self::identify).
    pub authenticate: Option<Arc<dyn AuthenticateRequest>>,
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

impl HttpServerOptions {
    /// Sets [`path`](Self#structfield.path), the path that is served.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets [`sse_path`](Self#structfield.sse_path), the path of clients of revision 2024-11-05.
    #[must_use]
    pub fn sse_path(mut self, sse_path: impl Into<String>) -> Self {
        self.sse_path = Some(sse_path.into());
        self
    }

    /// Sets [`allowed`](Self#structfield.allowed), the host names and origins that are allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<SharedAllowList>) -> Self {
        self.allowed = allowed.into();
        self
    }

    /// Adds a host name under which the server may be called, such as `tools.example.com`, to [`allowed`](Self#structfield.allowed).
    #[must_use]
    pub fn allow_host(self, host: impl Into<String>) -> Self {
        self.allowed.update(|allowed| allowed.host(host));
        self
    }

    /// Adds the origin of web pages that may use the server, such as `https://example.com`, to [`allowed`](Self#structfield.allowed).
    #[must_use]
    pub fn allow_origin(self, origin: impl Into<String>) -> Self {
        self.allowed.update(|allowed| allowed.origin(origin));
        self
    }

    /// Sets the names of the settings by which the program's users admit a host name and an origin, for the refusals that
    /// name them.
    #[must_use]
    pub fn setting_names(mut self, host: &'static str, origin: &'static str) -> Self {
        self.host_setting = host;
        self.origin_setting = origin;
        self
    }

    /// Sets [`own_host`](Self#structfield.own_host), the name of the server's own address.
    #[must_use]
    pub fn own_host(mut self, own_host: impl Into<String>) -> Self {
        self.own_host = Some(own_host.into());
        self
    }

    /// Sets [`authenticate`](Self#structfield.authenticate), which authenticates every request.
    #[must_use]
    pub fn authenticate(mut self, authenticate: impl AuthenticateRequest + 'static) -> Self {
        self.authenticate = Some(Arc::new(authenticate));
        self
    }

    /// Sets [`identify`](Self#structfield.identify), the function that identifies the principal of a request.
    #[must_use]
    pub fn identify(
        mut self,
        identify: impl Fn(&Parts) -> Result<Principal, RequestRefusal> + Send + Sync + 'static,
    ) -> Self {
        self.identify = Some(Arc::new(identify));
        self
    }

    /// Requires a login in front: the principal is the [`Principal`] that a layer has put into the extensions of the request.
    /// A request without one is refused, as [`RequestRefusal::unauthorized`].
    #[must_use]
    pub fn require_principal(self) -> Self {
        self.identify(|head| {
            let principal = head.extensions.get::<Principal>().cloned();
            principal.ok_or_else(RequestRefusal::unauthorized)
        })
    }

    /// Sets [`max_body`](Self#structfield.max_body).
    #[must_use]
    pub fn max_body(mut self, max_body: usize) -> Self {
        self.max_body = max_body;
        self
    }

    /// Sets [`body_timeout`](Self#structfield.body_timeout).
    #[must_use]
    pub fn body_timeout(mut self, body_timeout: Duration) -> Self {
        self.body_timeout = body_timeout;
        self
    }

    /// Sets [`max_sessions`](Self#structfield.max_sessions).
    #[must_use]
    pub fn max_sessions(mut self, max_sessions: usize) -> Self {
        self.max_sessions = max_sessions;
        self
    }

    /// Sets [`session_idle`](Self#structfield.session_idle).
    #[must_use]
    pub fn session_idle(mut self, session_idle: Duration) -> Self {
        self.session_idle = session_idle;
        self
    }

    /// Sets [`requires_session`](Self#structfield.requires_session).
    #[must_use]
    pub fn requires_session(mut self, requires_session: bool) -> Self {
        self.requires_session = requires_session;
        self
    }

    /// Sets [`max_streams`](Self#structfield.max_streams).
    #[must_use]
    pub fn max_streams(mut self, max_streams: usize) -> Self {
        self.max_streams = max_streams;
        self
    }

    /// Sets [`max_streams_each`](Self#structfield.max_streams_each).
    #[must_use]
    pub fn max_streams_each(mut self, max_streams_each: usize) -> Self {
        self.max_streams_each = max_streams_each;
        self
    }

    /// Sets [`keep_alive`](Self#structfield.keep_alive).
    #[must_use]
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets [`max_detached`](Self#structfield.max_detached).
    #[must_use]
    pub fn max_detached(mut self, max_detached: usize) -> Self {
        self.max_detached = max_detached;
        self
    }

    /// Sets [`notifier`](Self#structfield.notifier), the source of notifications.
    #[must_use]
    pub fn notifier(mut self, notifier: Notifier) -> Self {
        self.notifier = notifier;
        self
    }
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            path: None,
            sse_path: None,
            allowed: SharedAllowList::default(),
            host_setting: "HttpServerOptions::allow_host",
            origin_setting: "HttpServerOptions::allow_origin",
            own_host: None,
            authenticate: None,
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
            .field("authenticate", &self.authenticate.is_some())
            .field("identify", &self.identify.is_some())
            .field("max_body", &self.max_body)
            .field("max_sessions", &self.max_sessions)
            .finish_non_exhaustive()
    }
}
