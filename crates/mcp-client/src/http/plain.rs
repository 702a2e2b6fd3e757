//! Connections to a plain `http://` server, kept for the next request.
//!
//! Whoever makes a request drives its connection too, see [`super::wire`]. A task for each connection, as a general client
//! has it, is woken for every request and wakes the caller for every answer, and that costs more than the exchange itself.
//!
//! A connection is used on the runtime that it was made on, whose reactor tells what comes over it: on another one, every
//! answer would come from a thread that has to be woken first, or never, when nobody drives that runtime any more.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::{
    runtime::Handle,
    task::{AbortHandle, coop::unconstrained},
    time::sleep,
};
use tower_service::Service;

use super::{
    client::Headers,
    framing::{self, Framing, Head},
    sending::Request,
    wire::{Broken, Reason, Wire},
};

/// How long a connection without a request is kept, at least, and how many are.
const IDLE: Duration = Duration::from_secs(45);
const MOST_IDLE: usize = 256;

/// The connections to one server that wait for a request.
pub(super) struct Pool {
    prefix: Prefix,
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

/// What the requests to one server have in common, as it stands in their heads.
struct Prefix {
    /// All of it, behind the method.
    whole: Vec<u8>,
    line: Vec<u8>,
    headers: HeaderMap,
}

/// An answer, and the connection that its body comes over.
pub(super) struct Answer {
    pub(super) head: Head,
    /// Nothing once it was given back.
    wire: Option<Wire>,
    pool: Arc<Pool>,
}

type ConnectError = <HttpConnector as Service<Uri>>::Error;

/// Why a request has no answer.
pub(super) enum Failure {
    Connect(ConnectError),
    Exchange(Broken),
}

impl Prefix {
    fn new(server: &Uri, mut headers: HeaderMap) -> Self {
        // The header that HTTP/1.1 demands, and the short form of the URI that goes with it.
        if let Some(authority) = server.authority()
            && !headers.contains_key(header::HOST)
        {
            let host = authority.as_str().parse().expect("an authority is visible ASCII");
            headers.insert(header::HOST, host);
        }
        let path = server.path_and_query().map_or("/", |path| path.as_str());
        let line = format!(" {path} HTTP/1.1\r\n").into_bytes();
        let mut prefix = Self {
            whole: Vec::new(),
            line,
            headers,
        };
        prefix.whole = prefix.without(&[]);
        prefix
    }

    /// The head of a request, whose own headers count before those of all requests.
    fn head(&self, method: &Method, own: &Headers, length: Option<usize>) -> Vec<u8> {
        // Seldom more than the name of the host.
        let differs = self.headers.len() > 1 && own.iter().any(|(name, _)| self.headers.contains_key(name));
        if differs {
            framing::request_head(method, &self.without(own), own, length)
        } else {
            framing::request_head(method, &self.whole, own, length)
        }
    }

    fn without(&self, own: &[(HeaderName, HeaderValue)]) -> Vec<u8> {
        let mut lines = self.line.clone();
        for (name, value) in &self.headers {
            if !own.iter().any(|(own, _)| own == name) {
                framing::header_line(&mut lines, name, value);
            }
        }
        lines
    }
}

impl Pool {
    pub(super) fn new(connector: HttpConnector, server: Uri, headers: HeaderMap) -> Arc<Self> {
        Arc::new(Self {
            prefix: Prefix::new(&server, headers),
            connector,
            server,
            idle: Mutex::default(),
            sweeper: Mutex::default(),
        })
    }

    /// Makes a request.
    pub(super) async fn send(
        self: &Arc<Self>,
        method: Method,
        headers: Headers,
        body: Bytes,
    ) -> Result<Answer, Failure> {
        let length = (method == Method::POST).then_some(body.len());
        let mut request = Request::new(self.prefix.head(&method, &headers, length), body);
        loop {
            let idle = self.take();
            let is_new = idle.is_none();
            let mut wire = match idle {
                Some(wire) => wire,
                // Rare, and large.
                None => Box::pin(self.connect()).await?,
            };
            match wire.exchange(&method, &mut request).await {
                Ok(head) => {
                    return Ok(Answer {
                        head,
                        wire: Some(wire),
                        pool: Arc::clone(self),
                    });
                }
                // The server has closed it in the meantime, and nothing was sent.
                Err(broken) if broken.unsent && !is_new => {}
                Err(broken) => return Err(Failure::Exchange(broken)),
            }
        }
    }

    async fn connect(self: &Arc<Self>) -> Result<Wire, Failure> {
        let io = self.connector.clone().call(self.server.clone()).await;
        let stream = io.map_err(Failure::Connect)?.into_inner();
        self.keep_swept();
        Ok(Wire::new(stream))
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
            let last = idle.iter().rposition(|idle| idle.wire.is_of(here))?;
            let wire = idle.remove(last).wire;
            drop(idle);
            if wire.is_ready() {
                return Some(wire);
            }
        }
    }

    fn put_back(&self, mut wire: Wire) {
        wire.rest();
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

impl Answer {
    fn wire(&mut self) -> Result<(&mut Wire, &mut Framing), Reason> {
        match &mut self.wire {
            Some(wire) => Ok((wire, &mut self.head.framing)),
            None => Err(Reason::Ended("before this was read")),
        }
    }

    /// Reads the next piece of the body; nothing at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Reason> {
        let (wire, framing) = self.wire()?;
        poll_fn(|cx| wire.poll_piece(framing, cx)).await
    }

    /// Waits until all of the request has left; the answer is not read any more.
    pub(super) async fn sent(&mut self) -> Result<(), Reason> {
        let (wire, framing) = self.wire()?;
        poll_fn(|cx| wire.poll_sent(framing, cx)).await
    }

    /// Reads the whole body, or nothing when it is not known how long it is.
    pub(super) async fn whole(&mut self) -> Option<Result<Bytes, Reason>> {
        let left = usize::try_from(self.head.framing.left()?).ok()?;
        Some(match self.wire() {
            Ok((wire, framing)) => poll_fn(|cx| wire.poll_rest(framing, left, cx)).await,
            Err(reason) => Err(reason),
        })
    }
}

impl Drop for Answer {
    /// Gives the connection back if nothing of the answer is left to come, or closes it.
    fn drop(&mut self) {
        // What a server may send behind an answer that was found: the end of a stream.
        const FEW: usize = 4;
        let Some(mut wire) = self.wire.take().filter(|_| self.head.is_kept) else {
            return;
        };
        let mut nobody = Context::from_waker(Waker::noop());
        let framing = &mut self.head.framing;
        let has_ended = poll_fn(|cx| {
            for _ in 0..FEW {
                match wire.poll_piece(framing, cx) {
                    Poll::Ready(Ok(Some(_))) => {}
                    Poll::Ready(Ok(None)) => return Poll::Ready(true),
                    Poll::Ready(Err(_)) | Poll::Pending => break,
                }
            }
            Poll::Ready(false)
        });
        // A task that has used up its budget would not see what is there.
        let has_ended = pin!(unconstrained(has_ended)).poll(&mut nobody);
        if has_ended == Poll::Ready(true) && wire.is_clean() {
            self.pool.put_back(wire);
        }
    }
}
