//! Servers with missing or invalid answers. Every server of a table is called at the same time, with calls of a healthy
//! one in between.

use super::{GRACE, LONG, SHORT, assert_healthy, assert_lives_on, assert_memory, healthy, large};
use crate::support::{
    Answer, Carrier, Client as _, Era, Gateway, Stage, Stopwatch, eventually, members, text,
};

/// Expected end of a call of the tool that misbehaves.
#[derive(Debug, Clone, Copy)]
enum Expect {
    /// With the server's answer, verbatim, which contains this text.
    Fine(&'static str),
    /// With an error of ours of this kind, before the time limit.
    Fails(&'static str),
    /// At its time limit, with unknown outcome.
    Limit,
    /// The case does not exist for this transport, for this reason.
    Senseless(&'static str),
}

use Expect::{Fails, Fine, Limit, Senseless};

/// The tool may have run, so any failure has an unknown outcome.
const UNKNOWN: Expect = Fails("outcome_unknown");
const ONE_BODY: Expect = Senseless("one body is one message");

/// Misbehavior with messages: over stdio, in a JSON body, in an event stream.
const CASES: [(&str, [Expect; 3]); 21] = [
    ("string-id", [Fine("fine"); 3]),
    ("float-id", [Fine("fine"); 3]),
    ("no-jsonrpc", [Fine("fine"); 3]),
    ("lone-surrogate", [Fine(r"a\ud800b"); 3]),
    (
        "unknown-content",
        [Fine(r#"{"type":"hologram","beam":12345678901234567890123,"at":1e2}],"more":[ 1 ]"#); 3],
    ),
    ("garbage-first", [Fine("fine"), UNKNOWN, Fine("fine")]),
    ("answers-twice", [Fine("fine"), UNKNOWN, Fine("fine")]),
    ("asks-unasked", [Fine("fine"), ONE_BODY, Fine("fine")]),
    ("error-without-id", [Fails("upstream_error"); 3]),
    ("null-result", [Fails("protocol"); 3]),
    ("invalid-utf8", [UNKNOWN; 3]),
    ("both", [UNKNOWN; 3]),
    ("twice-the-key", [UNKNOWN; 3]),
    ("deep", [UNKNOWN; 3]),
    // Over stdio it may belong to any call, over HTTP it is the result of this call.
    ("wrong-id", [Limit, UNKNOWN, UNKNOWN]),
    ("no-id", [Limit, UNKNOWN, UNKNOWN]),
    ("batch", [Limit, UNKNOWN, UNKNOWN]),
    ("never-answers", [Limit; 3]),
    ("drips", [Limit; 3]),
    ("exits-mid-call", [UNKNOWN; 3]),
    ("exits-mid-answer", [UNKNOWN; 3]),
];

/// Misbehavior with HTTP itself, which has no counterpart over stdio.
const OF_HTTP: [(&str, Expect); 19] = [
    ("accepts", UNKNOWN),
    ("fails", UNKNOWN),
    ("sends-away", Fails("upstream_error")),
    ("wants-credentials", Fails("auth")),
    ("writes-html", UNKNOWN),
    ("compresses", UNKNOWN),
    ("says-nothing", UNKNOWN),
    ("exits-mid-head", UNKNOWN),
    ("speaks-ssh", UNKNOWN),
    ("has-two-lengths", UNKNOWN),
    ("has-odd-chunks", UNKNOWN),
    ("never-ends-its-head", UNKNOWN),
    ("forgets-sessions", Fails("upstream_error")),
    ("drips-its-head", Limit),
    ("asks-to-go-on", UNKNOWN),
    ("keeps-alive", Limit),
    ("ends-every-stream", Limit),
    ("deaf", Limit),
    ("healthy", Fine("fine")),
];

fn cases(stage: &Stage) -> Vec<(&'static str, Expect)> {
    let column = stage.carrier as usize;
    let mut cases: Vec<_> = CASES
        .iter()
        .map(|(mode, expect)| (*mode, expect[column]))
        .collect();
    match stage.carrier {
        // A pipe that is never read. Over HTTP only one connection would be affected; here it is the only one.
        Carrier::Stdio => cases.push(("deaf", Limit)),
        _ => cases.extend(OF_HTTP),
    }
    if stage.era == Era::Modern {
        for (mode, expect) in &mut cases {
            match *mode {
                "forgets-sessions" => *expect = Senseless("the modern era has no sessions"),
                "ends-every-stream" => *expect = UNKNOWN,
                _ => {}
            }
        }
    }
    cases.retain(|(mode, expect)| match expect {
        Senseless(reason) => {
            eprintln!("no `{mode}` over {:?}, {:?}: {reason}", stage.carrier, stage.era);
            false
        }
        _ => true,
    });
    cases
}

fn assert_ended_as(mode: &str, expect: Expect, answer: &Answer) {
    let kind = match expect {
        Fine(part) => match answer {
            Answer::Result(result) => return assert!(result.contains(part), "{mode}: {result}"),
            Answer::Error(error) => panic!("{mode}: {error}"),
        },
        Fails(kind) => kind,
        Limit => "outcome_unknown",
        Senseless(_) => unreachable!("it was left out"),
    };
    assert_eq!(
        answer.error_kind().as_deref(),
        Some(kind),
        "{mode}: {answer:.2000?}"
    );
    // The text alone names the problem and the server.
    let content = &members(&answer.clone().result())["content"];
    let told = match expect {
        Limit => "no answer within 3 s".to_owned(),
        _ => format!("`x-{mode}`"),
    };
    assert!(content.contains(&told), "{mode}: {content}");
}

fn check(carrier: Carrier, era: Era) {
    let stage = Stage::new(carrier, era);
    let cases = cases(&stage);
    let configuration = cases.iter().fold(healthy(), |configuration, (mode, expect)| {
        let limit = if matches!(expect, Limit) { SHORT } else { LONG };
        configuration.server(&format!("x-{mode}"), stage.server(mode, limit))
    });
    let mut gateway = Gateway::stdio_in(era, &configuration.waiting_for_lists());
    let listed = gateway.client.tools();
    assert_eq!(listed.len(), 2 * (cases.len() + 1), "{listed:?}");
    let watch = Stopwatch::start();
    let calls: Vec<_> = cases
        .iter()
        .map(|(mode, expect)| {
            let arguments = if *mode == "deaf" { large() } else { "{}".to_owned() };
            let call = gateway.client.begin_call(&format!("x-{mode}__act"), &arguments);
            (*mode, *expect, call)
        })
        .collect();
    assert_healthy(&mut gateway);
    let (late, soon): (Vec<_>, Vec<_>) = calls
        .into_iter()
        .partition(|(_, expect, _)| matches!(expect, Limit));
    for (mode, expect, call) in late {
        assert_ended_as(mode, expect, &gateway.client.wait(call));
        assert!(watch.elapsed() < SHORT + GRACE, "{mode}: {:?}", watch.elapsed());
    }
    for (mode, expect, call) in soon {
        assert_ended_as(mode, expect, &gateway.client.wait(call));
        assert!(watch.elapsed() < LONG, "{mode}: {:?}", watch.elapsed());
    }
    for (mode, _) in &cases {
        match (*mode, carrier) {
            ("deaf", Carrier::Stdio) => {}
            // These servers have ended and rest before their restart, or have not ended their line yet.
            ("exits-mid-call" | "exits-mid-answer" | "drips", Carrier::Stdio) => recovers(&mut gateway, mode),
            _ => assert_lives_on(&mut gateway, &format!("x-{mode}")),
        }
    }
    assert_healthy(&mut gateway);
    assert_memory(&gateway.client.process);
    assert_eq!(gateway.end().code(), Some(0));
}

/// Calls until the server answers again; until then the errors name the problem.
fn recovers(gateway: &mut Gateway, mode: &str) {
    eventually("the server answers again", || {
        let answer = gateway.client.call(&format!("x-{mode}__echo"), "{}");
        let Some(kind) = answer.error_kind() else {
            return true;
        };
        let expected = if mode == "drips" {
            "outcome_unknown"
        } else {
            "unavailable"
        };
        assert_eq!(kind, expected, "{mode}: {answer:?}");
        false
    });
}

#[test]
fn of_legacy_servers_over_stdio() {
    check(Carrier::Stdio, Era::Legacy);
}

#[test]
fn of_modern_servers_over_stdio() {
    check(Carrier::Stdio, Era::Modern);
}

#[test]
fn of_legacy_servers_in_bodies() {
    check(Carrier::Json, Era::Legacy);
}

#[test]
fn of_modern_servers_in_bodies() {
    check(Carrier::Json, Era::Modern);
}

#[test]
fn of_legacy_servers_in_events() {
    check(Carrier::Events, Era::Legacy);
}

#[test]
fn of_modern_servers_in_events() {
    check(Carrier::Events, Era::Modern);
}

#[test]
fn what_a_server_asks_unasked_is_refused_and_answered() {
    for (carrier, era) in [
        (Carrier::Stdio, Era::Legacy),
        (Carrier::Stdio, Era::Modern),
        (Carrier::Events, Era::Legacy),
        (Carrier::Events, Era::Modern),
    ] {
        let stage = Stage::new(carrier, era);
        let configuration = healthy().server("asks", stage.server("asks-unasked", LONG));
        let mut gateway = Gateway::stdio_in(era, &configuration);
        gateway.client.call("asks__act", "{}").result();
        eventually("every question is answered", || stage.noted("answer") == 4);
        assert_eq!(
            gateway.client.notifications,
            [],
            "{carrier:?} {era:?}: the client hears nothing of it"
        );
        assert_eq!(gateway.end().code(), Some(0));
    }
}

#[test]
fn a_call_that_is_cancelled_is_cancelled_at_the_server() {
    for (carrier, era, sign) in [
        (Carrier::Stdio, Era::Legacy, "notifications/cancelled"),
        (Carrier::Stdio, Era::Modern, "notifications/cancelled"),
        (Carrier::Json, Era::Legacy, "notifications/cancelled"),
        // In this era the end of the connection cancels the call.
        (Carrier::Json, Era::Modern, "left"),
    ] {
        let stage = Stage::new(carrier, era);
        let configuration = healthy().server("slow", stage.server("never-answers", LONG));
        let mut gateway = Gateway::stdio_in(era, &configuration);
        let call = gateway.client.begin_call("slow__act", "{}");
        eventually("the call arrives", || stage.noted("act") == 1);
        assert_eq!(stage.noted(sign), 0);
        gateway.client.cancel(call);
        eventually("the server is told", || stage.noted(sign) == 1);
        assert_healthy(&mut gateway);
        assert!(
            !gateway.client.order.contains(&call),
            "nobody waits for an answer"
        );
        assert_eq!(gateway.end().code(), Some(0));
    }
}

#[test]
fn a_server_that_stops_reading_holds_nobody_up() {
    for era in [Era::Legacy, Era::Modern] {
        let stage = Stage::new(Carrier::Stdio, era);
        let configuration = healthy().server("deaf", stage.server("deaf", SHORT));
        let mut gateway = Gateway::stdio_in(era, &configuration);
        gateway.client.tools();
        // The second call finds the pipe full: its first byte is never sent, so it has not run.
        for expected in [
            ["outcome_unknown"; 3],
            ["outcome_unknown", "timeout", "unavailable"],
        ] {
            let watch = Stopwatch::start();
            let call = gateway.client.begin_call("deaf__act", &large());
            assert_healthy(&mut gateway);
            let answer = gateway.client.wait(call);
            let kind = answer.error_kind().unwrap_or_default();
            assert!(expected.contains(&kind.as_str()), "{kind}: {answer:?}");
            assert!(watch.elapsed() < SHORT + GRACE, "{:?}", watch.elapsed());
        }
        assert_eq!(gateway.end().code(), Some(0));
    }
}

#[test]
fn an_error_tells_what_happened_and_no_more() {
    let stage = Stage::new(Carrier::Stdio, Era::Legacy);
    let secret =
        serde_json::json!({"command": "/srv/secret-place/no-such-server", "args": ["--token", "hunter2"]});
    let configuration = healthy()
        .server("ends", stage.server("exits-mid-call", LONG))
        .server("missing", secret);
    let mut gateway = Gateway::stdio(&configuration);
    for (server, kind) in [("ends", "outcome_unknown"), ("missing", "unavailable")] {
        let answer = gateway.client.call(&format!("{server}__act"), "{}");
        let result = members(&answer.result());
        let error = members(&members(&result["_meta"])["dev.toolplane/error"]);
        assert_eq!(text(&error["kind"]), kind);
        let shown = format!("{} {error:?}", result["content"]);
        assert!(shown.contains(server), "which server: {shown}");
        for inside in ["secret-place", "hunter2", "hostile-server"] {
            assert!(!shown.contains(inside), "what is inside: {shown}");
        }
    }
    assert_eq!(gateway.end().code(), Some(0));
}
