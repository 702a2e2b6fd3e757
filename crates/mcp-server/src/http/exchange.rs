use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{runtime::Handle, sync::mpsc};

use crate::protocol::Reply;

/// A request that the service works on, until its answer is there or nobody wants it any more.
pub(super) struct Exchange {
    /// Gives nothing when the client has cancelled the request.
    call: Option<Pin<Box<dyn Future<Output = Option<Reply>> + Send>>>,
    reports: Option<mpsc::Receiver<Vec<u8>>>,
    /// The end, while reports come before it.
    ended: Option<Step>,
    /// Where the call goes on when the connection is lost.
    refuge: Option<Refuge>,
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
        call: impl Future<Output = Option<Reply>> + Send + 'static,
        reports: Option<mpsc::Receiver<Vec<u8>>>,
        refuge: Option<Refuge>,
    ) -> Self {
        Self {
            call: Some(Box::pin(call)),
            reports,
            ended: None,
            refuge,
        }
    }

    /// The next step. There is none after the end.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(call) = &mut self.call
            && let Poll::Ready(reply) = call.as_mut().poll(cx)
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
    fn take(&self, call: Pin<Box<dyn Future<Output = Option<Reply>> + Send>>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let before = self.0.count.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.0));
        if before >= self.0.max || self.0.is_closed.load(Ordering::Relaxed) {
            return;
        }
        runtime.spawn(async move {
            let _place = place;
            call.await;
        });
    }
}

struct Place(Arc<Detached>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
