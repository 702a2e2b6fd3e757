use std::time::{Duration, SystemTime};

use tool_core::{ErrorKind, RetryAfter, ToolError, retry_after};

#[test]
fn waits_are_seconds_or_dates() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_767);
    for (text, seconds) in [
        ("120", Some(120)),
        ("0", Some(0)),
        (" 7 ", Some(7)),
        ("99999999", Some(99_999_999)),
        ("99999999999999999999999999", Some(u64::MAX)),
        // Never earlier than it says.
        ("1.5", Some(2)),
        ("0.001", Some(1)),
        ("2.0", Some(2)),
        ("18446744073709551615.9", Some(u64::MAX)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(10)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(10)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("1.", None),
        (".5", None),
        ("1.2.3", None),
        ("--1", None),
        ("-", None),
        ("soon", None),
        ("", None),
    ] {
        let expected = seconds.map(|seconds| RetryAfter::In(Duration::from_secs(seconds)));
        assert_eq!(retry_after(text, now), expected, "{text}");
    }
}

#[test]
fn a_negative_wait_is_no_retry() {
    for text in ["-1", "-5", " -0.5 ", "-99999999999999999999999999"] {
        let told = retry_after(text, SystemTime::UNIX_EPOCH);
        assert_eq!(told, Some(RetryAfter::Never), "{text}");
    }
    let error = || ToolError::new(ErrorKind::Unavailable, "down");
    let never = error().with_retry_hint(RetryAfter::Never);
    assert_eq!((never.retry_after(), never.allows_retry()), (None, false));
    let later = error().with_retry_hint(RetryAfter::In(Duration::from_secs(3)));
    assert_eq!(
        (later.retry_after(), later.allows_retry()),
        (Some(Duration::from_secs(3)), true)
    );
}
