use serde_json::json;
use tool_testkit::{ScriptedExecutor, TestTool};
use toolplane::{Toolplane, manifest::Configuration};
use toolplane_gateway::GatewayOptions;

use crate::acting::Acting;
use crate::support::{Changing, Client, MODERN, plane};

const CAPABILITIES: &str = r#""capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{},"#;
/// What follows in the era of 2025-11-25, and in the modern one.
const TASKS: [&str; 2] = [
    r#""tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
    r#""extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
];

fn tools(names: &[&str]) -> Vec<TestTool> {
    names.iter().map(|name| TestTool::new(name)).collect()
}

#[tokio::test]
async fn tools_are_listed_in_the_order_of_their_names() {
    let mut client = Client::of(plane(&ScriptedExecutor::new([]), tools(&["b", "a"])));
    let tool = |name: &str| {
        format!(r#"{{"name":"{name}","description":"The tool {name}.","inputSchema":{{"type":"object"}}}}"#)
    };
    let list = format!(r#""tools":[{},{}]"#, tool("a"), tool("b"));
    assert_eq!(client.result("tools/list", "").await, format!("{{{list}}}"));
    let modern = format!(r#"{{"resultType":"complete",{list},"ttlMs":0,"cacheScope":"private"}}"#);
    assert_eq!(client.result("tools/list", MODERN).await, modern);
    // Again, from what was rendered.
    assert_eq!(client.result("tools/list", "").await, format!("{{{list}}}"));
    assert_eq!(client.result("tools/list", MODERN).await, modern);
}

#[tokio::test]
async fn a_definition_keeps_its_bytes() {
    let mut tool = TestTool::new("t");
    let definition = r#"{"x-vendor":1e2,"name":"theirs","inputSchema":{ "type":"object","maximum":12345678901234567890123 },"execution":{"taskSupport":"forbidden"}}"#;
    tool.descriptor.definition = Some(crate::support::raw(definition));
    let mut client = Client::of(plane(&ScriptedExecutor::new([]), [tool]));
    let listed = client.result("tools/list", "").await;
    assert_eq!(
        listed,
        format!(r#"{{"tools":[{}]}}"#, definition.replace("theirs", "t"))
    );
}

/// A tool with a definition, and what the operator declares of it.
fn declared(definition: Option<&str>, read_only: Option<bool>, idempotent: Option<bool>) -> TestTool {
    let mut tool = TestTool::new("t");
    tool.descriptor.definition = definition.map(crate::support::raw);
    tool.descriptor.metadata.read_only = read_only;
    tool.descriptor.metadata.idempotent = idempotent;
    tool
}

#[tokio::test]
async fn what_an_operator_declares_is_an_annotation_and_wins() {
    let theirs = r#"{"name":"t","inputSchema":{},"annotations":{"title":"T","readOnlyHint":false,"x-vendor":1e2,"openWorldHint":true,"destructiveHint":true}}"#;
    let cases = [
        (None, None, None, "none"),
        (
            None,
            Some(true),
            None,
            r#"{"readOnlyHint":true,"destructiveHint":false}"#,
        ),
        (None, None, Some(true), r#"{"idempotentHint":true}"#),
        (
            None,
            Some(false),
            Some(false),
            r#"{"readOnlyHint":false,"idempotentHint":false}"#,
        ),
        (
            Some(theirs),
            None,
            None,
            r#"{"title":"T","readOnlyHint":false,"x-vendor":1e2,"openWorldHint":true,"destructiveHint":true}"#,
        ),
        (
            Some(theirs),
            Some(true),
            Some(true),
            r#"{"title":"T","readOnlyHint":true,"x-vendor":1e2,"openWorldHint":true,"destructiveHint":false,"idempotentHint":true}"#,
        ),
        (
            Some(r#"{"name":"t","inputSchema":{},"annotations":[1]}"#),
            None,
            Some(true),
            r#"{"idempotentHint":true}"#,
        ),
    ];
    for (definition, read_only, idempotent, expected) in cases {
        let tool = declared(definition, read_only, idempotent);
        let mut client = Client::of(plane(&ScriptedExecutor::new([]), [tool]));
        for era in ["", MODERN] {
            let listed = crate::support::raw(&client.result("tools/list", era).await);
            let tool = listed.get("tools").unwrap().items().next().unwrap();
            let annotations = tool.get("annotations");
            let annotations = annotations
                .as_ref()
                .map_or("none", |annotations| annotations.as_str());
            assert_eq!(annotations, expected);
        }
    }
}

#[tokio::test]
async fn a_list_is_without_secrets_that_are_known_since_it_was_read() {
    let mut tool = TestTool::new("t");
    tool.descriptor.description = "with hunter2-%68unter2".into();
    let redactor = toolplane::policy::Redactor::default();
    let plane = Toolplane::builder().redactor(redactor.clone());
    let plane = plane
        .executor(std::sync::Arc::new(ScriptedExecutor::new([])))
        .tool(tool.descriptor);
    let mut client = Client::of(plane.build().expect("usable"));
    let before = client.result("tools/list", "").await;
    assert!(before.contains("hunter2-%68unter2"), "{before}");
    redactor.learn("hunter2-hunter2");
    let after = before.replace("hunter2-%68unter2", "[redacted]");
    assert_eq!(client.result("tools/list", "").await, after);
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let names: Vec<String> = (0..7).map(|index| format!("t{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut options = GatewayOptions::default();
    options.page_size = 3;
    let mut client = Client::with(plane(&ScriptedExecutor::new([]), tools(&names)), options);
    for _ in 0..2 {
        let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let answer = client.value("tools/list", &cursor).await;
            let page = answer["result"]["tools"].as_array().expect("a list").clone();
            seen.extend(
                page.iter()
                    .map(|tool| tool["name"].as_str().expect("a name").to_owned()),
            );
            pages += 1;
            let Some(next) = answer["result"].get("nextCursor") else {
                break;
            };
            cursor = format!(r#""cursor":{next}"#);
        }
        assert_eq!(
            (seen.iter().map(String::as_str).collect::<Vec<_>>(), pages),
            (names.clone(), 3)
        );
    }
    for cursor in ["\"\"", "\"x\"", "7", "{}"] {
        let answer = client.value("tools/list", &format!(r#""cursor":{cursor}"#)).await;
        assert_eq!(answer["error"]["code"], json!(-32602), "{cursor}");
    }
    // No client sends this on purpose, and some send it.
    assert!(client.value("tools/list", r#""cursor":null"#).await["result"]["tools"].is_array());
}

#[tokio::test]
async fn nobody_sees_what_policy_forbids() {
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = vec![toolplane::core::Pattern::new("secret*")];
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(std::sync::Arc::new(ScriptedExecutor::new([])))
        .tool(TestTool::new("open").descriptor)
        .tool(TestTool::new("secret1").descriptor);
    let mut client = Client::of(builder.build().expect("it can be set up"));
    let listed = client.result("tools/list", "").await;
    assert!(listed.contains("open") && !listed.contains("secret1"), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_once_to_who_has_a_list() {
    let source = Changing::new(&["a"]);
    let builder = Toolplane::builder()
        .executor(std::sync::Arc::new(Acting::default()))
        .source(source.clone());
    let mut client = Client::of(builder.build().expect("it can be set up"));
    let answer = client
        .ask(
            "initialize",
            r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}"#,
        )
        .await;
    let capabilities = format!("{CAPABILITIES}{}", TASKS[0]);
    assert!(answer.contains(&capabilities), "{answer}");
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    assert!(client.result("tools/list", "").await.contains("\"a\""));
    // Changes that come together are one.
    source.set(&["a", "b"]);
    source.set(&["b", "c"]);
    assert_eq!(
        client.receive().await,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
    );
    let listed = client.result("tools/list", "").await;
    assert!(listed.contains("\"c\"") && !listed.contains("\"a\""), "{listed}");
    // And it was told once: what comes next is the next change, after the answer.
    client.result("ping", "").await;
    source.set(&["d"]);
    assert!(client.receive().await.contains("list_changed"));
}

#[tokio::test]
async fn modern_clients_are_promised_the_same() {
    let mut client = Client::of(plane(&ScriptedExecutor::new([]), tools(&["a"])));
    let discovered = client.result("server/discover", MODERN).await;
    let capabilities = format!("{CAPABILITIES}{}", TASKS[1]);
    assert!(discovered.contains(&capabilities), "{discovered}");
    assert!(
        discovered.contains(r#"{"name":"toolplane","version":"#),
        "{discovered}"
    );
}
