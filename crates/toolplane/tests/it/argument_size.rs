//! Size limits of arguments in a configuration.

use std::sync::Arc;

use serde_json::json;
use tool_testkit::{ScriptStep, ScriptedExecutor};
use toolplane::{
    CallRequest, Toolplane,
    core::{Arguments, ErrorKind},
    manifest::{LoadOptions, Loaded, Syntax, load},
};

fn loaded(limit: &str) -> Loaded {
    let yaml = format!(
        "defaults: {{max_arguments_bytes: {limit}}}
tools:
  usual: {{description: d, executor: {{kind: scripted}}}}
  large: {{description: d, max_arguments_bytes: 1KiB, executor: {{kind: scripted}}}}"
    );
    load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable")
}

#[tokio::test]
async fn the_limit_of_a_tool_overrides_that_of_the_defaults() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = Toolplane::builder()
        .loaded(&loaded("64"))
        .executor(Arc::new(script.clone()))
        .build()
        .expect("usable");
    for (tool, n_bytes, is_allowed) in [
        ("usual", 64, true),
        ("usual", 65, false),
        ("large", 65, true),
        ("large", 1024, true),
        ("large", 1025, false),
    ] {
        // `{"a":""}` has 8 bytes.
        let arguments = Arguments::from_value(json!({"a": "x".repeat(n_bytes - 8)})).expect("an object");
        let before = script.n_calls();
        let request = CallRequest::new(tool).arguments(arguments);
        let explained = plane.call_explained(request).await;
        assert_eq!(
            explained.result.is_ok(),
            is_allowed,
            "{tool} {n_bytes}: {explained:?}"
        );
        assert_eq!(script.n_calls() - before, usize::from(is_allowed));
        let note = explained
            .decisions
            .iter()
            .find(|note| note.layer == "argument size");
        assert!(
            note.expect("a note").decision.contains("of at most"),
            "{explained:?}"
        );
        if let Err(error) = explained.result {
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert!(error.message().contains("`max_arguments_bytes`"), "{error}");
        }
    }
}

#[test]
fn a_limit_that_refuses_every_call_is_an_error() {
    for (limit, is_usable) in [("0", false), ("1", false), ("2", true)] {
        let yaml = format!("defaults: {{max_arguments_bytes: {limit}}}");
        let result = load(&LoadOptions::new().text("c", Syntax::Yaml, yaml));
        assert_eq!(result.is_ok(), is_usable, "{limit}: {result:?}");
        if let Err(error) = result {
            assert!(
                error.to_string().contains("every call would be refused"),
                "{error}"
            );
        }
    }
}
