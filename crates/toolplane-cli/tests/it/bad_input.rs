//! Invalid configurations: every problem with its line, and exit code 2.

use std::fmt::Write;

use crate::binary::{Place, Run};

/// Checks a file and returns the output.
fn said_of(configuration: &str) -> String {
    let place = Place::with(configuration);
    let run = place.run(&["check"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains("toolplane.yaml:"), "{run:?}");
    // Verbs that need the configuration fail in the same way, or work without the invalid part.
    let list = place.run(&["tools", "ls"]);
    assert!(matches!(list.code, 0 | 2), "{list:?}");
    run.stderr
}

#[test]
fn keys_that_are_not_known_or_stand_twice() {
    insta::assert_snapshot!(said_of(
        "
tools:
  one:
    descripton: One
    executor: {kind: mock, result: 1}
  one:
    description: One
"
    ));
}

#[test]
fn what_only_executors_schemas_and_the_environment_know() {
    insta::assert_snapshot!(said_of(
        r#"
servers:
  files:
    command: npx
    env: {TOKEN: "${NO_SUCH_VARIABLE}"}
    args: ["${NO_SUCH_ARGUMENT:?say which}"]
tools:
  schema:
    description: Its schema is none
    input_schema: {type: object, properties: {a: {type: strin}}}
    executor: {kind: mock, rsult: 1}
  http:
    description: Its token is missing
    executor:
      kind: http
      url: https://example.com/
      headers: {Authorization: "Bearer ${NO_SUCH_TOKEN}"}
  python:
    description: Nothing runs it
    executor: {kind: wasm}
secrets:
  token: ${env:NO_SUCH_SECRET}
"#
    ));
}

#[test]
fn words_that_look_like_something_else() {
    insta::assert_snapshot!(said_of(
        "
tools:
  one:
    description: no
    read_only: no
    timeout_ms: 012
    executor: {kind: mock, result: 1}
"
    ));
}

#[test]
fn files_that_would_grow_without_end() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (outer, inner) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        let _ = writeln!(
            bomb,
            "{outer}: &{outer} [{}]",
            vec![format!("*{inner}"); 10].join(", ")
        );
    }
    said_of(&bomb);
    said_of(&format!("tools: {}{}", "[".repeat(10_000), "]".repeat(10_000)));
}

#[test]
fn texts_that_are_no_configuration() {
    for text in ["tools:\n\tone: 1\n", "just words", "[1, 2]", "tools: {", "\u{0}"] {
        said_of(text);
    }
}

#[test]
fn problems_as_data() {
    let place = Place::with("tools:\n  one:\n    descripton: One\n    executor: {kind: mock, result: 1}\n");
    let run = place.run(&["check", "-o", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (2, ""));
    insta::assert_snapshot!(run.stdout);

    let run = place.run(&["tools", "ls", "-o", "json"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["problems"][0]["line"], 3);
}

#[test]
fn warnings_are_errors_only_for_the_strict() {
    let place = Place::with(
        "
tools:
  one:
    description: One
    input_schema: {$schema: 'https://example.com/unknown', type: object}
    executor: {kind: mock, result: 1}
",
    );
    let run = place.run(&["check"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "toolplane.yaml: ok, 1 tool, 0 servers, 1 warning\n")
    );
    assert!(
        run.stderr.contains("warning: ") && run.stderr.contains("toolplane.yaml:5:"),
        "{run:?}"
    );
    let run = place.run(&["check", "--strict"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn a_limit_of_an_executor_that_never_has_an_effect_is_warned_of() {
    let tool = |more: &str, limits: &str| {
        let text = format!(
            "
defaults: {{call_timeout: 40s}}
tools:
  one:
    description: One
    input_schema: {{type: object}}{more}
    executor:
      kind: http
      url: https://api.example.com/
{limits}"
        );
        Place::with(&text)
    };
    for (more, limits, expected) in [
        // The default for all tools is 30 s.
        ("", "      timeout_ms: 30000\n", ""),
        (
            "",
            "      timeout_ms: 30001\n",
            "`timeout_ms` is 30001, but an attempt of `one` is over after 30 s",
        ),
        (
            "",
            "      read_timeout_ms: 31000\n",
            "`read_timeout_ms` is 31000, but an attempt",
        ),
        (
            "",
            "      connect_timeout_ms: 31000\n",
            "`connect_timeout_ms` is 31000, but an attempt",
        ),
        ("\n    timeout_ms: 31000", "      timeout_ms: 31000\n", ""),
        (
            "\n    timeout_ms: 5000",
            "      timeout_ms: 6000\n",
            "but an attempt of `one` is over after 5 s",
        ),
        (
            "\n    call_timeout: 20s",
            "      timeout_ms: 25000\n",
            "but a call of `one` is over after 20 s",
        ),
        ("\n    timeout_ms: 25000", "", ""),
        (
            "\n    timeout_ms: 25000\n    call_timeout: 20s",
            "",
            "an attempt may take 25000 ms, but a call is over after 20 s",
        ),
    ] {
        let place = tool(more, limits);
        let run = place.run(&["check"]);
        assert_eq!(run.code, 0, "{run:?}");
        if expected.is_empty() {
            assert_eq!(run.stderr, "");
            continue;
        }
        assert!(run.stderr.contains("never has an effect"), "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {run:?}");
        let line = 6 + usize::from(more.contains("timeout_ms")) + usize::from(more.contains("call_timeout"));
        let line = if limits.is_empty() { 7 } else { line + 4 };
        assert!(
            run.stderr.contains(&format!("toolplane.yaml:{line}:")),
            "{line}: {run:?}"
        );
        assert_eq!(run.stderr.matches("warning: ").count(), 1, "{run:?}");
        // Verbs that load it report it as well, if the executor finds it.
        let listed = place.run(&["tools", "ls"]);
        assert_eq!(listed.code, 0);
        assert!(listed.stderr.contains(expected), "{listed:?}");
    }
}

#[test]
fn a_limit_of_a_server_that_never_has_an_effect_is_warned_of() {
    for (said, is_warned_of) in [("1s", true), ("5s", false)] {
        let place = Place::with(&format!(
            "servers:\n  web:\n    url: http://127.0.0.1:9/mcp\n    timeout_ms: 5000\n    call_timeout: {said}\n"
        ));
        let run = place.run(&["check"]);
        assert_eq!(run.code, 0, "{run:?}");
        let expected = "an attempt may take 5000 ms, but a call is over after 1 s: this never has an effect";
        assert_eq!(run.stderr.contains(expected), is_warned_of, "{run:?}");
        assert_eq!(run.stderr.contains("toolplane.yaml:4:"), is_warned_of, "{run:?}");
    }
}

#[test]
fn a_callback_that_nobody_signs_is_warned_of() {
    let check = |callback: &str| {
        let place = Place::with(&format!(
            "
policy:
  approval:
    required: [one]
    callback: {callback}
tools:
  one:
    description: One
    input_schema: {{type: object}}
    executor: {{kind: mock, result: 1}}
"
        ));
        place.write("key", "k");
        let run = place.run(&["check"]);
        assert_eq!(run.code, 0, "{run:?}");
        run.stderr
    };
    let url = "url: 'https://example.com/hook'";
    let said = check(&format!("{{{url}}}"));
    assert!(said.contains("warning: the callback is not signed"), "{said}");
    assert!(said.contains("toolplane.yaml:5:"), "{said}");
    assert_eq!(check(&format!("{{{url}, secret: '${{file:key}}'}}")), "");
    let said = check(&format!("{{{url}, secret: '${{file:none}}'}}"));
    assert!(
        said.contains("the webhook cannot be used now: `${file:none}` cannot be read"),
        "{said}"
    );
}

#[test]
fn what_a_name_of_two_tools_leads_to() {
    let place = Place::with(&format!(
        "
tools:
  inner__one: {{description: Ours, executor: {{kind: mock, result: 1}}}}
servers:
  inner: {{command: {}, args: [-c, inner.yaml, serve, --stdio]}}
",
        crate::binary::BINARY
    ));
    place.write(
        "inner.yaml",
        "tools: {one: {description: Theirs, executor: {kind: mock, result: 2}}}",
    );
    let run = place.run(&["tools", "ls"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stdout.contains("Ours") && !run.stdout.contains("Theirs"),
        "{run:?}"
    );
    assert!(
        run.stderr
            .contains("`inner__one` is already a tool of `configuration`"),
        "{run:?}"
    );
}

#[test]
fn steps_of_ladders_that_lead_nowhere() {
    insta::assert_snapshot!(said_of(
        "
tools:
  one:
    description: One
    output_schema: {type: object, properties: {n: {type: integer}}}
    on_failure:
      - fallback: three
      - default: {n: one}
    executor: {kind: mock, result: 1}
  two:
    description: Two
    on_failure: [default: 1]
    executor: {kind: mock, result: 1}
"
    ));
}

#[test]
fn a_rule_that_matches_nothing_is_warned_of() {
    let place = Place::with(
        "tools:
  send: {description: Sends, executor: {kind: mock, result: 1}}
servers:
  files: {command: none}
policy:
  blocklist: [sned, 'files__*']
  approval: {required: [send]}
",
    );
    let run = place.run(&["check"]);
    assert_eq!(run.code, 0, "{run:?}");
    let message = "`policy.blocklist` has `sned`, which matches no tool, prompt or resource";
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert!(run.stderr.contains("did you mean `send`?"), "{}", run.stderr);
    assert!(run.stderr.contains("toolplane.yaml:6:"), "{}", run.stderr);
    assert_eq!(run.stderr.matches("matches no tool").count(), 1, "{}", run.stderr);
    assert_eq!(place.run(&["check", "--strict"]).code, 2);
}

#[test]
fn settings_that_nothing_goes_by_are_told() {
    let check = |settings: &str| {
        let place = Place::with(&format!(
            "tools: {{t: {{description: T, executor: {{kind: mock, result: 1}}, {settings}}}}}"
        ));
        place.run(&["check"])
    };
    for settings in ["pii_handling: anonymize", "piiHandling: encrypt"] {
        let run = check(settings);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(
            run.stderr.contains("`pii_handling` has no effect"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("toolplane.yaml:1:"), "{}", run.stderr);
    }
    for (settings, key) in [
        ("data_classification: sensitive", "data_classification"),
        ("dataClassification: public", "data_classification"),
    ] {
        let run = check(settings);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(
            run.stderr.contains(&format!("`{key}` has no effect")),
            "{}",
            run.stderr
        );
    }
    for settings in [
        "pii_handling: none",
        "tags: [a]",
        "capabilities: [search]",
        "sla: 99%",
        "aliases: [wetter]",
        "examples: [do I need an umbrella?]",
    ] {
        assert_eq!(check(settings).stderr, "", "{settings}");
    }
}

#[test]
fn a_problem_at_many_places_is_shown_once() {
    let tool = |n: usize| {
        format!(
            "  t{n}: {{description: T, executor: {{kind: http, url: \"https://api.example.com\", headers: {{a: \"${{UNSET}}\"}}}}}}\n"
        )
    };
    let with = |n_tools: usize| {
        let tools: String = (0..n_tools).map(tool).collect();
        Place::with(&format!("tools:\n{tools}"))
    };
    let shown = |run: &Run| run.stderr.matches("`${UNSET}` is not set").count();

    let few = with(3).run(&["check"]);
    assert_eq!((shown(&few), few.code), (3, 2), "{few:?}");
    let many = with(4).run(&["check"]);
    assert_eq!(shown(&many), 1, "{many:?}");
    assert!(many.stderr.contains("the same at 3 further places"), "{many:?}");
    assert!(many.stderr.contains("4 errors"), "{many:?}");
    let json = with(4).run(&["check", "-o", "json"]).json();
    assert_eq!(json["problems"].as_array().unwrap().len(), 4, "{json}");
}
