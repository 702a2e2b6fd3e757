//! Servers that misbehave: no call outlives its deadline, no other call suffers, nothing stays behind.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use crate::support::{Answer, Client as _, Configuration, Gateway, Stopwatch, eventually, members, text};

/// How long a call of a hostile server may take, as configured.
const TIMEOUT: Duration = Duration::from_secs(3);
/// What a slow machine may add to that.
const GRACE: Duration = Duration::from_secs(20);

/// How a call of the tool that misbehaves has to end.
enum Expect {
    /// With the server's answer as the server wrote it, which holds this.
    Answer(&'static str),
    /// With an error of ours of one of these kinds.
    Error(&'static [&'static str]),
}

use Expect::{Answer as Fine, Error};

fn server(mode: &str) -> Value {
    hostile([mode])
}

fn hostile<const N: usize>(args: [&str; N]) -> Value {
    json!({
        "command": env!("CARGO_BIN_EXE_toolplane-hostile-server"),
        "args": args.to_vec(),
        "timeout_ms": TIMEOUT.as_millis() as u64,
        "start_timeout_ms": TIMEOUT.as_millis() as u64,
    })
}

fn configuration<'a>(modes: impl IntoIterator<Item = &'a str>) -> Configuration {
    let healthy = Configuration::default().server("healthy", server("healthy"));
    modes.into_iter().fold(healthy, |configuration, mode| {
        configuration.server(mode, server(mode))
    })
}

/// Calls the healthy server, whose answer must be there in no time.
fn assert_healthy(gateway: &mut Gateway) {
    let watch = Stopwatch::start();
    let result = gateway.client.call("healthy__echo", r#"{"a":1}"#).result();
    assert!(result.contains(r#"{\"a\":1}"#), "{result}");
    assert!(watch.elapsed() < GRACE);
}

fn assert_ended_as(mode: &str, expect: &Expect, answer: &Answer) {
    match (expect, answer) {
        (Fine(part), Answer::Result(result)) => assert!(result.contains(part), "{mode}: {result}"),
        (Error(kinds), answer) => {
            let kind = answer.error_kind();
            assert!(
                kind.as_deref().is_some_and(|kind| kinds.contains(&kind)),
                "{mode}: {kind:?} in {answer:.2000?}"
            );
        }
        (Fine(_), answer) => panic!("{mode}: {answer:?}"),
    }
}

/// Calls the tool that misbehaves and, while that call is under way, the healthy server; then the server itself
/// again, if it is expected to live on.
fn misbehave(gateway: &mut Gateway, mode: &str, arguments: &str, expect: &Expect) {
    let watch = Stopwatch::start();
    let call = gateway.client.begin_call(&format!("{mode}__act"), arguments);
    assert_healthy(gateway);
    let answer = gateway.client.wait(call);
    assert!(watch.elapsed() < TIMEOUT + GRACE, "{mode}: {:?}", watch.elapsed());
    assert_ended_as(mode, expect, &answer);
    assert_healthy(gateway);
}

fn assert_lives_on(gateway: &mut Gateway, mode: &str) {
    let answer = gateway.client.call(&format!("{mode}__echo"), r#"{"again":true}"#);
    let result = answer.result();
    assert!(result.contains(r#"{\"again\":true}"#), "{mode}: {result}");
}

#[test]
fn odd_answers_fail_their_own_call_at_most() {
    let cases = [
        ("string-id", Fine("fine")),
        ("no-jsonrpc", Fine("fine")),
        ("garbage-first", Fine("fine")),
        ("answers-twice", Fine("fine")),
        ("lone-surrogate", Fine(r"a\ud800b")),
        (
            "unknown-content",
            Fine(r#"{"type":"hologram","beam":12345678901234567890123,"at":1e2}],"more":[ 1 ]"#),
        ),
        ("error-without-id", Error(&["upstream_error"])),
        ("null-result", Error(&["protocol"])),
        ("invalid-utf8", Error(&["protocol", "outcome_unknown"])),
    ];
    let mut gateway = Gateway::stdio(&configuration(cases.iter().map(|(mode, _)| *mode)));
    for (mode, expect) in &cases {
        misbehave(&mut gateway, mode, "{}", expect);
        assert_lives_on(&mut gateway, mode);
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_server_that_does_not_answer_holds_nobody_up() {
    // The tool may have run, and a server's own word that it may run twice would not count.
    let unknown = Error(&["outcome_unknown"]);
    let mut gateway = Gateway::stdio(&configuration(["never-answers", "wrong-id"]));
    for mode in ["never-answers", "wrong-id"] {
        gateway.client.order.clear();
        assert_lives_on(&mut gateway, mode);
        assert_healthy(&mut gateway);
        let call = gateway.client.begin_call(&format!("{mode}__act"), "{}");
        let other = gateway.client.begin_call("healthy__echo", "{}");
        let answer = gateway.client.wait(call);
        assert_ended_as(mode, &unknown, &answer);
        assert_eq!(gateway.client.order.last_chunk(), Some(&[other, call]), "{mode}");
        assert_lives_on(&mut gateway, mode);
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_server_that_stops_reading_holds_nobody_up() {
    let mut gateway = Gateway::stdio(&configuration(["deaf"]));
    assert_healthy(&mut gateway);
    let large = json!({"text": "x".repeat(200_000)}).to_string();
    let kinds = Error(&["outcome_unknown"]);
    misbehave(&mut gateway, "deaf", &large, &kinds);
    // The second one finds the pipe full, the first byte of it never leaves.
    misbehave(
        &mut gateway,
        "deaf",
        &large,
        &Error(&["outcome_unknown", "timeout", "unavailable"]),
    );
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_server_that_ends_mid_call_is_started_again() {
    let modes = ["exits-mid-call", "exits-mid-line"];
    let mut gateway = Gateway::stdio(&configuration(modes));
    for mode in modes {
        let watch = Stopwatch::start();
        misbehave(&mut gateway, mode, "{}", &Error(&["outcome_unknown"]));
        assert!(watch.elapsed() < GRACE, "{mode}");
        eventually("the server is started again", || {
            let answer = gateway.client.call(&format!("{mode}__echo"), "{}");
            match answer.error_kind() {
                None => true,
                Some(kind) => {
                    // It rests before it is started again, and calls are told so.
                    assert_eq!(kind, "unavailable", "{answer:?}");
                    false
                }
            }
        });
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_server_that_ends_at_once_is_not_started_for_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let server = hostile(["exit-at-once", starts.to_str().unwrap()]);
    let mut gateway = Gateway::stdio(&configuration([]).server("loop", server));
    let watch = Stopwatch::start();
    for _ in 0..200 {
        let answer = gateway.client.call("loop__act", "{}");
        assert_eq!(answer.error_kind().as_deref(), Some("unavailable"), "{answer:?}");
    }
    let n_starts = fs::read_to_string(&starts).unwrap().lines().count() as u64;
    // At most six starts in the first minute and one in each minute after it.
    let allowed = 6 + watch.elapsed().as_secs() / 60;
    assert!(n_starts <= allowed, "{n_starts} starts in {:?}", watch.elapsed());
    assert_healthy(&mut gateway);
    let tools = gateway.client.tools();
    assert!(
        tools.iter().all(|(name, _)| name.starts_with("healthy__")),
        "{tools:?}"
    );
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_server_that_never_opens_does_not_sink_the_list() {
    let mut gateway = Gateway::stdio(&configuration(["never-opens"]));
    let watch = Stopwatch::start();
    let tools = gateway.client.tools();
    assert!(watch.elapsed() < TIMEOUT + GRACE);
    let names: Vec<_> = tools.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["healthy__act", "healthy__echo"]);
    assert_healthy(&mut gateway);
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn floods_hold_nobody_up_and_fill_no_memory() {
    const BOUND: usize = 200 * 1024 * 1024;
    let cases = [
        ("floods-notifications", Fine("fine")),
        ("floods-stderr", Fine("fine")),
        ("huge-line", Error(&["result_too_large"])),
    ];
    let mut configuration = configuration([]);
    for (mode, _) in &cases {
        // Hundreds of megabytes take their time in a build that is not optimised.
        let mut server = server(mode);
        server["timeout_ms"] = json!(90_000);
        configuration = configuration.server(mode, server);
    }
    let mut gateway = Gateway::stdio(&configuration);
    for (mode, expect) in &cases {
        let call = gateway.client.begin_call(&format!("{mode}__act"), "{}");
        assert_healthy(&mut gateway);
        let answer = gateway.client.wait(call);
        assert_ended_as(mode, expect, &answer);
        assert_healthy(&mut gateway);
        assert_lives_on(&mut gateway, mode);
    }
    let peak = gateway.client.process.peak_memory();
    assert!(peak < BOUND, "{} MiB", peak / 1024 / 1024);
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn an_error_tells_what_happened_and_no_more() {
    let secret = json!({"command": "/srv/secret-place/no-such-server", "args": ["--token", "hunter2"]});
    let mut gateway = Gateway::stdio(&configuration(["exits-mid-call"]).server("missing", secret));
    for (tool, kind) in [
        ("exits-mid-call__act", "outcome_unknown"),
        ("missing__act", "unavailable"),
    ] {
        let answer = gateway.client.call(tool, "{}");
        let result = members(&answer.result());
        let error = members(&members(&result["_meta"])["dev.toolplane/error"]);
        assert_eq!(text(&error["kind"]), kind);
        let shown = format!("{} {error:?}", result["content"]);
        assert!(
            shown.contains(tool.split("__").next().unwrap()),
            "which server: {shown}"
        );
        for inside in ["secret-place", "hunter2", "hostile-server"] {
            assert!(!shown.contains(inside), "what is inside: {shown}");
        }
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_call_that_is_cancelled_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let server = hostile(["never-answers", notes.to_str().unwrap()]);
    let mut gateway = Gateway::stdio(&configuration([]).server("slow", server));
    let call = gateway.client.begin_call("slow__act", "{}");
    let told = |what: &str| fs::read_to_string(&notes).unwrap_or_default().contains(what);
    eventually("the call arrives", || told("act"));
    gateway.client.cancel(call);
    eventually("the server is told", || told("notifications/cancelled"));
    assert_healthy(&mut gateway);
    assert!(
        !gateway.client.order.contains(&call),
        "nobody waits for an answer"
    );
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn what_a_server_has_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let server = hostile(["leaves-a-child", notes.to_str().unwrap()]);
    let mut gateway = Gateway::stdio(&configuration([]).server("parent", server));
    gateway.client.call("parent__act", "{}").result();
    eventually("the server's child runs", || {
        fs::read_to_string(&notes).unwrap_or_default().contains("child ")
    });
    // The healthy server, the hostile one and its child, which outlives its parent if nobody ends it.
    gateway.client.tools();
    assert_eq!(gateway.client.process.descendants().len(), 3);
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn servers_that_ignore_the_end_are_ended() {
    let modes = ["ignores-the-end", "deaf", "never-opens"];
    for by_signal in [false, true] {
        let mut gateway = Gateway::stdio(&configuration(modes));
        // All of them have been started, and some work is under way.
        gateway.client.tools();
        gateway.client.begin_call("ignores-the-end__echo", "{}");
        let status = if by_signal {
            gateway.terminate()
        } else {
            gateway.end()
        };
        assert_eq!(status.code(), Some(0));
    }
}
