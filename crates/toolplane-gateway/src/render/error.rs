//! Failed calls as errors of the protocol.

use mcp_wire::{Era, RpcError, code};
use raw_json::{JsonKind, RawJson};
use toolplane::core::{ErrorKind, PendingCall, ToolError};

/// Key of the details of a failed call: in `_meta` of a result, in `data` of an error.
pub(super) const ERROR: &str = "dev.toolplane/error";
/// Key of the details of a pending call, in the same places.
pub(super) const PENDING: &str = "dev.toolplane/pending";
/// Maximum size of the details of an upstream's error that are forwarded, in bytes.
const MAX_DETAIL: usize = 16 * 1024;
/// Error codes that are about a single hop. Forwarded to the client, they would speak of the gateway instead of the upstream.
const HOP_CODES: [i64; 5] = [
    code::PARSE_ERROR,
    code::INVALID_REQUEST,
    // A client would give up the method, or take the status for a removed endpoint.
    code::METHOD_NOT_FOUND,
    code::HEADER_MISMATCH,
    code::UNSUPPORTED_PROTOCOL_VERSION,
];

/// Reason for which a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request is invalid, or has another error that only the protocol can express.
    Protocol(RpcError),
    /// The call failed. Its target decides how the client receives the error.
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

/// Returns the details of a failed call, for programs.
pub(super) fn error_details(error: &ToolError) -> RawJson {
    let kind = error.kind();
    let mut details = vec![
        ("kind", RawJson::from(kind.as_str())),
        ("message", RawJson::from(error.message())),
        ("retryable", RawJson::from(kind.is_retryable())),
    ];
    if error.may_have_run() {
        details.push(("may_have_run", RawJson::from(true)));
    }
    if let Some(after) = error.retry_after() {
        let milliseconds = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        details.push(("retry_after_ms", RawJson::from(milliseconds)));
    }
    if let Some(id) = error.ledger_id() {
        details.push(("ledger_id", RawJson::from(id.to_string().as_str())));
    }
    if let Some(detail) = error.detail().filter(|detail| detail.len() <= MAX_DETAIL) {
        details.push(("detail", detail.clone()));
    }
    RawJson::from_members(&details)
}

/// Returns the details of a pending call, for programs.
pub(super) fn pending_details(pending: &PendingCall) -> RawJson {
    pending.detail.clone().unwrap_or_else(|| {
        let mut members = vec![
            ("handle", RawJson::from(&*pending.handle)),
            ("reason", RawJson::from(pending.reason.as_str())),
        ];
        if let Some(pause) = pending.retry_after {
            let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            members.push(("retryAfterMs", RawJson::from(pause)));
        }
        RawJson::from_members(&members)
    })
}

/// Returns the error that answers a request whose call waits for a decision, for requests that are not for a tool.
pub(crate) fn pending_error(pending: &PendingCall) -> RpcError {
    let message = format!(
        "the call waits for {}, requested as `{}`",
        pending.reason, pending.handle
    );
    RpcError::new(code::INVALID_REQUEST, message)
        .with_data(RawJson::from_members(&[(PENDING, pending_details(pending))]))
}

/// Returns `true` if the tool does not exist here. An upstream that does not know its own tool sends an error with details.
pub(crate) fn is_unknown_tool(error: &ToolError) -> bool {
    error.kind() == ErrorKind::NotFound && error.detail().is_none()
}

/// Returns the error response of the upstream, as it wrote it, or `None` if the call failed otherwise.
pub(crate) fn upstream_error(error: &ToolError) -> Option<RpcError> {
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

/// Returns the error that answers a request that is not for a tool. `uri` is the URI of the requested resource.
pub(crate) fn rpc_error(error: &ToolError, era: Era, uri: Option<&str>) -> RpcError {
    if let Some(mut upstream) = upstream_error(error).filter(|error| !HOP_CODES.contains(&error.code)) {
        if era == Era::Modern && upstream.code == code::RESOURCE_NOT_FOUND {
            upstream.code = code::INVALID_PARAMS;
        }
        return upstream;
    }
    let code = match (error.kind(), era) {
        (ErrorKind::NotFound, Era::Legacy) if uri.is_some() => code::RESOURCE_NOT_FOUND,
        (
            ErrorKind::NotFound | ErrorKind::InvalidArguments | ErrorKind::Denied | ErrorKind::ToolChanged,
            _,
        ) => code::INVALID_PARAMS,
        _ => code::INTERNAL_ERROR,
    };
    let mut data = Vec::new();
    data.extend(uri.map(|uri| ("uri", RawJson::from(uri))));
    data.push((ERROR, error_details(error)));
    RpcError::new(code, error.message()).with_data(RawJson::from_members(&data))
}

/// Returns the upstream's error if it needs a capability that a modern client did not declare. The modern protocol has an
/// error code for it, the legacy one has not.
pub(crate) fn missing_capability(error: &ToolError, era: Era) -> Option<RpcError> {
    upstream_error(error).filter(|error| era == Era::Modern && error.code == code::MISSING_CLIENT_CAPABILITY)
}

/// Returns `true` if the upstream does not implement the method.
pub(crate) fn is_unknown_method(error: &ToolError) -> bool {
    upstream_error(error).is_some_and(|error| error.code == code::METHOD_NOT_FOUND)
}

/// Returns `true` if the upstream wants the user to visit a page first (URL elicitation).
pub(crate) fn needs_page_visit(error: &RpcError) -> bool {
    error.code == code::URL_ELICITATION_REQUIRED
}
