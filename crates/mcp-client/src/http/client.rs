//! The one file that knows the HTTP library.

use std::{error::Error as _, time::Duration};

use bytes::Bytes;
use reqwest::{
    Certificate, Client, ClientBuilder, Method, Response,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect, retry,
};
use url::Url;

use crate::{Error, ErrorKind};

/// Makes requests to one URL.
pub(crate) struct HttpClient {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// An answer whose body has yet to be read.
pub(crate) struct HttpAnswer(Response);

/// Why there is no answer, or no more of it.
pub(crate) struct TransportError {
    /// Whether no connection was made, so that no byte of the request left.
    pub(crate) unsent: bool,
    pub(crate) error: Error,
}

/// What is sent beside the headers of every request.
pub(crate) type Headers = Vec<(&'static str, HeaderValue)>;

impl HttpClient {
    pub(crate) fn new(url: Url, headers: HeaderMap) -> Result<Self, Error> {
        // Without a store of trusted certificates the first try fails, even for a URL without TLS.
        let client = builder().build().or_else(|_| with_own_roots(builder()).build());
        let client = client.map_err(|error| {
            Error::new(ErrorKind::Invalid("the HTTP client cannot be set up".to_owned())).because(error)
        })?;
        Ok(Self { client, url, headers })
    }

    pub(crate) async fn post(&self, headers: Headers, body: Bytes) -> Result<HttpAnswer, TransportError> {
        self.send(Method::POST, headers, Some(body)).await
    }

    pub(crate) async fn get(&self, headers: Headers) -> Result<HttpAnswer, TransportError> {
        self.send(Method::GET, headers, None).await
    }

    pub(crate) async fn delete(&self, headers: Headers) -> Result<HttpAnswer, TransportError> {
        self.send(Method::DELETE, headers, None).await
    }

    async fn send(
        &self,
        method: Method,
        headers: Headers,
        body: Option<Bytes>,
    ) -> Result<HttpAnswer, TransportError> {
        let mut all = HeaderMap::with_capacity(self.headers.len() + headers.len());
        all.extend(self.headers.clone());
        for (name, value) in headers {
            all.insert(HeaderName::from_static(name), value);
        }
        let mut request = self.client.request(method, self.url.clone()).headers(all);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.map(HttpAnswer).map_err(transport_error)
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
        self.0.content_length()
    }

    /// The next piece of the body, decoded; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.0.chunk().await.map_err(|error| transport_error(error).error)
    }
}

fn builder() -> ClientBuilder {
    const CONNECT: Duration = Duration::from_secs(5);
    Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
}

fn with_own_roots(builder: ClientBuilder) -> ClientBuilder {
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
    builder.tls_certs_only(roots.iter().filter_map(|root| Certificate::from_der(root).ok()))
}

fn transport_error(error: reqwest::Error) -> TransportError {
    // A URL may hold a secret.
    let error = error.without_url();
    let unsent = error.is_connect() || error.is_builder();
    // The library's own words are "error sending request": the innermost cause says what happened.
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        reason = inner.to_string();
        cause = inner.source();
    }
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
