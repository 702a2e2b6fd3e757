//! Memory of a gateway after calls.
#![cfg(target_os = "linux")]

use std::{fs, thread, time::Duration};

use serde_json::json;

use crate::{
    binary::Place,
    serve::{Served, call},
};

/// Returns the private memory of a process, in KiB.
fn own(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn what_large_calls_took_is_given_back_when_they_are_over() {
    let place = Place::with("tools: {count: {description: Counts, executor: {kind: mock, result: {n: 1}}}}");
    let mut served = Served::start(&place);
    let ask = |text: &str| {
        let answer = served.post(&served.address, &call(1, "count", &json!({"text": text})));
        assert!(answer.contains("structuredContent"), "{answer}");
    };
    ask("");
    let before = own(served.child.id());
    ask(&"x".repeat(3 << 20));
    // A small call last, so that nothing of the large one is still in flight.
    ask("");
    let kept = || own(served.child.id()).saturating_sub(before);
    let is_given_back = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(100));
        // Less than the text of one of the calls.
        kept() < 3 << 10
    });
    assert!(is_given_back, "{} KiB are kept", kept());
    served.child.kill().unwrap();
    served.child.wait().unwrap();
}
