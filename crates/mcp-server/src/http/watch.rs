use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
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
/// All is said, and the client may not have heard it yet.
const LINGERING: u8 = 3;

/// The body of the request may still be coming.
const BODY: u8 = 0;
/// Whatever comes belongs to another request.
const NOTHING: u8 = 1;
/// Some of another head has come.
const NEXT: u8 = 2;
/// The request was answered before its body had ended: the connection ends, and the rest is thrown away.
const REST: u8 = 3;

/// How long the rest of a body is thrown away at most.
const LINGER: Duration = Duration::from_secs(5);

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
            LINGERING => lasts(since, LINGER),
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

    /// Whether the client may still be sending what nobody reads any more. Begins the time that it has for that.
    fn lingers(&self) -> bool {
        if self.after.load(Ordering::Relaxed) != REST {
            return false;
        }
        if self.state.load(Ordering::Relaxed) != LINGERING {
            self.enter(LINGERING);
        }
        true
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

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.phase.written(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Closes the direction to the client. One that is still sending would lose its answer if the other direction were closed
    /// as well: the kernel answers what comes then by a reset (RFC 9112, section 9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        if !self.phase.lingers() {
            return Poll::Ready(Ok(()));
        }
        let mut nowhere = [MaybeUninit::uninit(); 8 * 1024];
        loop {
            let mut buffer = ReadBuf::uninit(&mut nowhere);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
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
        self.becomes(NOTHING);
    }

    fn becomes(&self, after: u8) {
        let _ = self
            .phase
            .after
            .compare_exchange(BODY, after, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.becomes(REST);
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
