//! Counters of connections and of running requests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tool_core::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

/// Counters of the connections and requests of HTTP tools. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    n_opened: AtomicU64,
    n_failed: AtomicU64,
    n_requests: Arc<AtomicU64>,
    upstreams: Mutex<BTreeMap<Arc<str>, Arc<UpstreamTraffic>>>,
}

/// Counters of the requests to one upstream.
#[derive(Debug)]
pub(crate) struct UpstreamTraffic {
    n_running: AtomicU64,
    /// Number of requests to all upstreams.
    n_requests: Arc<AtomicU64>,
}

/// Guard that counts a request as running until it is dropped.
pub(crate) struct RequestGuard(Arc<UpstreamTraffic>);

/// Layer that counts the connections of a client.
#[derive(Clone)]
pub(crate) struct CountConnectionsLayer(Traffic);

/// Service of [`CountConnectionsLayer`].
#[derive(Clone)]
pub(crate) struct CountConnections<S> {
    traffic: Traffic,
    inner: S,
}

/// Maximum number of upstreams with counters of their own.
const MAX_UPSTREAMS: usize = 1000;
/// Name of all further upstreams, and of those whose host depends on arguments.
const OTHER: &str = "other";

impl Traffic {
    /// Number of connections that were established, including TLS. Later requests reuse them.
    #[must_use]
    pub fn n_opened(&self) -> u64 {
        self.0.n_opened.load(Ordering::Relaxed)
    }

    /// Number of connections that failed: refused, unknown host, address not allowed.
    #[must_use]
    pub fn n_failed(&self) -> u64 {
        self.0.n_failed.load(Ordering::Relaxed)
    }

    /// Number of requests that were started. A high number for each connection means that the pool works well.
    #[must_use]
    pub fn n_requests(&self) -> u64 {
        self.0.n_requests.load(Ordering::Relaxed)
    }

    /// Number of running requests for each upstream. A request runs from its start, including the wait for a connection,
    /// until the last byte of its response was received.
    #[must_use]
    pub fn n_running(&self) -> Vec<(Arc<str>, u64)> {
        let mut upstreams = self.0.upstreams.lock();
        // Drop upstreams without tools; they have no requests.
        upstreams.retain(|_, upstream| Arc::strong_count(upstream) > 1);
        let upstreams = upstreams.iter();
        upstreams
            .map(|(name, upstream)| (name.clone(), upstream.n_running.load(Ordering::Relaxed)))
            .collect()
    }

    /// Returns the counters of an upstream; `None` is an upstream that depends on arguments.
    pub(crate) fn for_upstream(&self, upstream: Option<Arc<str>>) -> Arc<UpstreamTraffic> {
        let mut upstreams = self.0.upstreams.lock();
        let name = upstream.unwrap_or_else(|| OTHER.into());
        if let Some(known) = upstreams.get(&name) {
            return known.clone();
        }
        upstreams.retain(|_, upstream| Arc::strong_count(upstream) > 1);
        let name = if upstreams.len() < MAX_UPSTREAMS {
            name
        } else {
            OTHER.into()
        };
        let new = || {
            Arc::new(UpstreamTraffic {
                n_running: AtomicU64::new(0),
                n_requests: self.0.n_requests.clone(),
            })
        };
        upstreams.entry(name).or_insert_with(new).clone()
    }

    pub(crate) fn layer(&self) -> CountConnectionsLayer {
        CountConnectionsLayer(self.clone())
    }
}

impl UpstreamTraffic {
    /// Counts a request until the returned guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestGuard {
        self.n_running.fetch_add(1, Ordering::Relaxed);
        self.n_requests.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S> Layer<S> for CountConnectionsLayer {
    type Service = CountConnections<S>;

    fn layer(&self, inner: S) -> CountConnections<S> {
        CountConnections {
            traffic: self.0.clone(),
            inner,
        }
    }
}

impl<S, R> Service<R> for CountConnections<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.inner.call(request);
        let traffic = self.traffic.clone();
        Box::pin(async move {
            let connected = connecting.await;
            let counter = match &connected {
                Ok(_) => &traffic.0.n_opened,
                Err(_) => &traffic.0.n_failed,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            connected
        })
    }
}
