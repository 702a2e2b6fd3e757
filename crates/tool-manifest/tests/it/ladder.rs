//! Fallback ladders: accepted settings, and the messages about wrong ones.

use std::time::Duration;

use raw_json::RawJson;
use tool_core::Setting;
use tool_runtime::{FailureStep, FallbackLadder};
use toolplane::manifest::{LoadOptions, Loaded, Severity, Syntax, load};

const HOUR: Duration = Duration::from_secs(3600);

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

fn loaded(text: &str) -> Loaded {
    load(&options(text)).unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

#[test]
fn ladders_by_default_of_a_server_and_of_a_tool() {
    let loaded = loaded(
        "
defaults:
  on_failure: [stale: 1h]
servers:
  github: {command: x, on_failure: []}
tools:
  search:
    description: Searches.
    cache: {}
    on_failure: [fallback: wiki, stale: 1h, default: {items: [1.50, null]}]
    executor: {kind: mock, result: 1}
  wiki:
    description: Looks up.
    fallbacks: [search, github__search]
    executor: {kind: mock, result: 1}
",
    );
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let configuration = &loaded.configuration;
    let by_default = configuration
        .defaults
        .overrides
        .get::<FallbackLadder>()
        .map(|ladder| &*ladder.0);
    assert_eq!(by_default, Some(&[FailureStep::Stale(HOUR)][..]));
    let of_server = configuration.servers[0]
        .overrides
        .get::<FallbackLadder>()
        .map(|ladder| &*ladder.0);
    assert_eq!(of_server, Some(&[][..]));
    let fallback = |name: &str| FailureStep::Fallback(name.into());
    let of = |index: usize| {
        let tool = &configuration.tools[index];
        let own = tool.overrides.get::<FallbackLadder>().cloned();
        own.unwrap_or_default().settled(tool).map(|ladder| ladder.0)
    };
    let given = RawJson::parse(r#"{"items":[1.50,null]}"#).unwrap();
    let expected = [
        fallback("wiki"),
        FailureStep::Stale(HOUR),
        FailureStep::Default(given),
    ];
    assert_eq!(of(0).as_deref(), Some(&expected[..]));
    let listed = [fallback("search"), fallback("github__search")];
    assert_eq!(of(1).as_deref(), Some(&listed[..]));
    assert_eq!(configuration.tools[1].metadata.fallbacks.len(), 2);
}

#[test]
fn what_is_wrong_is_shown_in_its_line() {
    for (ladder, line, expected) in [
        ("    on_failure: [fallbck: x]", 5, "fallbck"),
        ("    on_failure: [stale: 5]", 5, "`5` is no time with its unit"),
        ("    on_failure: [stale: 0s]", 5, "as young as this"),
        ("    on_failure: [{}]", 5, "this step says nothing"),
        (
            "    on_failure: [{stale: 1h, default: 1}]",
            5,
            "more than one step",
        ),
        (
            "    on_failure: [fallback: search]",
            5,
            "no help when it has failed itself",
        ),
        (
            "    on_failure:\n      - fallback: b\n      - fallback: b",
            7,
            "this tool is tried already",
        ),
        (
            "    on_failure:\n      - default: null\n      - fallback: b",
            7,
            "this step is never taken",
        ),
        (
            "    on_failure: []\n    fallbacks: [b]",
            6,
            "`fallbacks` and `on_failure` say the same thing",
        ),
        ("    fallbacks: [search]", 5, "no help when it has failed itself"),
        (
            "    on_failure:\n      - stale: 1h",
            6,
            "no answer of this tool is kept",
        ),
        (
            "    cache: {disabled: true}\n    on_failure: [stale: 1h]",
            6,
            "no answer of this tool is kept",
        ),
        (
            "    output_schema: {type: object, properties: {n: {type: integer}}}\n    on_failure: [default: {n: one}]",
            6,
            "this does not fit the output schema of the tool: `/n` must be an integer, not \"one\"",
        ),
    ] {
        let text = format!(
            "tools:\n  search:\n    description: Searches.\n    executor: {{kind: mock, result: 1}}\n{ladder}\n  b:\n    description: B.\n    executor: {{kind: mock, result: 1}}\n"
        );
        let problems = load(&options(&text)).expect_err(ladder);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains(&format!("toolplane.yaml:{line}")),
            "{ladder}: {said}"
        );
    }
    for text in [
        "defaults:\n  on_failure: [fallback: b]\n",
        "servers:\n  s: {command: x, on_failure: [default: 1]}\n",
    ] {
        let said = load(&options(text)).expect_err(text).render(false);
        assert!(
            said.contains("only `stale` can") && said.contains("toolplane.yaml:2"),
            "{said}"
        );
    }
}

#[test]
fn a_declared_tool_may_be_kept_by_what_its_server_or_the_defaults_say() {
    for (cache, is_kept) in [
        ("defaults: {cache: {}}", true),
        ("servers: {s: {command: x, cache: {}}}", true),
        ("defaults: {cache: {disabled: true}}", false),
        ("defaults: {}", false),
    ] {
        let text = format!(
            "{cache}\ntools:\n  search:\n    description: Searches.\n    read_only: true\n    idempotent: true\n    on_failure: [stale: 1h]\n    executor: {{kind: mock, result: 1}}\n"
        );
        assert_eq!(load(&options(&text)).is_ok(), is_kept, "{cache}");
    }
}

#[test]
fn a_fallback_that_nobody_can_have_is_a_warning_in_its_line() {
    let loaded = loaded(
        "
servers:
  github: {command: x, rename: {find: look_up}}
  bare: {command: x, prefix: 'b_', disabled: true}
tools:
  search:
    description: Searches.
    fallbacks: [github__anything, github__look_up, b_x, serach, gone]
    executor: {kind: mock, result: 1}
  seerch:
    description: Searches.
    executor: {kind: mock, result: 1}
",
    );
    let said: Vec<_> = loaded
        .diagnostics
        .iter()
        .map(|problem| {
            let line = problem.location.as_ref().map_or(0, |place| place.line);
            assert_eq!((problem.severity, line), (Severity::Warning, 8));
            let hint = problem.hint.clone().unwrap_or_default();
            (problem.message.clone(), hint.contains("did you mean"))
        })
        .collect();
    let missing = |name: &str, is_near| (format!("no tool is called `{name}` here"), is_near);
    assert_eq!(
        said,
        [
            missing("b_x", false),
            missing("serach", true),
            missing("gone", false)
        ]
    );
}

#[test]
fn a_file_of_a_directory_whose_ladder_leads_nowhere_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let tool = |name: &str, more: &str| {
        format!("tools:\n  {name}:\n    description: Does.\n    executor: {{kind: mock, result: 1}}\n{more}")
    };
    let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).unwrap();
    write("a.yaml", tool("a", "    on_failure: [stale: 1h]\n"));
    write("b.yaml", tool("b", ""));
    let given = "    output_schema: {type: string}\n    on_failure: [default: 1]\n";
    write("c.yaml", tool("c", given));
    // An unusable schema checks nothing: no call gets that far.
    let unusable = given.replace("string", "strong");
    write("d.yaml", tool("d", &unusable));
    let loaded = load(&LoadOptions::new().path(directory.path())).unwrap();
    let names: Vec<_> = loaded
        .configuration
        .tools
        .iter()
        .map(|tool| &*tool.name)
        .collect();
    assert_eq!(names, ["b", "d"]);
    assert!(loaded.has_errors());
}
