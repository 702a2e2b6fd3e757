//! Stdio transport over any pair of byte streams: one task writes, one reads, and callers wait for their own response.

mod call;
mod deadlines;
mod outbox;
mod reader;
mod resubscribe;
mod shared;
mod subscription;
mod writer;

use std::sync::Arc;
#[cfg(feature = "http")]
use std::sync::OnceLock;

use mcp_wire::{Params, cancelled_params, method};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{oneshot, watch},
    time::Instant,
};

use self::{
    call::Call,
    outbox::{Outbox, Outgoing, PushError},
    shared::Shared,
    writer::BATCH_BYTES,
};
use crate::{
    ClientError, ClientErrorKind, ConnectionOptions, ConnectionStats, RequestOptions,
    exchange::Exchange,
    notifications::{MessageRouter, Notifier},
    process::{Process, Stop},
};

/// Connection over a pair of byte streams.
pub(crate) struct StreamLink {
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    process: Option<Process>,
}

impl StreamLink {
    /// Starts the reader and writer tasks.
    pub(crate) fn open(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        process: Option<Process>,
        options: &ConnectionOptions,
        notifier: Notifier,
    ) -> Self {
        let handle = process.as_ref().map(Process::handle);
        let router = MessageRouter::new(options.handlers.clone(), notifier);
        let shared = Arc::new(Shared::new(handle, router));
        let outbox = Arc::new(Outbox::new(Box::new(writer)));
        tokio::spawn(writer::run(
            Arc::clone(&outbox),
            Arc::clone(&shared),
            options.write_stall,
        ));
        tokio::spawn(deadlines::run(Arc::clone(&shared)));
        let reader_task = reader::Reader::new(options, Arc::clone(&shared), Arc::clone(&outbox));
        tokio::spawn(reader_task.run(reader));
        Self {
            shared,
            outbox,
            process,
        }
    }

    /// Fails the requests reported by `failures`, to which no response will come, while the connection is open.
    #[cfg(feature = "http")]
    pub(crate) fn fail_requests_from(&self, mut failures: tokio::sync::mpsc::Receiver<(u64, ClientError)>) {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            loop {
                let failure = tokio::select! {
                    failure = failures.recv() => failure,
                    () = shared.closed() => return,
                };
                let Some((id, error)) = failure else { return };
                shared.fail(id, error);
            }
        });
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.shared.next_id()
    }

    /// Sends or queues a request, and returns the pending call.
    pub(crate) fn start_call(
        &self,
        id: u64,
        method: &str,
        params: &Params,
        options: RequestOptions,
    ) -> Result<PendingCall<'_>, ClientError> {
        let mut frame = mcp_wire::request(id, method, params);
        mcp_wire::end_line(&mut frame);
        let is_small = frame.len() <= BATCH_BYTES;
        let (call, answer) = Call::new(id, frame, Exchange::new(options), method == method::INITIALIZE);
        let call = Arc::new(call);
        let is_only = self.shared.register(&call)?;
        let mut waiting = PendingCall {
            link: self,
            call,
            answer,
            unqueued: None,
            // The handshake is not cancelled: a server need not expect it, and the connection ends anyway.
            cancels: method != method::INITIALIZE && method != method::DISCOVER,
            is_active: true,
        };
        let written = is_only && is_small && self.outbox.try_write(&waiting.call, &self.shared);
        if !written
            && let Err(PushError::Full(frame)) = self.outbox.push(Outgoing::Call(Arc::clone(&waiting.call)))
        {
            waiting.unqueued = Some(frame);
        }
        Ok(waiting)
    }

    pub(crate) async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), ClientError> {
        let frame = mcp_wire::notification(method, params);
        match self.outbox.push_when_ready(Outgoing::line(frame)).await {
            true => Ok(()),
            false => Err(self.shared.close_error()),
        }
    }

    /// Replaces the subscription at a modern server.
    pub(crate) fn set_subscription(&self, params: Option<&RawJson>) {
        let id = params.map_or(0, |_| self.next_id());
        let old = self.shared.subscription().replace(id, params);
        let new = params.map(|params| mcp_wire::request(id, method::SUBSCRIPTIONS_LISTEN, &params.into()));
        let end = old.map(|old| {
            let params = cancelled_params(&RawJson::from(old), None);
            mcp_wire::notification(method::CANCELLED, Some(&params))
        });
        for frame in new.into_iter().chain(end) {
            if self.outbox.push(Outgoing::line(frame)).is_err() {
                self.shared.router.stats.dropped.add();
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Waits until the connection is closed, and returns the reason.
    pub(crate) async fn closed(&self) -> ClientError {
        self.shared.closed().await;
        self.shared.close_error()
    }

    /// Cell in which the carrier of the stream stores the reason for its end, before it ends.
    #[cfg(feature = "http")]
    pub(crate) fn end_of_stream(&self) -> Arc<OnceLock<ClientError>> {
        Arc::clone(&self.shared.end_of_stream)
    }

    pub(crate) fn closed_signal(&self) -> watch::Receiver<bool> {
        self.shared.closed_signal()
    }

    /// Reason and time of the end of the connection.
    pub(crate) fn close_reason(&self) -> (ClientError, Instant) {
        self.shared.close_info()
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        self.shared.router.stats.snapshot()
    }

    pub(crate) fn pending(&self) -> usize {
        self.shared.count()
    }

    pub(crate) fn stderr_tail(&self) -> Option<String> {
        self.process.as_ref().map(Process::stderr_text)
    }

    /// Ends the connection and its process gracefully. Returns when the process is gone.
    pub(crate) async fn shutdown(&self) {
        self.shared
            .close(ClientError::closed("the connection was shut down"), Stop::Orderly);
        if let Some(handle) = self.process.as_ref().map(Process::handle) {
            handle.wait().await;
        }
    }
}

impl Drop for StreamLink {
    fn drop(&mut self) {
        self.shared
            .close(ClientError::closed("the connection was dropped"), Stop::Now);
    }
}

/// Waits for the response to a request. Dropping it removes the call, and notifies the server of the cancellation.
pub(crate) struct PendingCall<'a> {
    link: &'a StreamLink,
    call: Arc<Call>,
    answer: oneshot::Receiver<Result<RawJson, ClientError>>,
    /// Request that found the queue full.
    unqueued: Option<Outgoing>,
    cancels: bool,
    is_active: bool,
}

impl PendingCall<'_> {
    /// Waits for the response, or for the reason why there will be none.
    pub(crate) async fn wait(&mut self) -> Result<RawJson, ClientError> {
        let outcome = match self.unqueued.take() {
            None => (&mut self.answer).await.ok(),
            // Boxed: rare, and the future of every call would have to reserve room for it.
            Some(frame) => Box::pin(self.queue_and_wait(frame)).await,
        };
        let shared = &self.link.shared;
        let outcome = outcome.unwrap_or_else(|| Err(shared.close_error().with_sent(self.call.was_sent())));
        // Only a call that timed out is still registered.
        self.is_active =
            matches!(&outcome, Err(error) if matches!(error.kind(), ClientErrorKind::Timeout(_)));
        outcome
    }

    /// Queues the request as soon as there is room, and waits for its response.
    async fn queue_and_wait(&mut self, frame: Outgoing) -> Option<Result<RawJson, ClientError>> {
        tokio::select! {
            biased;
            // The deadline, or the end of the connection.
            outcome = &mut self.answer => return outcome.ok(),
            // If the connection is closed, the call is about to fail as well.
            _ = self.link.outbox.push_when_ready(frame) => {}
        }
        (&mut self.answer).await.ok()
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.is_active || self.link.shared.remove(self.call.id).is_none() {
            return;
        }
        // A frame that is still here was not sent, so there is nothing to cancel. Otherwise the cancellation is queued
        // without waiting: a server that does not read will not read this either.
        let unsent = self.call.take_frame().is_some();
        if !unsent && self.cancels && !self.link.shared.is_closed() {
            let params = cancelled_params(&RawJson::from(self.call.id), None);
            let frame = mcp_wire::notification(method::CANCELLED, Some(&params));
            if self.link.outbox.push(Outgoing::line(frame)).is_err() {
                self.link.shared.router.stats.dropped.add();
            }
        }
    }
}
