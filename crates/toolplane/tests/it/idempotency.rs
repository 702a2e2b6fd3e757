//! Idempotency keys in the standard stack, as configured.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::advance;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Outcome, Reply, ToolError},
};
#[cfg(all(feature = "exec-http", feature = "exec-mcp"))]
use toolplane::{
    core::{Caller, Overrides, SettingLevel, Settings},
    runtime::IdempotencySettings,
};

const SECOND: Duration = Duration::from_secs(1);

fn plane(script: &ScriptedExecutor) -> Toolplane {
    let builder = Toolplane::builder().executor(Arc::new(script.clone()));
    builder
        .tool(TestTool::new("pay").descriptor)
        .build()
        .expect("the standard primitives can be set up")
}

fn pay(invoice: u32) -> CallRequest {
    let arguments = json!({"invoice": invoice}).to_string();
    CallRequest::new("pay")
        .json(arguments)
        .expect("an object")
        .idempotency_key("k")
}

fn reply(result: Result<Outcome, ToolError>) -> Reply {
    match result {
        Ok(Outcome::Reply(reply)) => reply,
        other => panic!("no reply: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_again_with_its_key_is_made_once_and_explained() {
    let script = ScriptedExecutor::new([
        ScriptStep::Value(json!("paid")),
        ScriptStep::Value(json!("paid twice")),
    ]);
    let plane = plane(&script);
    reply(plane.call(pay(7)).await);
    let explained = plane.call_explained(pay(7)).await;
    assert_eq!(reply(explained.result).raw().as_str(), r#""paid""#);
    let layers: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    assert_eq!(
        layers,
        ["watch", "deadline", "admission", "validation", "idempotency"]
    );
    let note = &explained.decisions[4].decision;
    assert!(
        note.starts_with("replays the call ") && note.ends_with("which is answered"),
        "{note}"
    );
    let error = plane.call(pay(8)).await.expect_err("another invoice");
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let dry = plane.dry_run(pay(9).idempotency_key("unused")).await;
    assert!(matches!(dry.result, Ok(Outcome::Pending(_))), "{:?}", dry.result);
    reply(plane.call(pay(10).idempotency_key("unused")).await);
    assert_eq!(script.n_calls(), 2, "a dry run takes no key");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_is_found_by_its_id() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(true), ScriptStep::Echo]);
    let plane = plane(&script);
    // The call's own deadline ends it, outside of the layer that remembers it.
    let error = plane.call(pay(7).deadline(SECOND)).await.expect_err("it hangs");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    let id = error.ledger_id().expect("the error says it");
    let entry = plane.ledger_entry(id).await.expect("it is remembered");
    assert_eq!((&*entry.tool, entry.state.as_str()), ("pay", "unknown"));
    let again = plane.call(pay(7)).await.expect_err("nobody knows more");
    assert_eq!(
        (again.kind(), again.ledger_id()),
        (ErrorKind::OutcomeUnknown, Some(id))
    );
    assert_eq!(script.n_calls(), 1);
    advance(24 * 60 * 60 * SECOND).await;
    assert!(plane.ledger_entry(id).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_end_without_a_key_has_an_id_as_well() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
    let plane = plane(&script);
    for deadline in [SECOND, 40 * SECOND] {
        let request = CallRequest::new("pay").deadline(deadline);
        let error = plane.call(request).await.expect_err("it hangs");
        let id = error.ledger_id().expect("the error says it");
        let entry = plane.ledger_entry(id).await.expect("it is remembered");
        assert_eq!((entry.key, entry.state.as_str()), (None, "unknown"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_caller_learns_nothing_from_a_key() {
    let yaml = r#"
policy: {blocklist: [pay]}
tools:
  pay: {description: Pays., executor: {kind: scripted}}
"#;
    let loaded = toolplane::manifest::LoadOptions::new();
    let loaded = loaded.text("c", toolplane::manifest::Syntax::Yaml, yaml);
    let loaded = toolplane::manifest::load(&loaded).expect("usable");
    let script = ScriptedExecutor::new([]);
    let builder = Toolplane::builder()
        .loaded(&loaded)
        .executor(Arc::new(script.clone()));
    let plane = builder.build().expect("usable");
    let error = plane.call(pay(7)).await.expect_err("it is blocked");
    assert_eq!((error.kind(), script.n_calls()), (ErrorKind::Denied, 0));
}

#[cfg(all(feature = "exec-http", feature = "exec-mcp"))]
async fn settings(plane: &Toolplane, tool: &str) -> Settings {
    let tool = plane.tool(tool, &Caller::local()).await;
    tool.expect("it is there").settings().clone()
}

#[cfg(all(feature = "exec-http", feature = "exec-mcp"))]
#[tokio::test]
async fn what_is_configured_holds_for_defaults_servers_and_tools() {
    let yaml = r#"
defaults: {idempotency: {ttl: 1h}}
servers:
  s: {command: none, idempotency: {ttl: 2h, meta: example.com/key}}
  t: {command: none}
tools:
  plain: {description: x, executor: {kind: http, method: POST, url: "https://a.example/"}}
  told:
    description: x
    idempotency: {ttl: 5m}
    executor: {kind: http, method: POST, url: "https://a.example/", idempotency: {header: Idempotency-Key}}
  of_s: {description: x, executor: {kind: mcp, server: s, tool: t}}
  of_t: {description: x, executor: {kind: mcp, server: t, tool: t}}
  argued: {description: x, executor: {kind: mcp, server: t, tool: t, idempotency: {argument: id}}}
"#;
    let plane = Toolplane::from_yaml(yaml).expect("usable");
    for (tool, minutes, passes_key) in [
        ("plain", 60, false),
        ("told", 5, true),
        ("of_s", 120, true),
        ("of_t", 60, false),
        ("argued", 60, true),
    ] {
        let settings = settings(&plane, tool).await;
        let ttl = settings
            .get::<IdempotencySettings>()
            .copied()
            .unwrap_or_default()
            .ttl;
        assert_eq!(
            (ttl, settings.passes_key),
            (60 * minutes * SECOND, passes_key),
            "{tool}"
        );
    }
    let nothing = Overrides::default();
    let settings = Settings::default();
    assert_eq!(
        settings.clone().overridden(&nothing, SettingLevel::Tool),
        settings
    );
}
