//! Meta-tools of two principals.

use serde_json::Value;
use toolplane::manifest::GatewayMode;
use toolplane_gateway::GatewayOptions;

use super::{World, kind};

const POLICY: &str = "{roles: {keeper: [vault.open]}, principals: {ada: {roles: [keeper]}, bob: {}}, \
                      required_permissions: {'vault_*': [vault.open]}, blocklist: [old_mail]}";
const SHARED: &str = "get_weather: {description: The weather at a place., tags: [shared], executor: {kind: mock, result: 1}}, \
                      send_mail: {description: Sends a mail to people., executor: {kind: mock, result: 1}}";
const SECRET: &str = "vault_weather: {description: 'Opens the vault of the weather, the weather and the weather.', \
                      tags: [shared, vault], capabilities: [vaulting], executor: {kind: mock, result: opened}}, \
                      old_mail: {description: 'Sends a mail. Mail, mail.', executor: {kind: mock, result: 1}}, \
                      pay: {description: Pays the mail., required_permissions: [vault.open], executor: {kind: mock, result: paid}}";

fn world(tools: &str, mode: GatewayMode) -> World {
    World::with_options(POLICY, tools, GatewayOptions::default().mode(mode))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Questions about tools: a meta-tool and its arguments.
const QUESTIONS: [(&str, &str); 10] = [
    ("tool_search", r#"{"query":"weather at a place"}"#),
    ("tool_search", r#"{"query":"vault_weather"}"#),
    ("tool_search", r#"{"query":"the vault"}"#),
    ("tool_search", r#"{"queries":["the vault","a mail","old mail"]}"#),
    ("tool_search", r#"{"tag":"vault"}"#),
    ("tool_search", r#"{"query":"weather","tag":"vault"}"#),
    (
        "tool_search",
        r#"{"query":"weather","tag":"shared","sort":"sla"}"#,
    ),
    ("tool_search", r#"{"capability":"vaulting"}"#),
    ("tool_search", r#"{"permission":"vault.open"}"#),
    (
        "tool_describe",
        r#"{"names":["vault_weather","get_weather","pay"]}"#,
    ),
];

#[tokio::test]
async fn what_a_principal_may_not_call_is_neither_found_nor_described_nor_called() {
    let with = world(&format!("{{{SHARED}, {SECRET}}}"), GatewayMode::Search);
    let without = world(&format!("{{{SHARED}}}"), GatewayMode::Search);
    let (ada, bob) = (with.token("ada").await, with.token("bob").await);
    let bob_without = without.token("bob").await;
    // What the other principal does leaves no trace either.
    for _ in 0..2 {
        let found = with
            .call(&ada, "tool_search", r#","arguments":{"query":"the vault"}"#)
            .await;
        assert!(text(&found).starts_with("vault_weather("), "{found}");
        let called = with
            .call(&ada, "tool_call", r#","arguments":{"name":"vault_weather"}"#)
            .await;
        assert_eq!(text(&called), "opened", "{called}");
    }
    for (tool, arguments) in QUESTIONS {
        let more = format!(r#","arguments":{arguments}"#);
        let answer = with.call(&bob, tool, &more).await;
        let expected = without.call(&bob_without, tool, &more).await;
        assert_eq!(answer, expected, "{tool} {arguments}");
    }
    for name in ["vault_weather", "pay", "old_mail"] {
        let more = format!(r#","arguments":{{"name":"{name}"}}"#);
        let answer = with.call(&bob, "tool_call", &more).await;
        assert_eq!(kind(&answer), Some("denied"), "{answer}");
        assert_eq!(answer, with.call(&bob, name, "").await);
    }
    for (arguments, expected) in [
        (r#"{"permission":"vault.open"}"#, "pay vault_weather"),
        (r#"{"tag":"vault"}"#, "vault_weather"),
        (r#"{"query":"old mail"}"#, "pay send_mail"),
    ] {
        let found = with
            .call(&ada, "tool_search", &format!(r#","arguments":{arguments}"#))
            .await;
        let mut names: Vec<_> = text(&found)
            .lines()
            .filter_map(|line| line.split_once('('))
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{found}");
    }
}

#[tokio::test]
async fn each_principal_is_listed_what_suits_its_own_number_of_tools() {
    // Large definitions: the number of tools decides.
    let description = "Weather. ".repeat(100);
    let tool = |number: usize| {
        let name = if number < 14 { "shared" } else { "vault" };
        format!("{name}_{number}: {{description: '{description}', executor: {{kind: mock, result: 1}}}}")
    };
    let tools: Vec<_> = (0..15).map(tool).collect();
    let world = world(&format!("{{{}}}", tools.join(", ")), GatewayMode::Auto);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    assert_eq!(
        world.tools(&ada).await,
        ["tool_call", "tool_describe", "tool_search"]
    );
    assert_eq!(world.tools(&bob).await.len(), 14);
}
