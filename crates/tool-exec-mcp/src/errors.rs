//! Conversion of a client's errors into errors of calls.

use std::time::SystemTime;

use mcp_client::{ClientError, ClientErrorKind as Fault};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use serde_json::json;
use tool_core::{CallContext, ErrorKind, ToolError, format_duration, is_status_not_taken, retry_after};

/// Returns the error of a call that failed between us and the server. The call's dispatch state decides whether the
/// tool may have run.
pub(crate) fn tool_error(cx: &CallContext, server: &str, error: ClientError) -> ToolError {
    let now = cx.clock.wall();
    worded(|kind, message| cx.unanswered(kind, message), now, server, error)
}

/// Returns the error of the request that calls a tool. Marks the call as not taken if the answer says so: by its HTTP
/// status ([`is_status_not_taken`]), or by an error about the version or the headers of the request. Later rounds of a
/// call are exempt, since the first one was taken.
pub(crate) fn call_error(cx: &CallContext, server: &str, error: ClientError) -> ToolError {
    if is_not_taken(&error) && cx.extras.resume.is_none() {
        cx.dispatch().not_taken();
    }
    tool_error(cx, server, error)
}

fn is_not_taken(error: &ClientError) -> bool {
    let status = |error: &ClientError| match error.kind() {
        Fault::Auth { status, .. } | Fault::HttpStatus { status, .. } => Some(*status),
        _ => None,
    };
    let answer = error.underlying().filter(|_| error.as_rpc().is_some());
    let code = error.as_rpc().map(|error| error.code);
    matches!(
        code,
        Some(code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH)
    ) || status(error)
        .or_else(|| status(answer?))
        .is_some_and(is_status_not_taken)
}

/// Returns the error of a request that may be repeated.
pub(crate) fn request_error(server: &str, error: ClientError) -> ToolError {
    worded(ToolError::new, SystemTime::now(), server, error)
}

/// Converts an error. `unanswered` makes the error of a request that was sent and not answered.
fn worded(
    unanswered: impl Fn(ErrorKind, String) -> ToolError,
    now: SystemTime,
    server: &str,
    error: ClientError,
) -> ToolError {
    let unanswered_error =
        |kind: ErrorKind, what: &str| unanswered(kind, format!("the server `{server}` {what}"));
    let answered =
        |kind: ErrorKind, what: String| ToolError::new(kind, format!("the server `{server}` {what}"));
    let tool_error = match error.kind() {
        Fault::Timeout(limit) => unanswered_error(
            ErrorKind::Timeout,
            &format!("did not answer within {}", format_duration(*limit)),
        ),
        Fault::Closed(_) => {
            unanswered_error(ErrorKind::Unavailable, "closed the connection before it answered")
        }
        Fault::Protocol(what) => {
            unanswered_error(ErrorKind::Protocol, &format!("broke the protocol: {what}"))
        }
        Fault::TooLarge { limit, .. } => answered(
            ErrorKind::ResultTooLarge,
            format!("answered with more than the {limit} bytes of `defaults.max_result_bytes`"),
        ),
        // The reason may contain a program's path: it becomes the source, which no model sees.
        Fault::StartFailed { .. } => answered(ErrorKind::Unavailable, "did not start".to_owned()),
        Fault::Unhealthy(_) => answered(ErrorKind::Unavailable, "is unhealthy".to_owned()),
        Fault::Unsupported(what) => answered(ErrorKind::Protocol, format!("cannot be used: {what}")),
        Fault::Auth { status, .. } => {
            let what = format!("refused our credentials with HTTP status {status}");
            let error = answered(ErrorKind::Auth, what);
            // 403 is about this one request: other credentials of the same kind do not help.
            if *status == 401 {
                error
            } else {
                error.with_no_retry()
            }
        }
        Fault::HttpStatus {
            status,
            retry_after: header,
            ..
        } => http_status(&unanswered, server, *status, header.as_deref(), now),
        Fault::Unreachable(_) => answered(ErrorKind::Unavailable, "cannot be reached".to_owned()),
        Fault::Unavailable { retry_in, .. } => {
            let what = format!(
                "failed a moment ago and is started again in {}",
                format_duration(*retry_in)
            );
            answered(ErrorKind::Unavailable, what).with_retry_after(*retry_in)
        }
        Fault::Rpc(rpc) => answered_rpc(server, rpc, error.underlying(), now),
        _ => answered(ErrorKind::Internal, "cannot be called".to_owned()),
    };
    match error.kind() {
        // The message says that the server backs off. The source says why.
        Fault::Unavailable { .. } => match error.underlying() {
            Some(earlier) => tool_error.with_source(earlier.clone()),
            None => tool_error,
        },
        // The message contains that of the error.
        Fault::Timeout(_)
        | Fault::Protocol(_)
        | Fault::TooLarge { .. }
        | Fault::Unsupported(_)
        | Fault::Auth { .. }
        | Fault::HttpStatus { .. }
        | Fault::Rpc(_) => match error.shared_source() {
            Some(cause) => tool_error.with_source(cause),
            None => tool_error,
        },
        _ => tool_error.with_source(error),
    }
}

/// Returns the error that the server reports for a call.
pub(crate) fn rpc_error(server: &str, rpc: &RpcError) -> ToolError {
    rpc_error_of_kind(
        server,
        rpc,
        kind_of_code(rpc.code).unwrap_or(ErrorKind::UpstreamError),
    )
}

/// Returns the error that the server reports, by its HTTP status if the code does not decide the kind.
fn answered_rpc(server: &str, rpc: &RpcError, answer: Option<&ClientError>, now: SystemTime) -> ToolError {
    let kind = kind_of_code(rpc.code);
    match answer.map(ClientError::kind) {
        Some(Fault::HttpStatus {
            status, retry_after, ..
        }) if kind.is_none() => match kind_of_refusal(*status) {
            Some(kind) => not_taken_error(rpc_error_of_kind(server, rpc, kind), retry_after.as_deref(), now),
            None => rpc_error(server, rpc),
        },
        _ => rpc_error(server, rpc),
    }
}

/// Returns the error kind of a JSON-RPC code, or `None` if the code does not decide it.
fn kind_of_code(code: i64) -> Option<ErrorKind> {
    Some(match code {
        code::MISSING_CLIENT_CAPABILITY => ErrorKind::MissingCapability,
        code::INVALID_PARAMS => ErrorKind::InvalidArguments,
        code::METHOD_NOT_FOUND | code::RESOURCE_NOT_FOUND => ErrorKind::NotFound,
        // The client is to act, for example to visit a page.
        code::URL_ELICITATION_REQUIRED => ErrorKind::UpstreamError,
        _ => return None,
    })
}

fn rpc_error_of_kind(server: &str, rpc: &RpcError, kind: ErrorKind) -> ToolError {
    let detail = RawJson::from_members(&[
        ("code", RawJson::from(serde_json::Value::from(rpc.code))),
        ("message", RawJson::from(rpc.message.as_str())),
    ]);
    let data = rpc.data.iter().map(|data| ("data", data.clone()));
    let more = rpc
        .extra_members
        .iter()
        .map(|(key, member)| (key.as_str(), member.clone()));
    let members: Vec<_> = data.chain(more).collect();
    let detail = detail.with_members(&members).unwrap_or(detail);
    let what = format!("answered with the error {}: {}", rpc.code, cut(&rpc.message));
    ToolError::new(kind, format!("the server `{server}` {what}")).with_detail(detail)
}

/// Returns the error kind of an HTTP status of class 4xx.
fn kind_of_refusal(status: u16) -> Option<ErrorKind> {
    Some(match status {
        404 | 410 => ErrorKind::NotFound,
        408 | 421 | 425 => ErrorKind::Unavailable,
        429 => ErrorKind::RateLimited,
        400..=499 => ErrorKind::InvalidArguments,
        _ => return None,
    })
}

/// Completes the error of a request that was not taken. It does not count for the server's health.
fn not_taken_error(error: ToolError, header: Option<&str>, now: SystemTime) -> ToolError {
    let error = error.ignored_by_health();
    match header.and_then(|text| retry_after(text, now)) {
        Some(wait) if error.kind() == ErrorKind::RateLimited => error.with_retry_hint(wait),
        _ => error,
    }
}

fn http_status(
    unanswered: &impl Fn(ErrorKind, String) -> ToolError,
    server: &str,
    status: u16,
    header: Option<&str>,
    now: SystemTime,
) -> ToolError {
    let message = format!("the server `{server}` answered with HTTP status {status}");
    let detail = || RawJson::from(json!({"status": status}));
    if matches!(status, 404 | 410) {
        // It is unknown whether the endpoint was not found or the tool.
        let error = ToolError::new(ErrorKind::UpstreamError, message).with_detail(detail());
        return error.ignored_by_health().with_no_retry();
    }
    if let Some(kind) = kind_of_refusal(status) {
        return not_taken_error(ToolError::new(kind, message).with_detail(detail()), header, now);
    }
    if !(500..=599).contains(&status) {
        return ToolError::new(ErrorKind::UpstreamError, message);
    }
    // Any other status may come from a proxy after the server has begun.
    let error = match is_status_not_taken(status) {
        true => ToolError::new(ErrorKind::Unavailable, message),
        false => unanswered(ErrorKind::Unavailable, message),
    };
    match header.and_then(|text| retry_after(text, now)) {
        Some(wait) => error.with_retry_hint(wait),
        None => error,
    }
}

/// Returns the error of a resource that the configuration excludes.
pub(crate) fn no_resource(uri: &str) -> ToolError {
    let message = format!("there is no resource `{}`", cut(uri));
    ToolError::new(ErrorKind::NotFound, message)
}

/// Cuts a server's text to a length that fits a message.
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
