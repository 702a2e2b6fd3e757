//! How large results may be, whatever runs the tool.

use std::sync::Arc;

use serde_json::json;
use tool_testkit::{ScriptedExecutor, ScriptStep};
use toolplane::{
    CallRequest, Toolplane,
    core::ErrorKind,
    manifest::{LoadOptions, Syntax, load},
};

#[tokio::test]
async fn the_limit_of_the_defaults_holds_for_every_executor() {
    for (n_bytes, is_allowed) in [(1000, true), (1023, false), (5000, false)] {
        // With the quotes two bytes more.
        let text = "x".repeat(n_bytes);
        let yaml = format!(
            "defaults: {{max_result_bytes: 1KiB}}
tools:
  own: {{description: d, executor: {{kind: scripted}}}}
  fixed: {{description: d, executor: {{kind: mock, result: {text}}}}}
  rendered: {{description: d, executor: {{kind: mock, template: '\"{text}\"'}}}}"
        );
        let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable");
        let plane = Toolplane::builder()
            .loaded(&loaded)
            .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Value(json!(text))])))
            .build()
            .expect("usable");
        for tool in ["own", "fixed", "rendered"] {
            let result = plane.call(CallRequest::new(tool)).await;
            assert_eq!(result.is_ok(), is_allowed, "{tool} {n_bytes}: {result:?}");
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::ResultTooLarge);
                assert!(error.message().contains("`defaults.max_result_bytes`"), "{error}");
            }
        }
    }
}
