//! Connection pool of one server.
//!
//! The caller of an HTTP/1.1 request also drives its connection, see [`super::http1`]. With a task for each connection,
//! as in general clients, every request wakes the task and every answer wakes the caller, which costs more than the
//! exchange itself. HTTP/2 uses one connection with a task for all requests; it is negotiated with `https://` servers
//! only.
//!
//! A connection is used on the runtime that created it, whose reactor reports its events. On another one every answer
//! would first have to wake a thread of the old runtime, or would never arrive if that runtime is no longer driven.

use std::{
    error::Error as StdError,
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, uri::PathAndQuery};
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use tokio::{
    runtime::{self, Handle},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tower_service::Service as _;

use super::{
    byte_stream::{CheckedSocket, ExchangeProgress, RequestBody},
    http1::{Connection, ExchangeError},
    http2::{Http2Error, Http2Sender},
    response::HttpResponse,
    tls::TlsSettings,
};
use crate::{ClientError, ClientErrorKind};

/// Minimum time for which an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// Maximum number of idle connections.
const MAX_IDLE: usize = 256;
/// Maximum time for the TCP connection, and for the TLS handshake.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Headers of one request.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// Connection pool of one server.
pub(crate) struct Pool {
    connector: HttpConnector,
    tls: Option<TlsSettings>,
    server: Uri,
    /// Form of `server` that HTTP/1.1 sends: only the path.
    target: Uri,
    /// Headers of every request, including `Host` over HTTP/1.1.
    headers: HeaderMap,
    /// Set if `Host` is configured, so that it is also sent over HTTP/2.
    has_own_host: bool,
    idle: Mutex<Vec<IdleConnection>>,
    shared: Mutex<Option<Http2Connection>>,
    /// Task that closes unused connections.
    sweeper: Mutex<Option<AbortHandle>>,
}

/// Idle HTTP/1.1 connection.
struct IdleConnection {
    connection: Box<Connection>,
    /// Set by the sweeper. Using the connection removes it from the pool.
    is_stale: bool,
}

/// HTTP/2 connection.
struct Http2Connection {
    runtime: runtime::Id,
    sender: Http2Sender,
    /// Set by the sweeper, and reset by each use.
    is_stale: bool,
}

/// Connection that can send a request.
enum Checkout {
    Http1(Box<Connection>),
    Http2(Http2Sender),
}

/// Error of a request without a complete answer.
pub(crate) struct TransportError {
    /// Set if not a byte of the request was sent.
    pub(crate) unsent: bool,
    pub(crate) error: ClientError,
}

impl Pool {
    /// Creates an empty pool. Uses TLS if `tls` is set.
    pub(super) fn new(
        connector: HttpConnector,
        tls: Option<TlsSettings>,
        server: Uri,
        mut headers: HeaderMap,
    ) -> Arc<Self> {
        let has_own_host = headers.contains_key(header::HOST);
        if let Some(authority) = server.authority()
            && !has_own_host
        {
            let host = authority.as_str().parse().expect("an authority is visible ASCII");
            headers.insert(header::HOST, host);
        }
        let path = server.path_and_query().cloned();
        Arc::new(Self {
            connector,
            tls,
            target: path.unwrap_or_else(|| PathAndQuery::from_static("/")).into(),
            server,
            headers,
            has_own_host,
            idle: Mutex::default(),
            shared: Mutex::default(),
            sweeper: Mutex::default(),
        })
    }

    /// Sends a request.
    pub(super) async fn send(
        self: &Arc<Self>,
        method: Method,
        headers: Headers,
        mut body: Bytes,
    ) -> Result<HttpResponse, TransportError> {
        loop {
            let known = self.take();
            let is_new = known.is_none();
            let usable = match known {
                Some(usable) => usable,
                // Boxed: rare, and large.
                None => Box::pin(self.connect()).await?,
            };
            match usable {
                Checkout::Http1(mut connection) => {
                    let request = self.request(&method, &headers, true);
                    match connection.exchange(request, &mut body).await {
                        Ok(answer) => {
                            return Ok(HttpResponse::from_http1(connection, answer, Arc::clone(self)));
                        }
                        // The server has closed the idle connection meanwhile, and nothing was sent.
                        Err(ExchangeError { unsent: true, .. }) if !is_new => {}
                        Err(ExchangeError { fault, unsent }) => {
                            let error = ClientError::from(fault).with_sent(!unsent);
                            return Err(TransportError { unsent, error });
                        }
                    }
                }
                Checkout::Http2(mut sender) => {
                    let request = self.request(&method, &headers, false);
                    let request = request.map(|()| RequestBody::new(body.clone(), Arc::default()));
                    match Box::pin(sender.send(request)).await {
                        Ok(answer) => return Ok(HttpResponse::from_http2(answer)),
                        // The server has closed the connection meanwhile.
                        Err(Http2Error { unsent: true, .. }) if !is_new => {
                            *self.shared.lock() = None;
                        }
                        Err(Http2Error { error, unsent }) => {
                            return Err(TransportError {
                                unsent,
                                error: ClientError::closed(innermost(&error)).with_sent(!unsent),
                            });
                        }
                    }
                }
            }
        }
    }

    /// Builds a request without its body. HTTP/1.1 sends the host in a header and only the path in the request line.
    fn request(&self, method: &Method, own: &Headers, is_http1: bool) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = method.clone();
        *request.uri_mut() = if is_http1 { &self.target } else { &self.server }.clone();
        let headers = request.headers_mut();
        headers.clone_from(&self.headers);
        headers.reserve(own.len());
        if !is_http1 && !self.has_own_host {
            headers.remove(header::HOST);
        }
        for (name, value) in own {
            headers.insert(name, value.clone());
        }
        request
    }

    async fn connect(self: &Arc<Self>) -> Result<Checkout, TransportError> {
        let stream = self.connector.clone().call(self.server.clone()).await;
        let stream = stream.map_err(unreachable_server)?.into_inner();
        self.ensure_sweeper();
        let progress = Arc::<ExchangeProgress>::default();
        let socket = CheckedSocket::new(stream, Arc::clone(&progress));
        let Some(tls) = &self.tls else {
            let connection = Connection::new(socket, progress).await;
            return connection
                .map(|made| Checkout::Http1(Box::new(made)))
                .map_err(unreachable_server);
        };
        let opening = timeout(CONNECT_TIMEOUT, tls.connect(socket));
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "timeout of the TLS handshake");
        let (stream, is_http2) = opening
            .await
            .map_err(late)
            .flatten()
            .map_err(unreachable_server)?;
        if !is_http2 {
            let connection = Connection::new(stream, progress).await;
            return connection
                .map(|made| Checkout::Http1(Box::new(made)))
                .map_err(unreachable_server);
        }
        let sender = Http2Sender::start(stream).await.map_err(unreachable_server)?;
        *self.shared.lock() = Some(Http2Connection {
            runtime: Handle::current().id(),
            sender: sender.clone(),
            is_stale: false,
        });
        Ok(Checkout::Http2(sender))
    }

    /// Starts the sweeper unless it is running. It ends with its runtime.
    fn ensure_sweeper(self: &Arc<Self>) {
        let mut sweeper = self.sweeper.lock();
        if sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            *sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Takes the most recently used connection of this runtime, so that surplus connections become stale.
    fn take(&self) -> Option<Checkout> {
        let here = Handle::current().id();
        let mut idle = self.idle.lock();
        if let Some(last) = idle.iter().rposition(|idle| idle.connection.belongs_to(here)) {
            return Some(Checkout::Http1(idle.remove(last).connection));
        }
        drop(idle);
        // HTTP/2 is used with TLS only.
        self.tls.as_ref()?;
        let mut shared = self.shared.lock();
        let shared = shared.as_mut().filter(|shared| shared.runtime == here)?;
        shared.is_stale = false;
        Some(Checkout::Http2(shared.sender.clone())).filter(|_| !shared.sender.is_closed())
    }

    /// Returns a connection to the pool.
    pub(super) fn put_back(&self, connection: Box<Connection>) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(IdleConnection {
                connection,
                is_stale: false,
            });
        }
    }

    /// Closes connections that were not used since the last sweep, or were closed by the server.
    fn sweep(&self) {
        let mut old = Vec::new();
        let mut idle = self.idle.lock();
        for mut one in std::mem::take(&mut *idle) {
            if one.is_stale || !one.connection.is_ready() {
                old.push(one);
            } else {
                one.is_stale = true;
                idle.push(one);
            }
        }
        drop(idle);
        drop(old);
        let mut shared = self.shared.lock();
        let gone = shared.take_if(|shared| shared.is_stale || shared.sender.is_closed());
        if let Some(shared) = shared.as_mut() {
            shared.is_stale = true;
        }
        drop((shared, gone));
    }
}

/// Sweeps until the pool is dropped.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        match pool.upgrade() {
            Some(pool) => pool.sweep(),
            None => return,
        }
    }
}

/// Error of a request without a connection.
fn unreachable_server(error: impl StdError + 'static) -> TransportError {
    let kind = ClientErrorKind::Unreachable(innermost(&error));
    TransportError {
        unsent: true,
        error: ClientError::new(kind).with_sent(false),
    }
}

/// Message of the innermost cause: the library's own message is "client error (SendRequest)".
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
#[cfg(feature = "tls")]
mod tests;
