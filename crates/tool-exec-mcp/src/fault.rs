//! What a client's errors mean for a call.

use std::time::SystemTime;

use mcp_client::{ClientError, ClientErrorKind as Fault};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use serde_json::json;
use tool_core::{CallContext, ErrorKind, ToolError, format_duration, is_status_not_taken, retry_after};

/// The error of a call for what went wrong between us and the server. Whether the tool may have run is read from the
/// call's dispatch mark.
pub(crate) fn tool_error(cx: &CallContext, server: &str, error: ClientError) -> ToolError {
    let now = cx.clock.wall();
    worded(|kind, message| cx.unanswered(kind, message), now, server, error)
}

/// The error of the request that calls a tool. Marks the call as not taken, if the answer says so: with an HTTP status
/// ([`is_status_not_taken`]), or with an error that is about the version or the headers of the request. Another round of a
/// call follows one that was taken.
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

/// The error of a request that may be made twice.
pub(crate) fn request_error(server: &str, error: ClientError) -> ToolError {
    worded(ToolError::new, SystemTime::now(), server, error)
}

/// `unanswered` words what may have happened to a request that was not answered.
fn worded(
    unanswered: impl Fn(ErrorKind, String) -> ToolError,
    now: SystemTime,
    server: &str,
    error: ClientError,
) -> ToolError {
    let tell = |kind: ErrorKind, what: &str| unanswered(kind, format!("the server `{server}` {what}"));
    let answered =
        |kind: ErrorKind, what: String| ToolError::new(kind, format!("the server `{server}` {what}"));
    let tool_error = match error.kind() {
        Fault::Timeout(limit) => tell(
            ErrorKind::Timeout,
            &format!("did not answer within {}", format_duration(*limit)),
        ),
        Fault::Closed(_) => tell(ErrorKind::Unavailable, "closed the connection before it answered"),
        Fault::Protocol(what) => tell(ErrorKind::Protocol, &format!("broke the protocol: {what}")),
        Fault::TooLarge { limit } => answered(
            ErrorKind::ResultTooLarge,
            format!("answered with more than the {limit} bytes of `defaults.max_result_bytes`"),
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
        } => http_status(&unanswered, server, *status, told.as_deref(), now),
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
    // That it rests is said already: what is left to say is why.
    let earlier = match error.kind() {
        Fault::Unavailable { .. } => error.underlying().cloned(),
        _ => None,
    };
    tool_error.with_source(earlier.unwrap_or(error))
}

/// The error that a server says a call came to.
pub(crate) fn rpc_error(server: &str, rpc: &RpcError) -> ToolError {
    told(
        server,
        rpc,
        kind_of_code(rpc.code).unwrap_or(ErrorKind::UpstreamError),
    )
}

/// The same for an answer that may have had a status: what the code leaves open, that says.
fn answered_rpc(server: &str, rpc: &RpcError, answer: Option<&ClientError>, now: SystemTime) -> ToolError {
    let kind = kind_of_code(rpc.code);
    match answer.map(ClientError::kind) {
        Some(Fault::HttpStatus {
            status, retry_after, ..
        }) if kind.is_none() => match kind_of_refusal(*status) {
            Some(kind) => refused(told(server, rpc, kind), retry_after.as_deref(), now),
            None => rpc_error(server, rpc),
        },
        _ => rpc_error(server, rpc),
    }
}

/// What a code says by itself of what went wrong.
fn kind_of_code(code: i64) -> Option<ErrorKind> {
    Some(match code {
        code::MISSING_CLIENT_CAPABILITY => ErrorKind::MissingCapability,
        code::INVALID_PARAMS => ErrorKind::InvalidArguments,
        code::METHOD_NOT_FOUND | code::RESOURCE_NOT_FOUND => ErrorKind::NotFound,
        // The client is to do something, such as to visit a page.
        code::URL_ELICITATION_REQUIRED => ErrorKind::UpstreamError,
        _ => return None,
    })
}

fn told(server: &str, rpc: &RpcError, kind: ErrorKind) -> ToolError {
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

/// What kind of failure a status of the class 4xx is.
fn kind_of_refusal(status: u16) -> Option<ErrorKind> {
    Some(match status {
        404 | 410 => ErrorKind::NotFound,
        408 | 421 | 425 => ErrorKind::Unavailable,
        429 => ErrorKind::RateLimited,
        400..=499 => ErrorKind::InvalidArguments,
        _ => return None,
    })
}

/// The error of a request that was not taken, which says nothing of how the server is.
fn refused(error: ToolError, told: Option<&str>, now: SystemTime) -> ToolError {
    let error = error.ignored_by_health();
    match told.and_then(|text| retry_after(text, now)) {
        Some(wait) if error.kind() == ErrorKind::RateLimited => error.with_retry_hint(wait),
        _ => error,
    }
}

fn http_status(
    unanswered: &impl Fn(ErrorKind, String) -> ToolError,
    server: &str,
    status: u16,
    told: Option<&str>,
    now: SystemTime,
) -> ToolError {
    let message = format!("the server `{server}` answered with HTTP status {status}");
    let detail = || RawJson::from(json!({"status": status}));
    if matches!(status, 404 | 410) {
        // Nothing says what was not found: the endpoint itself, for all that is known, and not the tool.
        let error = ToolError::new(ErrorKind::UpstreamError, message).with_detail(detail());
        return error.ignored_by_health().with_no_retry();
    }
    if let Some(kind) = kind_of_refusal(status) {
        return refused(ToolError::new(kind, message).with_detail(detail()), told, now);
    }
    if !(500..=599).contains(&status) {
        return ToolError::new(ErrorKind::UpstreamError, message);
    }
    // Any other may come from a proxy after the server has begun.
    let error = match is_status_not_taken(status) {
        true => ToolError::new(ErrorKind::Unavailable, message),
        false => unanswered(ErrorKind::Unavailable, message),
    };
    match told.and_then(|text| retry_after(text, now)) {
        Some(wait) => error.with_retry_hint(wait),
        None => error,
    }
}

/// The error of a resource that the configuration leaves out.
pub(crate) fn no_resource(uri: &str) -> ToolError {
    let message = format!("there is no resource `{}`", cut(uri));
    ToolError::new(ErrorKind::NotFound, message)
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
