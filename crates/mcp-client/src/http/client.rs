//! The one file that knows the HTTP library.

use std::{error::Error as StdError, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use url::Url;

use super::tls;
use crate::{Error, ErrorKind};

/// Makes requests to one URL.
///
/// On the path of every call, so it is hyper itself rather than what is built upon it: no redirects, no cookies, no
/// proxies, no compressed bodies.
pub(crate) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
}

/// An answer whose body has yet to be read.
pub(crate) struct HttpAnswer(Response<Incoming>);

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
        let tls = tls::configuration(url.scheme() == "https")?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { client, uri, headers })
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
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        let all = request.headers_mut();
        all.reserve(self.headers.len() + headers.len());
        all.extend(self.headers.clone());
        for (name, value) in headers {
            all.insert(name, value);
        }
        let answer = HttpAnswer(self.client.request(request).await.map_err(transport_error)?);
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

impl HttpAnswer {
    pub(crate) fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    pub(crate) fn header_value(&self, name: &str) -> Option<HeaderValue> {
        self.0.headers().get(name).cloned()
    }

    /// How long the body says it is.
    pub(crate) fn length(&self) -> Option<u64> {
        self.0.body().size_hint().exact()
    }

    /// The next piece of the body; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match self.0.body_mut().frame().await {
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

fn transport_error(error: legacy::Error) -> TransportError {
    let unsent = error.is_connect();
    let reason = innermost(&error);
    let kind = if unsent {
        ErrorKind::Unreachable(reason)
    } else {
        ErrorKind::Closed(reason)
    };
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
