//! Chains of errors: each says its own sentence, and none that of its source.

use std::{error::Error, iter::successors, sync::Arc};

use serde_json::json;
use tool_core::{ErrorKind, Invoke, Layer, ToolError};
use tool_policy::{
    AdmissionLayer, ApprovalDesk, ApprovalLayer, ApprovalRules, ArgumentSizeLayer, ErrorPolicyLayer,
    MaxArgumentsBytes, MemoryApprovals, ResultValidationLayer, Rules, ValidationLayer,
};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::{context, patterns};

/// Checks that no error in the chain contains the text of the next one.
pub(crate) fn assert_no_repetition(error: &(dyn Error + 'static)) {
    let texts: Vec<String> = successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect();
    for pair in texts.windows(2) {
        assert!(!pair[0].contains(&pair[1]), "said twice: {texts:?}");
    }
}

async fn refused(layer: impl Layer<ScriptedExecutor, Invoke: Invoke>, tool: TestTool) -> ToolError {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!({"n": "text"}))]);
    let mut cx = context(tool, &script, json!({"n": 0}));
    layer
        .layer(script)
        .invoke(&mut cx)
        .await
        .expect_err("it is refused")
}

#[tokio::test]
async fn a_refusal_says_each_sentence_once() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let broken = json!({"type": "strin"});
    let tool = || TestTool::new("t");
    let rules = Rules::default().with_blocklist(patterns(&["t"]));
    let mut small = tool();
    small.settings.set(MaxArgumentsBytes(1));
    let approval = ApprovalRules::default().with_required(patterns(&["t"]));
    let full = MemoryApprovals::new(0, 0);
    let desk = ApprovalDesk::new(Arc::new(full), [], Arc::new(TokioClock::new()));
    let approval = ApprovalLayer::new(Rules::default().with_approval(approval), desk);
    for (error, kind) in [
        (
            refused(AdmissionLayer::new(rules), tool()).await,
            ErrorKind::Denied,
        ),
        (
            refused(ArgumentSizeLayer, small).await,
            ErrorKind::InvalidArguments,
        ),
        (
            refused(ValidationLayer, tool().input(schema.clone())).await,
            ErrorKind::InvalidArguments,
        ),
        (
            refused(ValidationLayer, tool().input(broken)).await,
            ErrorKind::Protocol,
        ),
        (
            refused(ResultValidationLayer, tool().output(schema)).await,
            ErrorKind::ResultInvalid,
        ),
        (refused(approval, tool()).await, ErrorKind::Overloaded),
    ] {
        assert_eq!(error.kind(), kind, "{error}");
        assert_no_repetition(&error);
        // What a caller sees has the original as its source.
        assert_no_repetition(&ErrorPolicyLayer::default().for_caller(error));
    }
    let internal = ToolError::new(ErrorKind::Unavailable, "10.0.0.1 is down");
    let shown = ErrorPolicyLayer::default().for_caller(internal);
    assert!(shown.source().is_some());
    assert_no_repetition(&shown);
}
