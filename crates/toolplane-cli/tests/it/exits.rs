//! Every documented exit code, and the message with it.

use crate::binary::{BINARY, Place};

/// A tool for each kind of error.
const KINDS: [(&str, i32); 17] = [
    ("invalid_arguments", 2),
    ("result_invalid", 1),
    ("not_found", 3),
    ("denied", 4),
    ("auth", 4),
    ("rate_limited", 6),
    ("overloaded", 6),
    ("unavailable", 6),
    ("timeout", 6),
    ("cancelled", 1),
    ("upstream_error", 1),
    ("protocol", 1),
    ("result_too_large", 1),
    ("outcome_unknown", 1),
    ("tool_changed", 7),
    ("missing_capability", 1),
    ("internal", 70),
];

#[test]
fn every_kind_of_error_has_its_code() {
    let mut configuration = "tools:\n".to_owned();
    for (kind, _) in KINDS {
        configuration += &format!(
            "  {kind}: {{description: d, executor: {{kind: mock, error: {{kind: {kind}, message: it went wrong}}}}}}\n"
        );
    }
    let place = Place::with(&configuration);
    for (kind, code) in KINDS {
        let run = place.run(&["call", kind]);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{kind}: {run:?}");
        assert!(
            run.stderr.starts_with("error: it went wrong\n"),
            "{kind}: {run:?}"
        );

        let run = place.run(&["call", kind, "-o", "json"]);
        assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{kind}: {run:?}");
        let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(error["error"]["kind"], kind);
        assert_eq!(error["error"]["message"], "it went wrong");
        assert_eq!(error["error"]["exit_code"], code);
    }
}

#[test]
fn every_other_way_to_end_has_its_code() {
    let place = Place::with(&format!(
        r#"
tools:
  slow: {{description: d, read_only: true, executor: {{kind: mock, result: 1, latency_ms: 60000}}}}
  risky: {{description: d, executor: {{kind: mock, result: 1, latency_ms: 60000}}}}
  blocked: {{description: d, executor: {{kind: mock, result: 1}}}}
  needs: {{description: d, required_permissions: [root], executor: {{kind: mock, result: 1}}}}
  odd: {{description: d, output_schema: {{type: string}}, executor: {{kind: mock, result: 1}}}}
  nobody: {{description: d, executor: {{kind: http, url: "http://127.0.0.1:1/", allow_private: true}}}}
servers:
  broken: {{command: sh, args: ["-c", "echo no luck >&2; exit 3"]}}
  silent: {{command: sleep, args: [600]}}
  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}
policy: {{blocklist: [blocked]}}
"#
    ));
    place.write("inner.yaml", "tools: {fails: {description: d, executor: {kind: mock, error: {kind: upstream_error, message: inner}}}}");
    let cases: [(&[&str], i32, &str); 23] = [
        (&["call", "slow", "--timeout", "20ms"], 6, "error: "),
        // A call that may have had an effect must not look repeatable.
        (
            &["call", "risky", "--timeout", "20ms"],
            1,
            "whether the tool ran is not known",
        ),
        (&["call", "blocked"], 4, "error: "),
        (&["call", "needs"], 4, "root"),
        (&["call", "odd"], 1, "error: "),
        (&["call", "nobody"], 6, "error: "),
        (
            &["call", "silent__x", "--timeout", "300ms"],
            6,
            "did not start within 300 ms",
        ),
        (&["call", "broken__x"], 6, "exit status: 3"),
        (&["call", "slwo"], 3, "did you mean `slow`?"),
        (&["call", "nothing", "at", "all"], 3, "there is no tool `nothing`"),
        (&["tools", "show", "slwo"], 3, "did you mean `slow`?"),
        (
            &["tools", "ls", "--server", "nope"],
            3,
            "known servers: `broken`, `silent`, `inner`",
        ),
        (&["call", "slow", "x"], 2, "invalid argument `x`"),
        (&["call", "slow", "--json", "{"], 2, "error: "),
        (&["call", "slow", "--json", "[]"], 2, "must be a JSON object"),
        (&["call", "slow", "--json", r#"{"a":1,"a":2}"#], 2, "duplicate"),
        (
            &["call", "slow", "--json", r#"{"a":{"b":1,"\u0062":2}}"#],
            2,
            "duplicate",
        ),
        (
            &["call", "slow", "--json", "@nowhere.json"],
            2,
            "cannot read `nowhere.json`",
        ),
        (&["call", "slow", "a=1", "--json", "{}"], 2, "cannot be used with"),
        (&["-c", "nowhere.yaml", "tools", "ls"], 2, "nowhere.yaml"),
        (&["frobnicate"], 2, "unrecognized subcommand"),
        (
            &["--log", "=,=", "version"],
            2,
            "invalid log level `=,=` in `--log`",
        ),
        (
            &["serve", "--http", "0.0.0.0:0"],
            2,
            "clients are not authenticated",
        ),
    ];
    for (arguments, code, said) in cases {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (code, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(run.stderr.contains(said), "{arguments:?}: {run:?}");
    }
    // A tool's own failure is its answer: it is printed as one, and the exit code reports the failure.
    let failed = place.run(&["call", "inner__fails"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("inner"), "{failed:?}");
}

#[test]
fn without_a_configuration_the_next_step_is_said() {
    let run = Place::empty().run(&["tools", "ls"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("`toolplane init`"), "{run:?}");
}

#[test]
fn usage_errors_are_json_when_json_was_asked_for() {
    let place = Place::empty();
    for arguments in [
        ["-o", "json", "frobnicate"],
        ["frobnicate", "--output", "json"],
        ["frobnicate", "-ojson", "x"],
    ] {
        let run = place.run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(error["error"]["message"], "unrecognized subcommand 'frobnicate'");
    }
}

#[test]
fn who_stops_reading_is_not_shouted_at() {
    use std::process::Stdio;

    let place = Place::empty();
    assert_eq!(place.run(&["init", "-q"]).code, 0);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = place
        .command(&["tools", "ls"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap().as_str()
        ),
        (Some(0), "")
    );
}

/// A disabled tool is unavailable, not unknown.
#[test]
fn a_tool_that_cannot_be_used_is_unavailable_and_an_unknown_one_is_not_found() {
    let place = Place::with(
        "tools:
  unset: {description: d, executor: {kind: http, url: 'https://${NOT_SET_ANYWHERE}/x'}}
  kindless: {description: d, executor: {kind: no_such_kind}}
",
    );
    for verb in [&["call"][..], &["tools", "show"]] {
        for (name, code) in [("unset", 6), ("kindless", 6), ("nothing_like_it", 3)] {
            let run = place.run(&[verb, &[name]].concat());
            assert_eq!(run.code, code, "{verb:?} {name}: {run:?}");
            assert_eq!(
                run.stderr.contains("is there but cannot be used"),
                code == 6,
                "{run:?}"
            );
        }
    }
}
