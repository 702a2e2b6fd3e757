use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use mcp_wire::meta_key;
use raw_json::RawJson;

use crate::ConnectionEvent;

/// Callback for progress of a request. Receives the params of the notification, which contain the token of this
/// connection; whoever forwards them replaces it by the caller's token.
pub type OnProgress = Arc<dyn Fn(RawJson) + Send + Sync>;

/// Callback for notifications that arrive together with the response of a request.
pub type OnNotification = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// Callback for one point in the life of a request.
pub type RequestHook = Arc<dyn Fn() + Send + Sync>;

/// Options of one request.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_client::RequestOptions;
///
/// let options = RequestOptions::with_timeout(Duration::from_secs(5))
///     .on_progress(|progress| println!("{progress}"));
/// assert!(options.on_progress.is_some());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Time to wait for the response, from the start or from the last progress.
    pub timeout: Duration,
    /// Maximum time to wait for the response, regardless of progress.
    pub max_total: Duration,
    /// Receives progress, in order and before the response. Runs on the connection's reader, so it must not block.
    pub on_progress: Option<OnProgress>,
    /// Receives other notifications that the server sends with the response, such as log messages, in order and before
    /// the response. Notifications about lists and resources are excluded, since they concern everybody. Only HTTP
    /// tells which request a notification belongs to; without this callback, and over stdio, it arrives at
    /// [`Connection::events`](crate::Connection::events).
    pub on_notification: Option<OnNotification>,
    /// Number chosen by the caller. [`ServerRequest::tag`](crate::ServerRequest::tag) repeats it for requests that the
    /// server sends with the response. Only HTTP tells which request they belong to.
    pub tag: Option<u64>,
    /// Called right before the first byte of the request is handed to the transport: from here on it may run. Over HTTP
    /// it is called again when a request that did not run is sent a second time, in a new session.
    pub on_sent: Option<RequestHook>,
    /// Called when the response has arrived, before the caller receives it.
    pub on_answered: Option<RequestHook>,
    /// Client capabilities that a modern server receives with this request, instead of those of the connection's
    /// handlers. A caller that sets them handles `input_required` itself. A legacy server receives the capabilities
    /// once, in the handshake.
    pub capabilities: Option<RawJson>,
    /// Minimum level of log messages that a modern server sends with this request, such as `info`; no messages if
    /// `None`. For a legacy server use [`Connection::set_log_level`](crate::Connection::set_log_level).
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
    /// Creates options with a timeout that progress does not extend.
    #[must_use]
    pub fn with_timeout(timeout: Duration) -> Self {
        Self {
            timeout,
            max_total: timeout,
            ..Self::default()
        }
    }

    /// Sets the time to wait for the response, from the start or from the last progress. Extends
    /// [`max_total`](field@Self::max_total) if that is shorter.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self.max_total = self.max_total.max(timeout);
        self
    }

    /// Sets the maximum time to wait for the response, regardless of progress.
    #[must_use]
    pub fn max_total(mut self, max: Duration) -> Self {
        self.max_total = max;
        self
    }

    /// Sets the callback for progress, see [`on_progress`](field@Self::on_progress).
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(RawJson) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(callback));
        self
    }

    /// Sets the callback for other notifications, see [`on_notification`](field@Self::on_notification).
    #[must_use]
    pub fn on_notification(mut self, callback: impl Fn(ConnectionEvent) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(callback));
        self
    }

    /// Sets the tag of the request.
    #[must_use]
    pub fn tag(mut self, tag: u64) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Sets the callback for the moment before the request is sent, see [`on_sent`](field@Self::on_sent).
    #[must_use]
    pub fn on_sent(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_sent = Some(Arc::new(callback));
        self
    }

    /// Sets the callback for the arrival of the response.
    #[must_use]
    pub fn on_answered(mut self, callback: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_answered = Some(Arc::new(callback));
        self
    }

    /// Sets the client capabilities of this request, see [`capabilities`](field@Self::capabilities).
    #[must_use]
    pub fn capabilities(mut self, capabilities: RawJson) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Sets the minimum level of log messages that a modern server sends with this request.
    #[must_use]
    pub fn log_level(mut self, level: impl Into<Arc<str>>) -> Self {
        self.log_level = Some(level.into());
        self
    }

    /// Content of `_meta` for a modern server: that of the connection, with the overrides of this request.
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
