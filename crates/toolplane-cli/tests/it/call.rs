//! Arguments and results of `toolplane call`.

use std::{io::ErrorKind, net::TcpListener};

use crate::binary::Place;

const TOOLS: &str = r#"
tools:
  echo:
    description: Says back what it is told.
    input_schema:
      type: object
      properties:
        text: {type: string}
        count: {type: integer}
        ratio: {type: number}
        flag: {type: boolean}
        list: {type: array, items: {type: integer}}
        map: {type: object}
    executor:
      kind: mock
      template: >-
        {"text": {{ text | default(none) }}, "count": {{ count | default(none) }}, "ratio": {{ ratio | default(none) }},
        "flag": {{ flag | default(none) }}, "list": {{ list | default(none) }}, "map": {{ map | default(none) }}}
  exact: {description: d, executor: {kind: mock, result_file: exact.json}}
  words: {description: d, executor: {kind: mock, result: "two\nlines"}}
"#;

fn place() -> Place {
    let place = Place::with(TOOLS);
    place.write(
        "exact.json",
        r#"{"n":123456789012345678901234567890,  "e":1e2,"u":"\u00e9"}"#,
    );
    place
}

#[test]
fn words_are_typed_by_the_schema() {
    let run = place().run(&[
        "call",
        "echo",
        "text=5",
        "count=7",
        "ratio=1.5",
        "flag=true",
        "list=1,2",
        "list=3",
        "map={\"a\":1}",
    ]);
    let expected = serde_json::json!({
        "text": "5", "count": 7, "ratio": 1.5, "flag": true, "list": [1, 2, 3], "map": {"a": 1}
    });
    assert_eq!((run.code, run.json()), (0, expected), "{run:?}");
}

#[test]
fn json_is_taken_as_it_is() {
    let place = place();
    let run = place.run(&[
        "call",
        "echo",
        "map:={\"x\":[1,{}]}",
        "text:=\"a=b\"",
        "-o",
        "json",
    ]);
    assert_eq!(
        (run.json()["map"]["x"][0].clone(), run.json()["text"].clone()),
        (1.into(), "a=b".into())
    );
    // The schema, not the command line, refuses a text instead of a number.
    let run = place.run(&["call", "echo", "count:=\"7\""]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("/count"), "{run:?}");
}

#[test]
fn all_arguments_come_as_text_from_a_file_or_from_stdin() {
    let place = place();
    let arguments = r#"{"text": "hi"}"#;
    place.write("arguments.json", arguments);
    for run in [
        place.run(&["call", "echo", "--json", arguments]),
        place.run(&["call", "echo", "--json", "@arguments.json"]),
        place.run_with(&["call", "echo", "--json", "-"], arguments),
    ] {
        assert_eq!(
            (run.code, run.json()["text"].clone()),
            (0, "hi".into()),
            "{run:?}"
        );
    }
}

#[test]
fn results_are_printed_as_they_came() {
    let place = place();
    let exact = r#"{"n":123456789012345678901234567890,  "e":1e2,"u":"\u00e9"}"#;
    assert_eq!(
        place.run(&["call", "exact", "-o", "json"]).data(),
        format!("{exact}\n")
    );
    insta::assert_snapshot!(place.run(&["call", "exact"]).data(), @r#"
    {
      "n": 123456789012345678901234567890,
      "e": 1e2,
      "u": "\u00e9"
    }
    "#);
    insta::assert_snapshot!(place.run(&["call", "exact", "-o", "yaml"]).data(), @r#"
    "n": 123456789012345678901234567890
    e: 1e2
    u: "é"
    "#);
    assert_eq!(place.run(&["call", "words"]).data(), "two\nlines\n");
}

#[test]
fn explain_tells_what_each_layer_decided() {
    let place = place();
    let run = place.run(&["call", "words", "--explain"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "two\nlines\n"));
    for layer in [
        "AFTER",
        "watch",
        "deadline",
        "admission",
        "validation",
        "attempt",
        "timeout",
        "executor",
    ] {
        assert!(run.stderr.contains(layer), "{layer}: {run:?}");
    }
    let last = run.stderr.lines().last();
    assert_eq!(
        last,
        Some(
            "no decision from: error policy, argument size, idempotency, quota, approval, fallback, cache, retry, credential refresh, hedge, \
             breaker peek, rate limit, concurrency limit, breaker, intent, redaction, partial results, chaos, task"
        )
    );

    let run = place.run(&["call", "exact", "--explain", "-o", "json"]);
    assert!(
        run.data()
            .starts_with(r#"{"result":{"n":123456789012345678901234567890,  "e":1e2"#)
    );
    let layers = run.json()["explain"].clone();
    assert!(
        layers
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["layer"] == "admission"),
        "{layers}"
    );

    let run = place.run(&[
        "call",
        "echo",
        "--json",
        r#"{"count": "x"}"#,
        "--explain",
        "-o",
        "json",
    ]);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(
        (run.code, error["error"]["kind"].as_str()),
        (2, Some("invalid_arguments"))
    );
    assert!(
        error["error"]["explain"]
            .as_array()
            .is_some_and(|notes| !notes.is_empty()),
        "{error}"
    );
}

#[test]
fn a_dry_run_stops_before_the_tool() {
    let place = place();
    let run = place.run(&["call", "exact", "--dry-run"]);
    assert!(run.data().contains("`mock` would run now"), "{run:?}");
    let run = place.run(&["call", "exact", "--dry-run", "-o", "json"]);
    assert_eq!(run.json()["dry_run"], true);
    assert_eq!(run.json()["request"]["answered_by"], "result_file");
    let run = place.run(&["call", "echo", "--json", r#"{"count": "x"}"#, "--dry-run"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn a_dry_run_shows_the_request_without_secrets_and_connects_to_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("it can");
    let address = listener.local_addr().expect("it listens");
    let place = Place::with(&format!(
        r#"
tools:
  pay:
    description: Pays.
    input_schema: {{type: object, properties: {{id: {{type: string}}, amount: {{type: integer, default: 5}}}}, required: [id, amount]}}
    arguments: coerce
    approval: required
    rate_limit: {{requests: 1, period: 1h}}
    executor:
      kind: http
      method: POST
      allow_private: true
      url: http://{address}/pay/{{id}}?key=${{KEY}}
      headers: {{Authorization: "Bearer ${{TOKEN}}"}}
      body: {{amount: "{{amount}}", by: "${{TOKEN}}"}}
"#
    ))
    .variable("KEY", "k1")
    .variable("TOKEN", "a-secret-of-some-length");
    // More often than the limit allows: a dry run does not count.
    for _ in 0..3 {
        let run = place.run(&["call", "pay", "id=a/b", "--dry-run"]);
        assert_eq!(run.code, 0, "{run:?}");
        let expected = format!("POST http://{address}/pay/a%2Fb?key=[redacted]\n");
        assert!(run.data().starts_with(&expected), "{run:?}");
        for line in [
            "authorization: Bearer [redacted]",
            "content-type: application/json",
            r#"{"amount":5,"by":"[redacted]"}"#,
            "would ask for approval",
        ] {
            assert!(run.data().contains(line), "{line}: {run:?}");
        }
        let request = &place
            .run(&["call", "pay", "id=a/b", "--dry-run", "-o", "json"])
            .json()["request"];
        assert_eq!(request["method"], "POST");
        assert_eq!(request["body"], r#"{"amount":5,"by":"[redacted]"}"#);
        assert!(!format!("{run:?} {request}").contains("a-secret"), "{run:?}");
    }
    let error = listener.accept().expect_err("nobody has connected");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn colors_are_for_terminals_and_for_those_who_ask() {
    let place = place();
    let has_color = |place: &Place, arguments: &[&str]| place.run(arguments).stderr.contains('\u{1b}');
    assert!(!has_color(&place, &["call", "nothing"]));
    assert!(has_color(&place, &["call", "nothing", "--color", "always"]));
    assert!(!has_color(&place, &["call", "nothing", "--color", "never"]));
    assert!(!has_color(&place.variable("NO_COLOR", "1"), &["call", "nothing"]));
}
