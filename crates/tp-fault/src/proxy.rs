use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use crate::{
    FaultEvent, History, Plan, exchange,
    exchange_plan::{ExchangePlan, PlanState},
    plan::FaultTarget,
};

/// Forwards connections to an upstream and injects faults.
///
/// Over HTTP/1 it reads a whole request before it decides on its faults, and streams the answer. Dropping it closes all
/// connections.
///
/// # Which side sees what
/// A cut of the request leaves the upstream with the given number of bytes and an end; a cut of the response leaves the
/// client with them. In both cases the client's connection ends at once, and the upstream's when the upstream is done,
/// which can be [waited for](Self::wait_until_settled).
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Bound socket that refuses connections until it is opened.
    closed: Mutex<Option<TcpSocket>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Options of a [`Proxy`].
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Address of the upstream.
    pub upstream: SocketAddr,
    /// Address to listen on. Default: a free port of this machine.
    pub listen: SocketAddr,
    /// Faults to inject.
    pub plan: Plan,
    /// `true` if connections carry another protocol than HTTP/1: each is one exchange then.
    pub is_tcp: bool,
    /// `true` if connections are refused until [`Proxy::open`].
    pub is_closed: bool,
    /// History of its events.
    pub history: History,
}

/// State that the connections of a proxy share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) upstream: SocketAddr,
    pub(crate) is_tcp: bool,
    planned: Mutex<PlanState>,
    next: AtomicU64,
    pub(crate) history: History,
    /// Number of cut exchanges whose upstream is not done yet.
    pub(crate) closing: watch::Sender<usize>,
}

impl ProxyOptions {
    /// Returns options without faults.
    #[must_use]
    pub fn new(upstream: SocketAddr) -> Self {
        Self {
            upstream,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            plan: Plan::without_faults(),
            is_tcp: false,
            is_closed: false,
            history: History::default(),
        }
    }
}

impl Proxy {
    /// Starts a proxy for HTTP on a free port.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(upstream: SocketAddr, plan: Plan) -> io::Result<Self> {
        let options = ProxyOptions::new(upstream);
        Self::with_options(ProxyOptions { plan, ..options }).await
    }

    /// Starts a proxy.
    ///
    /// # Errors
    /// If the address cannot be bound, or the plan has a fault that does not apply to connections.
    pub async fn with_options(options: ProxyOptions) -> io::Result<Self> {
        options.plan.check(target(options.is_tcp))?;
        let socket = match options.listen {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        // A socket that is bound but does not listen reserves the port and refuses connections.
        socket.bind(options.listen)?;
        let proxy = Self {
            address: socket.local_addr()?,
            shared: Arc::new(Shared {
                upstream: options.upstream,
                is_tcp: options.is_tcp,
                planned: Mutex::new(PlanState::new(options.plan)),
                next: AtomicU64::new(0),
                history: options.history,
                closing: watch::Sender::new(0),
            }),
            closed: Mutex::new(Some(socket)),
            task: Mutex::default(),
        };
        if !options.is_closed {
            proxy.open()?;
        }
        Ok(proxy)
    }

    /// Accepts connections from now on.
    ///
    /// # Errors
    /// If the socket cannot listen.
    pub fn open(&self) -> io::Result<()> {
        let closed = self.closed.lock().take();
        if let Some(socket) = closed {
            let task = tokio::spawn(accept(self.shared.clone(), socket.listen(BACKLOG)?));
            *self.task.lock() = Some(task);
        }
        Ok(())
    }

    /// Returns the address of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Replaces the plan from the next exchange on. Its counters begin at 0.
    ///
    /// # Errors
    /// If the plan has a fault that does not apply to connections.
    pub fn set_plan(&self, plan: Plan) -> io::Result<()> {
        plan.check(target(self.shared.is_tcp))?;
        *self.shared.planned.lock() = PlanState::new(plan);
        Ok(())
    }

    /// Returns the history of its events.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.shared.history
    }

    /// Waits until the upstream is done with every cut exchange.
    pub async fn wait_until_settled(&self) {
        // The sender lives as long as `self`.
        let _ = self
            .shared
            .closing
            .subscribe()
            .wait_for(|closing| *closing == 0)
            .await;
    }
}

fn target(is_tcp: bool) -> FaultTarget {
    if is_tcp {
        FaultTarget::Stream
    } else {
        FaultTarget::Connection
    }
}

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

impl Drop for Proxy {
    fn drop(&mut self) {
        let task = self.task.get_mut();
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl Shared {
    /// Numbers the next exchange and decides on its faults.
    pub(crate) fn begin(&self, request: &[u8]) -> (u64, ExchangePlan) {
        let exchange = self.next.fetch_add(1, Ordering::Relaxed);
        let bytes = request.len();
        self.history.add(exchange, FaultEvent::Request { bytes });
        let course = self.planned.lock().course(request);
        for fault in &course.faults {
            self.history.add(exchange, FaultEvent::Met(fault.clone()));
        }
        (exchange, course)
    }
}

/// Serves connections until the future is dropped.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Out of file descriptors: the connection waits until one is free.
                let Ok((client, _)) = accepted else {
                    tokio::task::yield_now().await;
                    continue;
                };
                connections.spawn(exchange::serve(shared.clone(), client));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
