use serde_json::json;
use tool_testkit::{ScriptedExecutor, TestTool};
use toolplane::{Toolplane, manifest::Configuration};
use toolplane_gateway::GatewayOptions;

use crate::support::{BehaviorExecutor, ChangingSource, Client, MODERN, plane};

const CAPABILITIES: &str = r#""capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{},"#;
/// Remaining capabilities in 2025-11-25, and in the modern era.
const TASKS: [&str; 2] = [
    r#""tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
    r#""extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
];

fn tools(names: &[&str]) -> Vec<TestTool> {
    names.iter().map(|name| TestTool::new(name)).collect()
}

#[tokio::test]
async fn tools_are_listed_in_the_order_of_their_names() {
    let mut client = Client::new(plane(&ScriptedExecutor::new([]), tools(&["b", "a"])));
    let tool = |name: &str| {
        format!(r#"{{"name":"{name}","description":"The tool {name}.","inputSchema":{{"type":"object"}}}}"#)
    };
    let list = format!(r#""tools":[{},{}]"#, tool("a"), tool("b"));
    assert_eq!(client.result("tools/list", "").await, format!("{{{list}}}"));
    let modern = format!(r#"{{"resultType":"complete",{list},"ttlMs":0,"cacheScope":"private"}}"#);
    assert_eq!(client.result("tools/list", MODERN).await, modern);
    // Again, from the rendered page.
    assert_eq!(client.result("tools/list", "").await, format!("{{{list}}}"));
    assert_eq!(client.result("tools/list", MODERN).await, modern);
}

#[tokio::test]
async fn a_definition_keeps_its_bytes() {
    let mut tool = TestTool::new("t");
    let definition = r#"{"x-vendor":1e2,"name":"theirs","inputSchema":{ "type":"object","maximum":12345678901234567890123 },"execution":{"taskSupport":"forbidden"}}"#;
    tool.descriptor.definition = Some(crate::support::raw(definition));
    let mut client = Client::new(plane(&ScriptedExecutor::new([]), [tool]));
    let listed = client.result("tools/list", "").await;
    assert_eq!(
        listed,
        format!(r#"{{"tools":[{}]}}"#, definition.replace("theirs", "t"))
    );
}

/// A tool with a definition of its server, and with metadata of the operator.
fn declared(definition: Option<&str>, read_only: Option<bool>, idempotent: Option<bool>) -> TestTool {
    let mut tool = TestTool::new("t");
    tool.descriptor.definition = definition.map(crate::support::raw);
    tool.descriptor.metadata.read_only = read_only;
    tool.descriptor.metadata.idempotent = idempotent;
    tool
}

#[tokio::test]
async fn annotations_of_the_operator_override_the_servers() {
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
        let mut client = Client::new(plane(&ScriptedExecutor::new([]), [tool]));
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
async fn secrets_learned_after_a_list_was_read_are_redacted_in_it() {
    let mut tool = TestTool::new("t");
    tool.descriptor.description = "with hunter2-%68unter2".into();
    let redactor = toolplane::policy::Redactor::default();
    let plane = Toolplane::builder().redactor(redactor.clone());
    let plane = plane
        .executor(std::sync::Arc::new(ScriptedExecutor::new([])))
        .tool(tool.descriptor);
    let mut client = Client::new(plane.build().expect("usable"));
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
    // Some clients send `null` instead of leaving the cursor out.
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
    let mut client = Client::new(builder.build().expect("it can be set up"));
    let listed = client.result("tools/list", "").await;
    assert!(listed.contains("open") && !listed.contains("secret1"), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_notified_once_to_clients_that_have_the_list() {
    let source = ChangingSource::new(&["a"]);
    let builder = Toolplane::builder()
        .executor(std::sync::Arc::new(BehaviorExecutor::default()))
        .source(source.clone());
    let mut client = Client::new(builder.build().expect("it can be set up"));
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
    // Changes within a short time are coalesced.
    source.set(&["a", "b"]);
    source.set(&["b", "c"]);
    assert_eq!(
        client.receive().await,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
    );
    let listed = client.result("tools/list", "").await;
    assert!(listed.contains("\"c\"") && !listed.contains("\"a\""), "{listed}");
    // It was notified once: the next message after the answer is about the next change.
    client.result("ping", "").await;
    source.set(&["d"]);
    assert!(client.receive().await.contains("list_changed"));
}

#[tokio::test]
async fn modern_clients_discover_the_same_capabilities() {
    let mut client = Client::new(plane(&ScriptedExecutor::new([]), tools(&["a"])));
    let discovered = client.result("server/discover", MODERN).await;
    let capabilities = format!("{CAPABILITIES}{}", TASKS[1]);
    assert!(discovered.contains(&capabilities), "{discovered}");
    assert!(
        discovered.contains(r#"{"name":"toolplane","version":"#),
        "{discovered}"
    );
}
