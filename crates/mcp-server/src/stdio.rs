use std::{
    future::Future,
    io, mem,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, future::Abortable, stream::FuturesUnordered};
use mcp_wire::{
    Era, Line, LineDecoder, Message, Notification, ParseErrorKind, Request, Response, Revision, RpcError,
    code, method,
};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{Semaphore, mpsc},
    time::timeout,
};

use crate::{
    Notifier, Peer, Principal, ProgressReporter, RequestContext, Service,
    client::{Client, Presence},
    in_flight::InFlight,
    outline::Outline,
    protocol::{self, Core},
    way::Way,
};

/// How a connection over stdio is served.
#[derive(Debug, Clone)]
pub struct StdioOptions {
    /// On whose behalf requests are made: `local`.
    pub principal: Principal,
    /// How many requests are worked on at a time: 256. Up to 1,024 more wait their turn and can be cancelled
    /// meanwhile; beyond that nothing is read.
    pub max_in_flight: usize,
    /// The longest message in bytes: 16 MiB. A longer one is answered with an error.
    pub max_message: usize,
    /// How long requests may take to finish after the input has ended or the server is shut down: 30 s.
    pub drain: Duration,
    /// What the client is told about changes.
    pub notices: Notifier,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            principal: Principal::new("local"),
            max_in_flight: 256,
            max_message: LineDecoder::DEFAULT_MAX_LENGTH,
            drain: Duration::from_secs(30),
            notices: Notifier::default(),
        }
    }
}

/// Serves one client that writes a message per line, until its input ends or `shutdown` comes, and then until what
/// is in flight is answered.
///
/// Requests are worked on at the same time and answered as they finish. A line that is no message gets an error and
/// does no further harm.
///
/// # Errors
/// When the input cannot be read or the output cannot be written; what was in flight is cancelled then.
pub async fn serve_stdio<S, R, W>(
    service: S,
    reader: R,
    writer: W,
    options: StdioOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve(
        Arc::new(Core::new(service)),
        None,
        reader,
        writer,
        options,
        shutdown,
    )
    .await
}

/// Serves one connection of a service that may have others; `session` is what it is known by.
pub(crate) async fn serve<S, R, W>(
    core: Arc<Core<S>>,
    session: Option<Arc<OldSession>>,
    reader: R,
    writer: W,
    options: StdioOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: Service,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (out, answers) = mpsc::channel(QUEUE);
    let drain = options.drain;
    let mut writing = Box::pin(write(answers, writer));
    let presence = core.presence();
    let mut connection = Connection {
        core,
        session,
        in_flight: Arc::default(),
        client: None,
        is_told: false,
        out,
        running: FuturesUnordered::new(),
        turns: Arc::new(Semaphore::new(options.max_in_flight)),
        listening: Arc::new(Semaphore::new(0)),
        options,
        presence,
    };
    tokio::select! {
        biased;
        // The queue is open while the connection is served, so this is an error.
        written = &mut writing => return written,
        () = shutdown => {}
        read = connection.read(reader) => read?,
    }
    let end = async {
        tokio::select! {
            written = &mut writing => return written,
            () = connection.finish() => {}
        }
        writing.await
    };
    // Nobody waits for those that take longer: they are cancelled with the connection.
    timeout(drain, end).await.unwrap_or(Ok(()))
}

/// How many answers and notifications may wait to be written.
const QUEUE: usize = 256;
/// How many requests may wait for their turn.
const WAITING: usize = 1024;

/// What those who hand a connection its messages know of it.
#[derive(Debug)]
pub(crate) struct OldSession {
    pub(crate) id: Arc<str>,
    revision: OnceLock<Revision>,
}

impl OldSession {
    pub(crate) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            revision: OnceLock::new(),
        }
    }

    /// Whether its client may send several messages in one array.
    pub(crate) fn takes_batches(&self) -> bool {
        self.revision
            .get()
            .is_some_and(|revision| revision.supports_batches())
    }
}

struct Connection<S> {
    core: Arc<Core<S>>,
    session: Option<Arc<OldSession>>,
    in_flight: Arc<InFlight>,
    /// What opened the connection in the legacy era.
    client: Option<Arc<Client>>,
    /// Whether it hears of changes: it says once that it is ready for them.
    is_told: bool,
    out: mpsc::Sender<Vec<u8>>,
    /// Requests that are worked on or wait for their turn.
    running: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
    turns: Arc<Semaphore>,
    /// Closed when the subscriptions of the modern era are to end.
    listening: Arc<Semaphore>,
    options: StdioOptions,
    /// Last, so that nothing of the connection is left when the service is told of its end.
    presence: Presence,
}

impl<S: Service> Connection<S> {
    /// Reads and starts requests, and works on them, until the input ends.
    async fn read<R: AsyncRead + Unpin>(&mut self, mut reader: R) -> io::Result<()> {
        let mut decoder = LineDecoder::new(self.options.max_message);
        loop {
            let has_room = self.has_room();
            tokio::select! {
                biased;
                Some(()) = self.running.next() => {}
                read = reader.read_buf(decoder.buffer()), if has_room => {
                    let has_ended = read? == 0;
                    while let Some(line) = decoder.next_line() {
                        self.line(line).await;
                    }
                    if has_ended {
                        if let Some(line) = decoder.finish() {
                            self.line(line).await;
                        }
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Works on what was started until all of it is answered, and closes the queue.
    async fn finish(mut self) {
        self.listening.close();
        while self.running.next().await.is_some() {}
    }

    fn has_room(&self) -> bool {
        self.running.len() < self.options.max_in_flight + WAITING
    }

    async fn line(&mut self, line: Line) {
        // One read may bring more requests than there is room for.
        while !self.has_room() {
            self.running.next().await;
        }
        let line = match line {
            Line::Complete(line) => line,
            Line::Oversize { head } => return self.refuse_oversize(&head).await,
        };
        match Message::from_client(line.clone()) {
            Ok(Message::Request(request)) => {
                let out = self.out.clone();
                self.request(request, &out).await;
            }
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(response)) => self.response(response),
            Err(error) if *error.kind() == ParseErrorKind::Batch && self.takes_batches() => {
                self.batch(line).await;
            }
            Err(error) => {
                let frame = mcp_wire::error(error.answer_id(), &error.to_rpc_error());
                send(&self.out, frame).await;
            }
        }
    }

    fn takes_batches(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| client.revision.supports_batches())
    }

    /// Works on the messages of a batch as if they had come one by one, and answers its requests together.
    async fn batch(&mut self, line: Bytes) {
        let messages = match mcp_wire::split_batch(line) {
            Ok(messages) => messages,
            Err(error) => return send(&self.out, mcp_wire::error(None, &error.to_rpc_error())).await,
        };
        let (answers, mut answered) = mpsc::channel(messages.len());
        for message in messages {
            match Message::from_client(message) {
                Ok(Message::Request(request)) if !has_place_in_batch(&request) => {
                    let error = RpcError::new(code::INVALID_REQUEST, "this request has no place in a batch");
                    send(&answers, mcp_wire::error(Some(request.id.as_raw()), &error)).await;
                }
                Ok(Message::Request(request)) => self.request(request, &answers).await,
                Ok(Message::Notification(notification)) => self.notification(&notification),
                Ok(Message::Response(response)) => self.response(response),
                Err(error) => {
                    let frame = mcp_wire::error(error.answer_id(), &error.to_rpc_error());
                    send(&answers, frame).await;
                }
            }
        }
        drop(answers);
        let out = self.out.clone();
        self.running.push(Box::pin(async move {
            let mut frames = Vec::new();
            while let Some(frame) = answered.recv().await {
                frames.push(frame);
            }
            if !frames.is_empty() {
                send(&out, mcp_wire::batch_response(&frames)).await;
            }
        }));
    }

    /// Takes the client's answer to what it was asked.
    fn response(&self, response: Response) {
        // Who has not opened the connection was asked nothing.
        if let Some(client) = &self.client {
            client.asked.answer(response);
        }
    }

    async fn refuse_oversize(&mut self, head: &[u8]) {
        let message = format!("the message is larger than {} bytes", self.options.max_message);
        let id = mcp_wire::id_in_head(head).map(RawJson::from);
        let error = RpcError::new(code::INVALID_REQUEST, message);
        send(&self.out, mcp_wire::error(id.as_ref(), &error)).await;
    }

    /// Answers a request into `out`.
    async fn request(&mut self, request: Request, out: &mpsc::Sender<Vec<u8>>) {
        let outline = Outline::of(request.params.as_ref());
        let revision = match self.revision(&outline) {
            Ok(revision) => revision,
            Err(error) => {
                return send(out, mcp_wire::error(Some(request.id.as_raw()), &error)).await;
            }
        };
        if revision.era() == Era::Modern && request.method == method::SUBSCRIPTIONS_LISTEN {
            return self.listen(request, revision, outline).await;
        }
        let opens = revision.era() == Era::Legacy && request.method == method::INITIALIZE;
        let outcome = match opens {
            true => Some(self.initialize(&request)),
            false => self.core.housekeeping(&request, revision, self.client.as_deref()),
        };
        match outcome {
            Some(outcome) => {
                let outcome = outcome.map(Into::into);
                send(out, protocol::reply(&request.id, outcome, revision.era()).frame).await;
            }
            None => self.start(request, revision, outline, out).await,
        }
    }

    fn initialize(&mut self, request: &Request) -> Result<RawJson, RpcError> {
        if self.client.is_some() {
            let message = "the connection is open already";
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        let (client, result) = self.core.initialize(request)?;
        if let Some(session) = &self.session {
            // Nobody else sets it, and a connection is opened once.
            let _ = session.revision.set(client.revision);
        }
        self.client = Some(Arc::new(client));
        Ok(result)
    }

    /// What a message is written in: what it says itself, or else what was agreed on, or else the oldest revision that
    /// may go without saying so.
    fn revision(&self, outline: &Outline) -> Result<Revision, RpcError> {
        match &outline.version {
            Some(declared) => protocol::modern_revision(declared, outline),
            None => Ok(self
                .client
                .as_ref()
                .map_or(Revision::WITHOUT_HEADER, |client| client.revision)),
        }
    }

    async fn start(
        &mut self,
        request: Request,
        revision: Revision,
        outline: Outline,
        out: &mpsc::Sender<Vec<u8>>,
    ) {
        let Some((taken, registration)) = self.in_flight.begin(&request.id) else {
            let error = protocol::duplicate_id(&request.id);
            // Not under the id: the answer would be taken for that of the other request.
            return send(out, mcp_wire::error(None, &error)).await;
        };
        let mut cx = self.context(revision, outline);
        if cx.outline.token.is_some() || cx.may_tell() {
            cx.progress = ProgressReporter(Some(Way::new(cx.outline.token.clone(), self.out.clone())));
        }
        let (core, turns) = (Arc::clone(&self.core), Arc::clone(&self.turns));
        let answer = async move {
            let _turn = turns.acquire_owned().await;
            core.answer(request, cx).await
        };
        let answer = Abortable::new(answer, registration);
        let out = out.clone();
        self.running.push(Box::pin(async move {
            let answer = answer.await;
            // The id is free before the client can see the answer and use it again.
            drop(taken);
            if let Ok(reply) = answer {
                send(&out, reply.frame).await;
            }
        }));
    }

    /// Tells a modern client about changes until it no longer wants to know, or the connection ends.
    async fn listen(&mut self, request: Request, revision: Revision, outline: Outline) {
        let Some((taken, registration)) = self.in_flight.begin(&request.id) else {
            let error = protocol::duplicate_id(&request.id);
            return send(&self.out, mcp_wire::error(None, &error)).await;
        };
        let cx = self.context(revision, outline);
        let (core, listening) = (Arc::clone(&self.core), Arc::clone(&self.listening));
        let (notices, out) = (self.options.notices.clone(), self.out.clone());
        let listen = async move {
            let wants = match core.listen(&request, &cx).await {
                Ok(wants) => Arc::new(wants),
                Err(error) => return Some(mcp_wire::error(Some(request.id.as_raw()), &error)),
            };
            // Closed means that writing has failed, which ends the connection anyway.
            let _ = out.send(wants.acknowledgement()).await;
            notices.subscribe(&out, &wants, Peer::from_request(&cx), false);
            tokio::select! {
                () = wants.tell_missed(&out) => {}
                // Nothing is ever to be had here: it fails when listening ends.
                _ = listening.acquire_owned() => {}
            }
            wants.end()
        };
        let listen = Abortable::new(listen, registration);
        let out = self.out.clone();
        self.running.push(Box::pin(async move {
            // Nothing of the subscription may follow its end: it is gone here.
            let end = listen.await;
            drop(taken);
            if let Ok(Some(end)) = end {
                let _ = out.send(end).await;
            }
        }));
    }

    fn notification(&mut self, notification: &Notification) {
        match &*notification.method {
            method::CANCELLED => {
                let id = notification
                    .params
                    .as_ref()
                    .and_then(|params| params.get("requestId"));
                if let Some(id) = id {
                    self.in_flight.cancel(&id);
                }
            }
            method::INITIALIZED => {
                if let Some(client) = &self.client
                    && !mem::replace(&mut self.is_told, true)
                {
                    let peer = Peer {
                        connection: Some(self.presence.number()),
                        principal: self.options.principal.clone(),
                        capabilities: client.capabilities.clone(),
                    };
                    let notices = &self.options.notices;
                    notices.subscribe(&self.out, &client.wants, peer, true);
                    let (client, out) = (Arc::clone(client), self.out.clone());
                    let listening = Arc::clone(&self.listening);
                    self.running.push(Box::pin(async move {
                        tokio::select! {
                            () = client.wants.tell_missed(&out) => {}
                            _ = listening.acquire_owned() => {}
                        }
                    }));
                }
            }
            _ => {
                let outline = Outline::of(notification.params.as_ref());
                if let Ok(revision) = self.revision(&outline) {
                    let cx = self.context(revision, outline);
                    self.core.service.notified(notification, &cx);
                }
            }
        }
    }

    fn context(&self, revision: Revision, outline: Outline) -> RequestContext {
        RequestContext {
            revision,
            outline,
            client: self.client.clone(),
            session: self.session.as_ref().map(|session| Arc::clone(&session.id)),
            connection: Some(self.presence.number()),
            connection_name: Some(self.presence.name()),
            principal: self.options.principal.clone(),
            progress: ProgressReporter::default(),
            is_traced: false,
            http: None,
        }
    }
}

/// Whether a request may stand in a batch: what opens the connection, or says that it is of another revision, may not.
fn has_place_in_batch(request: &Request) -> bool {
    request.method != method::INITIALIZE && Outline::of(request.params.as_ref()).version.is_none()
}

async fn send(out: &mpsc::Sender<Vec<u8>>, frame: Vec<u8>) {
    // Closed means that writing has failed, which ends the connection anyway: nobody wants the frame.
    let _ = out.send(frame).await;
}

/// Frames up to this size are put together into one write; larger ones are written as they are.
const COALESCE: usize = 16 * 1024;

/// Writes what is queued until every sender is gone.
async fn write<W: AsyncWrite + Unpin>(mut queue: mpsc::Receiver<Vec<u8>>, mut writer: W) -> io::Result<()> {
    let mut frames = Vec::new();
    let mut batch: Vec<u8> = Vec::new();
    while queue.recv_many(&mut frames, 64).await > 0 {
        for frame in frames.drain(..) {
            let line = mcp_wire::into_line(frame);
            if batch.len() + line.len() > COALESCE {
                writer.write_all(&batch).await?;
                batch.clear();
            }
            if line.len() > COALESCE {
                writer.write_all(&line).await?;
            } else {
                batch.extend_from_slice(&line);
            }
        }
        writer.write_all(&batch).await?;
        batch.clear();
        writer.flush().await?;
    }
    Ok(())
}
