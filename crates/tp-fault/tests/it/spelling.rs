//! Spellings of faults.

use tp_fault::Fault;

#[test]
fn every_fault_is_written_as_it_is_read() {
    for text in [
        "delay:request=200ms..900ms",
        "rate:response=32000",
        "drip:response=1@100ms",
        "cut:request=17",
        "reset:response=0",
        "half-close:request=9",
        "black-hole",
        "status=503",
        "status=429;retry-after=2",
        "status=429;retry-after=Sun, 06 Nov 1994 08:49:47 GMT",
        "garbage=npm warn deprecated=yes",
        "exit=1",
        "crash=0",
        "stop-reading",
    ] {
        let fault: Fault = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fault.to_string(), text);
    }
    let short: Fault = "delay:response=2s".parse().unwrap();
    assert_eq!(short.to_string(), "delay:response=2000ms..2000ms");
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    for (text, part) in [
        ("", "write `delay:WAY=MIN..MAX`"),
        ("cut", "write `delay:WAY=MIN..MAX`"),
        ("cut=17", "write `delay:WAY=MIN..MAX`"),
        ("cut:answer=17", "`answer` is neither `request` nor `response`"),
        ("cut:request", "missing value"),
        ("cut:request=-1", "invalid number `-1`"),
        ("rate:response=0", "a rate of 0 is a `black-hole`"),
        ("drip:response=1", "such as `drip:response=1@100ms`"),
        ("drip:response=0@1s", "a piece has at least one byte"),
        ("delay:response=2", "write it like `100ms` or `2s`"),
        ("delay:response=2s..1s", "shorter than the shortest"),
        ("status=600", "not from 200 to 599"),
        ("status=503;soon", "is not `retry-after=…`"),
    ] {
        let error = text.parse::<Fault>().expect_err(text).to_string();
        assert!(error.starts_with(&format!("invalid fault `{text}`: ")), "{error}");
        assert!(error.contains(part), "{error}");
    }
}
