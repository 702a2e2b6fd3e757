use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use mcp_wire::{Era, Message, Params, ParseError, ParseErrorKind, Request, Revision, header, method};
use parking_lot::RwLock;
use raw_json::RawJson;
use tokio::{
    sync::{Mutex, mpsc, watch},
    time::timeout,
};

use super::{
    answer,
    client::HttpClient,
    deadlines::Deadlines,
    listen::is_final,
    params::{MirroredTools, header_value},
    pool::{Headers, TransportError},
    response::HttpAnswer,
};
use crate::{
    ClientError, ClientErrorKind, RequestOptions, ServerInfo, exchange::Exchange, incoming::Incoming,
};

// Made when this is compiled: making a name checks it.
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
static METHOD: HeaderName = HeaderName::from_static(header::METHOD);
static NAME: HeaderName = HeaderName::from_static(header::NAME);
static SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);

/// What callers and the tasks of an HTTP connection share.
pub(super) struct HttpShared {
    pub(super) client: HttpClient,
    session: RwLock<Session>,
    /// Held while a session is opened again, so that it happens once.
    reopening: Mutex<()>,
    initialize: OnceLock<RawJson>,
    next_id: AtomicU64,
    postman: mpsc::Sender<Bytes>,
    pub(super) closed: watch::Sender<bool>,
    pub(super) deadlines: Deadlines,
    pub(super) incoming: Arc<Incoming>,
    pub(super) mirrored: MirroredTools,
    /// What a modern server is asked to tell.
    pub(super) wanted: watch::Sender<Option<RawJson>>,
    pub(super) limit: usize,
}

/// What requests say of the connection they belong to.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    revision: Option<Revision>,
    /// How often the session was opened.
    generation: u64,
}

/// One request as it is sent, maybe twice.
pub(super) struct Posting<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) params: &'a Params,
    pub(super) exchange: &'a Exchange,
}

impl HttpShared {
    pub(super) fn new(
        client: HttpClient,
        limit: usize,
        incoming: Arc<Incoming>,
        postman: mpsc::Sender<Bytes>,
    ) -> Self {
        Self {
            client,
            session: RwLock::default(),
            reopening: Mutex::default(),
            initialize: OnceLock::new(),
            next_id: AtomicU64::new(1),
            postman,
            closed: watch::Sender::new(false),
            deadlines: Deadlines::default(),
            incoming,
            mirrored: MirroredTools::default(),
            wanted: watch::Sender::new(None),
            limit,
        }
    }

    /// Ends what is under way; tells whether that was done before.
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

    /// Reads what the server sent in one piece and hands it on: a message, or each one of a batch where what was agreed on
    /// knows those. A batch in a batch is no message.
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

    /// Notes what was agreed on, and how to agree on it again.
    pub(super) fn opened(&self, server: &ServerInfo, initialize: RawJson) {
        self.session.write().revision = Some(server.revision);
        self.initialize.get_or_init(|| initialize);
    }

    /// Makes a request; a session that the server no longer knows is opened again, once.
    pub(super) async fn call(&self, posting: &Posting<'_>) -> Result<RawJson, ClientError> {
        let session = self.session();
        let (has_session, generation) = (session.id.is_some(), session.generation);
        match self.post(posting, session).await {
            Err(error) if has_session && posting.method != method::INITIALIZE && is_expired(&error) => {
                // The server says that it looked no further than at the session: the request has not run.
                posting.exchange.mark_unsent();
                // Rare, and the future of every call would have room for it.
                let reopening = Box::pin(self.reopen(generation));
                reopening.await.map_err(|error| error.sent(false))?;
                Box::pin(self.post(posting, self.session())).await
            }
            done => done,
        }
    }

    async fn post(&self, posting: &Posting<'_>, session: Session) -> Result<RawJson, ClientError> {
        let exchange = posting.exchange;
        let is_modern = session.era() == Era::Modern;
        let answer = self.send(posting, session).await?;
        if posting.method == method::INITIALIZE {
            self.note_session(&answer);
        }
        let resumable = !is_modern && posting.method != method::DISCOVER;
        answer::read(answer, posting.id, exchange, self, resumable)
            .await
            .map_err(|error| error.sent(exchange.was_sent()))
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(&self, posting: &Posting<'_>, session: Session) -> Result<HttpAnswer, ClientError> {
        let mut headers = session.headers(posting.method, posting.params);
        if session.era() == Era::Modern && posting.method == method::TOOLS_CALL {
            self.mirrored.add(&mut headers, posting.params);
        }
        posting.exchange.mark_sent();
        // Written each time: nobody holds a large one while its answer is waited for.
        let body = mcp_wire::request(posting.id, posting.method, posting.params).into();
        self.client.post(headers, body).await.map_err(|failure| {
            if failure.unsent {
                posting.exchange.mark_unsent();
            }
            failure.error
        })
    }

    fn note_session(&self, answer: &HttpAnswer) {
        if (200..300).contains(&answer.status()) {
            let mut session = self.session.write();
            session.id = answer.header_value(header::SESSION_ID);
            session.generation += 1;
        }
    }

    /// Opens the session again, unless another caller has done so in the meantime. Nobody uses the new one before the server
    /// has been told that it is open: a caller that leaves on the way, or a server that refuses, leaves the old one for the
    /// next caller to try with.
    async fn reopen(&self, generation: u64) -> Result<(), ClientError> {
        let _turn = self.reopening.lock().await;
        if self.session().generation != generation {
            return Ok(());
        }
        tracing::debug!("the server no longer knows the session: opening another");
        let params = self.initialize.get().cloned().into();
        let id = self.next_id();
        let exchange = Exchange::new(RequestOptions::default());
        let posting = Posting {
            id,
            method: method::INITIALIZE,
            params: &params,
            exchange: &exchange,
        };
        // Without the old session.
        let fresh = Session {
            id: None,
            revision: None,
            generation,
        };
        let answer = self.send(&posting, fresh).await?;
        let session_id = answer.header_value(header::SESSION_ID);
        let result = answer::read(answer, id, &exchange, self, false).await?;
        let opened = Session {
            id: session_id,
            revision: Some(ServerInfo::from_initialize(&result)?.revision),
            generation: generation + 1,
        };
        let initialized = mcp_wire::notification(method::INITIALIZED, None).into();
        self.notify_in(&opened, initialized, method::INITIALIZED).await?;
        *self.session.write() = opened;
        self.incoming.changes.opened_anew();
        Ok(())
    }

    /// Asks whether the server still knows the session, which is opened again if it does not. Tells whether it may be
    /// another one than `generation` by now, or whether nothing can be said yet.
    pub(super) async fn look_for_session(&self, generation: u64) -> bool {
        const LIMIT: Duration = Duration::from_secs(10);
        let session = self.session();
        if session.generation != generation {
            return true;
        }
        if session.id.is_none() {
            return false;
        }
        let (id, params) = (self.next_id(), Params::default());
        let exchange = Exchange::new(RequestOptions::default());
        let posting = Posting {
            id,
            method: method::PING,
            params: &params,
            exchange: &exchange,
        };
        let asked = timeout(LIMIT, self.call(&posting)).await;
        let is_told = asked.is_ok_and(|answer| match answer {
            Ok(_) => true,
            // A refusal is an answer, too, but for one that may pass.
            Err(error) => match error.kind() {
                ClientErrorKind::Rpc(_) | ClientErrorKind::Auth { .. } => true,
                ClientErrorKind::HttpStatus { status, .. } => is_final(*status),
                _ => false,
            },
        });
        !is_told || self.session().generation != generation
    }

    /// Posts a message that has no answer.
    pub(super) async fn notify(&self, body: Bytes, method: &str) -> Result<(), ClientError> {
        let session = self.session();
        self.notify_in(&session, body, method).await
    }

    async fn notify_in(&self, session: &Session, body: Bytes, method: &str) -> Result<(), ClientError> {
        const LIMIT: Duration = Duration::from_secs(10);
        let headers = session.headers(method, &Params::default());
        let answer = timeout(LIMIT, self.client.post(headers, body)).await;
        let answer = answer.map_err(|_| ClientError::new(ClientErrorKind::Timeout(LIMIT)).sent(true))?;
        let mut answer = answer.map_err(|failure| failure.error)?;
        match answer.status() {
            200..300 => match timeout(LIMIT, answer.sent()).await {
                Ok(sent) => sent,
                Err(_) => Err(ClientError::new(ClientErrorKind::Timeout(LIMIT)).sent(true)),
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

    /// Answers a request of the server, without waiting; `tag` is that of our own request in whose answer it came.
    pub(super) fn reply(&self, request: Request, tag: Option<u64>) {
        let postman = self.postman.clone();
        self.incoming
            .request(request, tag, move |frame| postman.try_send(frame.into()).is_ok());
    }

    /// Opens a stream of what the server tells by itself, behind the event that was seen last.
    pub(super) async fn listen(&self, last_event: Option<&str>) -> Result<HttpAnswer, TransportError> {
        let mut headers = self.session().headers("", &Params::default());
        let last_event = last_event.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok());
        headers.extend(last_event.map(|id| (HeaderName::from_static(header::LAST_EVENT_ID), id)));
        self.client.get(headers).await
    }

    /// Queues a message that has no answer, if there is room.
    pub(super) fn post_later(&self, frame: Bytes) {
        if self.postman.try_send(frame).is_err() {
            self.incoming.counting.dropped.add();
        }
    }
}

impl Session {
    /// Which one it is of those that were opened one after the other.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn era(&self) -> Era {
        self.revision.map_or(Era::Legacy, Revision::era)
    }

    /// Whether the server may send several messages in one array.
    pub(super) fn takes_batches(&self) -> bool {
        self.revision.is_some_and(Revision::supports_batches)
    }

    /// What a request says of itself beside its body.
    pub(super) fn headers(&self, method: &str, params: &Params) -> Headers {
        // Those below, and one that mirrors an argument.
        let mut headers: Headers = Vec::with_capacity(6);
        headers.extend([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (
                ACCEPT,
                HeaderValue::from_static("application/json, text/event-stream"),
            ),
        ]);
        let revision = match method {
            method::INITIALIZE => None,
            method::DISCOVER => Some(Revision::LATEST),
            _ => self.revision,
        };
        if let Some(revision) = revision {
            headers.push((
                PROTOCOL_VERSION.clone(),
                HeaderValue::from_static(revision.as_str()),
            ));
        }
        if revision.is_some_and(|revision| revision.era() == Era::Modern) {
            headers.push((METHOD.clone(), method_value(method)));
            headers.extend(name_of(method, params).map(|name| (NAME.clone(), name)));
        } else if let Some(id) = &self.id {
            headers.push((SESSION_ID.clone(), id.clone()));
        }
        headers
    }
}

/// A method as the value of a header; that of a call needs no memory of its own.
fn method_value(method: &str) -> HeaderValue {
    match method {
        method::TOOLS_CALL => HeaderValue::from_static(method::TOOLS_CALL),
        other => header_value(other),
    }
}

/// What a modern request is about, for the header that says so.
fn name_of(method: &str, params: &Params) -> Option<HeaderValue> {
    let key = match method {
        method::TOOLS_CALL | method::PROMPTS_GET => "name",
        method::RESOURCES_READ => "uri",
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => "taskId",
        _ => return None,
    };
    params.get(key)?.text().map(|name| header_value(&name))
}

/// Whether a refusal says that the session is unknown: 404 by the specification, 400 with such words in practice. An error
/// that names the request is its answer: whoever wrote it has looked at the request, which may have run.
fn is_expired(error: &ClientError) -> bool {
    let Some((status, body)) = error.http_status() else {
        return false;
    };
    let speaks_of_it = || body.to_ascii_lowercase().contains("session");
    match status {
        // Servers answer so under the id of the request too, and then say what is not found.
        404 => !error.is_answer() || speaks_of_it(),
        400 => !error.is_answer() && speaks_of_it(),
        _ => false,
    }
}
