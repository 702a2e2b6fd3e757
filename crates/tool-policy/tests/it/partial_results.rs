//! Partial results: how a tool declares them, and how they are handled.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{ErrorKind, Invoke, Layer, Outcome, Reply, ToolError};
use tool_policy::PartialResultsLayer;
use tool_policy::{PartialRule, PartialSettings};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

async fn run(settings: Option<PartialSettings>, reply: Reply) -> Result<Outcome, ToolError> {
    let script = ScriptedExecutor::new([ScriptStep::Reply(reply)]);
    let mut tool = TestTool::new("search");
    if let Some(settings) = settings {
        tool.settings.set(settings);
    }
    let mut cx = call(tool.build(script.clone()), json!({}), Arc::new(TokioClock::new()));
    PartialResultsLayer.layer(script).invoke(&mut cx).await
}

fn rule(rule: PartialRule, field: Option<&str>) -> Option<PartialSettings> {
    let settings = PartialSettings::default().with_rule(rule);
    Some(match field {
        Some(field) => settings.with_field(field),
        None => settings,
    })
}

/// Returns `true` if the reply is marked as partial, and its mark.
fn told(result: Result<Outcome, ToolError>) -> (bool, Value) {
    let Ok(Outcome::Reply(reply)) = result else {
        panic!("no reply: {result:?}");
    };
    let said = reply
        .meta()
        .iter()
        .find(|(key, _)| *key == PartialSettings::META_KEY);
    let said = said.map(|(_, value)| value.to().expect("JSON"));
    (reply.is_partial(), said.unwrap_or_default())
}

fn value(value: Value) -> Reply {
    Reply::value(RawJson::from(value))
}

fn known() -> Reply {
    let mut reply = value(json!([1]));
    reply.mark_partial();
    reply
}

#[tokio::test]
async fn what_is_known_to_be_a_part_is_marked_by_itself_and_fails_where_all_is_wanted() {
    let said = json!({"partial": true, "by": "its status"});
    for settings in [None, rule(PartialRule::Accept, None)] {
        assert_eq!(told(run(settings, known()).await), (true, said.clone()));
    }
    let error = run(rule(PartialRule::Fail, None), known())
        .await
        .expect_err("all of it");
    assert_eq!(error.kind(), ErrorKind::ResultInvalid);
    assert!(error.message().contains("incomplete, by its status"), "{error}");
}

#[tokio::test]
async fn a_server_says_it_in_its_own_meta_which_goes_on_as_it_is() {
    let result = |mark: Value| {
        let result = json!({"content": [], "_meta": {PartialSettings::META_KEY: mark}});
        Reply::result(RawJson::from(result), false)
    };
    let accept = || rule(PartialRule::Accept, None);
    for (mark, is_partial) in [
        (json!(true), true),
        (json!({"missing": ["b"]}), true),
        (json!("two of three"), true),
        (json!(false), false),
        (json!(null), false),
        (json!({}), false),
    ] {
        let reply = run(accept(), result(mark.clone())).await;
        assert_eq!(told(reply), (is_partial, Value::Null), "{mark}");
        let failed = run(rule(PartialRule::Fail, None), result(mark.clone())).await;
        assert_eq!(failed.is_err(), is_partial, "{mark}");
        // Without settings, the mark is ignored.
        assert!(!told(run(None, result(mark)).await).0);
    }
}

#[tokio::test]
async fn a_tool_says_it_in_the_field_that_the_operator_names() {
    let graphql = |errors: Value| value(json!({"data": {"a": 1}, "errors": errors}));
    let accept = || rule(PartialRule::Accept, Some("/errors"));
    let said = json!({"partial": true, "by": "its field `/errors`"});
    let one = || graphql(json!([{"message": "b is down"}]));
    assert_eq!(told(run(accept(), one()).await), (true, said));
    assert!(
        run(rule(PartialRule::Fail, Some("/errors")), one())
            .await
            .is_err()
    );
    for nothing in [
        json!([]),
        json!(null),
        json!(false),
        json!(0),
        json!(""),
        json!({}),
    ] {
        assert!(!told(run(accept(), graphql(nothing)).await).0);
    }
    assert!(!told(run(accept(), value(json!({"data": 1}))).await).0);
    let structured = json!({"content": [], "structuredContent": {"page": {"truncated": true}}});
    let reply = Reply::result(RawJson::from(structured), false);
    let deep = rule(PartialRule::Accept, Some("/page/truncated"));
    assert!(told(run(deep, reply).await).0);
}

#[tokio::test]
async fn an_object_in_the_place_of_words_is_looked_into_and_words_are_not() {
    let deep = |which| rule(which, Some("/page/truncated"));
    let text = |text: &str| json!({"type": "text", "text": text});
    let cut = r#"{"page": {"truncated": true}, "items": [1]}"#;
    for (content, is_partial) in [
        (json!([text(cut)]), true),
        (json!([text(&format!("\n{cut} \n"))]), true),
        (json!([text(&cut.replace("true", "false"))]), false),
        (json!([text(r#"{"page": 1}"#)]), false),
        (json!([text("{\"page\": {\"truncated\": true}")]), false),
        (json!([text(&format!("Here it is: {cut}"))]), false),
        (json!([text(&format!("[{cut}]"))]), false),
        // With two texts, none of them is known to be the result.
        (json!([text(cut), text(cut)]), false),
        (json!([text("cut"), text(cut)]), false),
        (json!([{"type": "resource", "text": cut}]), false),
        (json!([]), false),
        (json!(cut), false),
    ] {
        let reply = || Reply::result(RawJson::from(json!({"content": content})), false);
        let (marked, said) = told(run(deep(PartialRule::Accept), reply()).await);
        assert_eq!(marked, is_partial, "{content}");
        let by = json!({"partial": true, "by": "its field `/page/truncated`"});
        assert_eq!(said, if is_partial { by } else { Value::Null }, "{content}");
        let failed = run(deep(PartialRule::Fail), reply()).await;
        assert_eq!(failed.is_err(), is_partial, "{content}");
        // Without settings, the field is ignored.
        assert!(!told(run(None, reply()).await).0);
        assert!(!told(run(rule(PartialRule::Fail, None), reply()).await).0);
    }
    // If there is a structured part, it is the result.
    let both = json!({"content": [text(cut)], "structuredContent": {"page": {"truncated": false}}});
    let reply = Reply::result(RawJson::from(both), false);
    assert!(!told(run(deep(PartialRule::Fail), reply).await).0);
}

#[tokio::test]
async fn a_field_is_found_as_json_pointers_say() {
    for (field, answer, is_partial) in [
        ("", json!({"a": 1}), true),
        ("", json!({}), false),
        ("/a/1/b", json!({"a": [0, {"b": 0.5}]}), true),
        ("/a/1/b", json!({"a": [0, {"b": 0.0}]}), false),
        ("/a/01", json!({"a": [0, 1]}), false),
        ("/a/+1", json!({"a": [0, 1]}), false),
        ("/a/2", json!({"a": [0, 1]}), false),
        ("/a/-", json!({"a": [0, 1]}), false),
        ("/a/0", json!({"a": {"0": "x"}}), true),
        ("/a~1b/c~0d", json!({"a/b": {"c~d": [null]}}), true),
        ("/~01", json!({"~1": true}), true),
        ("/", json!({"": true}), true),
        ("/a/b", json!({"a": "b"}), false),
    ] {
        let reply = run(rule(PartialRule::Accept, Some(field)), value(answer.clone())).await;
        assert_eq!(told(reply).0, is_partial, "{field} in {answer}");
    }
}

#[tokio::test]
async fn a_failure_that_the_tool_reports_is_no_part() {
    let result = json!({"content": [], "isError": true, "_meta": {PartialSettings::META_KEY: true}});
    let reply = Reply::result(RawJson::from(result), true);
    assert_eq!(
        told(run(rule(PartialRule::Fail, None), reply).await),
        (false, Value::Null)
    );
}
