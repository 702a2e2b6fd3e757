//! Chaos files: accepted settings, and the messages about wrong ones.

use std::time::Duration;

use tool_core::Pattern;
use tool_manifest::{ChaosFault, Syntax, chaos_schema, load_chaos, read_chaos};

#[test]
fn everything_that_can_be_said() {
    let text = "
seed: 42
rules:
  - tools: [weather, 'files__*']
    failure_rate: 20%
    errors: [network, network, unknown_outcome]
    latency: {rate: 50, max: 800ms}
  - failure_rate: 0%
  - latency: {}
";
    let chaos = read_chaos("chaos.yaml", Syntax::Yaml, text).expect("usable");
    assert_eq!((chaos.seed, chaos.rules.len()), (42, 3));
    let [first, second, third] = &chaos.rules[..] else {
        panic!("there are three")
    };
    let tools: Vec<_> = first.tools.iter().map(Pattern::as_str).collect();
    assert_eq!(tools, ["weather", "files__*"]);
    assert!((first.failure_rate - 0.2).abs() < 1e-9);
    let (network, unknown) = (ChaosFault::Network, ChaosFault::UnknownOutcome);
    assert_eq!(first.faults, Some(vec![network, network, unknown]));
    assert_eq!(first.latency, Some((0.5, Duration::from_millis(800))));
    assert!(second.tools.is_empty() && second.faults.is_none() && second.failure_rate == 0.0);
    assert_eq!(third.latency, Some((0.3, Duration::from_secs(5))));
}

#[test]
fn json_is_read_as_well() {
    let text = r#"{"seed": 1, "rules": [{"failure_rate": 5}]}"#;
    let chaos = read_chaos("chaos.json", Syntax::Json, text).expect("usable");
    assert!((chaos.rules[0].failure_rate - 0.05).abs() < 1e-9);
}

#[test]
fn what_cannot_be_meant_is_said_with_its_line() {
    for (text, line, expected) in [
        ("seed: 1\n", 1, "there are no `rules`"),
        ("\nrules:\n  - tools: [a]\n", 3, "this rule does nothing"),
        ("\nrules:\n  - failure_rate: 120%\n", 3, "0 to 100 percent"),
        ("\nrules:\n  - failure_rat: 20%\n", 3, "`failure_rate`"),
        (
            "\nrules:\n  - failure_rate: 20%\n    errors: [timeouts]\n",
            4,
            "`timeout`",
        ),
        (
            "\nrules:\n  - failure_rate: 20%\n    errors: []\n",
            4,
            "something has to go wrong",
        ),
        (
            "\nrules: [{failure_rate: 1%}]\n---\nrules: [{failure_rate: 1%}]\n",
            4,
            "once",
        ),
        ("seed: -1\nrules: [{failure_rate: 1%}]\n", 1, "whole number"),
    ] {
        let problems = read_chaos("c.yaml", Syntax::Yaml, text).expect_err(text);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains(&format!("c.yaml:{line}:")),
            "{text}:\n{said}"
        );
    }
    let problems = read_chaos("c.yaml", Syntax::Yaml, "").expect_err("empty");
    assert!(problems.render(false).contains("nothing in this file"));
    let problems = load_chaos("no/such/chaos.yaml".as_ref()).expect_err("it is not there");
    assert!(problems.render(false).contains("cannot read"));
}

#[test]
fn the_schema_knows_every_key() {
    let schema = chaos_schema();
    for word in [
        "seed",
        "rules",
        "tools",
        "failure_rate",
        "errors",
        "latency",
        "unknown_outcome",
        "partial",
    ] {
        assert!(schema.as_str().contains(&format!("\"{word}\"")), "{word}");
    }
}
