use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use mcp_wire::meta_key;
use raw_json::RawJson;

use crate::ConnectionEvent;

/// Takes what a server says of the progress of a request: the parameters of its notification, with the token of this
/// connection, which who passes them on replaces by the caller's.
pub type OnProgress = Arc<dyn Fn(RawJson) + Send + Sync>;

/// Takes a notification that came with the answer to a request.
pub type OnNotification = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// Is called at one point of a request's life.
pub type RequestHook = Arc<dyn Fn() + Send + Sync>;

/// How one request is made.
#[derive(Clone)]
pub struct RequestOptions {
    /// How long to wait for the answer, counted from the start or from the last progress.
    pub timeout: Duration,
    /// How long to wait for the answer whatever progress there is.
    pub max_total: Duration,
    /// Takes progress, in order and before the answer. Runs on the connection's reader, so it must not block.
    pub on_progress: Option<OnProgress>,
    /// Takes what else the server sends together with the answer, such as log messages, in order and before the
    /// answer; not what is about lists and resources, which is everybody's. Only HTTP tells which request such a message belongs to; without this, and over stdio, it is one of
    /// [`Connection::events`](crate::Connection::events).
    pub on_notification: Option<OnNotification>,
    /// A number of the caller's own, which [`ServerRequest::tag`](crate::ServerRequest::tag) repeats when the server
    /// asks for something together with the answer. Only HTTP tells which request a question belongs to.
    pub tag: Option<u64>,
    /// Is called right before the first byte of the request is handed to the transport: from here on it may run.
    /// Over HTTP it is called again when a request that did not run is sent a second time, to a session opened anew.
    pub on_sent: Option<RequestHook>,
    /// Is called when the answer has arrived, before the caller has it.
    pub on_answered: Option<RequestHook>,
    /// What a modern server is told that this request's client can be asked, in the place of what the handlers of the
    /// connection stand for: who sets it answers `input_required` itself. A legacy server is told once, when the
    /// connection is opened.
    pub capabilities: Option<RawJson>,
    /// The lowest level of log messages, such as `info`, that a modern server is to send with this request; none if
    /// absent. A legacy server is told with [`Connection::set_log_level`](crate::Connection::set_log_level).
    pub log_level: Option<Arc<str>>,
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_total: Duration::from_secs(300),
            on_progress: None,
            on_notification: None,
            tag: None,
            on_sent: None,
            on_answered: None,
            capabilities: None,
            log_level: None,
        }
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeout", &self.timeout)
            .field("max_total", &self.max_total)
            .finish_non_exhaustive()
    }
}

impl RequestOptions {
    /// Options with this timeout, which no progress extends.
    #[must_use]
    pub fn with_timeout(timeout: Duration) -> Self {
        Self {
            timeout,
            max_total: timeout,
            ..Self::default()
        }
    }

    /// What `_meta` of this request says to a modern server: what the connection says, and what is said otherwise of
    /// this request.
    pub(crate) fn modern_meta<'a>(
        &self,
        connection: &'a [(&'static str, RawJson)],
    ) -> Cow<'a, [(&'static str, RawJson)]> {
        let own = [
            (meta_key::CLIENT_CAPABILITIES, self.capabilities.clone()),
            (meta_key::LOG_LEVEL, self.log_level.as_deref().map(RawJson::from)),
        ];
        let mut meta = Cow::Borrowed(connection);
        for (key, value) in own {
            if let Some(value) = value {
                meta.to_mut().retain(|(other, _)| *other != key);
                meta.to_mut().push((key, value));
            }
        }
        meta
    }
}
