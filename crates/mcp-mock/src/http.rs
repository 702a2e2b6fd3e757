//! Connections over HTTP: what comes in is noted, what goes out may misbehave.

use std::{
    collections::HashSet,
    convert::Infallible,
    future::{self, Future},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
    request::Parts,
};
use http_body_util::{BodyExt, BodyStream, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame};
use mcp_server::{HttpServerOptions, HttpService, RequestBody, ResponseBody, ServeOptions, serve_http};
use mcp_wire::{Message, RpcError, SseDecoder, SseItem, code, header, method, sse_event};
use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, yield_now},
    time::sleep,
};

use crate::{
    Misbehavior, MockReply,
    delivery::{Delivery, Framing, Piece},
    guard,
    old_http::{self, OldClients},
    plan::{Intake, Plan, instead_of_listening},
    reply::Outcome,
    service::MockService,
    state::State,
};

/// How large a request may be.
const MAX_REQUEST: usize = 256 * 1024 * 1024;

/// A mock server that listens: it stops when this is dropped.
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
            // It fails for nothing so far, and a client would see the connection refused.
            let _ = serve(state, listener, future::pending()).await;
        });
        Ok(Self { address, task })
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The URL for clients of HTTP+SSE, the transport of 2024-11-05. What is about HTTP in a script changes nothing there.
    #[must_use]
    pub fn sse_url(&self) -> String {
        format!("http://{}{}", self.address, old_http::PATH)
    }

    /// Where the server listens.
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

/// Serves clients over HTTP, at `/mcp`, until `shutdown` comes.
pub(crate) async fn serve(
    state: Arc<State>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        max_body: MAX_REQUEST,
        notifier: state.notices.clone(),
        ..HttpServerOptions::default()
    };
    let service = MockService::new(Arc::clone(&state), Arc::default());
    let endpoint = Endpoint(Arc::new(Inner {
        state,
        service: HttpService::new(service, options),
        dropped: Mutex::default(),
        old_clients: Arc::default(),
    }));
    let shutdown = async {
        shutdown.await;
        endpoint.0.service.end_streams();
    };
    serve_http(listener, ServeOptions::default(), |_| endpoint.clone(), shutdown).await
}

/// The service of every connection.
#[derive(Clone)]
struct Endpoint(Arc<Inner>);

struct Inner {
    state: Arc<State>,
    service: HttpService<MockService>,
    /// The sessions that are forgotten.
    dropped: Mutex<HashSet<HeaderValue>>,
    old_clients: Arc<OldClients>,
}

/// The connection is closed because the script says so.
#[derive(Debug, thiserror::Error)]
#[error("the script closes the connection")]
struct Closed;

/// Why no more is sent of a body.
#[derive(Clone, Copy)]
enum Stop {
    /// It breaks off with the connection.
    Cut,
    /// It is at its end.
    End,
}

type AnswerBody = UnsyncBoxBody<Bytes, Closed>;
type Answer = Result<Response<AnswerBody>, Closed>;

impl hyper::service::Service<Request<RequestBody>> for Endpoint {
    type Response = Response<AnswerBody>;
    type Error = Closed;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn call(&self, request: Request<RequestBody>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.respond(request).await })
    }
}

impl Inner {
    async fn respond(&self, request: Request<RequestBody>) -> Answer {
        if !guard::is_local(request.headers()) {
            return Ok(answer(StatusCode::FORBIDDEN, Bytes::new()));
        }
        if request.uri().path() == old_http::PATH {
            return Ok(self.old_client(request).await);
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
        match self.state.take_in(bytes.clone(), &head.headers) {
            Intake::Request(plan) => {
                head.extensions.insert(Arc::clone(&plan));
                self.planned(&plan, head, bytes).await
            }
            Intake::Refused(id, error) => {
                let message = mcp_wire::error(Some(id.as_raw()), &error);
                Ok(json(StatusCode::BAD_REQUEST, message.into()))
            }
            Intake::Notification(_) | Intake::Other => {
                let request = Request::from_parts(head, Full::new(bytes));
                Ok(self.service.respond(request).await.map(unchanged))
            }
        }
    }

    async fn old_client(&self, request: Request<RequestBody>) -> Response<AnswerBody> {
        let session = request
            .uri()
            .query()
            .and_then(|query| query.strip_prefix("session="));
        match (request.method(), session.map(str::to_owned)) {
            (&Method::GET, _) => {
                let events = self.old_clients.open(Arc::clone(&self.state));
                let frames = events.map(|event| Ok(Frame::data(event)));
                with_type("text/event-stream", Response::new(boxed(frames)))
            }
            (&Method::POST, Some(session)) => {
                let Ok(body) = Limited::new(request.into_body(), MAX_REQUEST).collect().await else {
                    return answer(StatusCode::PAYLOAD_TOO_LARGE, Bytes::new());
                };
                match self.old_clients.post(&session, &body.to_bytes()).await {
                    true => answer(StatusCode::ACCEPTED, Bytes::new()),
                    false => not_found(),
                }
            }
            _ => answer(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
        }
    }

    /// Answers a request as its script will have it.
    async fn planned(&self, plan: &Arc<Plan>, head: Parts, bytes: Bytes) -> Answer {
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
            false if plan.misbehaves(&Misbehavior::Close) => return Err(Closed),
            false if plan.misbehaves(&Misbehavior::EmptyStream) => {
                with_type("text/event-stream", answer(StatusCode::OK, Bytes::new()))
            }
            false => whole(plan, response, takes_events).await,
        };
        retype(&mut response, plan.misbehaviours());
        Ok(response)
    }

    /// Opens the stream on which a legacy client listens, as its script will have it.
    async fn opened(&self, reply: &MockReply, request: Request<RequestBody>) -> Answer {
        sleep(reply.delays()).await;
        if let Some(answer) = self.refused(&reply.misbehaviours, request.headers()) {
            return answer;
        }
        if matches!(reply.outcome, Outcome::Never) {
            return future::pending().await;
        }
        let response = self.service.respond(request).await;
        if !is_stream(&response) {
            return Ok(response.map(unchanged));
        }
        let (mut before, mut most) = (Vec::new(), None);
        for misbehaviour in &reply.misbehaviours {
            match misbehaviour {
                Misbehavior::Close => return Err(Closed),
                Misbehavior::GarbageBefore(text) => {
                    before.extend(sse_event(text.as_bytes(), None, None));
                }
                Misbehavior::Cut(at) => most = Some((at.unwrap_or(0), Stop::Cut)),
                Misbehavior::EmptyStream => most = Some((0, Stop::End)),
                _ => {}
            }
        }
        let state = Arc::clone(&self.state);
        let mut response = response.map(|body| {
            let first = stream::iter((!before.is_empty()).then(|| Ok(Frame::data(before.into()))));
            let all: Sent = Box::pin(first.chain(told(state, None, body)));
            boxed(match most {
                Some((most, stop)) => limited(all, most, stop),
                None => all,
            })
        });
        retype(&mut response, &reply.misbehaviours);
        Ok(response)
    }

    /// What is answered without working on the request.
    async fn instead(&self, plan: &Plan, head: &Parts) -> Option<Answer> {
        let answer = self.refused(plan.misbehaviours(), &head.headers)?;
        sleep(plan.reply.delays()).await;
        Some(answer)
    }

    fn refused(&self, misbehaviours: &[Misbehavior], headers: &HeaderMap) -> Option<Answer> {
        misbehaviours.iter().find_map(|misbehaviour| match misbehaviour {
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

/// What a script calls the opening of the stream on which a legacy client listens.
const LISTENING: &str = "GET";

fn is_stream(response: &Response<ResponseBody>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Says that an answer is of the type that its script wants.
fn retype(response: &mut Response<AnswerBody>, misbehaviours: &[Misbehavior]) {
    for misbehaviour in misbehaviours {
        if let Misbehavior::ContentType(kind) = misbehaviour
            && let Ok(kind) = HeaderValue::from_str(kind)
        {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
    }
}

/// An answer in one piece, which becomes a stream of events when more than one message has to be sent.
async fn whole(plan: &Plan, response: Response<ResponseBody>, takes_events: bool) -> Response<AnswerBody> {
    let (mut head, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let delivery = Delivery::new(plan, body.to_bytes().to_vec());
    head.headers.remove(CONTENT_LENGTH);
    let pieces = if takes_events && delivery.needs_events() {
        let kind = HeaderValue::from_static("text/event-stream");
        head.headers.insert(CONTENT_TYPE, kind);
        delivery.pieces(Framing::Event(None))
    } else {
        delivery.pieces(Framing::Whole)
    };
    Response::from_parts(head, boxed(sent(pieces)))
}

/// A stream of events: the one that holds the answer to its request may misbehave, and notifications that are scripted.
fn events(state: Arc<State>, plan: Option<Arc<Plan>>, body: ResponseBody) -> AnswerBody {
    boxed(told(state, plan, body))
}

fn told(state: Arc<State>, plan: Option<Arc<Plan>>, body: ResponseBody) -> Sent {
    let frames = BodyStream::new(body).filter_map(|frame| {
        let Ok(frame) = frame;
        future::ready(frame.into_data().ok())
    });
    Box::pin(frames.flat_map(move |event| sent_event(&state, plan.as_deref(), event)))
}

/// An event as it is sent; the server behind sends each as one frame.
fn sent_event(state: &State, plan: Option<&Plan>, event: Bytes) -> Sent {
    let mut decoder = SseDecoder::new(usize::MAX);
    decoder.push(&event);
    let Some(SseItem::Event(decoded)) = decoder.next_item() else {
        return sent(vec![Piece::Bytes(event)]);
    };
    let framing = Framing::Event(decoded.id.as_deref());
    if let Some(reply) = state.notification(&decoded.data) {
        if reply.misbehaviours.contains(&Misbehavior::EmptyStream) {
            return stopped(Stop::End);
        }
        let delivery = Delivery::notification(&reply, decoded.data.to_vec());
        let pieces = delivery.map(|delivery| delivery.pieces(framing));
        let wait = Piece::Pause(reply.delays());
        return sent([vec![wait], pieces.unwrap_or_default()].concat());
    }
    let message = Message::from_server(decoded.data.clone());
    let (Some(plan), Ok(Message::Response(_))) = (plan, message) else {
        return sent(vec![Piece::Bytes(event)]);
    };
    if plan.never_answers() {
        return Box::pin(stream::pending());
    }
    if plan.misbehaves(&Misbehavior::EmptyStream) {
        return sent(Vec::new());
    }
    sent(Delivery::new(plan, decoded.data.to_vec()).pieces(framing))
}

type Sent = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Stop>> + Send>>;

/// The end of a body, in the middle of it.
fn stopped(how: Stop) -> Sent {
    Box::pin(stream::once(future::ready(Err(how))))
}

/// So many bytes of a body, and then its end.
fn limited(frames: Sent, most: usize, stop: Stop) -> Sent {
    let start = (frames, most, false);
    Box::pin(stream::unfold(
        start,
        move |(mut frames, left, is_over)| async move {
            if is_over {
                return None;
            }
            if left == 0 {
                // What was sent before is written out first.
                yield_now().await;
                return Some((Err(stop), (frames, 0, true)));
            }
            let data = match frames.next().await? {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(stop) => return Some((Err(stop), (frames, 0, true))),
            };
            let part = data.slice(..data.len().min(left));
            let left = left - part.len();
            Some((Ok(Frame::data(part)), (frames, left, false)))
        },
    ))
}

/// The pieces as they are sent, with the pauses between them.
fn sent(pieces: Vec<Piece>) -> Sent {
    let frames = stream::iter(pieces).filter_map(async |piece| match piece {
        Piece::Bytes(bytes) => Some(Ok(Frame::data(bytes))),
        Piece::Pause(time) => {
            sleep(time).await;
            None
        }
        Piece::Close => {
            // What was sent before is written out first.
            yield_now().await;
            Some(Err(Stop::Cut))
        }
    });
    Box::pin(frames)
}

fn boxed(frames: impl Stream<Item = Result<Frame<Bytes>, Stop>> + Send + 'static) -> AnswerBody {
    let frames = frames.take_while(|frame| future::ready(!matches!(frame, Err(Stop::End))));
    StreamBody::new(frames.map_err(|_| Closed)).boxed_unsync()
}

fn unchanged<B>(body: B) -> AnswerBody
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    body.map_err(|never| match never {}).boxed_unsync()
}

fn answer(status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    let mut answer = Response::new(unchanged(Full::new(body)));
    *answer.status_mut() = status;
    answer
}

fn json(status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    with_type("application/json", answer(status, body))
}

fn with_type(kind: &'static str, mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn not_found() -> Response<AnswerBody> {
    let error = RpcError::new(code::INVALID_REQUEST, "the session is unknown");
    json(StatusCode::NOT_FOUND, mcp_wire::error(None, &error).into())
}

/// A status that a script asks for; what is no status or header is left out.
fn refusal(status: u16, headers: &[(String, String)], body: &str) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = answer(status, body.to_owned().into());
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            answer.headers_mut().append(name, value);
        }
    }
    answer
}

fn takes_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}
