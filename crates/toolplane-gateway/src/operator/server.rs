//! HTTP server for operators on a Unix socket. The permissions of its file decide who can connect.

use std::{collections::HashSet, convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use raw_json::{RawJson, hex};
use serde_json::json;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::sleep,
};
use toolplane::{Toolplane, policy::harmless_text};

use super::{
    approvals,
    response::{ApiResult, api_error, method_not_allowed, response},
};
use crate::Gateway;

/// Maximum size of the body of a request, in bytes.
const MAX_BODY: usize = 16 * 1024;
/// Maximum number of connections that are served at a time. Others wait.
const MAX_CONNECTIONS: usize = 16;
/// Maximum size of a request of an endpoint, in bytes: arguments have up to 4 MiB.
#[cfg(feature = "endpoint")]
const MAX_ENDPOINT_BODY: usize = 8 << 20;
/// Maximum number of requests of endpoints that run at a time.
#[cfg(feature = "endpoint")]
const MAX_ENDPOINT_REQUESTS: usize = 64;
#[cfg(feature = "endpoint")]
static ENDPOINT_REQUESTS: Semaphore = Semaphore::const_new(MAX_ENDPOINT_REQUESTS);
/// Maximum number of calls in a list of the ledger.
const MAX_CALLS: usize = 1000;
/// Time within which the head and the body of a request must arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

impl Gateway {
    /// Serves operators until `shutdown` completes. Everyone who can connect is trusted, so only operators may have access to
    /// the socket's file.
    ///
    /// - `GET /servers`: the state of each server, as `{"servers": [..]}`: see
    ///   [`Toolplane::server_records`](toolplane::Toolplane::server_records)
    /// - `GET /disabled`: the disabled tools, as `{"tools": [..]}`: see
    ///   [`Toolplane::disabled_records`](toolplane::Toolplane::disabled_records)
    /// - `GET /withheld`: the definitions that are withheld, as `{"definitions": [..]}`: see
    ///   [`Toolplane::withheld_records`](toolplane::Toolplane::withheld_records)
    /// - `POST /accept`, with `{"digests": ["ab12.."], "by": "ann"}`, where `by` is optional: accepts the withheld definitions with
    ///   these digests, and answers with them as `{"definitions": [..]}`; one that has changed meanwhile has another digest
    /// - `POST /enable`, with `{"tool": "search"}`: enables the tool
    /// - `POST /disable`, with `{"tool": "search", "reason": ".."}`, where `reason` is optional: disables the tool, see
    ///   [`Toolplane::disable`](toolplane::Toolplane::disable)
    /// - `GET /ledger`: the latest 1,000 calls with an unknown outcome, as `{"calls": [..]}`: see
    ///   [`Toolplane::ledger_record`](toolplane::Toolplane::ledger_record)
    /// - `GET /ledger/ID`: the ledger entry of the call with this id
    /// - `GET /approvals`: all approvals, pending and decided, as `{"approvals": [..]}`
    /// - `GET /approvals/HANDLE`: one approval
    /// - `POST /endpoint`, with the feature `endpoint`: a request of the protocol of command endpoints, answered by its reply. Up
    ///   to 64 of them run at a time, apart from other requests
    /// - `POST /approvals/HANDLE/approve` and `…/deny`, with `{"by": "ann", "reason": ".."}`, both optional
    ///
    /// A request that fails is answered with 400, 404, 405, 409 or 503 and `{"error": {"kind", "message"}}`.
    ///
    /// # Cancellation
    /// When the future is dropped, or `shutdown` completes, the listener is closed and connections are cut off at once. A request
    /// that was read may have taken effect.
    pub async fn serve_operator(&self, listener: UnixListener, shutdown: impl Future<Output = ()>) {
        let plane = self.plane();
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            let accepting = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, listener.accept().await)
            };
            tokio::select! {
                () = &mut shutdown => return,
                (permit, accepted) = accepting => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve(stream, plane.clone(), HeldPermit::new(permit.ok())));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to accept a connection");
                        sleep(Duration::from_millis(50)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Permit of a connection. A call of a tool gives it back, so that long calls do not keep operators out.
#[derive(Clone)]
struct HeldPermit(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl HeldPermit {
    fn new(permit: Option<OwnedSemaphorePermit>) -> Self {
        Self(Arc::new(Mutex::new(permit)))
    }

    fn release(&self) {
        *self.0.lock() = None;
    }
}

async fn serve(stream: UnixStream, plane: Toolplane, permit: HeldPermit) {
    let held = permit.clone();
    let service = service_fn(move |request| {
        let (plane, permit) = (plane.clone(), permit.clone());
        async move { Ok::<_, Infallible>(response(answer(&plane, request, &permit).await)) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection failed");
    }
    held.release();
}

async fn answer(plane: &Toolplane, request: Request<Incoming>, permit: &HeldPermit) -> ApiResult {
    #[cfg(not(feature = "endpoint"))]
    let _ = permit;
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
        (&Method::GET, ["withheld"]) => {
            let definitions = RawJson::from(serde_json::Value::from(plane.withheld_records()));
            Ok(RawJson::from_members(&[("definitions", definitions)]))
        }
        (&Method::POST, ["accept"]) => accept(plane, &read(body).await?).await,
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
        (&Method::GET, ["ledger", id]) => ledger_entry(plane, id).await,
        #[cfg(feature = "endpoint")]
        (&Method::POST, ["endpoint"]) => endpoint(plane, body, permit).await,
        (method, ["approvals", rest @ ..]) => {
            approvals::answer(plane.approvals(), method, rest, read(body).await?).await
        }
        #[cfg(feature = "endpoint")]
        (_, ["endpoint"]) => Err(method_not_allowed()),
        (_, ["servers" | "disabled" | "enable" | "disable" | "withheld" | "accept"] | ["ledger", ..]) => {
            Err(method_not_allowed())
        }
        _ => Err(api_error(StatusCode::NOT_FOUND, "not_found", "unknown path")),
    }
}

/// Answers a request of the protocol of command endpoints.
#[cfg(feature = "endpoint")]
async fn endpoint(plane: &Toolplane, body: Incoming, permit: &HeldPermit) -> ApiResult {
    let Ok(_running) = ENDPOINT_REQUESTS.try_acquire() else {
        let message = format!("{MAX_ENDPOINT_REQUESTS} requests of endpoints are running already");
        return Err(api_error(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            &message,
        ));
    };
    permit.release();
    let request = read_bytes(body, MAX_ENDPOINT_BODY).await?;
    Ok(toolplane::EndpointService::new(plane.clone())
        .answer(&request)
        .await)
}

async fn ledger_entry(plane: &Toolplane, id: &str) -> ApiResult {
    let entry = match id.parse() {
        Ok(id) => plane.ledger_entry(id).await,
        Err(_) => None,
    };
    match entry {
        Some(entry) => Ok(RawJson::from(plane.ledger_record(&entry))),
        None => {
            let message = "no call with this id in the ledger";
            Err(api_error(StatusCode::NOT_FOUND, "not_found", message))
        }
    }
}

/// Returns the tool that the body of a request names.
fn tool_name(body: &RawJson) -> Result<String, (StatusCode, RawJson)> {
    let tool = body.get("tool").and_then(|tool| tool.string());
    tool.filter(|tool| !tool.is_empty()).ok_or_else(|| {
        let message = "missing required member `tool`";
        api_error(StatusCode::BAD_REQUEST, "usage", message)
    })
}

async fn accept(plane: &Toolplane, body: &RawJson) -> ApiResult {
    let digests = body.get("digests").unwrap_or_default();
    let digests: HashSet<String> = digests.items().filter_map(|digest| digest.string()).collect();
    if digests.is_empty() {
        let message = "missing required member `digests`: a list of digests in hexadecimal digits";
        return Err(api_error(StatusCode::BAD_REQUEST, "usage", message));
    }
    let by = body.get("by").and_then(|by| by.string());
    let by = by
        .filter(|by| !by.is_empty())
        .unwrap_or_else(|| "operator".to_owned());
    let by = harmless_text(&by);
    let accepted = plane.accept(&by, |withheld| digests.contains(&hex(&withheld.digest())));
    let accepted = accepted
        .await
        .map_err(|error| api_error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string()))?;
    if accepted.is_empty() {
        let message = "no withheld definition has one of these digests";
        return Err(api_error(StatusCode::NOT_FOUND, "not_found", message));
    }
    let names = accepted.iter().map(|withheld| {
        let digest = hex(&withheld.digest());
        json!({"name": *withheld.name(), "source": *withheld.key.source, "digest": digest})
    });
    let names: Vec<_> = names.collect();
    Ok(RawJson::from_members(&[(
        "definitions",
        RawJson::from(serde_json::Value::from(names)),
    )]))
}

async fn disable(plane: &Toolplane, body: &RawJson) -> ApiResult {
    let tool = tool_name(body)?;
    let reason = body.get("reason").and_then(|reason| reason.string());
    match plane.disable(&tool, reason.as_deref()).await {
        Ok(()) => Ok(RawJson::from_members(&[("tool", RawJson::from(tool.as_str()))])),
        Err(error) => Err(api_error(StatusCode::NOT_FOUND, "not_found", error.message())),
    }
}

fn enable(plane: &Toolplane, body: &RawJson) -> ApiResult {
    let tool = tool_name(body)?;
    if plane.enable(&tool) {
        return Ok(RawJson::from_members(&[("tool", RawJson::from(tool.as_str()))]));
    }
    let message = format!("the tool `{tool}` is not disabled");
    Err(api_error(StatusCode::NOT_FOUND, "not_found", &message))
}

/// Reads the body of a request. An empty body is read as an empty object.
async fn read(body: Incoming) -> Result<RawJson, (StatusCode, RawJson)> {
    let bytes = read_bytes(body, MAX_BODY).await?;
    if bytes.is_empty() {
        return Ok(RawJson::object());
    }
    RawJson::parse(bytes).map_err(|error| usage(&format!("invalid JSON in the body: {error}")))
}

async fn read_bytes(body: Incoming, most: usize) -> Result<Bytes, (StatusCode, RawJson)> {
    let body = tokio::time::timeout(READ_TIMEOUT, Limited::new(body, most).collect()).await;
    let body = body
        .map_err(|_| usage("the body did not arrive in time"))?
        .map_err(|_| usage("the body is too large or incomplete"))?;
    Ok(body.to_bytes())
}

fn usage(message: &str) -> (StatusCode, RawJson) {
    api_error(StatusCode::BAD_REQUEST, "usage", message)
}
