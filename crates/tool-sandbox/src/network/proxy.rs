//! HTTP proxy whose listener stands in the network namespace of a sandbox.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRAILER, UPGRADE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri, client, server, upgrade};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::addresses::is_public;
use super::rules::{HostGrant, HostRules};
use crate::SandboxEvent;
use crate::event::EventObserver;

/// Maximum number of connections of one sandbox at a time.
const MAX_CONNECTIONS: usize = 64;

/// Time limit for the resolution of a name and for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type Body = BoxBody<Bytes, hyper::Error>;

/// Hosts that a sandbox may reach, and who observes it.
#[derive(Debug)]
pub(crate) struct Proxy {
    rules: HostRules,
    observer: Option<EventObserver>,
    tunnels: Arc<Semaphore>,
}

/// Serves the connections that arrive at `listener`, until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, proxy: Arc<Proxy>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let proxy = Arc::clone(&proxy);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&proxy), request));
            let served = server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
                .await;
            // A client that breaks off is no concern of the sandbox.
            drop((served, permit));
        });
        while connections.try_join_next().is_some() {}
    }
}

impl Proxy {
    pub(crate) fn new(rules: HostRules, observer: Option<EventObserver>) -> Self {
        Self {
            rules,
            observer,
            tunnels: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// Connects to a host that the rules name, at an address that they permit.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Refusal> {
        let Some(grant) = self.rules.grant(host, port) else {
            return Err(self.deny(host, port, "no rule names it"));
        };
        let addresses = match timeout(CONNECT_TIMEOUT, addresses(host, port, grant)).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => return Err(Refusal::unreachable(host, &error.to_string())),
            Err(_) => return Err(Refusal::unreachable(host, "its name was not resolved in time")),
        };
        if addresses.is_empty() {
            return Err(self.deny(host, port, "its name leads to an address that is not public"));
        }
        self.observe(SandboxEvent::NetworkAllowed {
            host: host.to_owned(),
            port,
        });
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(&addresses[..])).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(Refusal::unreachable(host, &error.to_string())),
            Err(_) => Err(Refusal::unreachable(host, "it did not answer in time")),
        }
    }

    fn deny(&self, host: &str, port: u16, reason: &str) -> Refusal {
        self.observe(SandboxEvent::NetworkDenied {
            host: host.to_owned(),
            port,
            reason: reason.to_owned(),
        });
        Refusal {
            status: StatusCode::FORBIDDEN,
            text: format!("the sandbox denies `{host}:{port}`: {reason}\n"),
        }
    }

    fn observe(&self, event: SandboxEvent) {
        if let Some(EventObserver(observer)) = &self.observer {
            observer(event);
        }
    }
}

/// Answer to a request that is not forwarded.
struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    fn unreachable(host: &str, reason: &str) -> Self {
        Self {
            status: StatusCode::BAD_GATEWAY,
            text: format!("`{host}` cannot be reached: {reason}\n"),
        }
    }

    fn malformed(text: &str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            text: format!("{text}\n"),
        }
    }

    fn response(self) -> Response<Body> {
        let mut response = Response::new(full(self.text));
        *response.status_mut() = self.status;
        response
    }
}

/// Resolves a name once and returns the addresses that may be connected to: a second resolution could give others.
async fn addresses(host: &str, port: u16, grant: HostGrant) -> io::Result<Vec<SocketAddr>> {
    if let HostGrant::Named(address) = grant {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = lookup_host((host, port)).await?;
    Ok(found
        .filter(|address| match grant {
            HostGrant::Loopback => address.ip().is_loopback(),
            _ => is_public(address.ip()),
        })
        .collect())
}

async fn answer(proxy: Arc<Proxy>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let answered = if request.method() == Method::CONNECT {
        tunnel(&proxy, request).await
    } else {
        forward(&proxy, request).await
    };
    Ok(answered.unwrap_or_else(Refusal::response))
}

/// Connects a client with a host and copies bytes between them.
async fn tunnel(proxy: &Proxy, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
    let (host, port) = target(request.uri(), None)?;
    // The connection ends as one of HTTP here, and with it its permit.
    let permit = Arc::clone(&proxy.tunnels)
        .try_acquire_owned()
        .map_err(|_| Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: format!("the sandbox has {MAX_CONNECTIONS} connections already\n"),
        })?;
    let mut upstream = proxy.connect(&host, port).await?;
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade::on(request).await {
            let mut client = TokioIo::new(upgraded);
            // The end of either side ends both.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
        }
        drop(permit);
    });
    Ok(Response::new(full(String::new())))
}

/// Forwards a request in plain HTTP.
async fn forward(proxy: &Proxy, mut request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
    if request.uri().scheme_str() != Some("http") {
        return Err(Refusal::malformed(
            "a request to a proxy names a whole `http` URL",
        ));
    }
    let (host, port) = target(request.uri(), Some(80))?;
    let authority = request
        .uri()
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let upstream = proxy.connect(&host, port).await?;
    let failed = |error: hyper::Error| Refusal::unreachable(&host, &error.to_string());
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(upstream))
        .await
        .map_err(failed)?;
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri: Uri = path
        .parse()
        .map_err(|_| Refusal::malformed("the path is invalid"))?;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    remove_hop_by_hop(headers);
    let authority =
        HeaderValue::from_str(&authority).map_err(|_| Refusal::malformed("the host is invalid"))?;
    headers.insert(HOST, authority);
    let mut response = sender.send_request(request).await.map_err(failed)?;
    remove_hop_by_hop(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

/// Removes the headers that concern one connection (RFC 9110, section 7.6.1).
fn remove_hop_by_hop(headers: &mut hyper::HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, PROXY_AUTHORIZATION, TE, TRAILER, UPGRADE] {
        headers.remove(name);
    }
    for name in ["proxy-connection", "keep-alive"] {
        headers.remove(name);
    }
}

fn target(uri: &Uri, default: Option<u16>) -> Result<(String, u16), Refusal> {
    let host = uri.host().filter(|host| !host.is_empty());
    let port = uri.port_u16().or(default);
    let no_credentials = uri
        .authority()
        .is_none_or(|authority| !authority.as_str().contains('@'));
    match (host, port) {
        (Some(host), Some(port)) if no_credentials => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Ok((host.to_owned(), port))
        }
        _ => Err(Refusal::malformed("the request names no host and port")),
    }
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed()
}
