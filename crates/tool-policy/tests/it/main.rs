//! Each policy layer alone, around a scripted executor.

mod alone;
mod approval;
mod approval_suite;
mod argument_size;
mod authentication;
mod breaker;
mod chains;
mod corpus;
mod credential_refresh;
mod error_policy;
mod partial_results;
mod quota;
mod rate_limit;
mod redaction;
mod resource_rules;
mod validation;

use std::{collections::BTreeSet, sync::Arc};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    CallContext, Caller, Category, ErrorKind, Feature, Invoke, Layer, Metadata, Outcome, Pattern, Reply,
    Target, ToolError,
};
use tool_policy::{AdmissionLayer, ApprovalRules, ResultValidationLayer, Rules, ValidationLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

fn context(tool: TestTool, script: &ScriptedExecutor, arguments: Value) -> CallContext {
    call(tool.build(script.clone()), arguments, Arc::new(TokioClock::new()))
}

async fn admit(rules: Rules, name: &str, required: &[&str], granted: &[&str]) -> Result<Outcome, ToolError> {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let required = required.iter().map(ToString::to_string).collect();
    let tool = TestTool::new(name).metadata({
        let mut metadata = Metadata::default();
        metadata.required_permissions = required;
        metadata
    });
    let mut cx = context(tool, &script, json!({}));
    let permissions: BTreeSet<Arc<str>> = granted.iter().map(|&permission| permission.into()).collect();
    cx.origin.caller = Arc::new({
        let mut new = Caller::new("ann");
        new.permissions = permissions;
        new
    });
    let result = AdmissionLayer::new(Arc::new(rules))
        .layer(script.clone())
        .invoke(&mut cx)
        .await;
    assert_eq!(
        script.n_calls(),
        usize::from(result.is_ok()),
        "a refused call reaches nothing"
    );
    result
}

fn patterns(names: &[&str]) -> Vec<Pattern> {
    names.iter().map(|&name| Pattern::new(name)).collect()
}

#[tokio::test]
async fn rules_admit_and_refuse() {
    let block = |names| Rules::default().with_blocklist(patterns(names));
    let allow = |names| Rules::default().with_allowlist(patterns(names));
    /// Rules, a tool, its required permissions, the caller's permissions, and the denial.
    type Case = (
        Rules,
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
        Option<&'static str>,
    );
    let cases: [Case; 9] = [
        (Rules::default(), "files__read", &[], &[], None),
        (block(&["files__write"]), "files__read", &[], &[], None),
        (
            block(&["files__*"]),
            "files__read",
            &[],
            &[],
            Some("blocked by the policy rule `files__*`"),
        ),
        (allow(&["files__*"]), "files__read", &[], &[], None),
        (
            allow(&["git__*"]),
            "files__read",
            &[],
            &[],
            Some("not on the policy's allow-list"),
        ),
        (
            allow(&[]),
            "files__read",
            &[],
            &[],
            Some("not on the policy's allow-list"),
        ),
        (Rules::default(), "search", &["network"], &["network"], None),
        (
            Rules::default(),
            "search",
            &["network", "cost"],
            &["network"],
            Some("lacks the permission `cost`"),
        ),
        (
            Rules::default(),
            "search",
            &["network"],
            &[],
            Some("`ann` lacks the permission `network`"),
        ),
    ];
    for (rules, tool, required, granted, expected) in cases {
        match (admit(rules.clone(), tool, required, granted).await, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert_eq!(error.kind(), ErrorKind::Denied);
                assert_eq!(error.kind().category(), Category::Validation);
                assert!(error.message().contains(expected), "{error}");
            }
            (result, expected) => panic!("{rules:?} {tool}: {result:?}, expected {expected:?}"),
        }
    }
}

/// A server's tool that was renamed: rules match it by any of its names.
#[test]
fn a_rule_is_about_the_tool_by_each_of_its_names() {
    let mut tool = TestTool::new("wipe");
    tool.provenance.names = vec!["files__cleanup".into(), "files__delete_file".into()];
    let tool = tool.build(ScriptedExecutor::new([]));
    let target = Target::Tool(tool.clone());
    for name in ["wipe", "files__cleanup", "files__delete_*"] {
        let rules = Rules::default().with_blocklist(patterns(&[name]));
        let refused = rules.admit_call(&target, &Caller::local()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("`wipe` is blocked by the policy rule `{name}`")
        );
        let rules = Rules::default()
            .with_required_permissions(vec![(Pattern::new(name), vec!["p".to_owned()])])
            .with_approval(ApprovalRules::default().with_required(patterns(&[name])));
        let lacks = rules.admit(&tool, &Caller::local()).unwrap_err();
        assert_eq!(lacks.code(), "permission", "{name}: {lacks}");
        assert!(
            rules.approval_reason(&target, &Caller::new("ada")).is_some(),
            "{name}"
        );
    }
    // An allow-list that names another name may mean another tool.
    for (name, is_allowed) in [("wipe", true), ("files__cleanup", false), ("files__*", false)] {
        let rules = Rules::default().with_allowlist(patterns(&[name]));
        assert_eq!(rules.admit(&tool, &Caller::local()).is_ok(), is_allowed, "{name}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_reach_nothing() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
    for (arguments, fits) in [
        (json!({"n": 1}), true),
        (json!({"n": 0}), false),
        (json!({"n": "1"}), false),
        (json!({}), false),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let mut cx = context(
            TestTool::new("count").input(schema.clone()),
            &script,
            arguments.clone(),
        );
        let result = ValidationLayer.layer(script.clone()).invoke(&mut cx).await;
        assert_eq!(result.is_ok(), fits, "{arguments}");
        assert_eq!(script.n_calls(), usize::from(fits));
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert!(error.message().contains('n'), "{error}");
        }
    }
}

#[tokio::test]
async fn results_that_do_not_fit_are_refused_without_their_values() {
    let schema = json!({"type": "object", "properties": {"t": {"type": "number"}}, "required": ["t"]});
    let raw = |text: &str| RawJson::parse(text.to_owned()).unwrap();
    let cases = [
        (Reply::value(raw(r#"{"t": 1.5}"#)), true),
        (Reply::value(raw(r#"{"t": "hunter2"}"#)), false),
        (
            Reply::result(raw(r#"{"content": [], "structuredContent": {"t": 1}}"#), false),
            true,
        ),
        (
            Reply::result(
                raw(r#"{"content": [], "structuredContent": {"t": "hunter2"}}"#),
                false,
            ),
            false,
        ),
        (Reply::result(raw(r#"{"content": []}"#), false), false),
        (
            Reply::result(raw(r#"{"content": [], "isError": true}"#), true),
            true,
        ),
    ];
    for (reply, fits) in cases {
        let script = ScriptedExecutor::new([ScriptStep::Reply(reply.clone())]);
        let mut cx = context(
            TestTool::new("measure").output(schema.clone()),
            &script,
            json!({}),
        );
        let result = ResultValidationLayer.layer(script).invoke(&mut cx).await;
        assert_eq!(result.is_ok(), fits, "{}", reply.raw());
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::ResultInvalid);
            assert!(!error.message().contains("hunter2"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_tool_without_an_output_schema_may_answer_anything() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!([1, 2]))]);
    let mut cx = context(TestTool::new("free"), &script, json!({}));
    assert!(ResultValidationLayer.layer(script).invoke(&mut cx).await.is_ok());
}

/// Makes a resource of a template.
fn resource(template: &str, uri: &str) -> Target {
    let mut tool = TestTool::new(&format!("files__{template}"));
    tool.descriptor.feature = Feature::ResourceTemplate;
    tool.descriptor.uri = Some(template.into());
    Target::Resource {
        resource: tool.build(ScriptedExecutor::new([])),
        uri: uri.into(),
    }
}

/// Returns `true` if the rules admit reading a resource of a template.
fn may_read(rules: &Rules, template: &str, uri: &str) -> bool {
    let ann = Caller::new("ann");
    rules.admit_call(&resource(template, uri), &ann).is_ok()
}

#[test]
fn a_resource_is_known_by_its_own_name_however_it_is_written() {
    let template = "file:///{+path}";
    let blocked = Rules::default().with_blocklist(patterns(&["files__file:///secret/*"]));
    let allowed = Rules::default().with_allowlist(patterns(&["files__file:///open/*"]));
    let whole = Rules::default().with_blocklist(patterns(&["files__file:*"]));
    let guarded = Rules::default().with_required_permissions(vec![(
        Pattern::new("files__file:///secret/*"),
        vec!["read".to_owned()],
    )]);
    for (uri, past_blocklist, past_allowlist) in [
        ("file:///open/a", true, true),
        ("file:///other/a", true, false),
        ("file:///secret/a", false, false),
        ("file:///open/../secret/a", false, false),
        ("file:///%73ecret/a", false, false),
        ("file:///open/%2e%2e/secret/a", false, false),
        ("FILE:///secret/a", false, false),
        ("file:///open/%25252525252e", false, false),
    ] {
        assert_eq!(may_read(&blocked, template, uri), past_blocklist, "{uri}");
        assert_eq!(may_read(&allowed, template, uri), past_allowlist, "{uri}");
        assert_eq!(may_read(&guarded, template, uri), past_blocklist, "{uri}");
        let is_open = guarded.needs_no_permission(&resource(template, uri));
        assert_eq!(is_open, past_blocklist, "{uri}");
        assert!(!may_read(&whole, template, uri), "{uri}");
        assert!(may_read(&Rules::default(), template, uri), "{uri}");
    }
}
