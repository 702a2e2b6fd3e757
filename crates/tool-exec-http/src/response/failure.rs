use std::{
    error::Error,
    io,
    time::{Duration, SystemTime},
};

use http::{StatusCode, header::RETRY_AFTER};
use raw_json::RawJson;
use reqwest::Response;
use tokio::time::timeout;
use tool_core::{CallContext, ErrorKind, ToolError, hide_fields, retry_after};

use super::{
    decode::{MediaType, decode},
    status::{error_kind, refuses_credentials},
};
use crate::{call::not_allowed, client::is_refused, redaction::SecretMasks};

/// Failure of an exchange.
pub(crate) enum Failure {
    /// The cause is known.
    Known(ToolError),
    /// The request may have been sent and was not answered. The dispatch state decides whether the tool may have run.
    Unanswered(ErrorKind, String, Option<Cause>),
}

/// Cause of a failed exchange, without the addresses and URLs in the client's own errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Cause(String);

/// Maximum number of bytes that are read of the body of an error.
const MAX_READ: usize = 8 << 10;
/// Maximum length of the excerpt in the message, in bytes.
const MAX_SHOWN: usize = 300;
/// Timeout of reading the body of an error.
const MAX_WAIT: Duration = Duration::from_secs(1);

impl Failure {
    pub(crate) fn into_error(self, cx: &CallContext) -> ToolError {
        match self {
            Self::Known(error) => error,
            Self::Unanswered(kind, message, None) => cx.unanswered(kind, message),
            Self::Unanswered(kind, message, Some(cause)) => cx.unanswered(kind, message).with_source(cause),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Known(error)
    }
}

/// Error for a connection that could not be established, so that no byte was sent.
pub(crate) fn not_connected(error: &reqwest::Error) -> ToolError {
    if is_refused(error) {
        return not_allowed();
    }
    let reason = if error.is_dns() {
        "its host name cannot be resolved".to_owned()
    } else if error.is_timeout() {
        "it did not accept a connection in time".to_owned()
    } else {
        reason_of(error).unwrap_or_else(|| "no connection could be made".to_owned())
    };
    ToolError::new(
        ErrorKind::Unavailable,
        format!("the upstream cannot be reached: {reason}"),
    )
}

/// Failure of an exchange that was interrupted after the connection was established.
pub(crate) fn broken(error: &reqwest::Error) -> Failure {
    let protocol = chain(error)
        .filter_map(|error| error.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_parse);
    let reason = reason_of(error).unwrap_or_else(|| "the connection was closed".to_owned());
    if protocol {
        let message = "the upstream's answer is not HTTP".to_owned();
        return Failure::Unanswered(ErrorKind::Protocol, message, Some(Cause(reason)));
    }
    if error.is_decode() {
        let message = "the upstream's answer cannot be decompressed or was cut off".to_owned();
        return Failure::Unanswered(ErrorKind::Unavailable, message, Some(Cause(reason)));
    }
    let message = format!("the exchange with the upstream failed: {reason}");
    Failure::Unanswered(ErrorKind::Unavailable, message, None)
}

/// Returns the reason of the operating system or the protocol, without addresses.
fn reason_of(error: &reqwest::Error) -> Option<String> {
    chain(error).find_map(|error| {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            let known = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
            return known.then(|| "the connection was closed".to_owned());
        }
        let error = error.downcast_ref::<io::Error>()?;
        match error.kind() {
            // The reason itself may contain host names.
            _ if error.to_string().starts_with("invalid peer certificate") => {
                Some("its TLS certificate is not accepted".to_owned())
            }
            io::ErrorKind::Other | io::ErrorKind::InvalidData => None,
            kind => Some(kind.to_string()),
        }
    })
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| error.source())
}

/// Error for a response with an unexpected status, with an excerpt of its body.
pub(crate) async fn error_response(
    mut response: Response,
    hidden: &[String],
    masks: &SecretMasks,
    now: SystemTime,
) -> ToolError {
    let status = response.status();
    let media = MediaType::from_headers(response.headers());
    let header = response.headers().get(RETRY_AFTER);
    let wait = header.and_then(|header| retry_after(header.to_str().ok()?, now));
    let (body, whole) = read_some(&mut response).await;
    let text = decode(&body, &media).0;
    let detail = Some(&text)
        .filter(|_| whole)
        .and_then(|text| RawJson::parse(text.clone()).ok())
        .map(|raw| hide_fields(&masks.detail(&raw).unwrap_or(raw), hidden));
    let text = masks.message(&text);
    let shown = match &detail {
        Some(raw) => excerpt(raw.as_str()),
        // Hidden fields cannot be found in a part of a document.
        None if !hidden.is_empty() => String::new(),
        None => excerpt(&text),
    };
    let mut message = format!("the upstream answered {}", name_of(status));
    if !shown.is_empty() {
        message.push_str(": ");
        message.push_str(&shown);
    }
    let mut error = ToolError::new(error_kind(status), message);
    if error.kind() == ErrorKind::Auth && !refuses_credentials(status) {
        error = error.with_no_retry();
    }
    // The upstream did not process the request, so the error does not count for its health.
    if status.is_client_error() && error.kind().counts_for_breaker() {
        error = error.ignored_by_health();
    }
    if let Some(detail) = detail {
        error = error.with_detail(detail);
    }
    match wait {
        Some(wait) if status.as_u16() == 429 || status.as_u16() >= 500 => error.with_retry_hint(wait),
        _ => error,
    }
}

/// Error for work that an answer says has failed, with an excerpt of the answer.
pub(crate) fn failed_work(answer: &RawJson, hidden: &[String], masks: &SecretMasks) -> ToolError {
    let masked = masks.detail(answer);
    let detail = hide_fields(masked.as_ref().unwrap_or(answer), hidden);
    let message = format!("the upstream's work failed: {}", excerpt(detail.as_str()));
    ToolError::new(ErrorKind::UpstreamError, message).with_detail(detail)
}

/// Turns an error into `outcome_unknown` if the tool may have run, as after a gateway's response, and must not run twice.
pub(crate) fn with_unknown_outcome(error: ToolError, cx: &CallContext) -> ToolError {
    let unanswered = cx.unanswered(error.kind(), error.message());
    if unanswered.kind() != ErrorKind::OutcomeUnknown {
        return error;
    }
    match error.detail() {
        Some(detail) => unanswered.with_detail(detail.clone()),
        None => unanswered,
    }
}

/// Reads the start of a body, and returns `true` if that is the whole body. A slow or truncated body is not an error: the
/// upstream has answered.
async fn read_some(response: &mut Response) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let whole = timeout(MAX_WAIT, async {
        while body.len() <= MAX_READ {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return true,
                Err(_) => break,
            }
        }
        false
    });
    let whole = whole.await.unwrap_or(false);
    body.truncate(MAX_READ);
    (body, whole)
}

fn name_of(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns a short excerpt in a single line, without control characters.
fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    for word in text.split_whitespace() {
        if !shown.is_empty() {
            shown.push(' ');
        }
        for next in word.chars() {
            if shown.len() >= MAX_SHOWN {
                shown.push('…');
                return shown;
            }
            if tool_scan::is_hidden(next) {
                shown.extend(next.escape_unicode());
            } else {
                shown.push(next);
            }
        }
    }
    shown
}
