use std::time::{Duration, SystemTime};

/// Time at which an upstream allows another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryAfter {
    /// Not before this time has passed.
    In(Duration),
    /// Never for this request: the stated time is negative.
    Never,
}

/// Parses a `Retry-After` value (RFC 9110, section 10.2.3): a number of seconds, or a date, which is compared with
/// `now`. Returns `None` if the text is neither. MCP servers and trace collectors use the same format as HTTP APIs.
///
/// Two forms beyond the standard are accepted, since servers send them with a clear meaning: a fraction of a second,
/// which is rounded up, and a negative number, with which gRPC servers forbid retries.
///
/// # Examples
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

/// Parses a decimal number of seconds and rounds it up.
fn seconds(text: &str) -> Option<u64> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !is_number(whole) || !is_number(part) {
        return None;
    }
    // A number beyond 64 bits is longer than any call, and so is the largest one.
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    Some(whole.saturating_add(part.bytes().any(|digit| digit != b'0').into()))
}
