use std::{future::Future, io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, future::Abortable, stream::FuturesUnordered};
use mcp_wire::{
    Era, Line, LineDecoder, Message, Notification, ParseErrorKind, Request, Response, Revision, RpcError,
    code, method,
};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{Semaphore, mpsc},
};

use super::{options::StdioOptions, session_info::SessionInfo, writer::send};
use crate::{
    Peer, ProgressReporter, RequestContext, Service,
    client::{ConnectionHandle, EventSender, LegacyClient},
    notifications::CoalescingQueue,
    protocol::{self, Core},
    request::{InFlight, ParsedParams},
};

/// Maximum number of requests that wait for a permit.
const WAITING: usize = 1024;

/// One connection of a client over stdio.
pub(super) struct Connection<S> {
    core: Arc<Core<S>>,
    session: Option<Arc<SessionInfo>>,
    in_flight: Arc<InFlight>,
    /// Legacy client, once it has opened the connection.
    client: Option<Arc<LegacyClient>>,
    /// Notifications to the legacy client, once it has reported that it is ready for them.
    queue: Option<Arc<CoalescingQueue>>,
    out: mpsc::Sender<Vec<u8>>,
    /// Requests that run or wait for a permit, and open subscriptions.
    running: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Permits to run a request.
    permits: Arc<Semaphore>,
    /// Closed when subscriptions are to end. It never has permits.
    listening: Arc<Semaphore>,
    options: StdioOptions,
    /// Last field, so that the connection is gone when the service is notified of its end.
    handle: ConnectionHandle,
}

impl<S: Service> Connection<S> {
    /// Creates a connection that writes into the queue `out`.
    pub(super) fn new(
        core: Arc<Core<S>>,
        session: Option<Arc<SessionInfo>>,
        out: mpsc::Sender<Vec<u8>>,
        options: StdioOptions,
    ) -> Self {
        let handle = core.new_connection();
        Self {
            core,
            session,
            in_flight: Arc::default(),
            client: None,
            queue: None,
            out,
            running: FuturesUnordered::new(),
            permits: Arc::new(Semaphore::new(options.max_in_flight)),
            listening: Arc::new(Semaphore::new(0)),
            options,
            handle,
        }
    }

    /// Reads messages and runs requests, until the input ends.
    pub(super) async fn read<R: AsyncRead + Unpin>(&mut self, mut reader: R) -> io::Result<()> {
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

    /// Ends subscriptions, and runs the started requests until all are answered.
    pub(super) async fn finish(mut self) {
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
            Err(error) if *error.kind() == ParseErrorKind::Batch && self.accepts_batches() => {
                self.batch(line).await;
            }
            Err(error) => {
                let frame = mcp_wire::error(error.answer_id(), &error.to_rpc_error());
                send(&self.out, frame).await;
            }
        }
    }

    fn accepts_batches(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| client.revision.supports_batches())
    }

    /// Handles the messages of a batch as if they had come one by one, and answers its requests together.
    async fn batch(&mut self, line: Bytes) {
        let messages = match mcp_wire::split_batch(line) {
            Ok(messages) => messages,
            Err(error) => return send(&self.out, mcp_wire::error(None, &error.to_rpc_error())).await,
        };
        let (responses, mut answered) = mpsc::channel(messages.len());
        for message in messages {
            match Message::from_client(message) {
                Ok(Message::Request(request)) if !is_allowed_in_batch(&request) => {
                    let error =
                        RpcError::new(code::INVALID_REQUEST, "this request is not allowed in a batch");
                    send(&responses, mcp_wire::error(Some(request.id.as_raw()), &error)).await;
                }
                Ok(Message::Request(request)) => self.request(request, &responses).await,
                Ok(Message::Notification(notification)) => self.notification(&notification),
                Ok(Message::Response(response)) => self.response(response),
                Err(error) => {
                    let frame = mcp_wire::error(error.answer_id(), &error.to_rpc_error());
                    send(&responses, frame).await;
                }
            }
        }
        drop(responses);
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

    /// Delivers the client's response to a request of the server.
    fn response(&self, response: Response) {
        // A client that has not opened the connection was sent no request.
        if let Some(client) = &self.client {
            client.requests.deliver(response);
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
        let params = ParsedParams::parse(request.params.as_ref());
        let revision = match self.revision(&params) {
            Ok(revision) => revision,
            Err(error) => {
                return send(out, mcp_wire::error(Some(request.id.as_raw()), &error)).await;
            }
        };
        if revision.era() == Era::Modern && request.method == method::SUBSCRIPTIONS_LISTEN {
            return self.subscribe(request, revision, params).await;
        }
        let is_opening = revision.era() == Era::Legacy && request.method == method::INITIALIZE;
        let outcome = match is_opening {
            true => Some(self.initialize(&request)),
            false => self
                .core
                .answer_protocol(&request, revision, self.client.as_deref()),
        };
        match outcome {
            Some(outcome) => {
                let outcome = outcome.map(Into::into);
                send(out, protocol::reply(&request.id, outcome, revision.era()).frame).await;
            }
            None => self.start(request, revision, params, out).await,
        }
    }

    fn initialize(&mut self, request: &Request) -> Result<RawJson, RpcError> {
        if self.client.is_some() {
            let message = "the connection is open already";
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        let (client, result) = self.core.initialize(request)?;
        if let Some(session) = &self.session {
            session.set_revision(client.revision);
        }
        self.client = Some(Arc::new(client));
        Ok(result)
    }

    /// Returns the revision of a message: the one that it declares, or else the negotiated one, or else the oldest that
    /// needs no declaration.
    fn revision(&self, params: &ParsedParams) -> Result<Revision, RpcError> {
        match &params.version {
            Some(declared) => protocol::modern_revision(declared, params),
            None => Ok(self
                .client
                .as_ref()
                .map_or(Revision::WITHOUT_HEADER, |client| client.revision)),
        }
    }

    /// Starts a request of the service.
    async fn start(
        &mut self,
        request: Request,
        revision: Revision,
        params: ParsedParams,
        out: &mpsc::Sender<Vec<u8>>,
    ) {
        let Some((in_flight, registration)) = self.in_flight.begin(&request.id) else {
            let error = protocol::duplicate_id(&request.id);
            // Without the id: the client would take the error for the response to the other request.
            return send(out, mcp_wire::error(None, &error)).await;
        };
        let mut cx = self.context(revision, params);
        if cx.params.token.is_some() || cx.accepts_messages() {
            let sender = EventSender::for_connection(cx.params.token.clone(), self.out.clone());
            cx.progress = ProgressReporter(Some(sender));
        }
        let (core, permits) = (Arc::clone(&self.core), Arc::clone(&self.permits));
        let answer = async move {
            let _permit = permits.acquire_owned().await;
            core.answer(request, cx).await
        };
        let answer = Abortable::new(answer, registration);
        let out = out.clone();
        self.running.push(Box::pin(async move {
            let answer = answer.await;
            // The id is free before the client can see the response and use the id again.
            drop(in_flight);
            if let Ok(reply) = answer {
                send(&out, reply.frame).await;
            }
        }));
    }

    /// Serves a subscription of a modern client until the client cancels it, or the connection ends.
    async fn subscribe(&mut self, request: Request, revision: Revision, params: ParsedParams) {
        let Some((in_flight, registration)) = self.in_flight.begin(&request.id) else {
            let error = protocol::duplicate_id(&request.id);
            return send(&self.out, mcp_wire::error(None, &error)).await;
        };
        let cx = self.context(revision, params);
        let (core, listening) = (Arc::clone(&self.core), Arc::clone(&self.listening));
        let (notifier, out) = (self.options.notifier.clone(), self.out.clone());
        let subscription = async move {
            let filter = match core.subscription_filter(&request, &cx).await {
                Ok(filter) => Arc::new(filter),
                Err(error) => return Some(mcp_wire::error(Some(request.id.as_raw()), &error)),
            };
            send(&out, filter.acknowledgement()).await;
            let queue = Arc::new(CoalescingQueue::new(Arc::clone(&filter)));
            notifier.add_stream(&out, &queue, Peer::from_request(&cx), false);
            tokio::select! {
                () = queue.drain_into(&out) => {}
                // Fails when listening ends; there never is a permit.
                _ = listening.acquire_owned() => {}
            }
            filter.final_response()
        };
        let subscription = Abortable::new(subscription, registration);
        let out = self.out.clone();
        self.running.push(Box::pin(async move {
            // The queue is dropped here: no notification may follow the final response.
            let last = subscription.await;
            drop(in_flight);
            if let Ok(Some(last)) = last {
                send(&out, last).await;
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
            method::INITIALIZED => self.listen(),
            _ => {
                let params = ParsedParams::parse(notification.params.as_ref());
                if let Ok(revision) = self.revision(&params) {
                    let cx = self.context(revision, params);
                    self.core.service.on_notification(notification, &cx);
                }
            }
        }
    }

    /// Sends notifications to the legacy client from now on.
    fn listen(&mut self) {
        let Some(client) = self.client.as_ref().filter(|_| self.queue.is_none()) else {
            return;
        };
        let queue = Arc::new(CoalescingQueue::new(Arc::clone(&client.filter)));
        let peer = Peer {
            connection: Some(self.handle.number()),
            principal: self.options.principal.clone(),
            capabilities: client.capabilities.clone(),
        };
        self.options.notifier.add_stream(&self.out, &queue, peer, true);
        self.queue = Some(Arc::clone(&queue));
        let (listening, out) = (Arc::clone(&self.listening), self.out.clone());
        self.running.push(Box::pin(async move {
            tokio::select! {
                () = queue.drain_into(&out) => {}
                // Fails when listening ends; there never is a permit.
                _ = listening.acquire_owned() => {}
            }
        }));
    }

    fn context(&self, revision: Revision, params: ParsedParams) -> RequestContext {
        RequestContext {
            revision,
            params,
            client: self.client.clone(),
            session: self.session.as_ref().map(|session| Arc::clone(&session.id)),
            connection: Some(self.handle.number()),
            connection_name: Some(self.handle.name()),
            principal: match &self.session {
                Some(session) => session.principal(),
                None => self.options.principal.clone(),
            },
            progress: ProgressReporter::default(),
            is_traced: false,
            http: None,
            is_copy: false,
        }
    }
}

/// Returns `true` if a request may be part of a batch: not one that opens the connection or declares a revision.
fn is_allowed_in_batch(request: &Request) -> bool {
    request.method != method::INITIALIZE && ParsedParams::parse(request.params.as_ref()).version.is_none()
}
