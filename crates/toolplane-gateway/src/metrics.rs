//! The metrics of a gateway: its own figures beside those of calls, and the page that Prometheus reads.

use std::{
    convert::Infallible,
    future::{self, Future, Ready},
    io,
    net::IpAddr,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::Service};
use mcp_server::{ServeOptions, serve_http};
use tokio::net::TcpListener;
use toolplane::{
    Toolplane,
    core::SourceState,
    observe::{Gauge, Metrics},
};

use crate::parked::Parked;

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
        hosts: Arc::default(),
    };
    serve_http(listener, ServeOptions::default(), |_| page.clone(), shutdown).await
}

/// The page, for requests that call the server by a name that it has.
#[derive(Clone)]
pub(crate) struct MetricsPage {
    pub(crate) metrics: Arc<Metrics>,
    /// Names beside those of loopback and plain addresses.
    pub(crate) hosts: Arc<[String]>,
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
        let mut response = plain(StatusCode::OK, self.metrics.render());
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, text);
        response
    }

    fn is_ours(&self, authority: &str) -> bool {
        let has_port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
        let host = authority
            .rsplit_once(':')
            .filter(has_port)
            .map_or(authority, |(host, _)| host);
        let address = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        host.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok()
            || self
                .hosts
                .iter()
                .any(|name| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(authority))
    }
}

impl Service<Request<Incoming>> for MetricsPage {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        future::ready(Ok(match request.uri().path() {
            PATH => self.answer(&request),
            _ => plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n"),
        }))
    }
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

/// Shows what the gateway and its servers know of themselves.
pub(crate) fn add_gauges(metrics: &Metrics, plane: &Toolplane, parked: Weak<Parked>) {
    let add = |name, help, label, read| {
        metrics.gauge(Gauge {
            name,
            help,
            label,
            read,
        });
    };
    add(
        "toolplane_parked_calls",
        "Calls that wait for their clients to come back with what they were asked for.",
        None,
        Box::new(move || {
            let parked = parked.upgrade();
            vec![(String::new(), parked.map_or(0, |parked| parked.len()) as f64)]
        }),
    );
    let weak = plane.downgrade();
    let of_servers = move |figure: fn(&toolplane::core::SourceStatus) -> f64| -> Figures {
        let weak = weak.clone();
        Box::new(move || {
            let sources = weak.upgrade().map(|plane| plane.sources()).unwrap_or_default();
            sources
                .into_iter()
                .map(|(name, status)| (name, figure(&status)))
                .collect()
        })
    };
    add(
        "toolplane_source_up",
        "Whether a source of tools answers: a server, or the configuration itself.",
        Some("source"),
        of_servers(|status| f64::from(u8::from(status.state == SourceState::Ready))),
    );
    add(
        "toolplane_source_tools",
        "How many tools a source offers.",
        Some("source"),
        of_servers(|status| status.n_tools as f64),
    );
    add(
        "toolplane_source_restarts",
        "How often a source had to be started again.",
        Some("source"),
        of_servers(|status| status.n_restarts as f64),
    );
    let weak = plane.downgrade();
    add(
        "toolplane_own_connections",
        "Connections of a server that single clients have for themselves.",
        Some("server"),
        Box::new(move || {
            let own = weak
                .upgrade()
                .map(|plane| plane.own_connections())
                .unwrap_or_default();
            own.into_iter()
                .map(|(name, number)| (name, number as f64))
                .collect()
        }),
    );
}

type Figures = Box<dyn Fn() -> Vec<(String, f64)> + Send + Sync>;
