//! Metrics page in the text format of Prometheus.

use std::{
    convert::Infallible,
    future::{self, Future, Ready},
    io,
    net::IpAddr,
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::service::Service;
use mcp_server::{AllowedHosts, RequestBody, ServeOptions, SharedAllowList, serve_http};
use tokio::net::TcpListener;
use toolplane::observe::Metrics;

/// Path of the page.
pub(super) const PATH: &str = "/metrics";

/// Serves only the metrics, at `/metrics` of a listener of their own, until `shutdown` completes. A gateway that serves its
/// client over stdio can expose its metrics this way.
///
/// # Cancellation
/// When the future is dropped, the listener is closed and all connections are cut off.
///
/// # Errors
/// As [`serve_http`].
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let page = MetricsPage {
        metrics,
        allowed: SharedAllowList::default(),
    };
    serve_http(listener, ServeOptions::default(), |_| page.clone(), shutdown).await
}

/// Metrics page. Answers only requests that address the server by one of its own host names.
#[derive(Clone)]
pub(crate) struct MetricsPage {
    pub(crate) metrics: Arc<Metrics>,
    /// Accepted host names and origins, in addition to loopback and plain addresses.
    pub(crate) allowed: SharedAllowList,
}

impl MetricsPage {
    /// Answers a request.
    ///
    /// The page names tools. The check of the host name keeps web pages of other sites from reading it by DNS rebinding.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed: use GET\n");
        }
        if !host(request).is_some_and(|host| self.is_own_host(host)) {
            return plain(StatusCode::FORBIDDEN, "host name not allowed\n");
        }
        let own_host = host(request).map(without_port);
        let allowed = self.allowed.load();
        if !allowed.allows_origin(request.headers(), request.uri(), own_host) {
            return plain(StatusCode::FORBIDDEN, "origin not allowed\n");
        }
        let mut response = plain(StatusCode::OK, self.metrics.render());
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, text);
        response
    }

    fn is_own_host(&self, authority: &str) -> bool {
        let host = without_port(authority);
        let address = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        host.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok()
            || self.is_allowed(host, authority)
    }

    fn is_allowed(&self, host: &str, authority: &str) -> bool {
        // An operator who allows any host name for MCP relies on a proxy, which may not protect this page.
        let AllowedHosts::Loopback(names) = &self.allowed.load().hosts else {
            return false;
        };
        let is_same = |name: &String| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(authority);
        names.iter().any(is_same)
    }
}

impl Service<Request<RequestBody>> for MetricsPage {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<RequestBody>) -> Self::Future {
        future::ready(Ok(match request.uri().path() {
            PATH => self.answer(&request),
            _ => plain(StatusCode::NOT_FOUND, "not found: the metrics are at /metrics\n"),
        }))
    }
}

fn without_port(authority: &str) -> &str {
    let has_port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    authority
        .rsplit_once(':')
        .filter(has_port)
        .map_or(authority, |(host, _)| host)
}

/// Returns the host by which a request addresses the server.
fn host<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(header::HOST)?.to_str().ok(),
    }
}

pub(super) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}
