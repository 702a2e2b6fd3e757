//! Size limits of arguments.

use serde_json::json;
use tool_core::{ErrorKind, Invoke, Layer};
use tool_policy::{ArgumentSizeLayer, MaxArgumentsBytes};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::context;

#[tokio::test]
async fn arguments_beyond_the_limit_are_refused_before_the_tool_runs() {
    let arguments = json!({"a": "12345"});
    let n_bytes = arguments.to_string().len();
    for (limit, is_allowed) in [(None, true), (Some(n_bytes), true), (Some(n_bytes - 1), false)] {
        let mut tool = TestTool::new("echo");
        if let Some(limit) = limit {
            tool.settings.set(MaxArgumentsBytes(limit));
        }
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let mut cx = context(tool, &script, arguments.clone());
        let result = ArgumentSizeLayer.layer(script.clone()).invoke(&mut cx).await;
        assert_eq!(result.is_ok(), is_allowed, "{limit:?}: {result:?}");
        assert_eq!(script.n_calls(), usize::from(is_allowed));
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert_eq!(
                error.message(),
                "the arguments have 13 bytes, more than the 12 of `max_arguments_bytes`: send less"
            );
        }
    }
}
