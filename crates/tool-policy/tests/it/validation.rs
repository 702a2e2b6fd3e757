//! Validation of arguments that do not satisfy the schema, in each mode of handling.

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{ArgumentHandling, ErrorKind, Invoke, Layer, Outcome, ToolError};
use tool_policy::{ArgumentSettings, ValidationLayer};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::context;

fn tool(handling: ArgumentHandling) -> TestTool {
    let mut tool = TestTool::new("search").input(json!({
        "type": "object",
        "properties": {"query": {"type": "string", "maxLength": 5}, "limit": {"type": "integer", "maximum": 10}},
        "required": ["query"],
    }));
    tool.settings
        .set(ArgumentSettings::default().with_handling(handling));
    tool
}

/// Returns the arguments that the tool received and the report for the caller, or the error of the refused call.
async fn call(handling: ArgumentHandling, arguments: Value) -> Result<(Value, Option<Value>), ToolError> {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut cx = context(tool(handling), &script, arguments);
    let outcome = ValidationLayer.layer(script.clone()).invoke(&mut cx).await;
    assert_eq!(script.n_calls(), usize::from(outcome.is_ok()));
    let Outcome::Reply(reply) = outcome? else {
        panic!("a script answers at once")
    };
    let told = reply
        .meta()
        .iter()
        .find(|(key, _)| *key == ArgumentHandling::META_KEY);
    Ok((
        reply.structured().expect("an echo").to().expect("JSON"),
        told.map(|(_, report)| report.to().expect("JSON")),
    ))
}

#[tokio::test]
async fn each_handling_does_what_it_says() {
    use ArgumentHandling::{Coerce, Sanitize, Strict};
    let fits = json!({"query": "a", "limit": 3, "more": true});
    let text = json!({"query": "a", "limit": "3", "more": true});
    let large = json!({"query": "abcdefg", "limit": "30", "more": true});
    for (handling, arguments, expected, n_changes) in [
        (Strict, &fits, Some(fits.clone()), 0),
        (Strict, &text, None, 0),
        (Coerce, &fits, Some(fits.clone()), 0),
        (Coerce, &text, Some(fits.clone()), 1),
        (Coerce, &large, None, 0),
        (Sanitize, &fits, Some(json!({"query": "a", "limit": 3})), 1),
        (Sanitize, &large, Some(json!({"query": "abcde", "limit": 10})), 4),
        (Sanitize, &json!({"limit": 3}), None, 0),
    ] {
        let came = call(handling, arguments.clone()).await;
        match (came, expected) {
            (Ok((called_with, told)), Some(expected)) => {
                assert_eq!(called_with, expected, "{handling:?} {arguments}");
                let told = told.map_or(0, |told| told["changes"].as_array().unwrap().len());
                assert_eq!(told, n_changes, "{handling:?} {arguments}");
            }
            (Err(error), None) => assert_eq!(error.kind(), ErrorKind::InvalidArguments),
            (came, _) => panic!("{handling:?} {arguments}: {came:?}"),
        }
    }
}

#[tokio::test]
async fn a_failure_tells_what_was_changed_as_well() {
    let script = ScriptedExecutor::new([ScriptStep::Fail(ToolError::new(
        ErrorKind::UpstreamError,
        "no such page",
    ))]);
    let arguments = json!({"query": "a", "limit": "3"});
    let mut cx = context(tool(ArgumentHandling::Coerce), &script, arguments);
    let error = ValidationLayer
        .layer(script)
        .invoke(&mut cx)
        .await
        .expect_err("it fails");
    assert_eq!(error.kind(), ErrorKind::UpstreamError);
    assert_eq!(
        error.message(),
        "no such page (before the call, `/limit` was coerced (string to integer))"
    );
}

#[tokio::test]
async fn what_does_not_change_keeps_its_own_text() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut cx = context(tool(ArgumentHandling::Coerce), &script, json!({}));
    let text = r#"{"query" : "\u0061", "limit":"4","id":123456789012345678901234567890 }"#;
    cx.arguments = std::sync::Arc::new(tool_core::Arguments::parse(text).unwrap());
    ValidationLayer
        .layer(script)
        .invoke(&mut cx)
        .await
        .expect("it fits then");
    assert_eq!(
        cx.arguments.raw(),
        &RawJson::parse(r#"{"query" : "\u0061", "limit":4,"id":123456789012345678901234567890 }"#).unwrap()
    );
}

/// Makes a tool with defaults in its schema.
fn tool_with_defaults(handling: ArgumentHandling, fill_defaults: Option<bool>) -> TestTool {
    let mut tool = TestTool::new("search").input(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "page": {"type": "object", "properties": {"size": {"type": "integer", "default": 5}}},
        },
        "required": ["query", "limit"],
        "maxProperties": 3,
    }));
    let mut settings = ArgumentSettings::default().with_handling(handling);
    settings.fill_defaults = fill_defaults;
    tool.settings.set(settings);
    tool
}

#[tokio::test]
async fn defaults_are_filled_in_with_coerce_and_by_their_own_setting() {
    use ArgumentHandling::{Coerce, Sanitize, Strict};
    let bare = json!({"query": "a", "page": {}});
    let filled = json!({"query": "a", "limit": 10, "page": {"size": 5}});
    for (handling, setting, is_filled) in [
        (Strict, None, false),
        (Strict, Some(true), true),
        (Coerce, None, true),
        (Coerce, Some(false), false),
        (Sanitize, None, true),
        (Sanitize, Some(false), false),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let mut cx = context(tool_with_defaults(handling, setting), &script, bare.clone());
        cx.record_decisions();
        let came = ValidationLayer.layer(script.clone()).invoke(&mut cx).await;
        let case = format!("{handling:?} {setting:?}");
        if !is_filled {
            let error = came.expect_err(&case);
            assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{case}");
            assert!(
                error.message().contains("missing required property `limit`"),
                "{error}"
            );
            continue;
        }
        let Outcome::Reply(reply) = came.expect(&case) else {
            panic!("a script answers at once")
        };
        // The tool and all inner layers see the new arguments, and use them in their keys.
        assert_eq!(
            reply.structured().unwrap().to::<Value>().unwrap(),
            filled,
            "{case}"
        );
        assert_eq!(cx.arguments.value(), &filled, "{case}");
        let told = &reply
            .meta()
            .iter()
            .find(|(key, _)| *key == ArgumentHandling::META_KEY);
        let told: Value = told.expect(&case).1.to().unwrap();
        let changes: Vec<_> = told["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["path"])
            .collect();
        assert_eq!(changes, ["/page/size", "/limit"], "{case}");
        assert_eq!(told["changes"][0]["change"], "filled", "{case}");
        // The log holds no value.
        assert!(
            cx.decisions().iter().all(|note| !note.decision.contains("10")),
            "{case}"
        );
    }
}

#[tokio::test]
async fn strict_arguments_are_refused_though_defaults_are_filled_in() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let tool = tool_with_defaults(ArgumentHandling::Strict, Some(true));
    let mut cx = context(tool, &script, json!({"query": "a", "limit": "3"}));
    let error = ValidationLayer
        .layer(script.clone())
        .invoke(&mut cx)
        .await
        .expect_err("a text is no number");
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test]
async fn arguments_that_fit_are_never_refused_for_their_defaults() {
    // With the default, there would be one property too many.
    let arguments = json!({"query": "a", "limit": 1, "x": 2});
    let mut tool = TestTool::new("search").input(json!({
        "properties": {"query": {}, "limit": {}, "page": {"default": 1}},
        "maxProperties": 3,
    }));
    tool.settings
        .set(ArgumentSettings::default().with_fill_defaults(true));
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut cx = context(tool, &script, arguments.clone());
    cx.record_decisions();
    ValidationLayer
        .layer(script)
        .invoke(&mut cx)
        .await
        .expect("they fit");
    assert_eq!(cx.arguments.value(), &arguments);
    let said = cx
        .decisions()
        .iter()
        .any(|note| note.decision.starts_with("defaults were not filled in"));
    assert!(said, "{:?}", cx.decisions());
}
