//! Connections to one server, kept for the next request.
//!
//! Whoever makes a request over HTTP/1.1 drives its connection too, see [`super::http1`]. A task for each connection, as a
//! general client has it, is woken for every request and wakes the caller for every answer, and that costs more than the
//! exchange itself. HTTP/2 has one connection for all requests and a task for it; only `https://` servers are asked for it.
//!
//! A connection is used on the runtime that it was made on, whose reactor tells what comes over it: on another one, every
//! answer would come from a thread that has to be woken first, or never, when nobody drives that runtime any more.

use std::{
    error::Error as StdError,
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header, uri::PathAndQuery};
use hyper::client::conn::http2;
use hyper_util::{
    client::legacy::connect::HttpConnector,
    rt::{TokioExecutor, TokioIo},
};
use parking_lot::Mutex;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    runtime::{self, Handle},
    task::AbortHandle,
    time::{sleep, timeout},
};
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

use super::{
    byte_stream::{CheckedSocket, ExchangeProgress, RequestBody},
    http1::{Connection, ExchangeError},
    response::HttpResponse,
};
use crate::{ClientError, ClientErrorKind};

/// Time for which a connection without a request is kept, at least.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// Number of connections without a request that are kept.
const MAX_IDLE: usize = 256;
/// Maximum time to set up TCP, and to set up TLS.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Headers of one request.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// The connections to one server.
pub(crate) struct Pool {
    connector: HttpConnector,
    tls: Option<Tls>,
    server: Uri,
    /// The form of `server` that HTTP/1.1 sends: a path alone.
    target: Uri,
    /// Headers of every request, with the one that names the host over HTTP/1.1.
    headers: HeaderMap,
    /// Set if that one is configured, so that it is sent over HTTP/2 as well.
    has_own_host: bool,
    idle: Mutex<Vec<IdleConnection>>,
    shared: Mutex<Option<Http2Connection>>,
    /// Task that closes connections which are not used any more.
    sweeper: Mutex<Option<AbortHandle>>,
}

/// TLS to one server.
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// A connection of HTTP/1.1 that waits for a request.
struct IdleConnection {
    connection: Box<Connection>,
    /// Set by the sweeper, and gone with the next use.
    is_stale: bool,
}

/// A connection of HTTP/2.
struct Http2Connection {
    runtime: runtime::Id,
    sender: http2::SendRequest<RequestBody>,
    /// Set by the sweeper, and reset by each use.
    is_stale: bool,
}

/// A connection that a request can be made on.
enum Checkout {
    Http1(Box<Connection>),
    Http2(http2::SendRequest<RequestBody>),
}

/// Reason why there is no answer, or no more of it.
pub(crate) struct TransportError {
    /// Set if no byte of the request has left.
    pub(crate) unsent: bool,
    pub(crate) error: ClientError,
}

impl Pool {
    /// A pool without connections, which speaks TLS if `tls` says how.
    pub(super) fn new(
        connector: HttpConnector,
        tls: Option<ClientConfig>,
        server: Uri,
        mut headers: HeaderMap,
    ) -> Result<Arc<Self>, ClientError> {
        let tls = tls.map(|tls| Tls::new(tls, &server)).transpose()?;
        let has_own_host = headers.contains_key(header::HOST);
        if let Some(authority) = server.authority()
            && !has_own_host
        {
            let host = authority.as_str().parse().expect("an authority is visible ASCII");
            headers.insert(header::HOST, host);
        }
        let path = server.path_and_query().cloned();
        Ok(Arc::new(Self {
            connector,
            tls,
            target: path.unwrap_or_else(|| PathAndQuery::from_static("/")).into(),
            server,
            headers,
            has_own_host,
            idle: Mutex::default(),
            shared: Mutex::default(),
            sweeper: Mutex::default(),
        }))
    }

    /// Makes a request.
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
                // Rare, and large.
                None => Box::pin(self.connect()).await?,
            };
            match usable {
                Checkout::Http1(mut connection) => {
                    let request = self.request(&method, &headers, true);
                    match connection.exchange(request, &mut body).await {
                        Ok(answer) => return Ok(HttpResponse::over(connection, answer, Arc::clone(self))),
                        // The server has closed it in the meantime, and nothing was sent.
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
                    match Box::pin(sender.try_send_request(request)).await {
                        Ok(answer) => return Ok(HttpResponse::shared(answer)),
                        // The server has closed it in the meantime.
                        Err(error) if error.message().is_some() && !is_new => {
                            *self.shared.lock() = None;
                        }
                        Err(error) => {
                            let unsent = error.message().is_some();
                            let error = error.into_error();
                            return Err(TransportError {
                                unsent,
                                error: ClientError::closed(innermost(&error))
                                    .with_sent(!unsent)
                                    .with_source(error),
                            });
                        }
                    }
                }
            }
        }
    }

    /// A request without its body. HTTP/1.1 names the host in a header and the rest in the first line.
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
        let opening = timeout(CONNECT_TIMEOUT, tls.connector.connect(tls.name.clone(), socket));
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the server did not finish to set up TLS");
        let stream = opening
            .await
            .map_err(late)
            .flatten()
            .map_err(unreachable_server)?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            let connection = Connection::new(stream, progress).await;
            return connection
                .map(|made| Checkout::Http1(Box::new(made)))
                .map_err(unreachable_server);
        }
        let started = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = started.map_err(unreachable_server)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection of HTTP/2 broke");
            }
        });
        *self.shared.lock() = Some(Http2Connection {
            runtime: Handle::current().id(),
            sender: sender.clone(),
            is_stale: false,
        });
        Ok(Checkout::Http2(sender))
    }

    /// Starts the sweeper, unless there is one: it ends with the runtime on which it was started.
    fn ensure_sweeper(self: &Arc<Self>) {
        let mut sweeper = self.sweeper.lock();
        if sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            *sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// Takes the connection of this runtime that was used last, so that those which are too many grow old.
    fn take(&self) -> Option<Checkout> {
        let here = Handle::current().id();
        let mut idle = self.idle.lock();
        if let Some(last) = idle.iter().rposition(|idle| idle.connection.belongs_to(here)) {
            return Some(Checkout::Http1(idle.remove(last).connection));
        }
        drop(idle);
        // Without TLS there is none.
        self.tls.as_ref()?;
        let mut shared = self.shared.lock();
        let shared = shared.as_mut().filter(|shared| shared.runtime == here)?;
        shared.is_stale = false;
        Some(Checkout::Http2(shared.sender.clone())).filter(|_| !shared.sender.is_closed())
    }

    /// Keeps a connection for the next request.
    pub(super) fn put_back(&self, connection: Box<Connection>) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(IdleConnection {
                connection,
                is_stale: false,
            });
        }
    }

    /// Closes what has not been used since the last time, and what the server has closed.
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

impl Tls {
    fn new(mut configuration: ClientConfig, server: &Uri) -> Result<Self, ClientError> {
        configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let host = server.host().unwrap_or_default();
        // An IPv6 address stands in brackets in a URL alone.
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|error| {
            let kind = ClientErrorKind::Invalid(
                "the host of the server's URL cannot be in a certificate".to_owned(),
            );
            ClientError::new(kind).with_source(error)
        })?;
        Ok(Self {
            connector: Arc::new(configuration).into(),
            name,
        })
    }
}

/// Sweeps until the pool is gone.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        match pool.upgrade() {
            Some(pool) => pool.sweep(),
            None => return,
        }
    }
}

/// The error of a request for which no connection was made.
fn unreachable_server(error: impl StdError + Send + Sync + 'static) -> TransportError {
    let kind = ClientErrorKind::Unreachable(innermost(&error));
    TransportError {
        unsent: true,
        error: ClientError::new(kind).with_sent(false).with_source(error),
    }
}

/// Text of the innermost cause of an error: the library's own words are "client error (SendRequest)".
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
