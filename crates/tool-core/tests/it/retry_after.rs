use std::time::{Duration, SystemTime};

use tool_core::retry_after;

#[test]
fn waits_are_seconds_or_dates() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_767);
    for (text, seconds) in [
        ("120", Some(120)),
        ("0", Some(0)),
        (" 7 ", Some(7)),
        ("99999999", Some(99_999_999)),
        ("99999999999999999999999999", Some(u64::MAX)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(10)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(10)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(retry_after(text, now), seconds.map(Duration::from_secs), "{text}");
    }
}
