//! Meta-tools: lists, searches, and calls that differ from direct ones in nothing.

use std::sync::Arc;

use serde_json::{Value, json};
use toolplane::{
    Toolplane,
    core::{Caller, Pattern},
    manifest::{Configuration, GatewayMode},
};
use toolplane_gateway::{Gateway, GatewayOptions};

use crate::support::{BehaviorExecutor, Client, Http, MODERN, behavior_plane, behavior_tool, modern, raw};

const FORMS: &str = r#"{"elicitation":{"form":{}},"roots":{}}"#;
const META: [&str; 3] = ["tool_call", "tool_describe", "tool_search"];

fn options(mode: GatewayMode, pinned: &[&str]) -> GatewayOptions {
    let pinned: Vec<_> = pinned.iter().map(|pattern| Pattern::new(*pattern)).collect();
    GatewayOptions::default().mode(mode).pinned(pinned)
}

/// A toolplane with this many weather tools, and some others.
fn many(executor: &BehaviorExecutor, n: usize, others: &[&str]) -> Toolplane {
    let mut builder = Toolplane::builder().executor(Arc::new(executor.clone()));
    for number in 0..n {
        let mut tool = behavior_tool(&format!("weather_{number}"));
        tool.description = format!("Reports the weather of station {number}. In detail.");
        tool.input_schema =
            raw(r#"{"type":"object","properties":{"day":{"type":"integer"}},"required":["day"]}"#);
        builder = builder.tool(tool);
    }
    for name in others {
        builder = builder.tool(behavior_tool(name));
    }
    builder.build().expect("it can be set up")
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().expect("a list");
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {answer}"))
}

/// Parameters of a call of a meta-tool, in the modern era if `capabilities` are given.
fn call(tool: &str, arguments: &str, capabilities: Option<&str>) -> String {
    let meta = capabilities
        .map(|capabilities| format!(",{}", modern(capabilities)))
        .unwrap_or_default();
    format!(r#""name":"{tool}","arguments":{arguments}{meta}"#)
}

#[tokio::test]
async fn a_search_mode_lists_meta_tools_and_pinned_tools_in_both_eras() {
    let executor = BehaviorExecutor::default();
    let plane = many(&executor, 3, &["who", "beside"]);
    let mut client = Client::with(plane, options(GatewayMode::Search, &["weather_1", "who*"]));
    for params in ["", MODERN] {
        let list = client.value("tools/list", params).await;
        assert_eq!(
            names(&list),
            ["tool_call", "tool_describe", "tool_search", "weather_1", "who"]
        );
        for tool in list["result"]["tools"].as_array().expect("a list") {
            assert_eq!(tool["inputSchema"]["type"], json!("object"), "{tool}");
        }
    }
}

#[tokio::test]
async fn the_pages_of_a_search_mode_are_complete() {
    let executor = BehaviorExecutor::default();
    let plane = many(&executor, 3, &["who"]);
    let mut client = Client::with(plane, options(GatewayMode::Search, &["weather_*"]).page_size(2));
    let mut found = Vec::new();
    let mut params = String::new();
    loop {
        let list = client.value("tools/list", &params).await;
        found.extend(names(&list).into_iter().map(str::to_owned));
        let Some(cursor) = list["result"]["nextCursor"].as_str() else {
            break;
        };
        params = format!(r#""cursor":"{cursor}""#);
    }
    assert_eq!(
        found,
        [&META[..], &["weather_0", "weather_1", "weather_2"]].concat()
    );
}

#[tokio::test]
async fn an_auto_mode_lists_few_tools_directly_and_many_behind_the_meta_tools() {
    for (n, is_listed) in [(14, true), (15, true), (80, false)] {
        let executor = BehaviorExecutor::default();
        let mut client = Client::with(many(&executor, n, &[]), options(GatewayMode::Auto, &[]));
        let list = client.value("tools/list", "").await;
        match is_listed {
            true => assert_eq!(names(&list).len(), n),
            false => assert_eq!(names(&list), META),
        }
        // The list may have been longer before: searches work in any case.
        let answer = client
            .value("tools/call", &call("tool_search", r#"{"query":"weather"}"#, None))
            .await;
        assert!(text(&answer).contains("weather_"), "{answer}");
    }
}

#[tokio::test]
async fn a_list_mode_has_no_meta_tools() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::new(many(&executor, 20, &[]));
    assert_eq!(names(&client.value("tools/list", "").await).len(), 20);
    let answer = client
        .value("tools/call", &call("tool_search", r#"{"query":"a"}"#, None))
        .await;
    assert_eq!(answer["error"]["code"], json!(-32602), "{answer}");
}

#[tokio::test]
async fn a_search_returns_signatures_and_a_description_the_whole_definition() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::with(many(&executor, 20, &["who"]), options(GatewayMode::Search, &[]));
    for capabilities in [None, Some("{}")] {
        let search = call(
            "tool_search",
            r#"{"query":"weather of station 7","limit":2}"#,
            capabilities,
        );
        let answer = client.value("tools/call", &search).await;
        let lines: Vec<_> = text(&answer).lines().collect();
        assert_eq!(lines.len(), 2, "{answer}");
        assert_eq!(
            lines[0],
            "weather_7(day: integer) - Reports the weather of station 7."
        );
        let several = call(
            "tool_search",
            r#"{"queries":["weather of station 3","who"]}"#,
            capabilities,
        );
        let answer = client.value("tools/call", &several).await;
        let firsts: Vec<_> = text(&answer)
            .lines()
            .take(2)
            .map(|line| line.split('(').next().unwrap_or_default())
            .collect();
        assert_eq!(firsts, ["weather_3", "who"]);
        let describe = call(
            "tool_describe",
            r#"{"names":["weather_7","nothing"]}"#,
            capabilities,
        );
        let answer = client.value("tools/call", &describe).await;
        let (definition, missing) = text(&answer).split_once('\n').expect("two lines");
        let definition: Value = serde_json::from_str(definition).expect("a definition");
        assert_eq!(definition["inputSchema"]["required"], json!(["day"]));
        assert!(
            missing.contains("`nothing`") && missing.contains("tool_search"),
            "{missing}"
        );
        let nothing = call("tool_search", r#"{"query":"knit a pullover"}"#, capabilities);
        let answer = client.value("tools/call", &nothing).await;
        assert!(
            text(&answer).starts_with("No tool fits the query: knit a pullover"),
            "{answer}"
        );
    }
    assert_eq!(executor.n_calls(), 0);
}

#[tokio::test]
async fn wrong_arguments_of_meta_tools_say_what_is_wrong() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::with(many(&executor, 1, &[]), options(GatewayMode::Search, &[]));
    for (tool, arguments, expected) in [
        ("tool_search", "{}", "`query`"),
        ("tool_search", r#"{"quary":"a"}"#, "quary"),
        ("tool_search", r#"{"query":"a","limit":-1}"#, "-1"),
        ("tool_describe", "{}", "names"),
        ("tool_describe", r#"{"names":[]}"#, "at least one"),
        ("tool_call", "{}", "`name`"),
        ("tool_call", r#"{"name":1}"#, "`name` must be a string"),
        (
            "tool_call",
            r#"{"name":"weather_0","arguments":"{}"}"#,
            "`arguments` must be an object",
        ),
        ("tool_call", r#"{"name":"weather_0","args":{}}"#, "`args`"),
    ] {
        let answer = client.value("tools/call", &call(tool, arguments, None)).await;
        assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
        assert!(text(&answer).contains(expected), "{tool} {arguments}: {answer}");
        assert_eq!(
            answer["result"]["_meta"]["dev.toolplane/error"]["kind"],
            json!("invalid_arguments")
        );
    }
    assert_eq!(executor.n_calls(), 0);
}

/// Answers of a direct call and of the same call through `tool_call`, in both eras.
async fn both_ways(
    client: &mut Client,
    tool: &str,
    arguments: &str,
    capabilities: Option<&str>,
) -> [Value; 2] {
    let direct = call(tool, arguments, capabilities);
    let through = call(
        "tool_call",
        &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#),
        capabilities,
    );
    [
        client.value("tools/call", &direct).await,
        client.value("tools/call", &through).await,
    ]
}

#[tokio::test]
async fn a_call_through_the_meta_tool_is_answered_as_a_direct_one() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::with(
        many(&executor, 20, &["who", "log"]),
        options(GatewayMode::Search, &[]),
    );
    for capabilities in [None, Some("{}")] {
        for tool in ["who", "unknown", "tool_call", "tool_search"] {
            let through = call("tool_call", &format!(r#"{{"name":"{tool}"}}"#), capabilities);
            let answer = client.value("tools/call", &through).await;
            match tool {
                "who" => assert!(
                    answer["result"]["structuredContent"]["said"].is_array(),
                    "{answer}"
                ),
                // A meta-tool is no tool that it calls.
                _ => assert_eq!(answer["error"]["code"], json!(-32602), "{answer}"),
            }
        }
        let [direct, through] = both_ways(&mut client, "who", "{}", capabilities).await;
        assert_eq!(direct, through);
        // The arguments are validated by the named tool's own schema, which names no `hour`.
        let [direct, through] =
            both_ways(&mut client, "weather_1", r#"{"day":"monday"}"#, capabilities).await;
        assert_eq!(direct, through);
        assert_eq!(
            direct["result"]["_meta"]["dev.toolplane/error"]["kind"],
            json!("invalid_arguments"),
            "{direct}"
        );
    }
}

#[tokio::test]
async fn arguments_arrive_with_their_bytes_and_other_members_of_the_request_apply() {
    let executor = BehaviorExecutor::default();
    let plane = behavior_plane(&executor, &["beside"]);
    let mut client = Client::with(plane, options(GatewayMode::Search, &[]));
    let params =
        r#""name":"tool_call","arguments":{"arguments":{ "n":1e2 },"name":"beside"},"x-more":{ "a":1.0 }"#;
    let answer = client.ask("tools/call", params).await;
    assert!(answer.contains(r#"{\"x-more\":{ \"a\":1.0 }}"#), "{answer}");
}

/// A toolplane whose calls all need an approval.
fn approving(executor: &BehaviorExecutor, tools: &[&str]) -> Toolplane {
    let mut configuration = Configuration::default();
    configuration.policy.approval.required = vec![Pattern::new("*")];
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(executor.clone()));
    let builder = tools
        .iter()
        .fold(builder, |builder, tool| builder.tool(behavior_tool(tool)));
    builder.build().expect("it can be set up")
}

const YES: &str = r#"{"action":"accept","content":{"approve":true}}"#;

fn given(key: &str, answer: &str, last: &Value) -> String {
    let state = &last["result"]["requestState"];
    assert!(state.is_string(), "no state: {last}");
    format!(r#","inputResponses":{{"{key}":{answer}}},"requestState":{state}"#)
}

#[tokio::test]
async fn approvals_and_input_rounds_of_modern_clients_are_those_of_the_named_tool() {
    let executor = BehaviorExecutor::default();
    let plane = approving(&executor, &["input", "ask"]);
    let mut client = Client::with(plane, options(GatewayMode::Search, &[]));
    let round = async |client: &mut Client, tool: &str, more: &str| {
        let arguments = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
        let params = format!("{}{more}", call("tool_call", &arguments, Some(FORMS)));
        client.value("tools/call", &params).await
    };
    // The tool's server asks by its answer.
    let asked = round(&mut client, "input", "").await;
    let question = &asked["result"]["inputRequests"]["approval"];
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains("Tool: input"), "{message}");
    assert_eq!(executor.n_calls(), 0);
    let asked_again = round(&mut client, "input", &given("approval", YES, &asked)).await;
    assert!(
        asked_again["result"]["inputRequests"].get("name").is_some(),
        "{asked_again}"
    );
    let last = round(
        &mut client,
        "input",
        &given("name", r#"{"action":"accept"}"#, &asked_again),
    )
    .await;
    assert!(last["result"]["structuredContent"]["said"].is_array(), "{last}");
    assert_eq!(executor.n_calls(), 2);
    // The tool's server asks in the middle of the call, which is parked meanwhile.
    let asked = round(&mut client, "ask", "").await;
    let parked = round(&mut client, "ask", &given("approval", YES, &asked)).await;
    let last = round(
        &mut client,
        "ask",
        &given("question-1", r#"{"action":"decline"}"#, &parked),
    )
    .await;
    assert_eq!(
        last["result"]["structuredContent"]["said"],
        json!([r#"{"action":"decline"}"#]),
        "{last}"
    );
    // A state is valid for the same tool only.
    let asked = round(&mut client, "input", "").await;
    let other = round(&mut client, "ask", &given("approval", YES, &asked)).await;
    assert!(other.get("error").is_some(), "{other}");
}

#[tokio::test]
async fn approvals_of_legacy_clients_are_asked_while_the_call_waits() {
    let executor = BehaviorExecutor::default();
    let mut client = Client::with(approving(&executor, &["who"]), options(GatewayMode::Search, &[]));
    client.initialize(FORMS).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"tool_call","arguments":{"name":"who"}}}"#)
        .await;
    let question: Value = serde_json::from_str(&client.receive().await).expect("JSON");
    assert!(
        question["params"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("Tool: who")),
        "{question}"
    );
    let id = &question["id"];
    client
        .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{YES}}}"#))
        .await;
    let answer: Value = serde_json::from_str(&client.receive().await).expect("JSON");
    assert!(
        answer["result"]["structuredContent"]["said"].is_array(),
        "{answer}"
    );
    assert_eq!(executor.n_calls(), 1);
}

#[tokio::test]
async fn each_principal_finds_and_calls_only_its_own_tools() {
    let executor = BehaviorExecutor::default();
    let mut secret = behavior_tool("who");
    secret.metadata.required_permissions = vec!["secrets".to_owned()];
    let plane = Toolplane::builder()
        .executor(Arc::new(executor.clone()))
        .tool(secret)
        .build()
        .expect("it can be set up");
    let options = options(GatewayMode::Search, &["who"]).caller_resolver(|principal| {
        let mut caller = Caller::new(principal.as_str());
        if principal.as_str() == "ann" {
            caller.permissions.insert("secrets".into());
        }
        Arc::new(caller)
    });
    let http = Http::on(&Gateway::new(plane, options));
    let ask = async |principal: &str, tool: &str, arguments: &str| {
        let params = call(tool, arguments, Some("{}"));
        http.ask(&[("x-principal", principal)], "tools/call", tool, &params)
            .await
    };
    for (principal, may) in [("ann", true), ("eve", false)] {
        let found = ask(principal, "tool_search", r#"{"query":"who"}"#).await;
        assert_eq!(text(&found).starts_with("who("), may, "{found}");
        let described = ask(principal, "tool_describe", r#"{"names":["who"]}"#).await;
        assert_eq!(text(&described).contains("inputSchema"), may, "{described}");
        let called = ask(principal, "tool_call", r#"{"name":"who"}"#).await;
        assert_eq!(
            called["result"]["structuredContent"]["said"].is_array(),
            may,
            "{called}"
        );
        let listed = http
            .ask(&[("x-principal", principal)], "tools/list", "", MODERN)
            .await;
        assert_eq!(names(&listed).contains(&"who"), may, "{listed}");
    }
    assert_eq!(executor.n_calls(), 1);
}
