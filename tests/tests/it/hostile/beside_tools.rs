//! Servers that misbehave with prompts and resources.

use super::{GRACE, LONG, SHORT, assert_healthy, assert_lives_on, healthy};
use crate::support::{Answer, Carrier, Client as _, Era, Gateway, List, Stage, Stopwatch, members, text};

/// Modes of a server, and the error kinds over stdio, in a body, and in events. Prompts and resources are only read, so
/// no outcome is unknown.
const CASES: [(&str, [&str; 3]); 8] = [
    ("null-result", ["protocol"; 3]),
    ("twice-the-key", ["protocol"; 3]),
    ("deep", ["protocol"; 3]),
    ("error-without-id", ["upstream_error"; 3]),
    ("huge", ["result_too_large"; 3]),
    ("exits-mid-answer", ["protocol", "unavailable", "unavailable"]),
    ("wrong-id", ["timeout", "protocol", "protocol"]),
    ("never-answers", ["timeout"; 3]),
];

fn kind(answer: &Answer) -> Option<String> {
    let Answer::Error(error) = answer else { return None };
    let data = members(members(error).get("data")?).remove("dev.toolplane/error")?;
    Some(text(&members(&data)["kind"]))
}

fn check(carrier: Carrier, era: Era) {
    let stage = Stage::new(carrier, era);
    let configuration = CASES.iter().fold(healthy(), |configuration, (mode, kinds)| {
        let limit = if kinds[carrier as usize] == "timeout" {
            SHORT
        } else {
            LONG
        };
        configuration.server(mode, stage.server(mode, limit))
    });
    let mut gateway = Gateway::stdio_in(era, &configuration);
    assert_eq!(gateway.client.list(List::Prompts).len(), 2 * (CASES.len() + 1));
    for method in ["prompts/get", "resources/read"] {
        let watch = Stopwatch::start();
        let calls = CASES.map(|(mode, kinds)| {
            let params = match method {
                "prompts/get" => format!(r#"{{"name":"{mode}__act"}}"#),
                _ => format!(r#"{{"uri":"hostile:{mode}/act"}}"#),
            };
            (
                mode,
                kinds[carrier as usize],
                gateway.client.begin(method, &params),
            )
        });
        assert_healthy(&mut gateway);
        for (mode, expected, call) in calls {
            let answer = gateway.client.wait(call);
            let kind = kind(&answer).unwrap_or_default();
            // A server that has ended rests before its restart.
            let rests = mode == "exits-mid-answer" && kind == "unavailable";
            assert!(
                kind == expected || rests,
                "{mode} {carrier:?} {era:?}: {answer:.1000?}"
            );
        }
        assert!(watch.elapsed() < LONG, "{:?}", watch.elapsed());
    }
    for (mode, _) in CASES {
        if mode != "exits-mid-answer" {
            let prompt = format!(r#"{{"name":"{mode}__echo"}}"#);
            let result = gateway.client.request("prompts/get", &prompt).result();
            assert!(result.contains("fine"), "{result}");
        }
    }
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn prompts_and_resources_over_stdio() {
    check(Carrier::Stdio, Era::Legacy);
    check(Carrier::Stdio, Era::Modern);
}

#[test]
fn prompts_and_resources_over_http() {
    check(Carrier::Json, Era::Legacy);
    check(Carrier::Events, Era::Modern);
}

/// A server with invalid lists of prompts or resources still offers its tools.
#[test]
fn lists_that_are_none() {
    const MODES: [&str; 4] = [
        "beside-nothing",
        "beside-junk",
        "beside-in-circles",
        "beside-silence",
    ];
    for (carrier, era) in [
        (Carrier::Stdio, Era::Legacy),
        (Carrier::Stdio, Era::Modern),
        (Carrier::Json, Era::Legacy),
        (Carrier::Events, Era::Modern),
    ] {
        let stage = Stage::new(carrier, era);
        let configuration = MODES.iter().fold(healthy(), |configuration, mode| {
            let mut server = stage.server(mode, LONG);
            server["start_timeout_ms"] = serde_json::json!(SHORT.as_millis() as u64);
            configuration.server(mode, server)
        });
        let mut gateway = Gateway::stdio_in(era, &configuration.waiting_for_lists());
        let watch = Stopwatch::start();
        for list in [List::Prompts, List::Resources] {
            let listed = gateway.client.list(list);
            let names: Vec<_> = listed.iter().map(|(name, _)| name.as_str()).collect();
            // The pages before the repeated cursor are offered.
            let expected = match list {
                List::Prompts => [
                    "beside-in-circles__act",
                    "beside-in-circles__echo",
                    "healthy__act",
                    "healthy__echo",
                ],
                _ => [
                    "hostile:beside-in-circles/act",
                    "hostile:beside-in-circles/echo",
                    "hostile:healthy/act",
                    "hostile:healthy/echo",
                ],
            };
            assert_eq!(names, expected, "{carrier:?} {era:?}");
        }
        assert_eq!(gateway.client.tools().len(), 2 * (MODES.len() + 1));
        for mode in MODES {
            assert_lives_on(&mut gateway, mode);
        }
        assert!(watch.elapsed() < 2 * SHORT + GRACE, "{:?}", watch.elapsed());
        assert_eq!(gateway.end().code(), Some(0));
    }
}
