//! Caches: accepted settings, and the messages about wrong ones.

use std::time::Duration;

use tool_runtime::{CacheCapacity, CacheScope, CacheSettings, SemanticCacheSettings};
use toolplane::manifest::{LoadOptions, Syntax, load};

const SECOND: Duration = Duration::from_secs(1);

fn options(text: &str) -> LoadOptions {
    LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)
}

#[test]
fn caches_by_default_of_a_server_and_of_a_tool() {
    let text = "
defaults:
  cache: {ttl: 30s}
  cache_bytes: 8MiB
servers:
  github: {command: x, cache: {disabled: true}}
tools:
  search:
    description: Searches.
    cache: {ttl: 0s, stale_while_revalidate: 1m, stale_if_error: 1h, max_bytes: 64KiB, scope: shared}
    executor: {kind: mock, result: 1}
  lookup:
    description: Looks up.
    cache: {}
    executor: {kind: mock, result: 1}
  write:
    description: Writes.
    read_only: false
    cache: {disabled: true}
    executor: {kind: mock, result: 1}
";
    let configuration = load(&options(text)).expect("usable").configuration;
    let defaults = &configuration.defaults;
    let plain = CacheSettings::default();
    let of_defaults = plain.with_ttl(30 * SECOND);
    assert_eq!(
        (
            defaults.overrides.get::<CacheSettings>().copied(),
            defaults.overrides.get::<CacheCapacity>().copied()
        ),
        (Some(of_defaults), Some(CacheCapacity(8 << 20)))
    );
    let of_server = configuration.servers[0].overrides.get::<CacheSettings>().copied();
    assert!(of_server.is_some_and(|cache| cache.disabled));
    let of_search = CacheSettings::default()
        .with_disabled(false)
        .with_ttl(Duration::ZERO)
        .with_stale_while_revalidate(60 * SECOND)
        .with_stale_if_error(3600 * SECOND)
        .with_max_bytes(64 << 10)
        .with_scope(CacheScope::Shared);
    let of_tools: Vec<_> = configuration
        .tools
        .iter()
        .map(|tool| tool.overrides.get::<CacheSettings>().copied())
        .collect();
    assert_eq!(of_tools[..2], [Some(of_search), Some(plain)]);
}

#[test]
fn what_is_wrong_is_shown_in_its_line() {
    for (cache, line, expected) in [
        ("    cache: {ttl: 5}", 5, "`5` is no time with its unit"),
        ("    cache: {tll: 5s}", 5, "tll"),
        ("    cache: {scope: everyone}", 5, "unknown value `everyone`"),
        ("    cache: {max_bytes: 0}", 5, "no answer fits into 0 bytes"),
        (
            "    read_only: false\n    cache: {}",
            6,
            "a tool with `read_only: false` cannot have a cache",
        ),
        (
            "    idempotent: false\n    cache: {}",
            6,
            "a tool with `idempotent: false` cannot have a cache",
        ),
    ] {
        let text = format!(
            "tools:\n  search:\n    description: Searches.\n    executor: {{kind: mock, result: 1}}\n{cache}\n"
        );
        let problems = load(&options(&text)).expect_err(cache);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains(&format!("toolplane.yaml:{line}")),
            "{cache}: {said}"
        );
    }
}

/// Tool with an input schema and this semantic cache, in a configuration with embeddings.
fn with_semantics(semantic: &str) -> String {
    format!(
        "search: {{embeddings: {{directory: models/m}}}}
tools:
  ask:
    description: Answers.
    input_schema:
      type: object
      properties: {{question: {{type: string}}, topic: {{type: [string, 'null']}}, limit: {{type: integer}}, any: {{}}}}
    cache: {{ttl: 1h, semantic: {semantic}}}
    executor: {{kind: mock, result: 1}}
"
    )
}

#[test]
fn a_semantic_cache_names_the_texts_that_are_compared() {
    let settings = |semantic: &str| {
        let loaded = load(&options(&with_semantics(semantic))).expect("usable");
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        let tool = &loaded.configuration.tools[0];
        tool.overrides.get::<SemanticCacheSettings>().cloned()
    };
    let of_question = SemanticCacheSettings::new(["question"]);
    assert_eq!(settings("{fields: [question]}"), Some(of_question.clone()));
    let (fields, threshold) = (["question", "topic", "any"], 0.95);
    assert_eq!(
        settings("{fields: [question, topic, any], threshold: 0.95}"),
        Some(SemanticCacheSettings::new(fields).with_threshold(threshold))
    );
}

#[test]
fn a_semantic_cache_that_cannot_work_is_refused_or_reported() {
    for (semantic, expected) in [
        ("{}", "the semantic cache names no argument"),
        ("{fields: []}", "the semantic cache names no argument"),
        ("{fields: [question, question]}", "this argument is named twice"),
        ("{fields: [qestion]}", "did you mean `question`?"),
        ("{fields: [limit]}", "the argument `limit` is no text"),
        (
            "{fields: [question], threshold: 0}",
            "a cosine above 0 and up to 1",
        ),
        (
            "{fields: [question], threshold: 1.1}",
            "a cosine above 0 and up to 1",
        ),
        ("{fields: [question], treshold: 0.9}", "threshold"),
        ("{fields: question}", "list"),
    ] {
        let problems = load(&options(&with_semantics(semantic))).expect_err(semantic);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains("toolplane.yaml:8"),
            "{semantic}: {said}"
        );
    }
    let without_time = with_semantics("{fields: [question]}").replace("ttl: 1h", "ttl: 0s");
    let said = load(&options(&without_time)).expect_err("no time").render(false);
    assert!(said.contains("no result is fresh with `ttl: 0s`"), "{said}");
    let text = "defaults: {cache: {semantic: {fields: [q]}}}\nservers: {s: {command: x, cache: {semantic: {fields: [q]}}}}\n";
    let said = load(&options(text)).expect_err("for many tools").render(false);
    assert_eq!(said.matches("this cannot be for many tools").count(), 2, "{said}");
    let without =
        with_semantics("{fields: [question]}").replace("search: {embeddings: {directory: models/m}}\n", "");
    let loaded = load(&options(&without)).expect("a program may set an embedder");
    let warnings: Vec<_> = loaded
        .diagnostics
        .iter()
        .map(|warning| warning.message.clone())
        .collect();
    assert_eq!(warnings, ["nothing embeds texts, so this does nothing"]);
}
