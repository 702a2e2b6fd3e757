use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use mcp_wire::{Era, Message, Params, ParseError, ParseErrorKind, Request, header};
use parking_lot::RwLock;
use raw_json::RawJson;
use tokio::{
    sync::{Mutex, mpsc, watch},
    time::timeout,
};

use super::{
    client::{HttpClient, HttpResponse, TransportError},
    deadlines::Deadlines,
    mirrored_headers::MirroredTools,
    session::Session,
};
use crate::{ClientError, ClientErrorKind, ServerInfo, notifications::MessageRouter};

/// State shared by callers and the tasks of an HTTP connection.
pub(super) struct HttpShared {
    pub(super) client: HttpClient,
    pub(super) session: RwLock<Session>,
    /// Held while the session is reopened, so that it happens once.
    pub(super) reopening: Mutex<()>,
    pub(super) initialize: OnceLock<RawJson>,
    next_id: AtomicU64,
    post_queue: mpsc::Sender<Bytes>,
    pub(super) closed: watch::Sender<bool>,
    pub(super) deadlines: Deadlines,
    pub(super) router: Arc<MessageRouter>,
    pub(super) mirrored: MirroredTools,
    /// Filter of the subscription at a modern server.
    pub(super) subscription: watch::Sender<Option<RawJson>>,
    pub(super) limit: usize,
}

impl HttpShared {
    pub(super) fn new(
        client: HttpClient,
        limit: usize,
        router: Arc<MessageRouter>,
        post_queue: mpsc::Sender<Bytes>,
    ) -> Self {
        Self {
            client,
            session: RwLock::default(),
            reopening: Mutex::default(),
            initialize: OnceLock::new(),
            next_id: AtomicU64::new(1),
            post_queue,
            closed: watch::Sender::new(false),
            deadlines: Deadlines::default(),
            router,
            mirrored: MirroredTools::default(),
            subscription: watch::Sender::new(None),
            limit,
        }
    }

    /// Ends requests in progress. Returns `true` if it was closed before.
    pub(super) fn close(&self) -> bool {
        let was_closed = self.closed.send_replace(true);
        self.deadlines.close();
        was_closed
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn session(&self) -> Session {
        self.session.read().clone()
    }

    pub(super) fn era(&self) -> Era {
        self.session().era()
    }

    /// Parses a message of the server, or each message of a batch if the negotiated revision allows batches. A nested
    /// batch is invalid.
    pub(super) fn read(&self, data: &Bytes, mut take: impl FnMut(&Bytes, Result<Message, ParseError>)) {
        match Message::from_server(data.clone()) {
            Err(error) if *error.kind() == ParseErrorKind::Batch && self.session().takes_batches() => {
                match mcp_wire::split_server_batch(data.clone()) {
                    Ok(messages) => messages
                        .iter()
                        .for_each(|text| take(text, Message::from_server(text.clone()))),
                    Err(error) => take(data, Err(error)),
                }
            }
            message => take(data, message),
        }
    }

    /// Stores the negotiated revision, and the params to repeat the handshake with.
    pub(super) fn opened(&self, server: &ServerInfo, initialize: RawJson) {
        self.session.write().revision = Some(server.revision);
        self.initialize.get_or_init(|| initialize);
    }

    /// Posts a message that has no response.
    pub(super) async fn notify(&self, body: Bytes, method: &str) -> Result<(), ClientError> {
        let session = self.session();
        self.notify_in(&session, body, method).await
    }

    pub(super) async fn notify_in(
        &self,
        session: &Session,
        body: Bytes,
        method: &str,
    ) -> Result<(), ClientError> {
        const LIMIT: Duration = Duration::from_secs(10);
        let headers = session.headers(method, &Params::default());
        let answer = timeout(LIMIT, self.client.post(headers, body)).await;
        let answer = answer.map_err(|_| ClientError::new(ClientErrorKind::Timeout(LIMIT)).with_sent(true))?;
        let mut answer = answer.map_err(|failure| failure.error)?;
        match answer.status() {
            200..300 => match timeout(LIMIT, answer.wait_until_sent()).await {
                Ok(sent) => sent,
                Err(_) => Err(ClientError::new(ClientErrorKind::Timeout(LIMIT)).with_sent(true)),
            },
            401 | 403 => Err(ClientError::new(ClientErrorKind::Auth {
                status: answer.status(),
                challenge: None,
            })),
            status => Err(ClientError::new(ClientErrorKind::HttpStatus {
                status,
                body: String::new(),
                retry_after: None,
            })),
        }
    }

    /// Handles a request of the server without waiting. `tag` is that of the client's request whose response contained
    /// it.
    pub(super) fn reply(&self, request: Request, tag: Option<u64>) {
        let post_queue = self.post_queue.clone();
        self.router.request(request, tag, move |frame| {
            post_queue.try_send(frame.into()).is_ok()
        });
    }

    /// Opens the GET stream, resumed after `last_event`.
    pub(super) async fn listen(&self, last_event: Option<&str>) -> Result<HttpResponse, TransportError> {
        let mut headers = self.session().headers("", &Params::default());
        let last_event = last_event.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok());
        headers.extend(last_event.map(|id| (HeaderName::from_static(header::LAST_EVENT_ID), id)));
        self.client.get(headers).await
    }

    /// Queues a message that has no response, if there is room.
    pub(super) fn post_later(&self, frame: Bytes) {
        if self.post_queue.try_send(frame).is_err() {
            self.router.stats.dropped.add();
        }
    }
}
