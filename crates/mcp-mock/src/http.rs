//! Connections over HTTP: what comes in is noted, what goes out may misbehave.

use std::{
    collections::HashSet,
    convert::Infallible,
    future::{self, Future},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
    request::Parts,
};
use http_body_util::{BodyExt, BodyStream, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame};
use mcp_server::{HttpOptions, HttpService, RequestBody, ResponseBody, ServeOptions, serve_http};
use mcp_wire::{Message, RpcError, SseDecoder, SseItem, code, header, sse_event};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, yield_now},
    time::sleep,
};

use crate::{
    Misbehaviour,
    delivery::{Delivery, Piece},
    guard,
    old_http::{self, OldClients},
    plan::{Intake, Plan},
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
    let options = HttpOptions {
        path: Some("/mcp".to_owned()),
        max_body: MAX_REQUEST,
        notices: state.notices.clone(),
        ..HttpOptions::default()
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
        let request = Request::from_parts(head, Full::new(bytes));
        let response = self.service.respond(request).await;
        if plan.is_harmless() {
            return Ok(response.map(unchanged));
        }
        sleep(plan.delay()).await;
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let mut response = match is_stream {
            true => response.map(|body| events(Arc::clone(plan), body)),
            false if plan.never_answers() => return future::pending().await,
            false if plan.misbehaves(&Misbehaviour::Close) => return Err(Closed),
            false if plan.misbehaves(&Misbehaviour::EmptyStream) => {
                with_type("text/event-stream", answer(StatusCode::OK, Bytes::new()))
            }
            false => whole(plan, response, takes_events).await,
        };
        for misbehaviour in plan.misbehaviours() {
            if let Misbehaviour::ContentType(kind) = misbehaviour
                && let Ok(kind) = HeaderValue::from_str(kind)
            {
                response.headers_mut().insert(CONTENT_TYPE, kind);
            }
        }
        Ok(response)
    }

    /// What is answered without working on the request.
    async fn instead(&self, plan: &Plan, head: &Parts) -> Option<Answer> {
        for misbehaviour in plan.misbehaviours() {
            let answer = match misbehaviour {
                Misbehaviour::Status {
                    status,
                    headers,
                    body,
                } => Ok(refusal(*status, headers, body)),
                Misbehaviour::DropSession => {
                    let session = head.headers.get(header::SESSION_ID);
                    self.dropped().extend(session.cloned());
                    Ok(not_found())
                }
                _ => continue,
            };
            sleep(plan.reply.delays()).await;
            return Some(answer);
        }
        None
    }

    fn dropped(&self) -> std::sync::MutexGuard<'_, HashSet<HeaderValue>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer in one piece, which becomes a stream of events when more than one message has to be sent.
async fn whole(plan: &Plan, response: Response<ResponseBody>, takes_events: bool) -> Response<AnswerBody> {
    let (mut head, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let delivery = Delivery::new(plan, body.to_bytes().to_vec());
    head.headers.remove(CONTENT_LENGTH);
    let pieces = if takes_events && delivery.has_several() {
        let kind = HeaderValue::from_static("text/event-stream");
        head.headers.insert(CONTENT_TYPE, kind);
        delivery.pieces(|message| sse_event(&message, None, None))
    } else {
        delivery.pieces(|message| message)
    };
    Response::from_parts(head, boxed(sent(pieces)))
}

/// An answer as events: the one that holds the answer itself may misbehave, the others pass.
fn events(plan: Arc<Plan>, body: ResponseBody) -> AnswerBody {
    let frames = BodyStream::new(body).filter_map(|frame| {
        let Ok(frame) = frame;
        future::ready(frame.into_data().ok())
    });
    boxed(frames.flat_map(move |event| sent_event(&plan, event)))
}

/// An event as it is sent; the server behind sends each as one frame.
fn sent_event(plan: &Plan, event: Bytes) -> Sent {
    let mut decoder = SseDecoder::new(usize::MAX);
    decoder.push(&event);
    let Some(SseItem::Event(decoded)) = decoder.next_item() else {
        return sent(vec![Piece::Bytes(event)]);
    };
    let message = Message::from_server(decoded.data.clone());
    if !matches!(message, Ok(Message::Response(_))) {
        return sent(vec![Piece::Bytes(event)]);
    }
    if plan.never_answers() {
        return Box::pin(stream::pending());
    }
    if plan.misbehaves(&Misbehaviour::EmptyStream) {
        return sent(Vec::new());
    }
    let delivery = Delivery::new(plan, decoded.data.to_vec());
    sent(delivery.pieces(|message| sse_event(&message, None, decoded.id.as_deref())))
}

type Sent = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Closed>> + Send>>;

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
            Some(Err(Closed))
        }
    });
    Box::pin(frames)
}

fn boxed(frames: impl Stream<Item = Result<Frame<Bytes>, Closed>> + Send + 'static) -> AnswerBody {
    StreamBody::new(frames).boxed_unsync()
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
