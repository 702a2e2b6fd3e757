//! `toolplane agent run`: a model, or a script in its place, uses the tools of a configuration.

use std::fs;

use crate::binary::{Place, Run};

const TOOLS: &str = "
store: {sqlite: tools.db}
tools:
  weather: {description: The weather., executor: {kind: mock, template: '{\"sky\": \"clear\", \"city\": \"{{ city }}\"}'}}
  pay: {description: Pays., approval: required, executor: {kind: mock, result: paid}}
";

fn place(script: &str) -> Place {
    let place = Place::with(TOOLS);
    fs::write(place.path().join("turns.json"), script).unwrap();
    place
}

/// Runs an agent with the script of a place.
fn scripted(place: &Place, arguments: &[&str]) -> Run {
    place.run(&[&["agent", "run", "--script", "turns.json"], arguments].concat())
}

#[test]
fn a_conversation_is_shown_as_it_happens() {
    let place = place(
        r#"[
            {"calls": [{"tool": "weather", "arguments": {"city": "Oslo"}}, {"tool": "wether"}]},
            {"expect": ["clear"], "text": "Take sunglasses."}
        ]"#,
    );
    let run = scripted(&place, &["What do I need?"]);
    assert_eq!(run.stdout, "Take sunglasses.\n");
    insta::assert_snapshot!(run.stderr, @r#"
    -> weather {"city":"Oslo"}
    -> wether {}
    <- wether failed: not_found: there is no tool of this name. list the tools and use a name from the list
    <- weather {"sky": "clear", "city": "Oslo"}
    "#);
    let json = scripted(
        &place,
        &["--output", "json", "--for", "gemini", "What do I need?"],
    );
    assert_eq!(
        json.stdout.replace(char::is_whitespace, ""),
        r#"{"text":"Takesunglasses.","stop":"end"}"#
    );
}

#[test]
fn a_conversation_that_waits_goes_on_in_another_process() {
    let place =
        place(r#"[{"calls": [{"tool": "weather", "arguments": {"city": "Oslo"}}, {"tool": "pay"}]}]"#);
    let run = scripted(&place, &["--state", "talk.json", "Pay."]);
    assert_eq!(run.code, 5, "{}", run.stderr);
    let handle = run
        .stderr
        .split("as `")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .unwrap();
    assert!(
        run.stderr
            .contains("hint: once that is decided, go on with `toolplane agent run --state talk.json`"),
        "{}",
        run.stderr
    );
    let approved = place.run(&["approvals", "approve", handle]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    let more = scripted(&place, &["--state", "talk.json", "And more."]);
    assert_eq!(more.code, 2);
    assert!(
        more.stderr
            .contains("the conversation waits, and takes no message"),
        "{}",
        more.stderr
    );
    fs::write(
        place.path().join("turns.json"),
        r#"[{"expect": ["paid", "Oslo"], "text": "Paid."}]"#,
    )
    .unwrap();
    let end = scripted(&place, &["--state", "talk.json"]);
    assert_eq!(end.stdout, "Paid.\n");
    // Nothing but the call that waited was made in the second run.
    assert_eq!(end.stderr, "<- pay paid\n");
}

#[test]
fn what_cannot_run_says_why() {
    let place = place(r#"[{"expect": ["rain"], "text": "x"}]"#);
    for (arguments, code, message) in [
        (&["agent", "run", "x"][..], 2, "--model"),
        (
            &["agent", "run", "--script", "none.json", "x"],
            2,
            "`none.json` cannot be read",
        ),
        (
            &["agent", "run", "--script", "toolplane.yaml", "x"],
            2,
            "`toolplane.yaml` is no JSON",
        ),
        (
            &["agent", "run", "--script", "turns.json"],
            2,
            "there is no message to the model",
        ),
        (
            &["agent", "run", "--script", "turns.json", "x"],
            6,
            "turn 1 expects `rain` before it",
        ),
        (
            &["agent", "run", "--model", "m", "--key-env", "NO_KEY_HERE", "x"],
            2,
            "the environment variable `NO_KEY_HERE` is not set",
        ),
        (
            &[
                "agent",
                "run",
                "--model",
                "m",
                "--base-url",
                "http://127.0.0.1:9",
                "x",
            ],
            6,
            "the model does not answer: it cannot be reached",
        ),
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
    fs::write(place.path().join("talk.json"), "{}").unwrap();
    let run = scripted(&place, &["--state", "talk.json", "x"]);
    assert!(
        run.stderr.contains("`talk.json`: this is no stored conversation"),
        "{}",
        run.stderr
    );
}
