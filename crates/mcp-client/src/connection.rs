use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use mcp_wire::{Era, Revision, RpcError, code, meta_key, method, with_meta};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::Instant,
};

use crate::{
    Changes, Command, ConnectionOptions, Counters, EraChoice, Error, ErrorKind, Events, Handlers,
    HttpEndpoint, RequestOptions, ServerInfo,
    changes::ChangeSink,
    features::listen_filter,
    http::{self, HttpLink},
    process::Process,
    server::{initialize_params, modern_meta},
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
    changes: ChangeSink,
    opened: OnceLock<Opened>,
    /// The resources of which a modern server is asked for news.
    subscribed: Mutex<BTreeSet<String>>,
}

enum Link {
    Stream(StreamLink),
    Http(HttpLink),
}

struct Opened {
    server: ServerInfo,
    /// What `_meta` of a modern request says.
    meta: Vec<(&'static str, RawJson)>,
}

impl Connection {
    /// Starts a program and opens a connection over its standard input and output.
    ///
    /// # Errors
    /// [`ErrorKind::StartFailed`] when the program cannot be run, ends, or does not open the connection in time;
    /// the error holds the end of what it wrote to stderr.
    pub async fn spawn(command: &Command, options: ConnectionOptions) -> Result<Self, Error> {
        Self::spawn_with(command, options, ChangeSink::default()).await
    }

    pub(crate) async fn spawn_with(
        command: &Command,
        options: ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, Error> {
        let (process, stdin, stdout) = Process::spawn(command, options.shutdown_grace)?;
        let link = StreamLink::open(stdout, stdin, Some(process), &options, changes.clone());
        Self::open(Link::Stream(link), options, changes).await
    }

    /// Opens a connection over a pair of byte streams, framed like stdio.
    ///
    /// # Errors
    /// [`ErrorKind::StartFailed`] when the other side does not open the connection in time.
    pub async fn over<R, W>(reader: R, writer: W, options: ConnectionOptions) -> Result<Self, Error>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let changes = ChangeSink::default();
        let link = StreamLink::open(reader, writer, None, &options, changes.clone());
        Self::open(Link::Stream(link), options, changes).await
    }

    /// Opens a connection over Streamable HTTP.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`], [`ErrorKind::Auth`], [`ErrorKind::HttpStatus`] or [`ErrorKind::StartFailed`],
    /// as the server answers or does not.
    pub async fn http(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, Error> {
        Self::http_with(endpoint, options, ChangeSink::default()).await
    }

    pub(crate) async fn http_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, Error> {
        let link = HttpLink::new(endpoint, &options, changes.clone())?;
        Self::open(Link::Http(link), options, changes).await
    }

    async fn open(link: Link, options: ConnectionOptions, changes: ChangeSink) -> Result<Self, Error> {
        let limit = options.start_timeout;
        let connection = Self(Arc::new(Inner {
            link,
            options,
            changes,
            opened: OnceLock::new(),
            subscribed: Mutex::default(),
        }));
        let opened = match tokio::time::timeout(limit, connection.handshake()).await {
            Ok(done) => done,
            Err(_) => Err(Error::new(ErrorKind::Timeout(limit))),
        };
        match opened {
            Ok(server) => {
                let meta = modern_meta(&connection.0.options, server.revision);
                connection.0.opened.get_or_init(|| Opened { server, meta });
                connection.after_handshake().await?;
                Ok(connection)
            }
            Err(error) => Err(connection.start_failed(error)),
        }
    }

    /// Finds out which era the server speaks, and opens the connection in it.
    async fn handshake(&self) -> Result<ServerInfo, Error> {
        match (self.0.options.era, &self.0.link) {
            (EraChoice::Legacy, _) => self.initialize().await,
            (EraChoice::Modern, _) => self.discover(self.0.options.start_timeout).await,
            (EraChoice::Auto, Link::Http(_)) => self.modern_first().await,
            (EraChoice::Auto, Link::Stream(_)) => self.legacy_first().await,
        }
    }

    /// Only what a modern server alone would say keeps from trying the other era.
    async fn modern_first(&self) -> Result<ServerInfo, Error> {
        let limit = (self.0.options.start_timeout / 2).min(PROBE);
        match self.discover(limit).await {
            Err(error) if may_be_legacy(&error) => self.initialize().await,
            done => done,
        }
    }

    async fn legacy_first(&self) -> Result<ServerInfo, Error> {
        match self.initialize().await {
            Err(error) if is_other_era(&error) => {
                // What the first try said is told when the second fails too: most servers are legacy.
                let limit = self.0.options.start_timeout;
                self.discover(limit).await.map_err(|_| error)
            }
            done => done,
        }
    }

    async fn initialize(&self) -> Result<ServerInfo, Error> {
        let options = RequestOptions::within(self.0.options.start_timeout);
        let params = initialize_params(&self.0.options);
        let result = self
            .send(method::INITIALIZE, Some(&params), None, options)
            .await?;
        ServerInfo::from_initialize(&result)
    }

    async fn discover(&self, limit: Duration) -> Result<ServerInfo, Error> {
        let meta = modern_meta(&self.0.options, Revision::LATEST);
        let ask = || self.send(method::DISCOVER, None, Some(&meta), RequestOptions::within(limit));
        let result = match ask().await {
            // The server may have had another revision in mind than the one that it was sent.
            Err(error) if supported(&error).contains(&Revision::LATEST) => ask().await?,
            done => done?,
        };
        ServerInfo::from_discover(&result)
    }

    async fn after_handshake(&self) -> Result<(), Error> {
        let server = self.server();
        let era = server.era();
        if let Link::Http(link) = &self.0.link {
            link.opened(server, initialize_params(&self.0.options));
        }
        if era == Era::Legacy {
            self.notify(method::INITIALIZED, None).await?;
        }
        let has_answers = !self.0.options.handlers.is_empty();
        let speaks = server.tells_changes()
            || era == Era::Modern
            || server.says("resources", "subscribe")
            || has_answers;
        if let Link::Http(link) = &self.0.link
            && speaks
        {
            link.listen(era, has_answers).await;
        }
        if era == Era::Modern && server.tells_changes() {
            self.listen_anew();
        }
        Ok(())
    }

    /// Tells a modern server what news are wanted now.
    pub(crate) fn listen_anew(&self) {
        let opened = self.0.opened.get().expect("a connection is open when it listens");
        // The lock is held until the wish is queued, so that of two wishes the later one counts.
        let subscribed = self.subscribed();
        let params =
            listen_filter(&opened.server, &subscribed).map(|filter| with_meta(Some(&filter), &opened.meta));
        match &self.0.link {
            Link::Stream(link) => link.want(params.as_ref()),
            Link::Http(link) => link.want(params),
        }
    }

    pub(crate) fn subscribed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.subscribed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn handlers(&self) -> &Handlers {
        &self.0.options.handlers
    }

    /// Takes note of a list of tools, and takes out what cannot be called.
    pub(crate) fn learn_tools(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        match &self.0.link {
            Link::Http(link) if self.server().era() == Era::Modern => link.learn_tools(tools),
            _ => tools,
        }
    }

    /// Words an error of the opening: what a child wrote to stderr often says best what is wrong.
    fn start_failed(&self, error: Error) -> Error {
        if matches!(
            error.kind(),
            ErrorKind::Auth { .. } | ErrorKind::HttpStatus { .. } | ErrorKind::Unreachable(_)
        ) {
            return error.sent(false);
        }
        let stderr = self.stderr_tail().unwrap_or_default();
        Error::new(ErrorKind::StartFailed {
            reason: error.to_string(),
            stderr,
        })
        .because(error)
    }

    /// Makes a request and waits for its result, which is the text that the server sent.
    ///
    /// # Errors
    /// [`ErrorKind::Rpc`] when the server answers with an error, [`ErrorKind::Timeout`] when it does not answer,
    /// and what else [`ErrorKind`] names; [`Error::was_sent`] tells whether the request may have run.
    pub async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: RequestOptions,
    ) -> Result<RawJson, Error> {
        let opened = self.0.opened.get();
        let meta = opened
            .filter(|opened| opened.server.era() == Era::Modern)
            .map(|opened| opened.meta.as_slice());
        if meta.is_some() && method == method::TOOLS_CALL && matches!(self.0.link, Link::Http(_)) {
            return self.call_with_headers(params.as_ref(), meta, options).await;
        }
        self.send(method, params.as_ref(), meta, options).await
    }

    /// Calls a tool over modern HTTP, where headers mirror arguments as the list of tools says. A server that misses
    /// one has not run the tool: its list is read again, and the call is made once more.
    async fn call_with_headers(
        &self,
        params: Option<&RawJson>,
        meta: Option<&[(&str, RawJson)]>,
        options: RequestOptions,
    ) -> Result<RawJson, Error> {
        match self.send(method::TOOLS_CALL, params, meta, options.clone()).await {
            Err(error)
                if error
                    .as_rpc()
                    .is_some_and(|error| error.code == code::HEADER_MISMATCH) =>
            {
                if Box::pin(self.list_tools()).await.is_err() {
                    return Err(error);
                }
                self.send(method::TOOLS_CALL, params, meta, options).await
            }
            done => done,
        }
    }

    async fn send(
        &self,
        method: &str,
        params: Option<&RawJson>,
        meta: Option<&[(&str, RawJson)]>,
        options: RequestOptions,
    ) -> Result<RawJson, Error> {
        let id = match &self.0.link {
            Link::Stream(link) => link.next_id(),
            Link::Http(link) => link.next_id(),
        };
        let token = options
            .on_progress
            .is_some()
            .then(|| [(meta_key::PROGRESS_TOKEN, RawJson::from(id))]);
        let token = token.as_ref().map_or(&[][..], |token| &token[..]);
        let changed = match (meta, token) {
            (None, []) => None,
            (meta, token) => Some(with_meta(params, &[meta.unwrap_or_default(), token].concat())),
        };
        let params = changed.as_ref().or(params);
        match &self.0.link {
            Link::Stream(link) => link.request(id, method, params, options).await,
            Link::Http(link) => link.request(id, method, params, options).await,
        }
    }

    /// Sends a notification; returns when it is queued, or over HTTP when the server has taken it.
    ///
    /// # Errors
    /// When the connection is closed or the server refuses.
    pub async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), Error> {
        match &self.0.link {
            Link::Stream(link) => link.notify(method, params).await,
            Link::Http(link) => link.notify(method, params).await,
        }
    }

    /// What the server said of itself.
    #[must_use]
    pub fn server(&self) -> &ServerInfo {
        &self
            .0
            .opened
            .get()
            .expect("a connection is handed out when it is open")
            .server
    }

    /// How often the server's lists have changed; follow it to keep a list fresh.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.0.changes.subscribe()
    }

    /// What the server tells that belongs to no request that is under way, from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.0.changes.events.subscribe()
    }

    /// What the server sent that nobody waited for.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match &self.0.link {
            Link::Stream(link) => link.counters(),
            Link::Http(link) => link.counters(),
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
    pub(crate) fn end(&self) -> (Error, Instant) {
        match &self.0.link {
            Link::Stream(link) => link.end(),
            Link::Http(_) => (http::shut_down(), Instant::now()),
        }
    }

    /// Waits until the connection is closed and says why.
    pub async fn closed(&self) -> Error {
        match &self.0.link {
            Link::Stream(link) => link.closed().await,
            Link::Http(link) => link.closed().await,
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

/// How long a server may take to say that it is a modern one before it is taken for a legacy one.
const PROBE: Duration = Duration::from_secs(5);

/// Which revisions a server names that refuses the one it was sent.
fn supported(error: &Error) -> Vec<Revision> {
    let refusal = error
        .as_rpc()
        .filter(|error| error.code == code::UNSUPPORTED_PROTOCOL_VERSION);
    let data = refusal.and_then(|error| error.data.as_ref()?.get("supported"));
    let names = data.into_iter().flat_map(|list| list.items().collect::<Vec<_>>());
    names.filter_map(|name| name.string()?.parse().ok()).collect()
}

/// Whether an answer to `server/discover` may come from a server of the other era: any that is no error of modern
/// servers, and none that both eras have in common.
fn may_be_legacy(error: &Error) -> bool {
    let is_modern = |error: &RpcError| {
        matches!(
            error.code,
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION
        )
    };
    match error.kind() {
        ErrorKind::Auth { .. } | ErrorKind::Unreachable(_) => false,
        ErrorKind::Rpc(refusal) if is_modern(refusal) => supported(error)
            .iter()
            .any(|revision| revision.era() == Era::Legacy),
        _ => true,
    }
}

/// Whether a refusal of `initialize` may come from a server of the other era.
fn is_other_era(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Rpc(_) | ErrorKind::Unsupported(_) => true,
        _ => error
            .http_status()
            .is_some_and(|(status, _)| (400..500).contains(&status)),
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.0.opened.get().map(|opened| &opened.server);
        f.debug_struct("Connection")
            .field("server", &server)
            .field("closed", &self.is_closed())
            .finish()
    }
}
