//! Partial results: accepted settings, and the messages about wrong ones.

use tool_policy::{PartialRule, PartialSettings};
use toolplane::manifest::{LoadOptions, Syntax, load};

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

#[test]
fn rules_by_default_of_a_server_and_of_a_tool() {
    let text = "
defaults:
  partial: fail
servers:
  github: {command: x, partial: accept}
tools:
  search:
    description: Searches.
    partial: {rule: fail, field: /errors}
    executor: {kind: mock, result: 1}
  look:
    description: Looks.
    partial: {field: /page/truncated}
    executor: {kind: mock, result: 1}
";
    let configuration = load(&options(text)).expect("usable").configuration;
    let settings = |rule, field: Option<&str>| {
        let settings = PartialSettings::default().with_rule(rule);
        Some(match field {
            Some(field) => settings.with_field(field),
            None => settings,
        })
    };
    let fail = settings(PartialRule::Fail, None);
    assert_eq!(
        configuration.defaults.overrides.get::<PartialSettings>().cloned(),
        fail
    );
    let accept = settings(PartialRule::Accept, None);
    assert_eq!(
        configuration.servers[0]
            .overrides
            .get::<PartialSettings>()
            .cloned(),
        accept
    );
    let of_tools: Vec<_> = configuration
        .tools
        .iter()
        .map(|tool| tool.overrides.get::<PartialSettings>().cloned())
        .collect();
    let expected = [
        settings(PartialRule::Fail, Some("/errors")),
        settings(PartialRule::Accept, Some("/page/truncated")),
    ];
    assert_eq!(of_tools, expected);
}

#[test]
fn what_is_wrong_is_shown_in_its_line() {
    for (partial, expected) in [
        ("maybe", "unknown value `maybe`"),
        ("{rul: fail}", "rul"),
        ("{field: errors}", "this is no JSON Pointer"),
    ] {
        let text = format!(
            "tools:\n  search:\n    description: Searches.\n    executor: {{kind: mock, result: 1}}\n    partial: {partial}\n"
        );
        let said = load(&options(&text)).expect_err(partial).render(false);
        let is_shown = said.contains(expected) && said.contains("toolplane.yaml:5");
        assert!(is_shown, "{partial}: {said}");
    }
}
