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

/// Interval at which connections are checked.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Watchdog of one connection: the phase that the connection is in, and the tick at which it began.
///
/// hyper has a timeout for heads only, which includes idle time, and starts a timer for every request. The watchdog needs no
/// timer: it counts the connection's own ticks.
#[derive(Debug)]
pub(super) struct Watchdog {
    phase: AtomicU8,
    since: AtomicU32,
    /// Tick since which the client accepts no bytes, counted from one; zero while it accepts them.
    stalled: AtomicU32,
    now: AtomicU32,
    /// State of the input after the head of the current request.
    input: AtomicU8,
}

/// Maximum time of a client for each of its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientTimeouts {
    pub(super) head: Duration,
    pub(super) idle: Duration,
    pub(super) write: Duration,
}

/// Between two requests.
const IDLE: u8 = 0;
/// A part of a head was read, or the connection is new.
const HEAD: u8 = 1;
/// A request runs, or its response is written.
const BUSY: u8 = 2;
/// The last response is written, and the client may still be sending.
const LINGERING: u8 = 3;

/// The body of the request may not have ended.
const BODY: u8 = 0;
/// The body has ended; further bytes belong to another request.
const BODY_ENDED: u8 = 1;
/// A part of the next head was read.
const NEXT_HEAD: u8 = 2;
/// The request was answered before its body had ended: the connection ends, and the rest of the body is discarded.
const BODY_DROPPED: u8 = 3;

/// Maximum time for which the rest of a body is read and discarded.
const LINGER: Duration = Duration::from_secs(5);

impl Watchdog {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            phase: AtomicU8::new(HEAD),
            since: AtomicU32::new(0),
            stalled: AtomicU32::new(0),
            now: AtomicU32::new(0),
            input: AtomicU8::new(BODY),
        })
    }

    /// Records that a head is complete; the connection is busy until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> BusyGuard {
        self.enter(BUSY);
        self.input.store(BODY, Ordering::Relaxed);
        BusyGuard(Arc::clone(self))
    }

    /// Records that bytes were read.
    fn on_read(&self) {
        match self.phase.load(Ordering::Relaxed) {
            IDLE => self.enter(HEAD),
            BUSY if self.input.load(Ordering::Relaxed) == BODY_ENDED => {
                self.input.store(NEXT_HEAD, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Counts a tick. Returns `true` if the client has exceeded a timeout.
    pub(super) fn tick(&self, timeouts: ClientTimeouts) -> bool {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        let lasts = |since: u32, limit| TICK * now.saturating_sub(since) > limit;
        if let Some(stalled) = self.stalled.load(Ordering::Relaxed).checked_sub(1)
            && lasts(stalled, timeouts.write)
        {
            return true;
        }
        let since = self.since.load(Ordering::Relaxed);
        match self.phase.load(Ordering::Relaxed) {
            HEAD => lasts(since, timeouts.head),
            IDLE => lasts(since, timeouts.idle),
            LINGERING => lasts(since, LINGER),
            _ => false,
        }
    }

    /// Records whether the client accepted bytes.
    fn on_write(&self, is_accepted: bool) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if is_accepted && stalled != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        } else if !is_accepted && stalled == 0 {
            self.stalled
                .store(self.now.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Returns `true` if the client may still be sending a body that nobody reads, and starts the time that it has for that.
    fn lingers(&self) -> bool {
        if self.input.load(Ordering::Relaxed) != BODY_DROPPED {
            return false;
        }
        if self.phase.load(Ordering::Relaxed) != LINGERING {
            self.enter(LINGERING);
        }
        true
    }

    fn enter(&self, phase: u8) {
        self.phase.store(phase, Ordering::Relaxed);
        self.since
            .store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Guard of a request whose response is not completely written.
#[derive(Debug)]
pub(super) struct BusyGuard(Arc<Watchdog>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        // The next head could not be completed before; its time begins now.
        let has_begun = self.0.input.load(Ordering::Relaxed) == NEXT_HEAD;
        self.0.enter(if has_begun { HEAD } else { IDLE });
    }
}

/// Socket that reports reads and stalled writes to the watchdog.
#[derive(Debug)]
pub(super) struct WatchedIo<T> {
    pub(super) io: T,
    pub(super) watchdog: Arc<Watchdog>,
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
            self.watchdog.on_read();
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.watchdog.on_write(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Closes the direction to the client. A client that is still sending would lose its response if the other direction were
    /// closed as well: the kernel answers further bytes with a reset (RFC 9112, section 9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        if !self.watchdog.lingers() {
            return Poll::Ready(Ok(()));
        }
        let mut discarded = [MaybeUninit::uninit(); 8 * 1024];
        loop {
            let mut buffer = ReadBuf::uninit(&mut discarded);
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
        self.watchdog.on_write(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

/// Body of a request to [`serve_http`](super::serve_http): hyper's own, whose end is reported to the watchdog, since it is
/// followed by the head of the next request.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    watchdog: Arc<Watchdog>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, watchdog: Arc<Watchdog>) -> Self {
        let body = Self { body, watchdog };
        body.report_end();
        body
    }

    /// Reports the end of the body if it is known.
    fn report_end(&self) {
        if self.body.is_end_stream() {
            self.report(BODY_ENDED);
        }
    }

    /// Reports the state of the input after this body, unless another was reported.
    fn report(&self, input: u8) {
        let _ = self
            .watchdog
            .input
            .compare_exchange(BODY, input, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.report(BODY_DROPPED);
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
            Poll::Ready(None) => self.report(BODY_ENDED),
            Poll::Ready(Some(_)) => self.report_end(),
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

/// Body of a response; the connection is busy until it is dropped.
#[derive(Debug)]
pub(super) struct WatchedBody<B> {
    pub(super) body: B,
    pub(super) _busy: BusyGuard,
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
