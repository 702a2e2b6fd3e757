//! Chains of errors of calls, which say each sentence once.

use std::{error::Error, sync::Arc};

use serde_json::json;
use tool_testkit::{ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Pattern, ToolError},
    manifest::Configuration,
};

/// Returns the messages of an error and of its causes.
fn chain(error: &ToolError) -> Vec<String> {
    let mut messages = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        messages.push(error.to_string());
        cause = error.source();
    }
    messages
}

fn assert_says_each_sentence_once(error: &ToolError) {
    let chain = chain(error);
    for (index, said) in chain.iter().enumerate() {
        let repeated = chain[..index]
            .iter()
            .any(|before| before.contains(said.as_str()) || said.contains(before.as_str()));
        assert!(!repeated, "{chain:#?}");
    }
}

#[tokio::test]
async fn refusals_say_each_sentence_once() {
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = vec![Pattern::new("blocked")];
    let mut unusable = TestTool::new("unusable");
    unusable.descriptor.executor.kind = "pigeon".to_owned();
    let mut guarded = TestTool::new("guarded");
    guarded.descriptor.metadata.required_permissions = vec!["admin".to_owned()];
    let plane = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(ScriptedExecutor::new([])))
        .tool(TestTool::new("blocked").descriptor)
        .tool(unusable.descriptor)
        .tool(guarded.descriptor)
        .tool(
            TestTool::new("typed")
                .input(json!({"type": "object", "required": ["n"]}))
                .descriptor,
        )
        .build()
        .expect("usable");
    plane.disable("typed", Some("it is mended")).await.expect("known");
    let mut kinds = Vec::new();
    for name in ["typed", "typed", "blocked", "guarded", "unusable", "missing"] {
        let error = plane.call(CallRequest::new(name)).await.expect_err("refused");
        assert_says_each_sentence_once(&error);
        kinds.push(error.kind());
        // Disabled the first time.
        plane.enable("typed");
    }
    assert_eq!(
        kinds,
        [
            ErrorKind::Unavailable,
            ErrorKind::InvalidArguments,
            ErrorKind::Denied,
            ErrorKind::Denied,
            ErrorKind::Unavailable,
            ErrorKind::NotFound
        ]
    );
}

#[cfg(feature = "exec-mcp")]
#[tokio::test]
async fn failures_of_servers_say_each_sentence_once() {
    use mcp_mock::{MockResource, MockServer};
    use toolplane::core::Caller;

    let failing = Toolplane::from_yaml("servers: {s: {command: /no/such/program}}").expect("usable");
    let error = failing
        .call(CallRequest::new("s__any"))
        .await
        .expect_err("it does not start");
    assert!(chain(&error).len() > 1, "the reason is a cause: {error:?}");
    assert_says_each_sentence_once(&error);

    let server = MockServer::builder()
        .resource(MockResource::new("test://a"))
        .build();
    let http = server.http().await.expect("it listens");
    let yaml = format!(
        "servers: {{s: {{url: '{}'}}}}\npolicy: {{blocklist: ['s__test://a']}}",
        http.url()
    );
    let plane = Toolplane::from_yaml(yaml).expect("usable");
    plane.view(&Caller::local()).await;
    let refused = plane.subscribe("test://a", &Caller::local()).await;
    let error = refused.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_says_each_sentence_once(&error);
    plane.shutdown().await;
}
