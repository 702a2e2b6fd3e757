//! Answers in part in the standard stack: marked and not kept, or failed attempts.

use std::sync::Arc;

use serde_json::{Value, json};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{ErrorKind, Health, Metadata, Outcome, Overrides, ToolError},
    observe::Metrics,
    policy::{PartialRule, PartialSettings},
    runtime::{CacheSettings, FailureStep, FallbackLadder},
};

const KEY: &str = "dev.toolplane/partial";

fn plane(rule: PartialRule, script: &ScriptedExecutor, metrics: &Arc<Metrics>) -> Toolplane {
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.read_only = Some(true);
        metadata
    };
    let mut tool = TestTool::new("search").metadata(metadata);
    tool.descriptor.overrides = Overrides::default()
        .with(CacheSettings::default())
        .with(PartialSettings::default().with_rule(rule).with_field("/errors"))
        .with(FallbackLadder(
            [FailureStep::Default(RawJson::from("nothing"))].into(),
        ));
    Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .observer(metrics.clone())
        .tool(tool.descriptor)
        .build()
        .expect("it can be set up")
}

/// Returns the value of a reply and the values under these keys of its `_meta`.
fn told(result: Result<Outcome, ToolError>) -> (Value, Value, Value) {
    let Ok(Outcome::Reply(reply)) = result else {
        panic!("no reply: {result:?}");
    };
    let said = |wanted: &str| {
        let said = reply.meta().iter().find(|(key, _)| *key == wanted);
        said.map(|(_, value)| value.to::<Value>().expect("JSON"))
            .unwrap_or_default()
    };
    let value = reply.raw().to().expect("JSON");
    (value, said(KEY), said("dev.toolplane/degraded"))
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_taken_is_marked_counted_and_not_kept() {
    let part = json!({"data": 1, "errors": ["b is down"]});
    let script = ScriptedExecutor::new([
        ScriptStep::Value(part.clone()),
        ScriptStep::Value(json!({"data": 2})),
    ]);
    let metrics = Arc::new(Metrics::new());
    let plane = plane(PartialRule::Accept, &script, &metrics);
    let (value, partial, degraded) = told(plane.call(CallRequest::new("search")).await);
    assert_eq!((value, degraded), (part, Value::Null));
    assert_eq!(partial, json!({"partial": true, "by": "its field `/errors`"}));
    for _ in 0..2 {
        let (value, partial, _) = told(plane.call(CallRequest::new("search")).await);
        assert_eq!((value, partial), (json!({"data": 2}), Value::Null));
    }
    assert_eq!(script.n_calls(), 2, "the whole answer is kept, the part is not");
    assert!(
        metrics
            .render()
            .contains(r#"toolplane_partial_total{tool="search"} 1"#)
    );
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_not_wanted_is_a_failure_like_any_other() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!({"errors": 1}))]);
    let plane = plane(PartialRule::Fail, &script, &Arc::default());
    let explained = plane.call_explained(CallRequest::new("search")).await;
    let (value, partial, degraded) = told(explained.result);
    assert_eq!((value, partial), (json!("nothing"), Value::Null));
    let kind = ErrorKind::ResultInvalid.as_str();
    assert_eq!(degraded["errors"], json!([{"tool": "search", "error": kind}]));
    let report = plane.health().tool("search");
    assert_eq!((report.n_calls, report.n_failures), (1, 1));
}
