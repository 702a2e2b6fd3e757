use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use mcp_wire::{Era, Params, code, meta_key, method, with_meta};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncWrite, split},
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{
    Changes, ClientError, ClientErrorKind, Command, ConnectionOptions, Counters, EraChoice, Events,
    HttpEndpoint, RequestOptions, ServerInfo,
    changes::ChangeSink,
    exchange::Exchange,
    features::listen_filter,
    http::{self, HttpLink},
    process::Process,
    server::modern_meta,
    stream::{StreamLink, Waiting},
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

pub(crate) enum Link {
    Stream(StreamLink),
    Http(HttpLink),
}

/// What `_meta` of a request says.
enum Meta<'a> {
    /// What the connection says of itself, and nothing else.
    Usual(&'a Opened),
    Members(Cow<'a, [(&'static str, RawJson)]>),
}

/// A request that is ready to be waited for.
enum Begun<'a> {
    Stream(Waiting<'a>),
    /// Large beside the other, which has no room for it.
    Http(Pin<Box<dyn Future<Output = Result<RawJson, ClientError>> + Send + 'a>>),
}

struct Opened {
    server: ServerInfo,
    /// What `_meta` of a modern request says.
    meta: Vec<(&'static str, RawJson)>,
    /// The same as an object.
    meta_object: RawJson,
}

impl Connection {
    /// Starts a program and opens a connection over its standard input and output.
    ///
    /// # Errors
    /// [`ClientErrorKind::StartFailed`] when the program cannot be run, ends, or does not open the connection in time;
    /// the error holds the end of what it wrote to stderr.
    pub async fn spawn(command: &Command, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::spawn_with(command, options, ChangeSink::default()).await
    }

    pub(crate) async fn spawn_with(
        command: &Command,
        options: ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, ClientError> {
        let (process, stdin, stdout) = Process::spawn(command, options.shutdown_grace)?;
        let link = StreamLink::open(stdout, stdin, Some(process), &options, changes.clone());
        Self::open(Link::Stream(link), options, changes).await
    }

    /// Opens a connection over a pair of byte streams, framed like stdio.
    ///
    /// # Errors
    /// [`ClientErrorKind::StartFailed`] when the other side does not open the connection in time.
    pub async fn over<R, W>(reader: R, writer: W, options: ConnectionOptions) -> Result<Self, ClientError>
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
    /// [`ClientErrorKind::Unreachable`], [`ClientErrorKind::Auth`], [`ClientErrorKind::HttpStatus`] or [`ClientErrorKind::StartFailed`],
    /// as the server answers or does not.
    pub async fn http(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::http_with(endpoint, options, ChangeSink::default()).await
    }

    pub(crate) async fn http_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, ClientError> {
        let link = HttpLink::new(endpoint, &options, changes.clone())?;
        let done = Self::open(Link::Http(link), options.clone(), changes.clone()).await;
        match done {
            Err(error)
                if endpoint.or_sse && options.era != EraChoice::Modern && error.refuses_transport() =>
            {
                // What the first try said is told when the second fails too: most servers speak Streamable HTTP.
                Self::sse_with(endpoint, options, changes)
                    .await
                    .map_err(|_| error)
            }
            done => done,
        }
    }

    /// Opens a connection over HTTP+SSE, the transport of 2024-11-05, for servers that speak no other.
    ///
    /// # Errors
    /// As [`http`](Self::http), and [`ClientErrorKind::Invalid`] when a modern server is asked for: none speaks it.
    pub async fn sse(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::sse_with(endpoint, options, ChangeSink::default()).await
    }

    pub(crate) async fn sse_with(
        endpoint: &HttpEndpoint,
        mut options: ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, ClientError> {
        if options.era == EraChoice::Modern {
            let detail = "modern servers do not speak HTTP+SSE";
            return Err(ClientError::new(ClientErrorKind::Invalid(detail.to_owned())));
        }
        options.era = EraChoice::Legacy;
        let opened = http::open_sse(endpoint, &options).await?;
        let (reader, writer) = split(opened.lines);
        let link = StreamLink::open(reader, writer, None, &options, changes.clone());
        link.fail_as_told(opened.failures);
        Self::open(Link::Stream(link), options, changes).await
    }

    /// Opens a connection over WebSocket, with the subprotocol `mcp` and one message in each text frame. The endpoint is
    /// made by [`HttpEndpoint::websocket`].
    ///
    /// # Errors
    /// As [`http`](Self::http), and [`ClientErrorKind::Invalid`] where the feature `websocket` is left out.
    pub async fn websocket(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::websocket_with(endpoint, options, ChangeSink::default()).await
    }

    pub(crate) async fn websocket_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, ClientError> {
        let (lines, carrier) = http::open_websocket(endpoint, &options).await?;
        let (reader, writer) = split(lines);
        let link = StreamLink::open(reader, writer, None, &options, changes.clone());
        tokio::spawn(carrier.run(link.end_signal(), link.end_of_stream()));
        Self::open(Link::Stream(link), options, changes).await
    }

    async fn open(link: Link, options: ConnectionOptions, changes: ChangeSink) -> Result<Self, ClientError> {
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
            Err(_) => Err(ClientError::new(ClientErrorKind::Timeout(limit))),
        };
        match opened {
            Ok(server) => {
                let meta = modern_meta(&connection.0.options, server.revision);
                let meta_object = RawJson::object().with_members(&meta);
                let meta_object = meta_object.expect("an empty object is an object");
                connection.0.opened.get_or_init(|| Opened {
                    server,
                    meta,
                    meta_object,
                });
                connection.after_handshake().await?;
                Ok(connection)
            }
            Err(error) => Err(connection.start_failed(error)),
        }
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
        self.0.subscribed.lock()
    }

    pub(crate) fn options(&self) -> &ConnectionOptions {
        &self.0.options
    }

    pub(crate) fn link(&self) -> &Link {
        &self.0.link
    }

    /// Takes note of a list of tools, and takes out what cannot be called.
    pub(crate) fn learn_tools(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        match &self.0.link {
            Link::Http(link) if self.server().era() == Era::Modern => link.learn_tools(tools),
            _ => tools,
        }
    }

    /// Makes a request and waits for its result, which is the text that the server sent.
    ///
    /// # Errors
    /// [`ClientErrorKind::Rpc`] when the server answers with an error, [`ClientErrorKind::Timeout`] when it does not answer,
    /// and what else [`ClientErrorKind`] names; [`ClientError::was_sent`] tells whether the request may have run.
    pub async fn request(
        &self,
        method: &str,
        params: impl Into<Params>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let mut begun = self.begin_opened(method, params.into(), options)?;
        begun.outcome().await
    }

    /// Makes a request ready on a connection that is open.
    fn begin_opened<'a>(
        &'a self,
        method: &'a str,
        params: Params,
        options: RequestOptions,
    ) -> Result<Begun<'a>, ClientError> {
        let modern = self
            .0
            .opened
            .get()
            .filter(|opened| opened.server.era() == Era::Modern);
        let meta = modern.map(|opened| match options.modern_meta(&opened.meta) {
            Cow::Borrowed(_) => Meta::Usual(opened),
            own => Meta::Members(own),
        });
        self.begin(method, params, meta, options)
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        params: Option<&RawJson>,
        meta: Option<&[(&'static str, RawJson)]>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let meta = meta.map(|meta| Meta::Members(Cow::Borrowed(meta)));
        let mut begun = self.begin(method, params.cloned().into(), meta, options)?;
        begun.outcome().await
    }

    /// Makes a request ready, so that the future of the caller has room for what is waited for and nothing else.
    fn begin<'a>(
        &'a self,
        method: &'a str,
        mut params: Params,
        meta: Option<Meta<'_>>,
        options: RequestOptions,
    ) -> Result<Begun<'a>, ClientError> {
        let is_modern = meta.is_some();
        if let Some(meta) = meta {
            meta.put_into(&mut params);
        }
        match &self.0.link {
            Link::Stream(link) => {
                let id = link.next_id();
                let params = addressed(id, &params, &options);
                let call = link.begin(id, method, &params, options)?;
                Ok(Begun::Stream(call))
            }
            Link::Http(link) => {
                let call = self.over_http(link, method, params, is_modern, options);
                Ok(Begun::Http(Box::pin(call)))
            }
        }
    }

    /// Makes a request over HTTP. Modern servers want headers that mirror a tool's arguments as the list of tools says:
    /// one that misses one has not run the tool, so its list is read again, and the call is made once more.
    async fn over_http(
        &self,
        link: &HttpLink,
        method: &str,
        params: Params,
        is_modern: bool,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let exchange = Exchange::new(options);
        match post(link, method, &params, &exchange).await {
            Err(error) if is_modern && method == method::TOOLS_CALL && lacks_header(&error) => {
                // Rare, and the future of every call would have room for it.
                let again = async {
                    // The server has looked at the headers alone.
                    exchange.mark_unsent();
                    match timeout_at(exchange.deadline(), self.list_tools()).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(_)) => return Err(error),
                        Err(_) => return Err(exchange.timed_out()),
                    }
                    post(link, method, &params, &exchange).await
                };
                Box::pin(again).await
            }
            done => done,
        }
    }

    /// Sends a notification; returns when it is queued, or over HTTP when the server has taken it.
    ///
    /// # Errors
    /// When the connection is closed or the server refuses.
    pub async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), ClientError> {
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
    pub(crate) fn end(&self) -> (ClientError, Instant) {
        match &self.0.link {
            Link::Stream(link) => link.end(),
            Link::Http(_) => (http::shut_down(), Instant::now()),
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
    pub(crate) fn end_signal(&self) -> watch::Receiver<bool> {
        match &self.0.link {
            Link::Stream(link) => link.end_signal(),
            Link::Http(link) => link.end_signal(),
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

impl Begun<'_> {
    async fn outcome(&mut self) -> Result<RawJson, ClientError> {
        match self {
            Self::Stream(call) => call.outcome().await,
            Self::Http(call) => call.await,
        }
    }
}

async fn post(
    link: &HttpLink,
    method: &str,
    params: &Params,
    exchange: &Exchange,
) -> Result<RawJson, ClientError> {
    let id = link.next_id();
    let params = addressed(id, params, exchange.options());
    link.request(id, method, &params, exchange).await
}

/// The parameters of a request with the token of its progress, if anybody wants to know of that.
fn addressed<'a>(id: u64, params: &'a Params, options: &RequestOptions) -> Cow<'a, Params> {
    let mut params = Cow::Borrowed(params);
    if options.on_progress.is_some() {
        let token = [(meta_key::PROGRESS_TOKEN, RawJson::from(id))];
        params.to_mut().add_to_meta(&token);
    }
    params
}

impl Meta<'_> {
    /// Has parameters say this.
    fn put_into(&self, params: &mut Params) {
        match self {
            Self::Usual(opened) => params.add_object_to_meta(&opened.meta_object),
            Self::Members(members) => params.add_to_meta(members),
        }
    }
}

/// Whether a modern server missed a header that mirrors an argument.
fn lacks_header(error: &ClientError) -> bool {
    error
        .as_rpc()
        .is_some_and(|error| error.code == code::HEADER_MISMATCH)
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
