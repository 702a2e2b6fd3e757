//! Streamable HTTP: records requests and breaks answers as their scripts ask.

mod body;

use std::{
    collections::HashSet,
    future::{self, Future},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Frame;
use mcp_server::{HttpServerOptions, HttpService, RequestBody, ServeOptions, serve_http};
use mcp_wire::{header, method, sse_event};
use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

use self::body::{
    AnswerBody, BodyEnd, ClosedByScript, FrameStream, answer, boxed, events, is_stream, json, limited,
    not_found, refusal, retype, takes_events, told, unchanged, whole, with_type,
};
use crate::{
    Misbehavior, MockReply,
    reply::{
        mock_reply::ReplyOutcome,
        plan::{Incoming, ReplyPlan, instead_of_listening},
    },
    server::{service::MockService, state::State},
    transport::{
        legacy_sse::{self, SseClients},
        loopback,
    },
};

/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 256 * 1024 * 1024;

/// A listening mock server. Dropping it stops the server.
#[derive(Debug)]
pub struct MockHttp {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl MockHttp {
    pub(crate) async fn start(state: Arc<State>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // No failure is known; a client would see a refused connection.
            let _ = serve(state, listener, future::pending()).await;
        });
        Ok(Self { address, task })
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the URL for clients of HTTP+SSE, the transport of 2024-11-05. Misbehaviors of HTTP do not apply there.
    #[must_use]
    pub fn sse_url(&self) -> String {
        format!("http://{}{}", self.address, legacy_sse::PATH)
    }

    /// Returns the address of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MockHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves clients over HTTP, at `/mcp`, until `shutdown` completes.
pub(crate) async fn serve(
    state: Arc<State>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let options = HttpServerOptions::default()
        .path("/mcp")
        .max_body(MAX_REQUEST)
        .notifier(state.notices.clone());
    let service = MockService::new(Arc::clone(&state), Arc::default());
    let endpoint = Endpoint(Arc::new(Inner {
        state,
        service: HttpService::new(service, options),
        dropped: Mutex::default(),
        sse_clients: Arc::default(),
    }));
    let shutdown = async {
        shutdown.await;
        endpoint.0.service.end_streams();
    };
    serve_http(listener, ServeOptions::default(), |_| endpoint.clone(), shutdown).await
}

/// The service of all connections.
#[derive(Clone)]
struct Endpoint(Arc<Inner>);

struct Inner {
    state: Arc<State>,
    service: HttpService<MockService>,
    /// Ids of forgotten sessions.
    dropped: Mutex<HashSet<HeaderValue>>,
    sse_clients: Arc<SseClients>,
}

type Answer = Result<Response<AnswerBody>, ClosedByScript>;

impl hyper::service::Service<Request<RequestBody>> for Endpoint {
    type Response = Response<AnswerBody>;
    type Error = ClosedByScript;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn call(&self, request: Request<RequestBody>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.respond(request).await })
    }
}

impl Inner {
    async fn respond(&self, request: Request<RequestBody>) -> Answer {
        if !loopback::is_local(request.headers()) {
            return Ok(answer(StatusCode::FORBIDDEN, Bytes::new()));
        }
        if request.uri().path() == legacy_sse::PATH {
            return Ok(self.sse_client(request).await);
        }
        let session = request.headers().get(header::SESSION_ID);
        if session.is_some_and(|session| self.dropped().contains(session)) {
            return Ok(not_found());
        }
        if request.method() == Method::GET
            && let Some(script) = self.state.rule(LISTENING)
        {
            let reply = script.reply(script.take());
            return self.opened(&reply, request).await;
        }
        if request.method() == Method::GET && self.state.scripts_notifications() {
            let response = self.service.respond(request).await;
            return Ok(response.map(|body| events(Arc::clone(&self.state), None, body)));
        }
        if request.method() != Method::POST {
            return Ok(self.service.respond(request).await.map(unchanged));
        }
        let (mut head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
            return Ok(answer(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()));
        };
        let bytes = body.to_bytes();
        match self.state.receive(bytes.clone(), &head.headers) {
            Incoming::Request(plan) => {
                head.extensions.insert(Arc::clone(&plan));
                self.planned(&plan, head, bytes).await
            }
            Incoming::Refused(id, error) => {
                let message = mcp_wire::error(Some(id.as_raw()), &error);
                Ok(json(StatusCode::BAD_REQUEST, message.into()))
            }
            Incoming::Notification(_) | Incoming::Other => {
                let request = Request::from_parts(head, Full::new(bytes));
                Ok(self.service.respond(request).await.map(unchanged))
            }
        }
    }

    async fn sse_client(&self, request: Request<RequestBody>) -> Response<AnswerBody> {
        let session = request
            .uri()
            .query()
            .and_then(|query| query.strip_prefix("session="));
        match (request.method(), session.map(str::to_owned)) {
            (&Method::GET, _) => {
                let events = self.sse_clients.open(Arc::clone(&self.state));
                let frames = events.map(|event| Ok(Frame::data(event)));
                with_type("text/event-stream", Response::new(boxed(frames)))
            }
            (&Method::POST, Some(session)) => {
                let Ok(body) = Limited::new(request.into_body(), MAX_REQUEST).collect().await else {
                    return answer(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new());
                };
                match self.sse_clients.post(&session, &body.to_bytes()).await {
                    true => answer(StatusCode::ACCEPTED, Bytes::new()),
                    false => not_found(),
                }
            }
            _ => answer(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
        }
    }

    /// Answers a request as its script asks.
    async fn planned(&self, plan: &Arc<ReplyPlan>, head: Parts, bytes: Bytes) -> Answer {
        if let Some(answer) = self.instead(plan, &head).await {
            return answer;
        }
        let takes_events = takes_events(&head.headers);
        let (mut head, mut bytes) = (head, bytes);
        if plan.opens_nothing() {
            let method = HeaderValue::from_static(method::DISCOVER);
            head.headers.insert(header::METHOD, method);
            bytes = instead_of_listening(&bytes);
        }
        let request = Request::from_parts(head, Full::new(bytes));
        let response = self.service.respond(request).await;
        if plan.is_harmless() && !self.state.scripts_notifications() {
            return Ok(response.map(unchanged));
        }
        sleep(plan.delay()).await;
        let mut response = match is_stream(&response) {
            true => response.map(|body| events(Arc::clone(&self.state), Some(Arc::clone(plan)), body)),
            false if plan.never_answers() => return future::pending().await,
            false if plan.misbehaves(&Misbehavior::Close) => return Err(ClosedByScript),
            false if plan.misbehaves(&Misbehavior::EmptyStream) => {
                with_type("text/event-stream", answer(StatusCode::OK, Bytes::new()))
            }
            false => whole(plan, response, takes_events).await,
        };
        retype(&mut response, plan.misbehaviors());
        Ok(response)
    }

    /// Opens the stream of a legacy client as its script asks.
    async fn opened(&self, reply: &MockReply, request: Request<RequestBody>) -> Answer {
        sleep(reply.delays()).await;
        if let Some(answer) = self.refused(&reply.misbehaviors, request.headers()) {
            return answer;
        }
        if matches!(reply.outcome, ReplyOutcome::Never) {
            return future::pending().await;
        }
        let response = self.service.respond(request).await;
        if !is_stream(&response) {
            return Ok(response.map(unchanged));
        }
        let (mut before, mut most) = (Vec::new(), None);
        for misbehavior in &reply.misbehaviors {
            match misbehavior {
                Misbehavior::Close => return Err(ClosedByScript),
                Misbehavior::GarbageBefore(text) => {
                    before.extend(sse_event(text.as_bytes(), None, None));
                }
                Misbehavior::Cut(at) => most = Some((at.unwrap_or(0), BodyEnd::Cut)),
                Misbehavior::EmptyStream => most = Some((0, BodyEnd::End)),
                _ => {}
            }
        }
        let state = Arc::clone(&self.state);
        let mut response = response.map(|body| {
            let first = stream::iter((!before.is_empty()).then(|| Ok(Frame::data(before.into()))));
            let all: FrameStream = Box::pin(first.chain(told(state, None, body)));
            boxed(match most {
                Some((most, stop)) => limited(all, most, stop),
                None => all,
            })
        });
        retype(&mut response, &reply.misbehaviors);
        Ok(response)
    }

    /// Returns the scripted answer that replaces the handling of a request.
    async fn instead(&self, plan: &ReplyPlan, head: &Parts) -> Option<Answer> {
        let answer = self.refused(plan.misbehaviors(), &head.headers)?;
        sleep(plan.reply.delays()).await;
        Some(answer)
    }

    fn refused(&self, misbehaviors: &[Misbehavior], headers: &HeaderMap) -> Option<Answer> {
        misbehaviors.iter().find_map(|misbehavior| match misbehavior {
            Misbehavior::Status {
                status,
                headers,
                body,
            } => Some(Ok(refusal(*status, headers, body))),
            Misbehavior::DropSession => {
                self.dropped().extend(headers.get(header::SESSION_ID).cloned());
                Some(Ok(not_found()))
            }
            _ => None,
        })
    }

    fn dropped(&self) -> parking_lot::MutexGuard<'_, HashSet<HeaderValue>> {
        self.dropped.lock()
    }
}

/// Method of a script for the opening of a legacy client's stream.
const LISTENING: &str = "GET";
