//! Connections to a plain `http://` server.
//!
//! Whoever makes a request drives its connection too. A task for each connection, as a general client has it, is
//! woken for every request and wakes the caller for every answer, and that costs more than the exchange itself.
//!
//! A connection is used on the runtime that it was made on, whose reactor tells what comes over it: on another one, every
//! answer would come from a thread that has to be woken first, or never, when nobody drives that runtime any more.

use std::{
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{
    body::{Body as _, Frame, Incoming},
    client::conn::{
        TrySendError,
        http1::{self, SendRequest},
    },
};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{
    net::TcpStream,
    runtime::{self, Handle},
    task::{AbortHandle, unconstrained},
    time::sleep,
};
use tower_service::Service;

/// How long a connection without a request is kept, at least, and how many are.
const IDLE: Duration = Duration::from_secs(45);
const MOST_IDLE: usize = 256;

/// The connections to one server that wait for a request.
pub(super) struct Pool {
    connector: HttpConnector,
    server: Uri,
    idle: Mutex<Vec<Idle>>,
    /// What closes connections that are not used any more.
    sweeper: Mutex<Option<AbortHandle>>,
}

struct Idle {
    wire: Wire,
    /// Whether it has been here the last time that somebody looked.
    was_seen: bool,
}

/// A connection that is in use by one request.
pub(super) struct Lease {
    wire: Wire,
    pool: Arc<Pool>,
}

type ConnectError = <HttpConnector as Service<Uri>>::Error;

/// Why a request has no answer.
pub(super) enum Failure {
    Connect(ConnectError),
    /// The connection broke; tells whether that was before anything was sent.
    Exchange {
        error: hyper::Error,
        unsent: bool,
    },
}

struct Wire {
    /// Where it was made.
    runtime: runtime::Id,
    sender: SendRequest<Full<Bytes>>,
    /// Nothing once it has ended.
    connection: Option<Running>,
}

/// Large, and moved from hand to hand.
type Running = Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>;

impl Pool {
    pub(super) fn new(connector: HttpConnector, server: Uri) -> Arc<Self> {
        Arc::new(Self {
            connector,
            server,
            idle: Mutex::default(),
            sweeper: Mutex::default(),
        })
    }

    /// Makes a request; its body must be read with what is returned.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Lease), Failure> {
        loop {
            let idle = self.take();
            let is_new = idle.is_none();
            let mut wire = match idle {
                Some(wire) => wire,
                // Rare, and large.
                None => Box::pin(self.connect()).await?,
            };
            let mut failure = match wire.send(request).await {
                Ok(response) => {
                    let pool = Arc::clone(self);
                    return Ok((response, Lease { wire, pool }));
                }
                Err(failure) => failure,
            };
            match failure.take_message() {
                // The server has closed it in the meantime, and nothing was sent.
                Some(unsent) if !is_new => request = unsent,
                message => {
                    let (error, unsent) = (failure.into_error(), message.is_some());
                    return Err(Failure::Exchange { error, unsent });
                }
            }
        }
    }

    async fn connect(self: &Arc<Self>) -> Result<Wire, Failure> {
        let io = self.connector.clone().call(self.server.clone()).await;
        let handshake = http1::handshake(io.map_err(Failure::Connect)?).await;
        let (sender, connection) = handshake.map_err(|error| Failure::Exchange { error, unsent: true })?;
        self.keep_swept();
        Ok(Wire {
            runtime: Handle::current().id(),
            sender,
            connection: Some(Box::new(connection)),
        })
    }

    /// Starts the sweeper, unless there is one: it ends with the runtime on which it was started.
    fn keep_swept(self: &Arc<Self>) {
        let mut sweeper = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner);
        if sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            *sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// The connection of this runtime that was used last, so that those which are too many grow old.
    fn take(&self) -> Option<Wire> {
        let here = Handle::current().id();
        loop {
            let mut idle = self.idle();
            let last = idle.iter().rposition(|idle| idle.wire.runtime == here)?;
            let mut wire = idle.remove(last).wire;
            drop(idle);
            if wire.is_ready() {
                return Some(wire);
            }
        }
    }

    fn put_back(&self, mut wire: Wire) {
        if !wire.is_ready() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE {
            idle.push(Idle {
                wire,
                was_seen: false,
            });
        }
    }

    /// Closes what has not been used since the last time, and what the server has closed.
    fn sweep(&self) {
        let mut old = Vec::new();
        let mut idle = self.idle();
        for mut one in std::mem::take(&mut *idle) {
            if one.was_seen || !one.wire.is_ready() {
                old.push(one);
            } else {
                one.was_seen = true;
                idle.push(one);
            }
        }
        drop(idle);
        drop(old);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sweeps until the pool is gone.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE).await;
        match pool.upgrade() {
            Some(pool) => pool.sweep(),
            None => return,
        }
    }
}

impl Wire {
    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        // Only driving the connection brings the answer, so it wakes nobody and must not ask for a turn.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let connection = &mut self.connection;
        poll_fn(|cx| {
            drive(connection, cx);
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
    }

    /// Whether another request can be sent.
    fn is_ready(&mut self) -> bool {
        // Nobody waits for it, so nobody is woken.
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Takes a connection as far as it goes now. What it was doing when it ended fails when it is dropped.
fn drive(connection: &mut Option<Running>, cx: &mut Context<'_>) {
    if let Some(running) = connection
        && Pin::new(running).poll(cx).is_ready()
    {
        *connection = None;
    }
}

impl Lease {
    /// Reads the next piece of the body of the answer.
    pub(super) async fn frame(&mut self, body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|cx| self.poll_frame(body, cx)).await
    }

    fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut nobody = Context::from_waker(Waker::noop());
        let there = Pin::new(&mut *body).poll_frame(&mut nobody);
        if there.is_ready() {
            return there;
        }
        drive(&mut self.wire.connection, cx);
        Pin::new(body).poll_frame(&mut nobody)
    }

    /// Gives the connection back if nothing of the answer is left to come, or closes it.
    pub(super) fn give_back(mut self, body: &mut Incoming) {
        // What a server may send behind an answer that was found: the end of a stream.
        const FEW: usize = 4;
        let mut nobody = Context::from_waker(Waker::noop());
        for _ in 0..FEW {
            if body.is_end_stream() {
                return self.pool.put_back(self.wire);
            }
            match self.poll_frame(body, &mut nobody) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None) => return self.pool.put_back(self.wire),
                Poll::Ready(Some(Err(_))) | Poll::Pending => return,
            }
        }
    }
}
