//! What a client's errors mean for a call.

use std::time::{Duration, SystemTime};

use mcp_client::{Error, ErrorKind as Fault};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use tool_core::{CallContext, ErrorKind, ToolError, retry_after};

/// The error of a call for what went wrong between us and the server. Whether the tool may have run is read from the
/// call's dispatch mark.
pub(crate) fn tool_error(cx: &CallContext, server: &str, error: Error) -> ToolError {
    let now = cx.clock.wall();
    worded(|kind, message| cx.unanswered(kind, message), now, server, error)
}

/// The error of a request that may be made twice.
pub(crate) fn request_error(server: &str, error: Error) -> ToolError {
    worded(ToolError::new, SystemTime::now(), server, error)
}

/// `unanswered` words what may have happened to a request that was not answered.
fn worded(
    unanswered: impl Fn(ErrorKind, String) -> ToolError,
    now: SystemTime,
    server: &str,
    error: Error,
) -> ToolError {
    let tell = |kind: ErrorKind, what: &str| unanswered(kind, format!("the server `{server}` {what}"));
    let answered =
        |kind: ErrorKind, what: String| ToolError::new(kind, format!("the server `{server}` {what}"));
    let tool_error = match error.kind() {
        Fault::Timeout(limit) => tell(ErrorKind::Timeout, &format!("did not answer within {limit:.1?}")),
        Fault::Closed(_) => tell(ErrorKind::Unavailable, "closed the connection before it answered"),
        Fault::Protocol(what) => tell(ErrorKind::Protocol, &format!("broke the protocol: {what}")),
        Fault::TooLarge { limit } => answered(
            ErrorKind::ResultTooLarge,
            format!("answered with more than {limit} bytes"),
        ),
        // The reason may name a program's path: it is told as the cause, which no model sees.
        Fault::StartFailed { .. } => answered(ErrorKind::Unavailable, "did not start".to_owned()),
        Fault::Unhealthy(_) => answered(ErrorKind::Unavailable, "is not well".to_owned()),
        Fault::Unsupported(what) => answered(ErrorKind::Protocol, format!("cannot be used: {what}")),
        Fault::Auth { status, .. } => {
            let what = format!("refused our credentials with HTTP status {status}");
            let error = answered(ErrorKind::Auth, what);
            // 403 is said of one thing and not another: other credentials of the same kind do not help.
            if *status == 401 {
                error
            } else {
                error.with_no_retry()
            }
        }
        Fault::HttpStatus {
            status,
            retry_after: told,
            ..
        } => {
            let wait = told.as_deref().and_then(|text| retry_after(text, now));
            http_status(&unanswered, server, *status, wait)
        }
        Fault::Unreachable(_) => answered(ErrorKind::Unavailable, "cannot be reached".to_owned()),
        Fault::Unavailable { retry_in, .. } => {
            let what = format!("failed a moment ago and is started again in {}", short(*retry_in));
            answered(ErrorKind::Unavailable, what).with_retry_after(*retry_in)
        }
        Fault::Rpc(rpc) => rpc_error(server, rpc),
        _ => answered(ErrorKind::Internal, "cannot be called".to_owned()),
    };
    // That it rests is said already: what is left to say is why.
    let earlier = match error.kind() {
        Fault::Unavailable { .. } => error.earlier().cloned(),
        _ => None,
    };
    tool_error.with_source(earlier.unwrap_or(error))
}

/// The error that a server says a call came to.
pub(crate) fn rpc_error(server: &str, rpc: &RpcError) -> ToolError {
    let detail = RawJson::object()
        .with_members(&[
            ("code", RawJson::from(serde_json::Value::from(rpc.code))),
            ("message", RawJson::from(rpc.message.as_str())),
        ])
        .expect("an empty object is an object");
    let detail = match &rpc.data {
        Some(data) => detail.with_members(&[("data", data.clone())]).expect("an object"),
        None => detail,
    };
    let what = format!("answered with the error {}: {}", rpc.code, cut(&rpc.message));
    let kind = match rpc.code {
        code::MISSING_CLIENT_CAPABILITY => ErrorKind::MissingCapability,
        _ => ErrorKind::UpstreamError,
    };
    ToolError::new(kind, format!("the server `{server}` {what}")).with_detail(detail)
}

fn http_status(
    unanswered: &impl Fn(ErrorKind, String) -> ToolError,
    server: &str,
    status: u16,
    wait: Option<Duration>,
) -> ToolError {
    let message = format!("the server `{server}` answered with HTTP status {status}");
    let error = match status {
        429 => ToolError::new(ErrorKind::RateLimited, message),
        // Any of these may come from a proxy after the server has begun.
        500..=599 => unanswered(ErrorKind::Unavailable, message),
        _ => return ToolError::new(ErrorKind::UpstreamError, message),
    };
    match wait {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}

/// A server's words, kept to a length that fits a message.
pub(crate) fn cut(text: &str) -> String {
    const MAX: usize = 500;
    let clean: String = text
        .chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .take(MAX)
        .collect();
    if clean.len() < text.len() {
        format!("{clean}…")
    } else {
        clean
    }
}

fn short(duration: Duration) -> String {
    format!("{:.0} s", duration.as_secs_f64().ceil())
}
