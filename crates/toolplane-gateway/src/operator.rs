//! The way in for operators: HTTP over a Unix socket, which only those reach who may open its file.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use raw_json::RawJson;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::JoinSet,
    time::sleep,
};
use toolplane::Toolplane;

use crate::{Gateway, approvals};

/// How many bytes a request may have.
const MAX_BODY: usize = 16 * 1024;
/// How many connections are served at a time; more wait.
const MAX_CONNECTIONS: usize = 16;
/// How many calls a list of the ledger has.
const MAX_CALLS: usize = 1000;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

impl Gateway {
    /// Serves its operators until `shutdown` comes. Whoever can connect can do all of this, so the socket's file must be for
    /// them alone.
    ///
    /// - `GET /servers`: how each server is, as `{"servers": [..]}`: see
    ///   [`Toolplane::server_records`](toolplane::Toolplane::server_records)
    /// - `GET /disabled`: the tools that are switched off, as `{"tools": [..]}`: see
    ///   [`Toolplane::disabled_records`](toolplane::Toolplane::disabled_records)
    /// - `POST /enable`, with `{"tool": "search"}`: switches that tool on again
    /// - `POST /disable`, with `{"tool": "search", "reason": ".."}`, of which the latter may be left out: switches that tool
    ///   off, see [`Toolplane::disable`](toolplane::Toolplane::disable)
    /// - `GET /ledger`: the calls of which nobody knows whether the tool ran, the latest 1,000, as `{"calls": [..]}`: see
    ///   [`Toolplane::ledger_record`](toolplane::Toolplane::ledger_record)
    /// - `GET /ledger/ID`: what is remembered of the call with this id
    /// - `GET /approvals`: all that wait or were decided, as `{"approvals": [..]}`
    /// - `GET /approvals/HANDLE`: one of them
    /// - `POST /approvals/HANDLE/approve` and `…/deny`, with `{"by": "ann", "reason": ".."}`, both of which may be left out
    ///
    /// What cannot be done is answered with 404, 409, 400 or 503 and `{"error": {"kind", "message"}}`.
    pub async fn serve_operator(&self, listener: UnixListener, shutdown: impl Future<Output = ()>) {
        let plane = self.plane();
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let accepting = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (place, listener.accept().await)
            };
            tokio::select! {
                () = &mut shutdown => return,
                (place, accepted) = accepting => match accepted {
                    Ok((stream, _)) => {
                        let connection = serve(stream, plane.clone());
                        connections.spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(Duration::from_millis(50)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn serve(stream: UnixStream, plane: Toolplane) {
    let service = service_fn(move |request| {
        let plane = plane.clone();
        async move { Ok::<_, Infallible>(respond(&plane, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}

/// What is answered: a status, and an object.
pub(crate) type Answered = Result<RawJson, (StatusCode, RawJson)>;

async fn respond(plane: &Toolplane, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match answer(plane, request).await {
        Ok(body) => (StatusCode::OK, body),
        Err(failure) => failure,
    };
    let mut response = Response::new(Full::new(body.as_bytes().clone()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

async fn answer(plane: &Toolplane, request: Request<Incoming>) -> Answered {
    let (parts, body) = request.into_parts();
    let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    match (&parts.method, &path[..]) {
        (&Method::GET, ["servers"]) => {
            let servers = RawJson::from(serde_json::Value::from(plane.server_records()));
            Ok(RawJson::from_members(&[("servers", servers)]))
        }
        (&Method::GET, ["disabled"]) => {
            let tools = RawJson::from(serde_json::Value::from(plane.disabled_records()));
            Ok(RawJson::from_members(&[("tools", tools)]))
        }
        (&Method::POST, ["enable"]) => enable(plane, &read(body).await?),
        (&Method::POST, ["disable"]) => disable(plane, &read(body).await?).await,
        (&Method::GET, ["ledger"]) => {
            let calls = plane.unknown_outcomes(MAX_CALLS).await;
            let calls: Vec<_> = calls.iter().map(|call| plane.ledger_record(call)).collect();
            Ok(RawJson::from_members(&[(
                "calls",
                RawJson::from(serde_json::Value::from(calls)),
            )]))
        }
        (&Method::GET, ["ledger", id]) => remembered(plane, id).await,
        (method, ["approvals", rest @ ..]) => {
            approvals::answer(plane.approvals(), method, rest, read(body).await?).await
        }
        (_, ["servers" | "disabled" | "enable" | "disable"] | ["ledger", ..]) => Err(no_such_method()),
        _ => Err(fault(StatusCode::NOT_FOUND, "not_found", "there is nothing here")),
    }
}

async fn remembered(plane: &Toolplane, id: &str) -> Answered {
    let entry = match id.parse() {
        Ok(id) => plane.ledger_entry(id).await,
        Err(_) => None,
    };
    match entry {
        Some(entry) => Ok(RawJson::from(plane.ledger_record(&entry))),
        None => {
            let message = "no call is remembered under this id";
            Err(fault(StatusCode::NOT_FOUND, "not_found", message))
        }
    }
}

/// The tool that a request names.
fn named(said: &RawJson) -> Result<String, (StatusCode, RawJson)> {
    let tool = said.get("tool").and_then(|tool| tool.string());
    tool.filter(|tool| !tool.is_empty()).ok_or_else(|| {
        let message = "the body names no `tool`";
        fault(StatusCode::BAD_REQUEST, "usage", message)
    })
}

async fn disable(plane: &Toolplane, said: &RawJson) -> Answered {
    let tool = named(said)?;
    let reason = said.get("reason").and_then(|reason| reason.string());
    match plane.disable(&tool, reason.as_deref()).await {
        Ok(()) => Ok(RawJson::from_members(&[("tool", RawJson::from(tool.as_str()))])),
        Err(error) => Err(fault(StatusCode::NOT_FOUND, "not_found", error.message())),
    }
}

fn enable(plane: &Toolplane, said: &RawJson) -> Answered {
    let tool = named(said)?;
    if plane.enable(&tool) {
        return Ok(RawJson::from_members(&[("tool", RawJson::from(tool.as_str()))]));
    }
    let message = format!("the tool `{tool}` is not switched off");
    Err(fault(StatusCode::NOT_FOUND, "not_found", &message))
}

/// What a request says: an object, or nothing.
async fn read(body: Incoming) -> Result<RawJson, (StatusCode, RawJson)> {
    let usage = |message: &str| fault(StatusCode::BAD_REQUEST, "usage", message);
    let body = tokio::time::timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await;
    let body = body
        .map_err(|_| usage("the body did not arrive in time"))?
        .map_err(|_| usage("the body is too large or broken off"))?;
    let bytes = body.to_bytes();
    if bytes.is_empty() {
        return Ok(RawJson::object());
    }
    RawJson::parse(bytes).map_err(|error| usage(&format!("the body is not usable: {error}")))
}

/// Something is there, and this cannot be done with it.
pub(crate) fn no_such_method() -> (StatusCode, RawJson) {
    fault(
        StatusCode::METHOD_NOT_ALLOWED,
        "usage",
        "this cannot be done here",
    )
}

pub(crate) fn fault(status: StatusCode, kind: &str, message: &str) -> (StatusCode, RawJson) {
    let error = RawJson::from_members(&[("kind", RawJson::from(kind)), ("message", RawJson::from(message))]);
    (status, RawJson::from_members(&[("error", error)]))
}
