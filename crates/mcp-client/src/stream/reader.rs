use std::{future::poll_fn, io, sync::Arc, time::Duration};

use bytes::Bytes;
use mcp_wire::{
    Line, LineDecoder, Message, ParseError, ParseErrorKind, Response, id_in_head, integer_id, has_method_in_head,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::sleep,
};

use super::{
    call::Call,
    listening::{Next, again},
    outbox::{Outbox, Outgoing},
    shared::{CloseOnPanic, Shared},
};
use crate::{
    ClientError, ClientErrorKind, ConnectionOptions, ServerInfo, incoming, process::Stop,
    unbuffered::read_into,
};

/// How many times the limit a line may be as long. The rest of one that is too long is passed over, since other calls wait behind
/// it, but not without end.
const LONGEST: usize = 8;

/// Reads messages and hands them on, in order and without ever waiting for anyone.
pub(super) struct Reading {
    decoder: LineDecoder,
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    limit: usize,
    /// How many more lines in a row may be no message.
    patience: u32,
    max_garbage: u32,
    /// Whether what was agreed on knows batches.
    takes_batches: bool,
    /// How long to read on after the connection was closed, so that a child which shuts down is not stuck.
    linger: Duration,
}

impl Reading {
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
            patience: options.max_garbage,
            max_garbage: options.max_garbage,
            takes_batches: false,
            linger,
        }
    }

    /// Reads until the stream ends or the connection is closed.
    pub(super) async fn run(mut self, mut reader: impl AsyncRead + Unpin) {
        // Also when a callback panics: nobody may wait for a reader that is gone.
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
        if let (Ended::Eof, Some(error)) = (&ended, self.shared.end_of_stream.get()) {
            return self.shared.close(error.clone(), Stop::Orderly);
        }
        let reason = match (ended, self.shared.process()) {
            (Ended::Unhealthy, _) => "the server writes lines that are no messages".to_owned(),
            (Ended::Endless, _) => "the server writes a line without end".to_owned(),
            (_, Some(process)) => process.epitaph().await,
            (Ended::Eof, None) => "the server closed the connection".to_owned(),
            (Ended::Failed(error), None) => format!("cannot read from the server: {error}"),
        };
        self.shared.close(ClientError::closed(reason), Stop::Orderly);
    }

    async fn read(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Ended {
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
                        self.rest(line);
                    }
                    return Ended::Eof;
                }
                Err(error) => return Ended::Failed(error),
            }
            while let Some(line) = self.decoder.next_line() {
                self.line(line);
                if self.patience == 0 {
                    return Ended::Unhealthy;
                }
            }
            if self.decoder.n_skipped() / LONGEST > self.limit {
                return Ended::Endless;
            }
        }
    }

    /// Reads the beginning of a line. A connection on which nothing happens has no buffer meanwhile.
    async fn read_line_start(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| {
            let read = read_into(reader, cx, |piece| self.decoder.push(piece));
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

    /// What there was when the stream ended. What is no message then is the beginning of one: the call that it answers
    /// fails as all others do, by the end of the connection.
    fn rest(&mut self, line: Line) {
        match &line {
            Line::Complete(text)
                if Message::from_server(text.clone()).is_err_and(|error| !self.is_batch(&error)) =>
            {
                self.shared.incoming.counting.garbage.add();
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
                Ok(messages) => messages.iter().for_each(|message| self.batched(message)),
                Err(error) => self.no_message(line, error),
            },
            Err(error) => self.no_message(line, error),
        }
    }

    /// A message of a batch, as if it had come alone. A batch in it is none.
    fn batched(&mut self, text: &Bytes) {
        match Message::from_server(text.clone()) {
            Ok(message) => self.take(message),
            Err(error) => self.no_message(text, error),
        }
    }

    fn take(&mut self, message: Message) {
        self.patience = self.max_garbage;
        match message {
            Message::Response(response) => self.response(response),
            Message::Notification(note) => match incoming::progress_of(&note) {
                Some((id, params)) => match self.shared.get(id) {
                    Some(call) => call.exchange.progress(params.clone()),
                    None => self.shared.incoming.counting.notifications.add(),
                },
                None => self.shared.incoming.note(note),
            },
            Message::Request(request) => {
                let outbox = Arc::clone(&self.outbox);
                self.shared
                    .incoming
                    .request(request, None, move |frame| send(&outbox, frame));
            }
        }
    }

    fn no_message(&mut self, text: &[u8], error: ParseError) {
        // A log line may be JSON and have an id as well: only what resembles an answer is taken for one.
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
            match id.and_then(|id| self.shared.listening().ended(id, is_refused)) {
                Some(Next::Nothing) => return,
                Some(Next::Again(pause)) => {
                    let (shared, outbox) = (Arc::clone(&self.shared), Arc::clone(&self.outbox));
                    tokio::spawn(again(shared, outbox, pause));
                    return;
                }
                None => {}
            }
            self.shared.incoming.counting.unmatched.add();
            tracing::debug!("an answer to no request that is under way");
            return;
        };
        if call.opens {
            // Here and not where the answer is waited for: the next line may be a batch.
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

    /// A line that is no message: fails the call that it is about, if that can be told.
    fn garbage(&mut self, call: Option<&Call>, error: ParseError) {
        self.shared.incoming.counting.garbage.add();
        self.patience = self.patience.saturating_sub(1);
        tracing::debug!(%error, "a line of the server is no message");
        if let Some(call) = call {
            call.finish(Err(
                ClientError::protocol("the answer is no valid message").because(error)
            ));
        }
    }

    /// A line beyond the limit: fails the call that it is about, or all of them if that cannot be told.
    fn oversize(&self, head: &[u8]) {
        self.shared.incoming.counting.oversize.add();
        if has_method_in_head(head) {
            // It answers nothing, and its id is the server's.
            if let Some(refusal) = incoming::oversize(head, self.limit) {
                send(&self.outbox, refusal);
            }
            return;
        }
        let calls = match id_in_head(head) {
            Some(id) => self.shared.remove(id).into_iter().collect(),
            None => self.shared.remove_all_sent(),
        };
        tracing::debug!(calls = calls.len(), "a line of the server is too long");
        for call in calls {
            call.finish(Err(ClientError::new(ClientErrorKind::TooLarge {
                limit: self.limit,
            })));
        }
    }
}

/// Queues a frame if there is room.
fn send(outbox: &Outbox, frame: Vec<u8>) -> bool {
    outbox.push(Outgoing::Frame(super::line(frame))).is_ok()
}

enum Ended {
    Eof,
    Failed(io::Error),
    Unhealthy,
    Endless,
}
