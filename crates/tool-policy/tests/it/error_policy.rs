//! Error policy: errors as callers see them.

use std::{
    error::Error as _,
    sync::{Arc, Mutex},
};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{AlertKind, CallContext, ErrorKind, Event, Invoke, Layer, Observe, ToolError};
use tool_policy::ErrorPolicyLayer;
use tool_policy::{ErrorPolicySettings, ErrorRule};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

fn told(message: &str) -> String {
    let error = ToolError::new(ErrorKind::UpstreamError, message);
    ErrorPolicyLayer::default().for_caller(error).message().to_owned()
}

/// A model reads one line without hidden text and without active markup.
#[test]
fn what_an_upstream_says_hides_nothing_from_people() {
    for (message, expected) in [
        ("no\r\n{\"level\":\"INFO\"}", "no {\"level\":\"INFO\"}"),
        (
            "a\u{2028}b\u{202e}c\u{200b}\u{e0041}",
            "a\\u{2028}b\\u{202e}c\\u{200b}\\u{e0041}",
        ),
        ("\u{1b}[2J\u{9b}x", "\\u{1b}[2J\\u{9b}x"),
        ("<script>x</script>", "&lt;script>x&lt;/script>"),
        ("<IMPORTANT>y", "&lt;IMPORTANT>y"),
        ("Vec<String> 👩‍🚀", "Vec<String> 👩‍🚀"),
    ] {
        assert_eq!(told(message), expected);
    }
}

proptest::proptest! {
    #[test]
    fn no_error_hides_anything(text in "(?s)[a-z<>/ \\x00-\\x1f\\x7f-\\u{9f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{e0000}-\u{e007f}]{0,200}") {
        let told = told(&text);
        let is_shown = |c: char| !c.is_control() && !tool_scan::is_hidden(c);
        proptest::prop_assert!(told.chars().all(is_shown), "{told:?}");
        let lower = told.to_lowercase();
        proptest::prop_assert!(!lower.contains("<script") && !lower.contains("<!--"));
    }
}

#[test]
fn what_is_nobodys_business_outside_is_hidden() {
    for (message, expected) in [
        ("nothing to hide: call 5 of 7 failed", None),
        ("the route /v1/users/7 is not there", None),
        ("invalid token: expired", None),
        ("the key must be a string", None),
        ("ratio 3.5 at 12:30 in v1.2.3", None),
        ("see https://docs.example.com/errors/7.", None),
        (
            "GET https://ada:hunter2@api.example.com/v1?token=abc#x failed",
            Some("GET https://api.example.com/v1 failed"),
        ),
        (
            "http://10.1.2.3:8080/admin said no",
            Some("[internal address] said no"),
        ),
        (
            "connect to 192.168.0.7:5432 refused",
            Some("connect to [internal address] refused"),
        ),
        ("at 127.0.0.1.", Some("at [internal address].")),
        (
            "at [::1]:80, fd00::1",
            Some("at [internal address], [internal address]"),
        ),
        ("at 8.8.8.8", None),
        ("localhost:3000 is down", Some("[internal address] is down")),
        ("Unknown resource: demo://resource/dynamic/text?n=1", None),
        ("no mongodb://db/x", Some("no [internal address]")),
        (
            "db.prod.internal:5432 is down",
            Some("[internal address] is down"),
        ),
        ("http://db/x", Some("[internal address]")),
        ("169.254.169.254 denied", Some("[internal address] denied")),
        (
            "cannot read /etc/app/config.yaml: no",
            Some("cannot read [path]: no"),
        ),
        (r"open 'C:\Users\ada\x'", Some("open '[path]'")),
        ("in ~/.ssh/id_rsa", Some("in [path]")),
        ("file:///root/x", Some("[path]")),
        (
            "10.1.2.3:80 refused Authorization: Bearer abc.DEF-123, see /etc/app/key.pem",
            Some("[internal address] refused Authorization: Bearer [redacted], see [path]"),
        ),
    ] {
        assert_eq!(told(message), expected.unwrap_or(message), "{message}");
    }
    let long = "word ".repeat(1000);
    assert!(told(&long).len() < 610 && told(&long).ends_with('…'));
}

#[test]
fn the_error_as_it_was_is_the_cause() {
    let error = ToolError::new(ErrorKind::Unavailable, "10.0.0.1 is down")
        .with_retry_after(std::time::Duration::from_secs(3))
        .with_detail(RawJson::from(json!({"host": "10.0.0.1:80"})));
    let told = ErrorPolicyLayer::default().for_caller(error);
    assert_eq!(told.message(), "[internal address] is down");
    assert_eq!(
        told.source().map(ToString::to_string).as_deref(),
        Some("10.0.0.1 is down")
    );
    assert_eq!(told.retry_after().map(|after| after.as_secs()), Some(3));
    assert!(told.detail().is_none(), "what the upstream said tells the same");
    let pages = json!({"code": -32042, "data": {"elicitations": [{"url": "http://localhost:1/login"}]}});
    let error = ToolError::new(ErrorKind::UpstreamError, "visit").with_detail(RawJson::from(pages));
    assert!(
        ErrorPolicyLayer::default().for_caller(error).detail().is_some(),
        "a client needs these"
    );
}

#[test]
fn an_operator_has_other_words() {
    let rule = ErrorRule::default()
        .with_message("the shop is closed")
        .with_advice("ask for Ada");
    let policy = Arc::new(ErrorPolicySettings::default().with(ErrorKind::Unavailable, rule));
    let surface = ErrorPolicyLayer::new(policy);
    let told = surface.for_caller(ToolError::new(ErrorKind::Unavailable, "down"));
    assert_eq!(
        (told.message(), told.advice()),
        ("the shop is closed", "ask for Ada")
    );
    let told = surface.for_caller(ToolError::new(ErrorKind::Timeout, "late"));
    assert_eq!(
        (told.message(), told.advice()),
        ("late", ErrorKind::Timeout.advice())
    );
}

/// Records alerts.
#[derive(Default)]
struct Alerts(Mutex<Vec<AlertKind>>);

impl Observe for Alerts {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert, .. } = event {
            self.0.lock().expect("no test panics with it").push(alert.kind);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn operators_are_told_of_what_should_not_happen_and_not_of_each() {
    let rule = ErrorRule::default().with_alert(true);
    let policy = Arc::new(ErrorPolicySettings::default().with(ErrorKind::Timeout, rule));
    let surface = ErrorPolicyLayer::new(policy);
    for (kind, expected) in [
        (ErrorKind::Internal, 2),
        (ErrorKind::OutcomeUnknown, 2),
        (ErrorKind::Timeout, 2),
        (ErrorKind::Unavailable, 0),
        (ErrorKind::Denied, 0),
    ] {
        let alerts = Arc::new(Alerts::default());
        let script = ScriptedExecutor::new([ScriptStep::Fail(ToolError::new(kind, "as scripted"))]);
        let tool = TestTool::new("t").build(script.clone());
        let layer = surface.clone().layer(script);
        let clock = Arc::new(TokioClock::new());
        for _ in 0..3 {
            for _ in 0..5 {
                let mut cx: CallContext = call(tool.clone(), json!({}), clock.clone());
                cx.observers = [alerts.clone() as Arc<dyn Observe>].into_iter().collect();
                layer.invoke(&mut cx).await.expect_err("it fails");
            }
            tokio::time::advance(std::time::Duration::from_secs(150)).await;
        }
        assert_eq!(alerts.0.lock().unwrap().len(), expected, "{kind}");
    }
}
