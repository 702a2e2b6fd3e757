//! What went wrong with a call, as an error of the protocol.

use mcp_wire::{Era, RpcError, code};
use raw_json::{JsonKind, RawJson};
use toolplane::core::{ErrorKind, PendingCall, ToolError};

/// Under which key a client finds why a call failed: in `_meta` of a result, in `data` of an error.
pub(crate) const ERROR: &str = "dev.toolplane/error";
/// Under which key a client finds what a call waits for, in the same places.
pub(crate) const PENDING: &str = "dev.toolplane/pending";
/// What an upstream says about an error is passed on up to this size.
const MAX_DETAIL: usize = 16 * 1024;
/// Codes that speak of one hop: from a server of ours they would tell the client something about us.
const OF_ONE_HOP: [i64; 5] = [
    code::PARSE_ERROR,
    code::INVALID_REQUEST,
    // The client would give up the method, or take its status for an endpoint that is gone.
    code::METHOD_NOT_FOUND,
    code::HEADER_MISMATCH,
    code::UNSUPPORTED_PROTOCOL_VERSION,
];

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request itself is wrong, or something else that only the protocol has words for.
    Protocol(RpcError),
    /// The call failed: how that is told depends on what was called.
    Call(ToolError),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Protocol(error)
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Call(error)
    }
}

/// Why a call failed, for programs.
pub(crate) fn why(error: &ToolError) -> RawJson {
    let kind = error.kind();
    let mut why = vec![
        ("kind", RawJson::from(kind.as_str())),
        ("message", RawJson::from(error.message())),
        ("retryable", RawJson::from(kind.is_retryable())),
    ];
    if error.may_have_run() {
        why.push(("may_have_run", RawJson::from(true)));
    }
    if let Some(after) = error.retry_after() {
        let milliseconds = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        why.push(("retry_after_ms", RawJson::from(milliseconds)));
    }
    if let Some(id) = error.ledger_id() {
        why.push(("ledger_id", RawJson::from(id.to_string().as_str())));
    }
    if let Some(detail) = error.detail().filter(|detail| detail.len() <= MAX_DETAIL) {
        why.push(("detail", detail.clone()));
    }
    RawJson::from_members(&why)
}

/// What a call waits for, for programs.
pub(crate) fn waits_for(pending: &PendingCall) -> RawJson {
    pending.detail.clone().unwrap_or_else(|| {
        RawJson::from_members(&[
            ("handle", RawJson::from(&*pending.handle)),
            ("reason", RawJson::from(pending.reason.as_str())),
        ])
    })
}

/// The error that answers a request for anything but a tool when it waits for somebody's decision.
pub(crate) fn pending(pending: &PendingCall) -> RpcError {
    let message = format!(
        "the call waits for {}, asked for as `{}`",
        pending.reason, pending.handle
    );
    RpcError::new(code::INVALID_REQUEST, message)
        .with_data(RawJson::from_members(&[(PENDING, waits_for(pending))]))
}

/// Whether there is no such tool: what a server behind us does not know has what that said with it.
pub(crate) fn is_unknown_tool(error: &ToolError) -> bool {
    error.kind() == ErrorKind::NotFound && error.detail().is_none()
}

/// The error that a server answered with, as it wrote it.
pub(crate) fn upstream(error: &ToolError) -> Option<RpcError> {
    let detail = error.detail().filter(|_| {
        matches!(
            error.kind(),
            ErrorKind::UpstreamError
                | ErrorKind::MissingCapability
                | ErrorKind::InvalidArguments
                | ErrorKind::NotFound
                | ErrorKind::RateLimited
                | ErrorKind::Unavailable
        )
    })?;
    let is_rpc = detail.kind() == JsonKind::Object && detail.get("code").is_some();
    is_rpc.then(|| RpcError::from_raw(detail))
}

/// The error that answers a request for anything but a tool; `uri` is that of a resource.
pub(crate) fn rpc_error(error: &ToolError, era: Era, uri: Option<&str>) -> RpcError {
    if let Some(mut upstream) = upstream(error).filter(|error| !OF_ONE_HOP.contains(&error.code)) {
        if era == Era::Modern && upstream.code == code::RESOURCE_NOT_FOUND {
            upstream.code = code::INVALID_PARAMS;
        }
        return upstream;
    }
    let code = match (error.kind(), era) {
        (ErrorKind::NotFound, Era::Legacy) if uri.is_some() => code::RESOURCE_NOT_FOUND,
        (ErrorKind::NotFound | ErrorKind::InvalidArguments | ErrorKind::Denied, _) => code::INVALID_PARAMS,
        _ => code::INTERNAL_ERROR,
    };
    let mut data = Vec::new();
    data.extend(uri.map(|uri| ("uri", RawJson::from(uri))));
    data.push((ERROR, why(error)));
    RpcError::new(code, error.message()).with_data(RawJson::from_members(&data))
}

/// The error of a server that cannot go on without something that the client did not declare: in the modern era the
/// client is told in the protocol's own words what that is.
pub(crate) fn lacks_capability(error: &ToolError, era: Era) -> Option<RpcError> {
    upstream(error).filter(|error| era == Era::Modern && error.code == code::MISSING_CLIENT_CAPABILITY)
}

/// Whether a server does not know what it was asked for at all.
pub(crate) fn is_unknown_method(error: &ToolError) -> bool {
    upstream(error).is_some_and(|error| error.code == code::METHOD_NOT_FOUND)
}

/// Whether a server wants the user to visit a page first.
pub(crate) fn wants_visit(error: &RpcError) -> bool {
    error.code == code::URL_ELICITATION_REQUIRED
}
