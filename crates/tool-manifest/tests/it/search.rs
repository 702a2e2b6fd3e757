//! Settings of search: words of tools, modes of the gateway, embeddings.

use std::time::Duration;

use tool_core::Pattern;
use toolplane::manifest::{Configuration, EmbeddingsSpec, GatewayMode, LoadOptions, Loaded, Syntax, load};

fn loaded(text: &str) -> Loaded {
    let options = LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text);
    load(&options).unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

fn configuration(text: &str) -> Configuration {
    loaded(text).configuration
}

fn problem(text: &str) -> String {
    match load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)) {
        Ok(loaded) => panic!("usable: {:?}", loaded.configuration),
        Err(problems) => problems.render(false),
    }
}

#[test]
fn a_tool_has_aliases_and_examples_for_searches() {
    let loaded = configuration(
        "tools: {t: {description: T, aliases: [wetter, meteo], examples: [is it raining?], executor: {kind: mock, result: 1}}}",
    );
    let metadata = &loaded.tools[0].metadata;
    assert_eq!(metadata.aliases, ["wetter", "meteo"]);
    assert_eq!(metadata.examples, ["is it raining?"]);
}

#[test]
fn the_gateway_lists_all_tools_unless_it_is_told_otherwise() {
    for (text, mode) in [
        ("gateway: {}", GatewayMode::List),
        ("gateway: {mode: list}", GatewayMode::List),
        ("gateway: {mode: search}", GatewayMode::Search),
        ("gateway: {mode: auto}", GatewayMode::Auto),
    ] {
        assert_eq!(configuration(text).gateway.mode, mode, "{text}");
    }
    let loaded = loaded("gateway: {mode: search, pinned: [weather, 'git__*']}");
    let pinned = &loaded.configuration.gateway.pinned;
    assert_eq!(*pinned, [Pattern::new("weather"), Pattern::new("git__*")]);
    let place = loaded
        .locate_rule("gateway.pinned", "git__*")
        .expect("its place is known");
    assert_eq!((place.line, place.column), (1, 43));
    let problem = problem("gateway: {mode: serach}");
    assert!(
        problem.contains("serach") && problem.contains("search"),
        "{problem}"
    );
}

#[test]
fn a_tool_with_the_name_of_a_meta_tool_is_an_error_unless_all_tools_are_listed() {
    for name in GatewayMode::META_TOOLS {
        let text = |mode: &str| {
            format!(
                "gateway: {{mode: {mode}}}\ntools:\n  {name}: {{description: T, executor: {{kind: mock, result: 1}}}}"
            )
        };
        assert_eq!(configuration(&text("list")).tools.len(), 1);
        for mode in ["search", "auto"] {
            let problem = problem(&text(mode));
            for part in [*name, mode, "toolplane.yaml:3:", "another name", "mode: list"] {
                assert!(problem.contains(part), "{part}: {problem}");
            }
        }
    }
}

#[test]
fn embeddings_are_a_service_or_a_directory() {
    let service = "search: {embeddings: {url: 'http://127.0.0.1:9/v1/embeddings', model: m, api_key: '${env:KEY}', timeout: 5s}}";
    match configuration(service).search.embeddings {
        Some(EmbeddingsSpec::Service {
            model,
            api_key,
            timeout,
            ..
        }) => {
            assert_eq!((model.as_str(), timeout), ("m", Duration::from_secs(5)));
            assert_eq!(api_key.map(|key| key.references().count()), Some(1));
        }
        other => panic!("{other:?}"),
    }
    let directory = configuration("search: {embeddings: {directory: models/m}}")
        .search
        .embeddings;
    assert_eq!(directory, Some(EmbeddingsSpec::Directory("models/m".into())));
    for (text, expected) in [
        ("search: {embeddings: {}}", "name no model"),
        (
            "search: {embeddings: {url: 'http://a/', directory: b}}",
            "two models",
        ),
        ("search: {embeddings: {url: 'http://a/'}}", "`model`"),
        ("search: {embeddings: {url: 'ftp://a/', model: m}}", "`https://`"),
        ("search: {embedings: {}}", "embeddings"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn a_key_in_the_file_is_warned_of() {
    let loaded = loaded("search: {embeddings: {url: 'http://a/', model: m, api_key: sk-123}}");
    assert_eq!(loaded.diagnostics.len(), 1);
    assert!(loaded.diagnostics[0].message.contains("for everyone to read"));
}
