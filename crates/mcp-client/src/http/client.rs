//! The one file that knows the HTTP library.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri,
    header::{self, AsHeaderName},
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use url::Url;

use super::{
    plain::{Failure, Lease, Pool},
    tls,
};
use crate::{Error, ErrorKind};

/// Makes requests to one URL.
///
/// On the path of every call, so it is hyper itself rather than what is built upon it: no redirects, no cookies, no
/// proxies, no compressed bodies.
pub(crate) struct HttpClient {
    connections: Connections,
    /// As it stands in a request.
    uri: Uri,
    headers: HeaderMap,
}

enum Connections {
    Plain(Arc<Pool>),
    /// May be HTTP/2, where all requests share a connection.
    Tls(Box<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>),
}

/// An answer whose body has yet to be read.
pub(crate) struct HttpAnswer {
    response: Response<Incoming>,
    /// The connection that the body comes over, if it is driven here.
    lease: Option<Lease>,
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

impl HttpClient {
    pub(crate) fn new(url: &Url, headers: HeaderMap) -> Result<Self, Error> {
        let uri = url.as_str().parse().map_err(|error: http::uri::InvalidUri| {
            Error::new(ErrorKind::Invalid("the server's URL is not valid".to_owned())).because(error)
        })?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        if url.scheme() == "http" {
            return Ok(Self::plain(tcp, uri, headers));
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
        Ok(Self {
            connections: Connections::Tls(Box::new(client)),
            uri,
            headers,
        })
    }

    fn plain(tcp: HttpConnector, server: Uri, mut headers: HeaderMap) -> Self {
        // The header that HTTP/1.1 demands, and the short form of the URI that goes with it.
        if let Some(authority) = server.authority()
            && !headers.contains_key(header::HOST)
        {
            let host = HeaderValue::from_str(authority.as_str()).expect("an authority is visible ASCII");
            headers.insert(header::HOST, host);
        }
        let path = server.path_and_query().cloned();
        Self {
            connections: Connections::Plain(Pool::new(tcp, server)),
            uri: path.map(Uri::from).unwrap_or_default(),
            headers,
        }
    }

    pub(crate) async fn post(&self, headers: Headers, body: Bytes) -> Result<HttpAnswer, TransportError> {
        self.send(self.request(Method::POST, headers, body)).await
    }

    pub(crate) async fn get(&self, headers: Headers) -> Result<HttpAnswer, TransportError> {
        self.send(self.request(Method::GET, headers, Bytes::new())).await
    }

    pub(crate) async fn delete(&self, headers: Headers) -> Result<HttpAnswer, TransportError> {
        self.send(self.request(Method::DELETE, headers, Bytes::new()))
            .await
    }

    fn request(&self, method: Method, headers: Headers, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        // Made as large as it gets: a map that grows is built anew.
        let mut map = HeaderMap::with_capacity(self.headers.len() + headers.len() + 1);
        for (name, value) in &self.headers {
            map.append(name.clone(), value.clone());
        }
        for (name, value) in headers {
            map.insert(name, value);
        }
        *request.headers_mut() = map;
        request
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<HttpAnswer, TransportError> {
        let answer = self.exchange(request).await?;
        match answer.header(header::CONTENT_ENCODING) {
            None | Some("identity") => Ok(answer),
            // Nothing was asked for, and what a few bytes unpack to has no bound.
            Some(_) => Err(TransportError {
                unsent: false,
                error: Error::protocol("the server compressed its answer although it was not asked to"),
            }),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<HttpAnswer, TransportError> {
        let (response, lease) = match &self.connections {
            Connections::Plain(pool) => match pool.send(request).await {
                Ok((response, lease)) => (response, Some(lease)),
                Err(Failure::Connect(error)) => return Err(unreachable_server(error)),
                Err(Failure::Exchange { error, unsent }) => return Err(broken(error, unsent)),
            },
            Connections::Tls(client) => match client.request(request).await {
                Ok(response) => (response, None),
                Err(error) if error.is_connect() => return Err(unreachable_server(error)),
                Err(error) => return Err(broken(error, false)),
            },
        };
        Ok(HttpAnswer { response, lease })
    }
}

impl Drop for HttpAnswer {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back(self.response.body_mut());
        }
    }
}

impl HttpAnswer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn header_value(&self, name: &str) -> Option<HeaderValue> {
        self.response.headers().get(name).cloned()
    }

    /// How long the body says it is.
    pub(crate) fn length(&self) -> Option<u64> {
        self.response.body().size_hint().exact()
    }

    /// The next piece of the body; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = match &mut self.lease {
                Some(lease) => lease.frame(self.response.body_mut()).await,
                None => self.response.body_mut().frame().await,
            };
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    // Anything else is trailers, in which nothing is said.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(Error::closed(innermost(&error)).sent(true).because(error));
                }
            }
        }
    }
}

/// No connection was made.
fn unreachable_server(error: impl StdError + Send + Sync + 'static) -> TransportError {
    let kind = ErrorKind::Unreachable(innermost(&error));
    TransportError {
        unsent: true,
        error: Error::new(kind).sent(false).because(error),
    }
}

/// The connection ended before the answer.
fn broken(error: impl StdError + Send + Sync + 'static, unsent: bool) -> TransportError {
    let kind = ErrorKind::Closed(innermost(&error));
    TransportError {
        unsent,
        error: Error::new(kind).sent(!unsent).because(error),
    }
}

/// What the innermost cause says: the library's own words are "client error (SendRequest)".
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
