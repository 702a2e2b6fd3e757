use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often connections are looked after.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// What a connection is doing, and since which tick.
///
/// hyper has a limit for heads only, which counts idle time as well, and a timer for every request. This takes none:
/// the connection's own ticks count.
#[derive(Debug)]
pub(super) struct Phase {
    state: AtomicU8,
    since: AtomicU32,
    /// Since when the client takes no more bytes: the tick, counted from one; zero while it takes them.
    stalled: AtomicU32,
    now: AtomicU32,
    /// What is known, while a request is worked on, of what comes after it.
    after: AtomicU8,
}

/// How long a client may take for its part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) head: Duration,
    pub(super) idle: Duration,
    pub(super) write: Duration,
}

/// Between two requests.
const IDLE: u8 = 0;
/// Some of a head has come, or nothing at all yet.
const HEAD: u8 = 1;
/// A request is worked on, or its answer is written.
const BUSY: u8 = 2;

/// The body of the request may still be coming.
const BODY: u8 = 0;
/// Whatever comes belongs to another request.
const NOTHING: u8 = 1;
/// Some of another head has come.
const NEXT: u8 = 2;

impl Phase {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(HEAD),
            since: AtomicU32::new(0),
            stalled: AtomicU32::new(0),
            now: AtomicU32::new(0),
            after: AtomicU8::new(BODY),
        })
    }

    /// Notes that a head is complete; the phase lasts until the guard is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.enter(BUSY);
        self.after.store(BODY, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Notes that some bytes have come.
    fn read(&self) {
        match self.state.load(Ordering::Relaxed) {
            IDLE => self.enter(HEAD),
            BUSY if self.after.load(Ordering::Relaxed) == NOTHING => {
                self.after.store(NEXT, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Counts a tick, and tells whether the client has taken too long.
    pub(super) fn is_overdue(&self, patience: Patience) -> bool {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        let lasts = |since: u32, limit| TICK * now.saturating_sub(since) > limit;
        if let Some(stalled) = self.stalled.load(Ordering::Relaxed).checked_sub(1)
            && lasts(stalled, patience.write)
        {
            return true;
        }
        let since = self.since.load(Ordering::Relaxed);
        match self.state.load(Ordering::Relaxed) {
            HEAD => lasts(since, patience.head),
            IDLE => lasts(since, patience.idle),
            _ => false,
        }
    }

    /// Notes whether the client took what was written.
    fn written(&self, is_taken: bool) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if is_taken && stalled != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        } else if !is_taken && stalled == 0 {
            self.stalled
                .store(self.now.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    fn enter(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
        self.since
            .store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Stands for a request that is not wholly answered.
#[derive(Debug)]
pub(super) struct Busy(Arc<Phase>);

impl Drop for Busy {
    fn drop(&mut self) {
        // A head that began meanwhile could not have ended before; its time begins now.
        let has_begun = self.0.after.load(Ordering::Relaxed) == NEXT;
        self.0.enter(if has_begun { HEAD } else { IDLE });
    }
}

/// A socket whose first bytes after a pause begin a head, and whose full buffers are noted.
#[derive(Debug)]
pub(super) struct WatchedIo<T> {
    pub(super) io: T,
    pub(super) phase: Arc<Phase>,
}

impl<T: AsyncRead + Unpin> AsyncRead for WatchedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.phase.read();
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WatchedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.phase.written(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.phase.written(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

/// The body of a request that [`serve_http`](super::serve_http) has taken: hyper's own, whose end is noted, since what
/// comes after it is the head of the next request.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    phase: Arc<Phase>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, phase: Arc<Phase>) -> Self {
        let body = Self { body, phase };
        body.look();
        body
    }

    fn look(&self) {
        if self.body.is_end_stream() {
            self.end();
        }
    }

    fn end(&self) {
        let _ = self
            .phase
            .after
            .compare_exchange(BODY, NOTHING, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.end(),
            Poll::Ready(Some(_)) => self.look(),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer; the connection is busy until it is gone.
#[derive(Debug)]
pub(super) struct WatchedBody<B> {
    pub(super) body: B,
    pub(super) _busy: Busy,
}

impl<B: Body + Unpin> Body for WatchedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
