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

/// Stands between clients and an upstream, and has exchanges go wrong.
///
/// Over HTTP/1 it reads a request whole before it decides what becomes of it, and passes answers on as they come. Dropping it
/// closes all connections.
///
/// # Whose side sees what
/// A cut of the request leaves the upstream with so many bytes of it and an end; a cut of the response leaves the client with
/// so many. Whatever is cut, the client's connection ends at once, and the upstream's when the upstream is done, which can be
/// [waited for](Self::settled).
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Bound, and refusing connections until it is opened.
    closed: Mutex<Option<TcpSocket>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How a [`Proxy`] is set up.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Where connections lead.
    pub upstream: SocketAddr,
    /// Where it listens: a free port of this machine by default.
    pub listen: SocketAddr,
    /// What goes wrong.
    pub plan: Plan,
    /// Whether connections hold anything but HTTP/1: each is one exchange then.
    pub is_tcp: bool,
    /// Whether connections are refused until [`Proxy::open`].
    pub is_closed: bool,
    /// Where it is written down what happens.
    pub history: History,
}

/// What the connections of a proxy share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) upstream: SocketAddr,
    pub(crate) is_tcp: bool,
    planned: Mutex<PlanState>,
    next: AtomicU64,
    pub(crate) history: History,
    /// How many exchanges were cut of which the upstream is not done yet.
    pub(crate) closing: watch::Sender<usize>,
}

impl ProxyOptions {
    /// A proxy in front of this upstream by which nothing goes wrong.
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
    /// When no port can be had.
    pub async fn start(upstream: SocketAddr, plan: Plan) -> io::Result<Self> {
        let options = ProxyOptions::new(upstream);
        Self::with_options(ProxyOptions { plan, ..options }).await
    }

    /// Starts a proxy.
    ///
    /// # Errors
    /// When the address cannot be had, or the plan holds a fault that connections do not have.
    pub async fn with_options(options: ProxyOptions) -> io::Result<Self> {
        options.plan.check(target(options.is_tcp))?;
        let socket = match options.listen {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        // Bound and not listening, a port is taken, and connections to it are refused.
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

    /// Takes connections from now on, where they were refused.
    ///
    /// # Errors
    /// When the socket cannot listen.
    pub fn open(&self) -> io::Result<()> {
        let closed = self.closed.lock().take();
        if let Some(socket) = closed {
            let task = tokio::spawn(accept(self.shared.clone(), socket.listen(BACKLOG)?));
            *self.task.lock() = Some(task);
        }
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path there.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Follows another plan from the next exchange on, which counts from there.
    ///
    /// # Errors
    /// When the plan holds a fault that connections do not have.
    pub fn set_plan(&self, plan: Plan) -> io::Result<()> {
        plan.check(target(self.shared.is_tcp))?;
        *self.shared.planned.lock() = PlanState::new(plan);
        Ok(())
    }

    /// What has happened.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.shared.history
    }

    /// Waits until the upstream is done with every exchange that was cut.
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

/// How many connections may wait to be accepted.
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
    /// Gives the next exchange its number and decides what becomes of it.
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

/// Serves connections, which end with this future.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Without a file for it a connection waits, and there may be one soon.
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
