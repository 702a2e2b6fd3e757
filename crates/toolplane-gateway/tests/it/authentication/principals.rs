//! Rules, limits, caches and approvals of two principals.

use serde_json::{Value, json};
use toolplane::{
    manifest::{LoadOptions, Syntax, load},
    policy::ApprovalVerdict,
};

use super::{World, configuration, kind};

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Returns the parameters of a call with these members of `_meta`.
fn meta(members: &str) -> String {
    let meta = crate::support::MODERN;
    let inner = meta.strip_suffix('}').expect("an object");
    format!(",{inner},{members}}}")
}

const DELETE: &str = "{delete: {description: Deletes., executor: {kind: mock, result: deleted}}}";

#[tokio::test]
async fn each_principal_sees_and_calls_what_its_roles_permit() {
    let policy = "{roles: {writer: [files.write]}, principals: {ada: {roles: [writer]}, bob: {}, \
                  carl: {permissions: [files.write]}}, permissions: {dora: [files.write]}, \
                  required_permissions: {delete: [files.write]}}";
    let world = World::new(policy, DELETE);
    let writer = |token: &mut toolplane::core::TokenRecord| token.roles = vec!["writer".into()];
    let undefined = |token: &mut toolplane::core::TokenRecord| token.roles = vec!["owner".into()];
    for (token, may) in [
        (world.token("ada").await, true),
        (world.token("carl").await, true),
        (world.token("dora").await, true),
        (world.token_with("bob", writer).await, true),
        // A principal that no file names has what its token says.
        (world.token_with("eve", writer).await, true),
        (world.token("bob").await, false),
        (world.token("eve").await, false),
        (world.token_with("bob", undefined).await, false),
    ] {
        assert_eq!(world.tools(&token).await == ["delete"], may);
        let answer = world.call(&token, "delete", "").await;
        // A tool that a caller may not see does not exist for it.
        let is_answered = answer.get("result").is_some_and(|_| kind(&answer).is_none());
        assert_eq!(is_answered, may, "{answer}");
    }
}

#[tokio::test]
async fn a_reload_changes_permissions_from_the_next_request_on() {
    let policy = |permissions: &str| {
        format!(
            "{{principals: {{ada: {{permissions: {permissions}}}}}, required_permissions: {{delete: [files.write]}}}}"
        )
    };
    let world = World::new(&policy("[]"), DELETE);
    let token = world.token("ada").await;
    for (permissions, expected) in [("[files.write]", vec!["delete"]), ("[]", vec![])] {
        let text = configuration(&policy(permissions), DELETE);
        let loaded = load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text));
        world
            .plane
            .reload(&loaded.expect("it is valid"))
            .expect("it can be used");
        assert_eq!(world.tools(&token).await, expected);
    }
}

#[tokio::test]
async fn a_rate_limit_per_principal_counts_each_alone() {
    let tools = "{t: {description: T., rate_limit: {requests: 100, period: 1h, per_principal: 1}, \
                 executor: {kind: mock, result: done}}}";
    let world = World::new("{}", tools);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    // The other token of a principal has the same limit.
    let second = world.token("ada").await;
    assert_eq!(kind(&world.call(&ada, "t", "").await), None);
    assert_eq!(kind(&world.call(&ada, "t", "").await), Some("rate_limited"));
    assert_eq!(kind(&world.call(&second, "t", "").await), Some("rate_limited"));
    assert_eq!(kind(&world.call(&bob, "t", "").await), None);
}

#[tokio::test]
async fn quotas_count_the_conversations_of_each_principal_and_tenant() {
    let tools = "{t: {description: T., executor: {kind: mock, result: done}}}";
    let world = World::new("{limits: {calls_per_conversation: 1}}", tools);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    let acme = world
        .token_with("ada", |token| token.tenant = Some("acme".into()))
        .await;
    // The name of a conversation is not that of another principal's conversation.
    for more in [String::new(), meta(r#""dev.toolplane/conversation":"c1""#)] {
        for token in [&ada, &bob, &acme] {
            assert_eq!(kind(&world.call(token, "t", &more).await), None);
            let refused = world.call(token, "t", &more).await;
            assert_eq!(kind(&refused), Some("denied"), "{refused}");
        }
    }
}

#[tokio::test]
async fn cached_results_are_those_of_one_principal_in_one_tenant() {
    let tools = "{t: {description: T., read_only: true, idempotent: true, cache: {ttl: 1h}, \
                 executor: {kind: scripted}}}";
    let world = World::new("{}", tools);
    let tokens = [
        world.token("ada").await,
        world.token("bob").await,
        world
            .token_with("ada", |token| token.tenant = Some("acme".into()))
            .await,
    ];
    for (n, token) in tokens.iter().enumerate() {
        for _ in 0..2 {
            assert_eq!(kind(&world.call(token, "t", "").await), None);
            assert_eq!(world.executor.n_calls(), n + 1);
        }
    }
}

#[tokio::test]
async fn an_approval_serves_only_the_principal_that_asked_for_it() {
    let tools = "{pay: {description: Pays., approval: required, executor: {kind: scripted}}}";
    let world = World::new("{}", tools);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    let acme = world
        .token_with("ada", |token| token.tenant = Some("acme".into()))
        .await;
    let asked = world.call(&ada, "pay", "").await;
    let pending = &asked["result"]["_meta"]["dev.toolplane/pending"];
    let handle = pending["handle"]
        .as_str()
        .unwrap_or_else(|| panic!("no handle: {asked}"));
    let with_handle = meta(&format!(r#""dev.toolplane/approval":"{handle}""#));
    // Before the decision and after it, others learn nothing about it.
    let decide = || {
        world
            .plane
            .approvals()
            .decide(handle, ApprovalVerdict::Approve, "operator")
    };
    for is_decided in [false, true] {
        if is_decided {
            decide().await.expect("it is pending");
        }
        for token in [&bob, &acme] {
            let other = world.call(token, "pay", &with_handle).await;
            // As for a handle that never existed.
            let never = world
                .call(token, "pay", &with_handle.replace(handle, "0123"))
                .await;
            let never = never.to_string().replace("0123", handle);
            assert_eq!(other.to_string(), never);
            assert_eq!(kind(&other), Some("denied"), "{other}");
        }
        assert_eq!(world.executor.n_calls(), 0);
    }
    let answer = world.call(&ada, "pay", &with_handle).await;
    assert_eq!(kind(&answer), None, "{answer}");
    assert_eq!(world.executor.n_calls(), 1);
}

#[tokio::test]
async fn a_state_to_return_is_refused_from_another_principal() {
    let tools = "{pay: {description: Pays., approval: required, executor: {kind: scripted}}}";
    let world = World::new("{}", tools);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    let forms = format!(",{}", crate::support::modern(r#"{"elicitation":{"form":{}}}"#));
    let asked = world.call(&ada, "pay", &forms).await;
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    let yes = format!(
        r#","inputResponses":{{"approval":{{"action":"accept","content":{{"approve":true}}}}}},"requestState":{state}{forms}"#
    );
    let refused = world.call(&bob, "pay", &yes).await;
    assert!(refused.get("error").is_some(), "{refused}");
    assert_eq!(world.executor.n_calls(), 0);
    let answer = world.call(&ada, "pay", &yes).await;
    assert_eq!(kind(&answer), None, "{answer}");
    assert_eq!(world.executor.n_calls(), 1);
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_principal_in_one_tenant() {
    let tools = "{pay: {description: Pays., executor: {kind: scripted}}}";
    let world = World::new("{}", tools);
    let tokens = [
        world.token("ada").await,
        world.token("bob").await,
        world
            .token_with("ada", |token| token.tenant = Some("acme".into()))
            .await,
    ];
    for (n, token) in tokens.iter().enumerate() {
        let arguments = format!(
            r#","arguments":{{"n":{n}}}{}"#,
            meta(r#""dev.toolplane/idempotency-key":"k1""#)
        );
        for _ in 0..2 {
            let answer = world.call(token, "pay", &arguments).await;
            // Other arguments under one key would be a conflict.
            assert_eq!(text(&answer), json!({"n": n}).to_string(), "{answer}");
            assert_eq!(world.executor.n_calls(), n + 1);
        }
    }
}

#[tokio::test]
async fn a_token_for_another_tenant_than_the_configured_one_is_refused() {
    let tools = "{t: {description: T., executor: {kind: mock, result: done}}}";
    let world = World::new("{principals: {ada: {tenant: acme}}}", tools);
    let good = world.token("ada").await;
    let other = world
        .token_with("ada", |token| token.tenant = Some("other".into()))
        .await;
    assert_eq!(kind(&world.call(&good, "t", "").await), None);
    assert_eq!(world.try_call(&other, "t", "").await.status(), 401);
    let caller = world.plane.authenticate(Some(&good)).await.expect("it is active");
    assert_eq!((&*caller.principal, &*caller.tenant), ("ada", "acme"));
}
