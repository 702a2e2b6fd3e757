//! Tools that are offered, and their names.

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    BoxFuture, Executor as _, Feature, Pattern, Reference, Secret, SecretError, SecretSearch, Secrets, Trust,
    check_name,
};
use tool_exec_mcp::{McpExecutor, McpServer, ServerSettings};

use crate::fixture::{Fixture, NoSecrets, load, tool};

/// Secrets that have given out one value.
struct Known(SecretSearch);

impl Secrets for Known {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn hide_in_json(&self, json: &RawJson) -> Option<RawJson> {
        self.0.hide_in_json(json)
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(false)
    }
}

#[tokio::test]
async fn lists_hide_known_secrets() {
    let plain = r#"{ "name":"plain", "inputSchema": {"type":"object"}, "x": 1e2 }"#;
    let leaky = r#"{"name":"leaky","title":"hunter2-hunter2","description":"with hunter2%2Dhunter2","inputSchema":{"type":"object","properties":{"a":{"default":"aHVudGVyMi1odW50ZXIy"}}}}"#;
    let prompt = r#"{"name":"greet","description":"hunter2\u002dhunter2"}"#;
    let fixture = Fixture::new(&[]);
    fixture.offers(&json!({"tools": {}, "prompts": {}}));
    fixture.has("tools", &format!("[{plain},{leaky}]"));
    fixture.has("prompts", &format!("[{prompt}]"));
    let known = Known(SecretSearch::new(["hunter2-hunter2"]));
    let server = McpServer::new(fixture.settings(""), std::sync::Arc::new(known));
    let catalogue = load(&server).await;
    server.shutdown().await;
    let listed = catalogue.tools.iter().chain(&catalogue.others);
    let definitions: Vec<_> = listed
        .map(|descriptor| descriptor.definition.as_ref().unwrap().as_str())
        .collect();
    assert_eq!(
        definitions,
        [
            plain,
            r#"{"name":"leaky","title":"[redacted]","description":"with [redacted]","inputSchema":{"type":"object","properties":{"a":{"default":"[redacted]"}}}}"#,
            r#"{"name":"greet","description":"[redacted]"}"#,
        ]
    );
}

/// Returns the names under which a server's tools are offered after its settings were changed.
async fn names(tools: &[&str], change: impl FnOnce(&mut ServerSettings)) -> Vec<String> {
    let tools: Vec<_> = tools.iter().map(|name| tool(name)).collect();
    let fixture = Fixture::new(&tools);
    let mut settings = fixture.settings("");
    change(&mut settings);
    let server = McpServer::new(settings, std::sync::Arc::new(NoSecrets));
    let catalogue = load(&server).await;
    server.shutdown().await;
    catalogue.tools.iter().map(|tool| tool.name.to_string()).collect()
}

fn patterns(list: &[&str]) -> Vec<Pattern> {
    list.iter().map(|pattern| Pattern::new(*pattern)).collect()
}

#[tokio::test]
async fn the_prefix_stands_before_every_name() {
    assert_eq!(
        names(&["read", "write"], |_| {}).await,
        ["box__read", "box__write"]
    );
    let other = |settings: &mut ServerSettings| settings.prefix = "b.".to_owned();
    assert_eq!(names(&["read"], other).await, ["b_read"], "no `.` in a name");
    let none = |settings: &mut ServerSettings| settings.prefix = String::new();
    assert_eq!(names(&["read"], none).await, ["read"]);
}

#[tokio::test]
async fn include_exclude_and_rename_match_names_at_the_server() {
    let listed = ["read_file", "read_dir", "write_file", "stat"];
    let include = |settings: &mut ServerSettings| settings.include = Some(patterns(&["read_*", "stat"]));
    assert_eq!(
        names(&listed, include).await,
        ["box__read_file", "box__read_dir", "box__stat"]
    );
    let both = |settings: &mut ServerSettings| {
        settings.include = Some(patterns(&["read_*"]));
        settings.exclude = patterns(&["*_dir"]);
    };
    assert_eq!(names(&listed, both).await, ["box__read_file"]);
    let nothing = |settings: &mut ServerSettings| settings.include = Some(Vec::new());
    assert!(names(&listed, nothing).await.is_empty());
    let rename = |settings: &mut ServerSettings| {
        settings.exclude = patterns(&["*_dir", "stat"]);
        settings.rename = [("read_file", "cat"), ("box__write_file", "no"), ("stat", "no")]
            .map(|(own, new)| (own.to_owned(), new.to_owned()))
            .into();
    };
    assert_eq!(names(&listed, rename).await, ["box__cat", "box__write_file"]);
}

#[tokio::test]
async fn long_names_and_those_with_dots_become_valid_names() {
    let long = "x".repeat(128);
    let listed = ["files.read", "files/read", long.as_str()];
    let names = names(&listed, |_| {}).await;
    assert_eq!(
        names,
        [
            "box__files_read",
            &tool_core::outward_name(&format!("box__{long}"))
        ]
    );
    for name in &names {
        check_name(name).unwrap();
    }
}

#[tokio::test]
async fn names_that_mcp_does_not_allow_are_left_out_unless_they_are_renamed() {
    let long = "x".repeat(129);
    let absurd = [
        "read file",
        "läse",
        "a\u{202e}b\n",
        long.as_str(),
        "\u{1f980}",
        "a:b",
        "fine",
    ];
    assert_eq!(names(&absurd, |_| {}).await, ["box__fine"]);
    let rename = |settings: &mut ServerSettings| {
        settings.rename = [("read file".to_owned(), "read".to_owned())].into();
    };
    assert_eq!(names(&absurd, rename).await, ["box__read", "box__fine"]);
}

#[tokio::test]
async fn a_tool_that_cannot_be_used_is_left_out_with_the_reason() {
    let fixture = Fixture::new(&[
        tool("good"),
        json!({"name": "no-schema"}),
        json!({"name": "list", "inputSchema": {"type": "array"}}),
        json!({"name": "odd-schema", "inputSchema": "object"}),
        json!({"inputSchema": {}}),
        json!({"name": "", "inputSchema": {}}),
        json!({"name": 7, "inputSchema": {}}),
        tool("good"),
        tool("two.words"),
        tool("two_words"),
        json!({"name": "hidden"}),
    ]);
    let mut settings = fixture.settings("");
    settings.exclude = patterns(&["hidden"]);
    let server = McpServer::new(settings, std::sync::Arc::new(NoSecrets));
    let catalogue = load(&server).await;
    let offered: Vec<_> = catalogue.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(offered, ["box__good", "box__no-schema", "box__two_words"]);
    let rejected: Vec<_> = catalogue
        .rejected
        .iter()
        .map(|rejected| (rejected.name.as_str(), rejected.reason.as_str()))
        .collect();
    assert_eq!(
        rejected,
        [
            (
                "box__list",
                "its `inputSchema` does not describe an object, and arguments always are one"
            ),
            ("box__odd-schema", "its `inputSchema` is not an object"),
            ("box__?", "it has no `name`"),
            ("box__?", "it has no `name`"),
            ("box__?", "it has no `name`"),
            ("box__good", "another tool of the server has this name"),
            ("box__two_words", "another tool of the server has this name"),
        ]
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_descriptor_says_what_the_server_says_and_is_trusted_no_further() {
    let definition = json!({
        "name": "look",
        "title": "Look",
        "description": "Looks.",
        "inputSchema": {"$comment": "kept", "type": "object"},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true, "idempotentHint": true},
        "icons": [{"src": "data:,"}],
    });
    let fixture = Fixture::new(std::slice::from_ref(&definition));
    let server = fixture.server("");
    let catalogue = load(&server).await;
    let descriptor = &catalogue.tools[0];
    assert_eq!(descriptor.title.as_deref(), Some("Look"));
    assert_eq!(descriptor.description, "Looks.");
    assert_eq!(
        descriptor.input_schema.as_str(),
        r#"{"$comment":"kept","type":"object"}"#
    );
    assert_eq!(
        descriptor.output_schema,
        Some(RawJson::from(json!({"type": "object"})))
    );
    assert_eq!(
        descriptor.definition,
        Some(RawJson::from(definition)),
        "as it was listed"
    );
    assert_eq!(descriptor.executor.kind, "mcp");
    assert_eq!(
        descriptor.executor.config,
        json!({"server": "box", "tool": "look"})
    );
    assert_eq!(descriptor.origin.trust, Trust::Upstream);
    assert_eq!(
        (descriptor.metadata.read_only, descriptor.metadata.idempotent),
        (None, None),
        "a server's hints are no promises"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_without_tools_offers_none() {
    let fixture = Fixture::new(&[tool("unlisted")]);
    fixture.offers(&json!({}));
    let server = fixture.server("");
    assert!(load(&server).await.tools.is_empty());
    assert_eq!(server.source().status().state.as_str(), "ready");
    assert!(
        fixture.notes("lists").is_empty(),
        "it was asked for what it does not offer"
    );
    server.shutdown().await;
}

#[test]
fn possible_names_are_known_before_the_start() {
    let fixture = Fixture::new(&[]);
    let may_hold = |change: &dyn Fn(&mut ServerSettings), name: &str| {
        let mut settings = fixture.settings("");
        change(&mut settings);
        McpServer::new(settings, std::sync::Arc::new(NoSecrets))
            .source()
            .may_hold(Feature::Tool, name)
    };
    assert!(may_hold(&|_| {}, "box__anything"));
    assert!(!may_hold(&|_| {}, "other__anything"));
    assert!(may_hold(&|settings| settings.prefix.clear(), "anything"));
    let long = |settings: &mut ServerSettings| settings.prefix = "p".repeat(80);
    let mut settings = fixture.settings("");
    long(&mut settings);
    assert!(
        may_hold(&long, &settings.outward_tool_name("tool")),
        "a prefix that is cut"
    );
    let odd = |settings: &mut ServerSettings| settings.prefix = "b/".to_owned();
    assert!(may_hold(&odd, "b_tool"));
    assert!(fixture.notes("starts").is_empty());
}

#[test]
fn settings_that_name_no_server_say_which_there_are() {
    let fixture = Fixture::new(&[]);
    let prepare = |servers: usize, config: Value| {
        let servers = (0..servers).map(|_| fixture.server(""));
        let mut descriptor = tool_testkit::TestTool::new("t").descriptor;
        descriptor.executor.config = config;
        McpExecutor::new(servers)
            .prepare(&descriptor)
            .map(|_| ())
            .unwrap_err()
            .remove(0)
    };
    let error = prepare(1, json!({"server": "bx", "tool": "t"}));
    assert_eq!(
        (
            error.pointer.as_str(),
            error.message.as_str(),
            error.hint.as_deref()
        ),
        ("/server", "there is no server `bx`", Some("there are `box`"))
    );
    let error = prepare(0, json!({"server": "bx", "tool": "t"}));
    assert_eq!(error.hint.as_deref(), Some("add it to `servers`"));
    let error = prepare(1, json!({"server": "box"}));
    assert!(error.message.contains("tool"), "{error}");
    let error = prepare(1, json!({"server": "box", "tool": "t", "timeout": 5}));
    assert!(error.message.contains("timeout"), "{error}");
}

#[test]
fn the_backend_of_a_tool_speaks_mcp() {
    let fixture = Fixture::new(&[]);
    let mut descriptor = tool_testkit::TestTool::new("t").descriptor;
    descriptor.executor.config = json!({"server": "box", "tool": "t"});
    let executor = McpExecutor::new([fixture.server("")]);
    let tool = executor.prepare(&descriptor).unwrap();
    assert_eq!(tool.dyn_protocol(), Some("mcp"));
}
