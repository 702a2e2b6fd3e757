use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{AbortRegistration, Abortable};
use tokio::{runtime::Handle, sync::mpsc};

use super::{resumable::Resumable, session::Session};
use crate::{in_flight::Taken, protocol::Reply, way::PAUSE};

/// A request that the service works on, until its answer is there or nobody wants it any more.
pub(super) struct Exchange {
    call: Option<Work>,
    reports: Option<mpsc::Receiver<Vec<u8>>>,
    /// The end, while reports come before it.
    ended: Option<Step>,
    /// Where the call goes on when the connection is lost.
    refuge: Option<Refuge>,
    /// The session that the client may come back to.
    session: Option<Arc<Session>>,
}

/// What the service works on; gives nothing when the client has cancelled the request. What else there is stands beside
/// the box: whatever is put around a future is moved with all of it.
pub(super) enum Work {
    /// Of a session, in which the request's id is taken as long as this lasts, and cancels it.
    Known {
        call: Abortable<Call>,
        _taken: Taken,
    },
    Alone(Call),
}

type Call = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl Work {
    pub(super) fn new(
        call: impl Future<Output = Reply> + Send + 'static,
        in_flight: Option<(Taken, AbortRegistration)>,
    ) -> Self {
        let call: Call = Box::pin(call);
        match in_flight {
            Some((taken, registration)) => Self::Known {
                call: Abortable::new(call, registration),
                _taken: taken,
            },
            None => Self::Alone(call),
        }
    }
}

impl Future for Work {
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
        match &mut *self {
            Self::Known { call, .. } => Pin::new(call).poll(cx).map(Result::ok),
            Self::Alone(call) => call.as_mut().poll(cx).map(Some),
        }
    }
}

/// What comes of an exchange, in this order: reports, then the end.
#[derive(Debug)]
pub(super) enum Step {
    Report(Vec<u8>),
    /// The answer; nothing when the client has cancelled the request.
    End(Option<Reply>),
}

impl Exchange {
    pub(super) fn new(
        call: Work,
        reports: Option<mpsc::Receiver<Vec<u8>>>,
        refuge: Option<Refuge>,
        session: Option<Arc<Session>>,
    ) -> Self {
        Self {
            call: Some(call),
            reports,
            ended: None,
            refuge,
            session,
        }
    }

    /// Begins a stream that the client can come back to, if it has a session.
    pub(super) fn open_stream(&self) -> Option<Arc<Resumable>> {
        self.session.as_ref().map(|session| session.streams.open())
    }

    /// Goes on without a connection, and puts what comes onto the stream until the client comes back for it.
    pub(super) fn park(mut self, stream: Arc<Resumable>) {
        let place = self.refuge.as_ref().and_then(Refuge::place);
        let (Some(place), Ok(runtime)) = (place, Handle::try_current()) else {
            return stream.end();
        };
        runtime.spawn(async move {
            let _place = place;
            loop {
                match self.step().await {
                    Step::Report(report) if pause(&report).is_none() => drop(stream.push(&report)),
                    // It is paused already.
                    Step::Report(_) => {}
                    Step::End(reply) => {
                        reply.map(|reply| stream.push(&reply.frame));
                        return stream.end();
                    }
                }
            }
        });
    }

    /// The next step. There is none after the end.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(call) = &mut self.call
            && let Poll::Ready(reply) = Pin::new(call).poll(cx)
        {
            self.call = None;
            self.ended = Some(Step::End(reply));
        }
        // Reports that were made before the answer come before it; the call has closed their way when it ended.
        if let Some(reports) = &mut self.reports
            && let Poll::Ready(Some(report)) = reports.poll_recv(cx)
        {
            return Poll::Ready(Step::Report(report));
        }
        self.ended.take().map_or(Poll::Pending, Poll::Ready)
    }

    pub(super) async fn step(&mut self) -> Step {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            // A call may take longer than a session is kept that nobody uses.
            session.touch();
        }
        if let (Some(call), Some(refuge)) = (self.call.take(), &self.refuge) {
            refuge.take(call);
        }
    }
}

/// Where the calls of legacy clients go on whose connection was lost: in that era only the client's own word cancels
/// a call. Their number is bounded; beyond it a lost connection does cancel.
#[derive(Debug, Clone)]
pub(super) struct Refuge(pub(super) Arc<Detached>);

/// How many calls go on without a connection.
#[derive(Debug)]
pub(super) struct Detached {
    count: AtomicUsize,
    max: usize,
    is_closed: AtomicBool,
}

impl Detached {
    pub(super) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Takes no more calls: when the server stops, a lost connection is the end of its calls.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Refuge {
    /// A place, if there is one.
    fn place(&self) -> Option<Place> {
        let before = self.0.count.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.0));
        let has_room = before < self.0.max && !self.0.is_closed.load(Ordering::Relaxed);
        has_room.then_some(place)
    }

    fn take(&self, call: Work) {
        let (Some(place), Ok(runtime)) = (self.place(), Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            let _place = place;
            call.await;
        });
    }
}

/// How long a client is to wait before it comes back, if this is no message but the wish to pause the stream.
pub(super) fn pause(report: &[u8]) -> Option<Duration> {
    let millis = report.strip_prefix(PAUSE)?;
    let millis = std::str::from_utf8(millis).ok()?.parse().ok()?;
    Some(Duration::from_millis(millis))
}

struct Place(Arc<Detached>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
