//! The way in for those who approve calls: HTTP over a Unix socket, which only those reach who may open its file.

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
use toolplane::policy::{ApprovalDesk, ApprovalVerdict, DecideError, approval_json};

use crate::{Gateway, render::object};

/// How many bytes a decision may have.
const MAX_BODY: usize = 16 * 1024;
/// How many connections are served at a time; more wait.
const MAX_CONNECTIONS: usize = 16;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who decided, where a decision does not say.
const SOMEBODY: &str = "operator";

impl Gateway {
    /// Serves the calls that wait for somebody's approval until `shutdown` comes. Whoever can connect can decide, so the
    /// socket's file must be for the operator alone.
    ///
    /// - `GET /approvals`: all that wait or were decided, as `{"approvals": [..]}`
    /// - `GET /approvals/HANDLE`: one of them
    /// - `POST /approvals/HANDLE/approve` and `…/deny`, with `{"by": "ann", "reason": ".."}`, both of which may be left out
    ///
    /// What cannot be done is answered with 404, 409, 400 or 503 and `{"error": {"kind", "message"}}`.
    pub async fn serve_approvals(&self, listener: UnixListener, shutdown: impl Future<Output = ()>) {
        let desk = self.plane().approvals().clone();
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
                        let connection = serve(stream, desk.clone());
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

async fn serve(stream: UnixStream, desk: ApprovalDesk) {
    let service = service_fn(move |request| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(respond(&desk, request).await) }
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
type Answered = Result<RawJson, (StatusCode, RawJson)>;

async fn respond(desk: &ApprovalDesk, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match answer(desk, request).await {
        Ok(body) => (StatusCode::OK, body),
        Err(failure) => failure,
    };
    let mut response = Response::new(Full::new(body.as_bytes().clone()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

async fn answer(desk: &ApprovalDesk, request: Request<Incoming>) -> Answered {
    let (parts, body) = request.into_parts();
    let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    match (&parts.method, &path[..]) {
        (&Method::GET, ["approvals"]) => {
            let all = desk.list().await.map_err(|error| failure(&error.into()))?;
            let all: Vec<RawJson> = all.iter().map(approval_json).collect();
            let all = RawJson::from_serialize(&all).expect("JSON can be written");
            Ok(object(&[("approvals", all)]))
        }
        (&Method::GET, ["approvals", handle]) => {
            let found = desk.get(handle).await.map_err(|error| failure(&error))?;
            Ok(approval_json(&found))
        }
        (&Method::POST, ["approvals", handle, verdict @ ("approve" | "deny")]) => {
            let said = read(body).await?;
            let text = |key: &str| said.get(key).and_then(|text| text.string());
            let verdict = match *verdict {
                "approve" => ApprovalVerdict::Approve,
                _ => ApprovalVerdict::Deny {
                    reason: text("reason").filter(|reason| !reason.is_empty()),
                },
            };
            let by = text("by").filter(|by| !by.is_empty());
            let by = by.as_deref().unwrap_or(SOMEBODY);
            let decided = desk.decide(handle, verdict, by).await;
            Ok(approval_json(&decided.map_err(|error| failure(&error))?))
        }
        (_, ["approvals", ..]) => Err(fault(
            StatusCode::METHOD_NOT_ALLOWED,
            "usage",
            "this cannot be done here",
        )),
        _ => Err(fault(StatusCode::NOT_FOUND, "not_found", "there is nothing here")),
    }
}

/// What a decision says: an object, or nothing.
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

fn failure(error: &DecideError) -> (StatusCode, RawJson) {
    let (status, kind) = match error {
        DecideError::Unknown { .. } => (StatusCode::NOT_FOUND, "not_found"),
        DecideError::Decided { .. } => (StatusCode::CONFLICT, "decided"),
        DecideError::OwnCall { .. } => (StatusCode::CONFLICT, "denied"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    fault(status, kind, &error.to_string())
}

fn fault(status: StatusCode, kind: &str, message: &str) -> (StatusCode, RawJson) {
    let error = object(&[("kind", RawJson::from(kind)), ("message", RawJson::from(message))]);
    (status, object(&[("error", error)]))
}
