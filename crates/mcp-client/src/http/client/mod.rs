//! HTTP client for one URL.

mod byte_stream;
mod http1;
#[cfg(feature = "tls")]
mod http2;
#[cfg(not(feature = "tls"))]
#[path = "http2/unsupported.rs"]
mod http2;
mod pool;
mod response;
#[cfg(feature = "tls")]
pub(super) mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls/unsupported.rs"]
mod tls;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri, header};
use hyper_util::client::legacy::connect::HttpConnector;
use url::Url;

#[cfg(feature = "websocket")]
pub(crate) use self::pool::innermost;
use self::{
    pool::{CONNECT_TIMEOUT, Pool},
    tls::TlsSettings,
};
pub(crate) use self::{
    pool::{Headers, TransportError},
    response::{HttpResponse, is_permanent_refusal},
};
use crate::{ClientError, ClientErrorKind};

/// HTTP client for one URL.
///
/// On the path of every call, so there are no redirects, cookies, proxies or compressed bodies.
pub(crate) struct HttpClient(Arc<Pool>);

/// Idle time before the first TCP keepalive probe, and interval between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Number of unanswered probes after which the connection is lost.
const KEEPALIVE_RETRIES: u32 = 3;

impl HttpClient {
    pub(crate) fn new(url: &Url, headers: HeaderMap) -> Result<Self, ClientError> {
        if has_user(url) {
            let detail = "the server's URL must hold no user or password; send them in a header";
            return Err(ClientError::new(ClientErrorKind::Invalid(detail.to_owned())));
        }
        let uri: Uri = url.as_str().parse().map_err(|error: http::uri::InvalidUri| {
            ClientError::new(ClientErrorKind::Invalid("invalid server URL".to_owned())).with_source(error)
        })?;
        let is_secure = url.scheme() == "https";
        let tls = is_secure.then(|| TlsSettings::for_server(&uri)).transpose()?;
        Ok(Self(Pool::new(tcp_connector(), tls, uri, headers)))
    }

    pub(crate) async fn post(&self, headers: Headers, body: Bytes) -> Result<HttpResponse, TransportError> {
        self.send(Method::POST, headers, body).await
    }

    pub(crate) async fn get(&self, headers: Headers) -> Result<HttpResponse, TransportError> {
        self.send(Method::GET, headers, Bytes::new()).await
    }

    pub(crate) async fn delete(&self, headers: Headers) -> Result<HttpResponse, TransportError> {
        self.send(Method::DELETE, headers, Bytes::new()).await
    }

    async fn send(
        &self,
        method: Method,
        headers: Headers,
        body: Bytes,
    ) -> Result<HttpResponse, TransportError> {
        let answer = self.0.send(method, headers, body).await?;
        match answer.header(header::CONTENT_ENCODING.as_str()) {
            None | Some("identity") => Ok(answer),
            // Compression was not requested, and the size of the decompressed body would be unbounded.
            Some(_) => Err(TransportError {
                unsent: false,
                error: ClientError::protocol(
                    "the server compressed its response although compression was not requested",
                ),
            }),
        }
    }
}

/// Creates the connector for TCP connections to servers.
pub(crate) fn tcp_connector() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // A client that only listens would not notice a lost network.
    tcp.set_keepalive(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp
}

/// `true` if a URL contains a user or a password in any spelling.
pub(crate) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}
