use std::time::{Duration, SystemTime};

/// What an upstream says of when it may be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryAfter {
    /// Not before so much time is over.
    In(Duration),
    /// Not for this at all: the time that it says is negative, which no clock brings.
    Never,
}

/// How long an upstream asks to wait in the words of `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date,
/// which is compared with `now`. Nothing if it cannot be read. MCP servers and collectors of traces say it in the same way as
/// HTTP APIs.
///
/// Two things are understood that no standard allows, since they are said and what is meant is clear: a part of a second, which
/// is waited for as a whole one, and a negative number, with which gRPC's servers forbid another attempt.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use tool_core::{RetryAfter, retry_after};
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_767);
/// let seconds = |seconds| Some(RetryAfter::In(Duration::from_secs(seconds)));
/// assert_eq!(retry_after("120", now), seconds(120));
/// assert_eq!(retry_after("1.5", now), seconds(2));
/// assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), seconds(10));
/// assert_eq!(retry_after("-1", now), Some(RetryAfter::Never));
/// assert_eq!(retry_after("soon", now), None);
/// ```
#[must_use]
pub fn retry_after(text: &str, now: SystemTime) -> Option<RetryAfter> {
    let text = text.trim();
    if let Some(seconds) = seconds(text) {
        return Some(RetryAfter::In(Duration::from_secs(seconds)));
    }
    if text.strip_prefix('-').and_then(seconds).is_some() {
        return Some(RetryAfter::Never);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(RetryAfter::In(date.duration_since(now).unwrap_or_default()))
}

/// A decimal number of seconds, rounded up.
fn seconds(text: &str) -> Option<u64> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !is_number(whole) || !is_number(part) {
        return None;
    }
    // A number beyond 64 bits means never again in this call, and so does the largest one.
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    Some(whole.saturating_add(part.bytes().any(|digit| digit != b'0').into()))
}
