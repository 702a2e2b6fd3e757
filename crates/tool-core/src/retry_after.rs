use std::time::{Duration, SystemTime};

/// How long an upstream asks to wait in the words of `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date,
/// which is compared with `now`. Nothing if it cannot be read. MCP servers and collectors of traces say it in the same way as
/// HTTP APIs.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use tool_core::retry_after;
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_767);
/// assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
/// assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(10)));
/// assert_eq!(retry_after("soon", now), None);
/// ```
#[must_use]
pub fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number beyond 64 bits means never, and so does the largest one.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}
