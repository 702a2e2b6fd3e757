//! The page of metrics that Prometheus reads.

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

/// The path of the page.
pub(crate) const PATH: &str = "/metrics";

/// Serves the metrics alone at an address of their own, at `/metrics`, until `shutdown` comes: also for a gateway whose
/// client is at its stdin and stdout.
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

/// The page, for requests that call the server by a name that it has.
#[derive(Clone)]
pub(crate) struct MetricsPage {
    pub(crate) metrics: Arc<Metrics>,
    /// Names beside those of loopback and plain addresses.
    pub(crate) allowed: SharedAllowList,
}

impl MetricsPage {
    /// Answers a request. The page names tools, so a page of another site must not read it by a name that it has made
    /// point here.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n");
        }
        if !host(request).is_some_and(|host| self.is_ours(host)) {
            return plain(StatusCode::FORBIDDEN, "this server does not go by that name\n");
        }
        let own_host = host(request).map(without_port);
        let allowed = self.allowed.load();
        if !allowed.allows_origin(request.headers(), request.uri(), own_host) {
            return plain(StatusCode::FORBIDDEN, "this origin is not allowed\n");
        }
        let mut response = plain(StatusCode::OK, self.metrics.render());
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, text);
        response
    }

    fn is_ours(&self, authority: &str) -> bool {
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
        // Whoever lets any name pass for MCP has a proxy for that, which is not known to hold for this page.
        let AllowedHosts::Loopback(names) = &self.allowed.load().hosts else {
            return false;
        };
        let is_it = |name: &String| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(authority);
        names.iter().any(is_it)
    }
}

impl Service<Request<RequestBody>> for MetricsPage {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<RequestBody>) -> Self::Future {
        future::ready(Ok(match request.uri().path() {
            PATH => self.answer(&request),
            _ => plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n"),
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

/// What the request calls the server.
fn host<B>(request: &Request<B>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => request.headers().get(header::HOST)?.to_str().ok(),
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}
