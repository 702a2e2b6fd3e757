//! Makes requests: over connections of our own to a plain `http://` server, with hyper to an `https://` one.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use url::Url;

use super::{
    plain::{self, Failure, Pool},
    tls,
    wire::{Broken, Reason},
};
use crate::{Error, ErrorKind};

/// Makes requests to one URL.
///
/// On the path of every call, so there are no redirects, no cookies, no proxies and no compressed bodies.
pub(crate) enum HttpClient {
    Plain(Arc<Pool>),
    Tls(Box<TlsClient>),
}

/// May be HTTP/2, where all requests share a connection.
pub(crate) struct TlsClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
}

/// An answer whose body has yet to be read.
pub(crate) enum HttpAnswer {
    Plain(plain::Answer),
    Tls(Response<Incoming>),
}

/// Why there is no answer, or no more of it.
pub(crate) struct TransportError {
    /// Whether no connection was made, so that no byte of the request left.
    pub(crate) unsent: bool,
    pub(crate) error: Error,
}

/// What is sent beside the headers of every request.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

const CONNECT: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(90);
/// How long a connection is silent before it is asked whether it is still there, how long between two questions, and how many of
/// them stay without an answer.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_RETRIES: u32 = 3;

impl HttpClient {
    pub(crate) fn new(url: &Url, headers: HeaderMap) -> Result<Self, Error> {
        if has_user(url) {
            let detail = "the server's URL must hold no user or password; send them in a header";
            return Err(Error::new(ErrorKind::Invalid(detail.to_owned())));
        }
        let uri: Uri = url.as_str().parse().map_err(|error: http::uri::InvalidUri| {
            Error::new(ErrorKind::Invalid("the server's URL is not valid".to_owned())).because(error)
        })?;
        let tcp = tcp_connector();
        if url.scheme() == "http" {
            return Ok(Self::Plain(Pool::new(tcp, uri, headers)));
        }
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::configuration()?)
            .https_only()
            .enable_all_versions()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self::Tls(Box::new(TlsClient { client, uri, headers })))
    }

    pub(crate) async fn post(&self, headers: Headers, body: Bytes) -> Result<HttpAnswer, TransportError> {
        self.send(Method::POST, headers, body).await
    }

    pub(crate) async fn get(&self, headers: Headers) -> Result<HttpAnswer, TransportError> {
        self.send(Method::GET, headers, Bytes::new()).await
    }

    pub(crate) async fn delete(&self, headers: Headers) -> Result<HttpAnswer, TransportError> {
        self.send(Method::DELETE, headers, Bytes::new()).await
    }

    async fn send(
        &self,
        method: Method,
        headers: Headers,
        body: Bytes,
    ) -> Result<HttpAnswer, TransportError> {
        let answer = match self {
            Self::Plain(pool) => match pool.send(method, headers, body).await {
                Ok(answer) => HttpAnswer::Plain(answer),
                Err(Failure::Connect(error)) => return Err(unreachable_server(error)),
                Err(Failure::Exchange(Broken { reason, unsent })) => {
                    return Err(TransportError {
                        unsent,
                        error: fault(reason).sent(!unsent),
                    });
                }
            },
            // Its future is larger.
            Self::Tls(client) => Box::pin(client.send(method, headers, body)).await?,
        };
        match answer.header(header::CONTENT_ENCODING.as_str()) {
            None | Some("identity") => Ok(answer),
            // Nothing was asked for, and what a few bytes unpack to has no bound.
            Some(_) => Err(TransportError {
                unsent: false,
                error: Error::protocol("the server compressed its answer although it was not asked to"),
            }),
        }
    }
}

impl TlsClient {
    async fn send(
        &self,
        method: Method,
        headers: Headers,
        body: Bytes,
    ) -> Result<HttpAnswer, TransportError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        for (name, value) in headers {
            request.headers_mut().insert(name, value);
        }
        match self.client.request(request).await {
            Ok(response) => Ok(HttpAnswer::Tls(response)),
            Err(error) if error.is_connect() => Err(unreachable_server(error)),
            Err(error) => Err(TransportError {
                unsent: false,
                error: Error::closed(innermost(&error)).sent(true).because(error),
            }),
        }
    }
}

impl HttpAnswer {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Plain(answer) => answer.head.status,
            Self::Tls(response) => response.status().as_u16(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Plain(answer) => str::from_utf8(answer.head.get(name)?).ok(),
            Self::Tls(response) => response.headers().get(name)?.to_str().ok(),
        }
    }

    pub(crate) fn header_value(&self, name: &str) -> Option<HeaderValue> {
        match self {
            Self::Plain(answer) => HeaderValue::from_bytes(answer.head.get(name)?).ok(),
            Self::Tls(response) => response.headers().get(name).cloned(),
        }
    }

    /// How much of the body is still to come, where that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self {
            Self::Plain(answer) => answer.head.framing.left(),
            Self::Tls(response) => response.body().size_hint().exact(),
        }
    }

    /// The next piece of the body; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Plain(answer) => answer.chunk().await.map_err(|reason| fault(reason).sent(true)),
            Self::Tls(response) => {
                while let Some(frame) = response.body_mut().frame().await {
                    let frame =
                        frame.map_err(|error| Error::closed(innermost(&error)).sent(true).because(error))?;
                    // Anything else is trailers, in which nothing is said.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Waits until all of the request has left, for an answer that says no more than that it was taken. It may come before,
    /// and is not read any more.
    pub(crate) async fn sent(&mut self) -> Result<(), Error> {
        match self {
            Self::Plain(answer) => answer.sent().await.map_err(|reason| fault(reason).sent(true)),
            // Its connection goes on by itself.
            Self::Tls(_) => Ok(()),
        }
    }

    /// The whole body in one piece, if it is known how long it is; otherwise it is there in pieces.
    pub(crate) async fn whole(&mut self) -> Result<Option<Bytes>, Error> {
        let Self::Plain(answer) = self else {
            return Ok(None);
        };
        let whole = answer.whole().await.transpose();
        whole.map_err(|reason| fault(reason).sent(true))
    }
}

/// Opens TCP connections to servers.
pub(super) fn tcp_connector() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Who only listens would not notice that the network has gone.
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    tcp.set_connect_timeout(Some(CONNECT));
    tcp
}

/// Whether a URL holds a user or a password, however it was spelled.
pub(crate) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// No connection was made.
fn unreachable_server(error: impl StdError + Send + Sync + 'static) -> TransportError {
    let kind = ErrorKind::Unreachable(innermost(&error));
    TransportError {
        unsent: true,
        error: Error::new(kind).sent(false).because(error),
    }
}

/// The connection broke, or what came over it is no answer.
fn fault(reason: Reason) -> Error {
    match reason {
        Reason::Malformed(malformed) => Error::protocol(malformed.to_string()),
        Reason::Io(error) => Error::closed(error.to_string()).because(error),
        ended @ Reason::Ended(_) => Error::closed(ended.to_string()),
    }
}

/// What the innermost cause says: the library's own words are "client error (SendRequest)".
pub(super) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
