use std::{future::poll_fn, io, sync::Arc, time::Duration};

use bytes::Bytes;
use mcp_wire::{
    Line, LineDecoder, Message, ParseError, ParseErrorKind, Response, has_method_in_head, id_in_head,
    integer_id,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::sleep,
};

use super::{
    call::Call,
    outbox::{Outbox, Outgoing},
    resubscribe::resubscribe,
    shared::{CloseOnPanic, Shared},
    subscription::AfterEnd,
};
use crate::{
    ClientError, ClientErrorKind, ConnectionOptions, ServerInfo, notifications, process::Stop,
    server_requests, unbuffered_read::read_unbuffered,
};

/// Ratio of the maximum line length to the size limit of a message. The rest of an oversize line is skipped because
/// other calls wait after it, but not without end.
const OVERSIZE_FACTOR: usize = 8;

/// Reads messages and dispatches them, in order and without waiting for anyone.
pub(super) struct Reader {
    decoder: LineDecoder,
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    limit: usize,
    /// Number of further consecutive lines that may be invalid.
    garbage_left: u32,
    max_garbage: u32,
    /// `true` if the negotiated revision allows batches.
    takes_batches: bool,
    /// Time to continue reading after the connection was closed, so that a child that shuts down does not block.
    linger: Duration,
}

impl Reader {
    pub(super) fn new(options: &ConnectionOptions, shared: Arc<Shared>, outbox: Arc<Outbox>) -> Self {
        let linger = if shared.process().is_some() {
            options.shutdown_grace * 3
        } else {
            Duration::ZERO
        };
        Self {
            decoder: LineDecoder::new(options.max_message),
            shared,
            outbox,
            limit: options.max_message,
            garbage_left: options.max_garbage,
            max_garbage: options.max_garbage,
            takes_batches: false,
            linger,
        }
    }

    /// Reads until the stream ends or the connection is closed.
    pub(super) async fn run(mut self, mut reader: impl AsyncRead + Unpin) {
        // Also closes if a callback panics: nobody may wait for a reader that is gone.
        let _guard = CloseOnPanic(Arc::clone(&self.shared));
        let shared = Arc::clone(&self.shared);
        let linger = self.linger;
        let left = async {
            shared.closed().await;
            sleep(linger).await;
        };
        let ended = tokio::select! {
            ended = self.read(&mut reader) => ended,
            () = left => return,
        };
        if let (ReadEnd::Eof, Some(error)) = (&ended, self.shared.end_of_stream.get()) {
            return self.shared.close(error.clone(), Stop::Orderly);
        }
        let reason = match (ended, self.shared.process()) {
            (ReadEnd::Unhealthy, _) => "the server wrote too many lines that are not messages".to_owned(),
            (ReadEnd::Endless, _) => "the server wrote an endless line".to_owned(),
            (_, Some(process)) => process.exit_description().await,
            (ReadEnd::Eof, None) => "the server closed the connection".to_owned(),
            (ReadEnd::Failed(error), None) => format!("cannot read from the server: {error}"),
        };
        self.shared.close(ClientError::closed(reason), Stop::Orderly);
    }

    async fn read(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> ReadEnd {
        loop {
            let read = if self.decoder.is_mid_line() {
                reader.read_buf(self.decoder.buffer()).await
            } else {
                self.read_line_start(reader).await
            };
            match read {
                Ok(1..) => {}
                Ok(0) => {
                    while let Some(line) = self.decoder.finish() {
                        self.last_line(line);
                    }
                    return ReadEnd::Eof;
                }
                Err(error) => return ReadEnd::Failed(error),
            }
            while let Some(line) = self.decoder.next_line() {
                self.line(line);
                if self.garbage_left == 0 {
                    return ReadEnd::Unhealthy;
                }
            }
            if self.decoder.n_skipped() / OVERSIZE_FACTOR > self.limit {
                return ReadEnd::Endless;
            }
        }
    }

    /// Reads the beginning of a line. An idle connection keeps no buffer meanwhile.
    async fn read_line_start(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| {
            let read = read_unbuffered(reader, cx, |piece| self.decoder.push(piece));
            if read.is_pending() && self.shared.count() == 0 {
                self.decoder.release();
            }
            read
        })
        .await
    }

    fn line(&mut self, line: Line) {
        match line {
            Line::Complete(line) => self.message(&line),
            Line::Oversize { head, .. } => self.oversize(&head),
        }
    }

    /// Handles the bytes before the end of the stream. An invalid message is assumed to be truncated: its call fails
    /// with the end of the connection, like all others.
    fn last_line(&mut self, line: Line) {
        match &line {
            Line::Complete(text)
                if Message::from_server(text.clone()).is_err_and(|error| !self.is_batch(&error)) =>
            {
                self.shared.router.stats.garbage.add();
            }
            _ => self.line(line),
        }
    }

    fn is_batch(&self, error: &ParseError) -> bool {
        self.takes_batches && *error.kind() == ParseErrorKind::Batch
    }

    fn message(&mut self, line: &Bytes) {
        match Message::from_server(line.clone()) {
            Ok(message) => self.take(message),
            Err(error) if self.is_batch(&error) => match mcp_wire::split_server_batch(line.clone()) {
                Ok(messages) => messages.iter().for_each(|message| self.batch_item(message)),
                Err(error) => self.invalid_message(line, error),
            },
            Err(error) => self.invalid_message(line, error),
        }
    }

    /// Handles a message of a batch as if it had been sent alone. A nested batch is invalid.
    fn batch_item(&mut self, text: &Bytes) {
        match Message::from_server(text.clone()) {
            Ok(message) => self.take(message),
            Err(error) => self.invalid_message(text, error),
        }
    }

    fn take(&mut self, message: Message) {
        self.garbage_left = self.max_garbage;
        match message {
            Message::Response(response) => self.response(response),
            Message::Notification(note) => match notifications::progress_target(&note) {
                Some((id, params)) => match self.shared.get(id) {
                    Some(call) => call.exchange.report_progress(params.clone()),
                    None => self.shared.router.stats.notifications.add(),
                },
                None => self.shared.router.notification(note),
            },
            Message::Request(request) => {
                let outbox = Arc::clone(&self.outbox);
                self.shared
                    .router
                    .request(request, None, move |frame| send(&outbox, frame));
            }
        }
    }

    fn invalid_message(&mut self, text: &[u8], error: ParseError) {
        // A log line may be JSON and have an id, too: only what resembles a response is taken for one.
        let resembles = *error.kind() != ParseErrorKind::Empty;
        let id = error
            .id()
            .and_then(integer_id)
            .or_else(|| id_in_head(text))
            .filter(|_| resembles);
        let call = id.and_then(|id| self.shared.remove(id));
        self.garbage(call.as_deref(), error);
    }

    fn response(&mut self, response: Response) {
        let id = response.id.as_ref().and_then(integer_id);
        let call = match &response.id {
            Some(_) => id.and_then(|id| self.shared.remove(id)),
            // A server that could not read a request cannot name it.
            None if response.outcome.is_err() => self.shared.remove_only(),
            None => None,
        };
        let Some(call) = call else {
            let is_refused = response.outcome.is_err();
            match id.and_then(|id| self.shared.subscription().on_response(id, is_refused)) {
                Some(AfterEnd::Stop) => return,
                Some(AfterEnd::Resubscribe(pause)) => {
                    let (shared, outbox) = (Arc::clone(&self.shared), Arc::clone(&self.outbox));
                    tokio::spawn(resubscribe(shared, outbox, pause));
                    return;
                }
                None => {}
            }
            self.shared.router.stats.unmatched.add();
            tracing::debug!("response to no request in progress");
            return;
        };
        if call.opens {
            // Decided here and not by the waiting caller, because the next line may be a batch.
            let opened = response.outcome.as_ref().ok().map(ServerInfo::from_initialize);
            self.takes_batches = matches!(opened, Some(Ok(server)) if server.revision.supports_batches());
        }
        call.exchange.mark_answered();
        call.finish(
            response
                .outcome
                .map_err(|error| ClientError::new(ClientErrorKind::Rpc(error))),
        );
    }

    /// Handles a line that is not a message: fails the call that it belongs to, if it can be identified.
    fn garbage(&mut self, call: Option<&Call>, error: ParseError) {
        self.shared.router.stats.garbage.add();
        self.garbage_left = self.garbage_left.saturating_sub(1);
        tracing::debug!(%error, "received a line that is not a message");
        if let Some(call) = call {
            call.finish(Err(
                ClientError::protocol("the response is not a valid message").with_source(error)
            ));
        }
    }

    /// Handles an oversize line: fails the call that it belongs to, or all calls if it cannot be identified.
    fn oversize(&self, head: &[u8]) {
        self.shared.router.stats.oversize.add();
        if has_method_in_head(head) {
            // It is not a response, and its id is the server's.
            if let Some(refusal) = server_requests::oversize_response(head, self.limit) {
                send(&self.outbox, refusal);
            }
            return;
        }
        let calls = match id_in_head(head) {
            Some(id) => self.shared.remove(id).into_iter().collect(),
            None => self.shared.remove_all_sent(),
        };
        tracing::debug!(calls = calls.len(), "received an oversize line");
        for call in calls {
            call.finish(Err(ClientError::new(ClientErrorKind::TooLarge {
                limit: self.limit,
            })));
        }
    }
}

/// Queues a frame if there is room.
fn send(outbox: &Outbox, frame: Vec<u8>) -> bool {
    outbox.push(Outgoing::line(frame)).is_ok()
}

enum ReadEnd {
    Eof,
    Failed(io::Error),
    Unhealthy,
    Endless,
}
