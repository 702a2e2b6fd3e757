//! Pages about the process for probes and people: liveness, readiness and health.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE, request::Parts};
use http_body_util::{Either, Full};
use mcp_server::{HttpService, Principal};
use raw_json::RawJson;
use serde_json::{Map, Value, json};
use toolplane::Readiness;

use super::routes::Body;
use crate::Gateway;

/// Answers a request for one of the pages. Returns `None` if it is for something else.
///
/// Liveness and readiness are shown to every request, whatever host name a probe uses. Names of servers and tools are
/// shown only to requests that MCP would accept as well.
pub(super) async fn answer(
    mcp: &HttpService<Gateway>,
    head: &Parts,
    is_draining: bool,
) -> Option<Response<Body>> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let gateway = mcp.service();
    let page = match head.uri.path() {
        "/healthz" => page(StatusCode::OK, r#"{"status":"ok"}"#.to_owned()),
        "/readyz" => {
            let is_admitted = mcp.admit(head).await.is_ok();
            ready(&gateway.plane().readiness(), is_draining, is_admitted)
        }
        "/health" => match mcp.admit(head).await {
            Ok(principal) => health(gateway, &principal, is_draining),
            // With the challenge, by which a client learns which credentials are needed.
            Err(refusal) if refusal.status() != StatusCode::FORBIDDEN => {
                return Some(refusal.map(Either::Left));
            }
            Err(_) => page(StatusCode::FORBIDDEN, r#"{"status":"refused"}"#.to_owned()),
        },
        _ => return None,
    };
    Some(page.map(Either::Right))
}

const DRAINING: &str = "draining";

fn ready(readiness: &Readiness, is_draining: bool, is_admitted: bool) -> Response<Full<Bytes>> {
    let (word, status) = match (is_draining, readiness.is_ready()) {
        (true, _) => (DRAINING, StatusCode::SERVICE_UNAVAILABLE),
        (false, true) => ("ready", StatusCode::OK),
        (false, false) => ("not_ready", StatusCode::SERVICE_UNAVAILABLE),
    };
    let mut body = Map::new();
    body.insert("status".to_owned(), word.into());
    // Shown to everyone, so that nobody mistakes injected faults for real ones.
    if let Some(seed) = readiness.chaos {
        body.insert("chaos".to_owned(), json!({"seed": seed}));
    }
    if is_admitted {
        body.insert("reasons".to_owned(), readiness.reasons.clone().into());
        let servers = readiness.servers.iter();
        let servers: Map<_, _> = servers
            .map(|(name, state)| (name.clone(), (*state).into()))
            .collect();
        body.insert("servers".to_owned(), Value::Object(servers));
    }
    page(status, Value::Object(body).to_string())
}

fn health(gateway: &Gateway, principal: &Principal, is_draining: bool) -> Response<Full<Bytes>> {
    let caller = gateway.state().caller(principal);
    let mut body = gateway.plane().health_page(&caller);
    if is_draining {
        let draining = [("status", RawJson::from(DRAINING))];
        body = body.with_members(&draining).expect("a page is an object");
    }
    page(StatusCode::OK, body.to_string())
}

fn page(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
