//! What HTTP tools have on the network: connections that were made, and requests that run.

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

/// What the tools of an executor have on the network. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    n_opened: AtomicU64,
    n_failed: AtomicU64,
    n_requests: Arc<AtomicU64>,
    flows: Mutex<BTreeMap<Arc<str>, Arc<UpstreamTraffic>>>,
}

/// The requests to one upstream.
#[derive(Debug)]
pub(crate) struct UpstreamTraffic {
    n_running: AtomicU64,
    /// Number of requests to all upstreams.
    n_requests: Arc<AtomicU64>,
}

/// A request, as long as it runs.
pub(crate) struct RequestGuard(Arc<UpstreamTraffic>);

/// Counts the connections that a client makes.
#[derive(Clone)]
pub(crate) struct CountConnectionsLayer(Traffic);

/// The service of [`CountConnectionsLayer`].
#[derive(Clone)]
pub(crate) struct CountConnections<S> {
    traffic: Traffic,
    inner: S,
}

/// How many upstreams are told apart.
const MAX_UPSTREAMS: usize = 1000;
/// The name of all others, and of those whose host only a call says.
const OTHER: &str = "other";

impl Traffic {
    /// How many connections were made, with all that belongs to them, such as TLS. Later requests use them again.
    #[must_use]
    pub fn n_opened(&self) -> u64 {
        self.0.n_opened.load(Ordering::Relaxed)
    }

    /// How many connections could not be made: refused, not found, not allowed.
    #[must_use]
    pub fn n_failed(&self) -> u64 {
        self.0.n_failed.load(Ordering::Relaxed)
    }

    /// Number of requests that were begun. The more there are for each connection, the better the pool is used.
    #[must_use]
    pub fn n_requests(&self) -> u64 {
        self.0.n_requests.load(Ordering::Relaxed)
    }

    /// How many requests run now, for each upstream that tools have: from when one is to be sent, the wait for a
    /// connection included, until the last byte of its answer is there.
    #[must_use]
    pub fn n_running(&self) -> Vec<(Arc<str>, u64)> {
        let mut flows = self.0.flows.lock();
        // The tools are gone, and so are their requests.
        flows.retain(|_, flow| Arc::strong_count(flow) > 1);
        let flows = flows.iter();
        flows
            .map(|(name, flow)| (name.clone(), flow.n_running.load(Ordering::Relaxed)))
            .collect()
    }

    /// The requests to this upstream, or to one that only a call says.
    pub(crate) fn flow(&self, upstream: Option<Arc<str>>) -> Arc<UpstreamTraffic> {
        let mut flows = self.0.flows.lock();
        let name = upstream.unwrap_or_else(|| OTHER.into());
        if let Some(known) = flows.get(&name) {
            return known.clone();
        }
        flows.retain(|_, flow| Arc::strong_count(flow) > 1);
        let name = if flows.len() < MAX_UPSTREAMS {
            name
        } else {
            OTHER.into()
        };
        let flow = || {
            Arc::new(UpstreamTraffic {
                n_running: AtomicU64::new(0),
                n_requests: self.0.n_requests.clone(),
            })
        };
        flows.entry(name).or_insert_with(flow).clone()
    }

    pub(crate) fn counting(&self) -> CountConnectionsLayer {
        CountConnectionsLayer(self.clone())
    }
}

impl UpstreamTraffic {
    /// Counts a request until what is returned is dropped.
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
