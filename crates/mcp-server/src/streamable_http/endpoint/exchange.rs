use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::{AbortRegistration, Abortable};
use tokio::sync::mpsc;

use super::detached::DetachedCalls;
use crate::{
    client::Outgoing,
    protocol::Reply,
    request::InFlightRequest,
    streamable_http::session::{ResumableStream, Session},
};

/// Request that the service answers, until its response is there or nobody wants it any more.
pub(in crate::streamable_http) struct Exchange {
    call: Option<ServiceCall>,
    events: Option<mpsc::Receiver<Outgoing>>,
    /// The end, while events are sent before it.
    ended: Option<Step>,
    /// Calls that go on when their connection is lost, if this may be one of them.
    detached: Option<Arc<DetachedCalls>>,
    /// Session in which the client may resume the stream.
    session: Option<Arc<Session>>,
}

/// Call of the service. Completes with `None` if the client has cancelled the request. The other fields are outside of the
/// box: a future that wraps this one moves all of it.
pub(super) enum ServiceCall {
    /// Call of a session, which the client can cancel by the id of its request.
    Cancellable {
        call: Abortable<BoxedCall>,
        _in_flight: InFlightRequest,
    },
    /// Call without a session.
    Plain(BoxedCall),
}

type BoxedCall = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl ServiceCall {
    pub(super) fn new(
        call: impl Future<Output = Reply> + Send + 'static,
        in_flight: Option<(InFlightRequest, AbortRegistration)>,
    ) -> Self {
        let call: BoxedCall = Box::pin(call);
        match in_flight {
            Some((in_flight, registration)) => Self::Cancellable {
                call: Abortable::new(call, registration),
                _in_flight: in_flight,
            },
            None => Self::Plain(call),
        }
    }
}

impl Future for ServiceCall {
    type Output = Option<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
        match &mut *self {
            Self::Cancellable { call, .. } => Pin::new(call).poll(cx).map(Result::ok),
            Self::Plain(call) => call.as_mut().poll(cx).map(Some),
        }
    }
}

/// Step of an exchange: any number of events, then the end.
#[derive(Debug)]
pub(in crate::streamable_http) enum Step {
    /// Event before the response.
    Event(Outgoing),
    /// Response; `None` if the client has cancelled the request.
    End(Option<Reply>),
}

impl Exchange {
    pub(super) fn new(
        call: ServiceCall,
        events: Option<mpsc::Receiver<Outgoing>>,
        detached: Option<Arc<DetachedCalls>>,
        session: Option<Arc<Session>>,
    ) -> Self {
        Self {
            call: Some(call),
            events,
            ended: None,
            detached,
            session,
        }
    }

    /// Opens a stream that the client can resume, if it has a session.
    pub(in crate::streamable_http) fn open_stream(&self) -> Option<Arc<ResumableStream>> {
        self.session.as_ref().map(|session| session.streams.open())
    }

    /// Goes on without a connection, and adds the events to the stream until the client resumes it.
    pub(in crate::streamable_http) fn park(mut self, stream: &Arc<ResumableStream>) {
        let detached = self.detached.clone();
        let parked = Arc::clone(stream);
        let is_parked = detached.is_some_and(|detached| {
            detached.spawn(async move {
                loop {
                    match self.step().await {
                        Step::Event(Outgoing::Frame(frame)) => drop(parked.push(&frame)),
                        // It is paused already.
                        Step::Event(Outgoing::Pause(_)) => {}
                        Step::End(reply) => {
                            reply.map(|reply| parked.push(&reply.frame));
                            return parked.end();
                        }
                    }
                }
            })
        });
        if !is_parked {
            stream.end();
        }
    }

    /// Returns the next step. There is none after the end.
    pub(in crate::streamable_http) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(call) = &mut self.call
            && let Poll::Ready(reply) = Pin::new(call).poll(cx)
        {
            self.call = None;
            self.ended = Some(Step::End(reply));
        }
        // Events come before the response. The call has closed their channel when it ended.
        if let Some(events) = &mut self.events
            && let Poll::Ready(Some(event)) = events.poll_recv(cx)
        {
            return Poll::Ready(Step::Event(event));
        }
        self.ended.take().map_or(Poll::Pending, Poll::Ready)
    }

    pub(in crate::streamable_http) async fn step(&mut self) -> Step {
        std::future::poll_fn(|cx| self.poll_step(cx)).await
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            // The call may have taken longer than an idle session is kept.
            session.touch();
        }
        if let (Some(call), Some(detached)) = (self.call.take(), &self.detached) {
            detached.spawn(async move {
                call.await;
            });
        }
    }
}
