//! Caches in the standard stack: eligible tools, sharing callers, and the information for the caller.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::advance;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{BoxFuture, Caller, EmbedError, Embedder, ErrorKind, Metadata, Outcome, ToolError, Trust},
    manifest::{Configuration, LoadOptions, Syntax, load},
    runtime::{CacheSettings, RetrySettings},
};

const SECOND: Duration = Duration::from_secs(1);
const KEY: &str = "dev.toolplane/cache";

fn declared() -> Metadata {
    {
        let mut metadata = Metadata::default();
        metadata.read_only = Some(true);
        metadata.idempotent = Some(true);
        metadata
    }
}

/// A tool with a cache of its own.
fn cached(name: &str) -> TestTool {
    let mut tool = TestTool::new(name);
    tool.descriptor.overrides.set(CacheSettings::default());
    tool
}

/// Answers are kept by default.
fn by_default() -> Configuration {
    let mut configuration = Configuration::default();
    configuration.defaults.overrides.set(CacheSettings::default());
    configuration
}

fn plane(script: &ScriptedExecutor, configuration: Configuration, tool: TestTool) -> Toolplane {
    Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .build()
        .expect("can be set up")
}

/// Returns the cache status of a reply.
async fn status(plane: &Toolplane, request: CallRequest) -> Value {
    let Ok(Outcome::Reply(reply)) = plane.call(request).await else {
        panic!("no reply");
    };
    let told = reply.meta().iter().find(|(key, _)| *key == KEY);
    told.map(|(_, value)| value.to::<Value>().expect("JSON")["status"].clone())
        .unwrap_or_default()
}

fn request(arguments: &Value) -> CallRequest {
    CallRequest::new("search")
        .json(arguments.to_string())
        .expect("valid arguments")
}

/// The fifth critical scenario of the layered architecture: identical requests within the time to live.
#[tokio::test(start_paused = true)]
async fn an_identical_call_within_the_time_to_live_is_answered_from_the_cache() {
    let script = ScriptedExecutor::new([
        ScriptStep::Value(json!("first")),
        ScriptStep::Value(json!("second")),
    ]);
    let plane = plane(&script, Configuration::default(), cached("search"));
    assert_eq!(
        status(&plane, request(&json!({"q": "a", "n": 1}))).await,
        Value::Null
    );
    advance(59 * SECOND).await;
    // Equal arguments in another order.
    let again = CallRequest::new("search")
        .json(r#"{"n": 1, "q": "a"}"#)
        .expect("valid arguments");
    assert_eq!(status(&plane, again).await, "hit");
    assert_eq!(
        status(&plane, request(&json!({"q": "b", "n": 1}))).await,
        Value::Null
    );
    advance(SECOND).await;
    assert_eq!(
        status(&plane, request(&json!({"q": "a", "n": 1}))).await,
        Value::Null
    );
    assert_eq!(script.n_calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_what_its_operator_declared_is_cached() {
    let trusted = |metadata| TestTool::new("search").metadata(metadata);
    let mut hinted = trusted(declared());
    hinted.descriptor.origin.trust = Trust::Upstream;
    let mut claiming = cached("search");
    claiming.descriptor.origin.trust = Trust::Upstream;
    let mut disabled = cached("search").metadata(declared());
    disabled
        .descriptor
        .overrides
        .set(CacheSettings::default().with_disabled(true));
    let only_read = {
        let mut metadata = Metadata::default();
        metadata.read_only = Some(true);
        metadata
    };
    let nothing = Configuration::default;
    for (case, configuration, tool, is_cached) in [
        ("nothing is set up", nothing(), trusted(declared()), false),
        ("set up for it", nothing(), cached("search"), true),
        ("by default, declared", by_default(), trusted(declared()), true),
        (
            "by default, not declared",
            by_default(),
            trusted(Metadata::default()),
            false,
        ),
        (
            "by default, not idempotent",
            by_default(),
            trusted(only_read),
            false,
        ),
        ("by default, a server's hint", by_default(), hinted, false),
        ("a server's own setting", by_default(), claiming, false),
        ("not this one", by_default(), disabled, false),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let plane = plane(&script, configuration, tool);
        for _ in 0..2 {
            status(&plane, request(&json!({}))).await;
        }
        assert_eq!(script.n_calls() == 1, is_cached, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_the_answer_of_somebody_else() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, Configuration::default(), cached("search"));
    let of = |caller: &str, tenant: &str| {
        let mut caller = Caller::new(caller);
        caller.tenant = tenant.into();
        request(&json!({})).caller(Arc::new(caller))
    };
    for (caller, tenant) in [("ann", "a"), ("ben", "a"), ("ann", "b")] {
        assert_eq!(status(&plane, of(caller, tenant)).await, Value::Null);
        assert_eq!(status(&plane, of(caller, tenant)).await, "hit");
    }
    assert_eq!(script.n_calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_call_gets_nothing_out_of_the_cache_either() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let tool = || {
        let mut tool = cached("search").metadata({
            let mut metadata = Metadata::default();
            metadata.required_permissions = vec!["search".to_owned()];
            metadata
        });
        let overrides = &mut tool.descriptor.overrides;
        let cache = *overrides.get::<CacheSettings>().expect("it has one");
        overrides.set(cache.with_scope(toolplane::runtime::CacheScope::Shared));
        tool
    };
    let plane = plane(&script, Configuration::default(), tool());
    let mut permitted = Caller::new("ann");
    permitted.permissions.insert("search".into());
    let ann = request(&json!({})).caller(Arc::new(permitted));
    assert_eq!(status(&plane, ann).await, Value::Null);
    let ben = request(&json!({})).caller(Arc::new(Caller::new("ben")));
    let error = plane.call(ben).await.expect_err("he is not permitted");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(script.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_may_want_an_answer_of_its_own() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, Configuration::default(), cached("search"));
    status(&plane, request(&json!({}))).await;
    assert_eq!(
        status(&plane, request(&json!({})).bypass_cache()).await,
        Value::Null
    );
    let meta = RawJson::parse(format!(r#"{{"a": 1, "{KEY}": "bypass"}}"#)).expect("JSON");
    assert_eq!(status(&plane, request(&json!({})).meta(meta)).await, Value::Null);
    assert_eq!(status(&plane, request(&json!({}))).await, "hit");
    assert_eq!(script.n_calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_shared_call_is_tried_again_once_for_all_and_explained_to_the_first() {
    let down = ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"));
    let script = ScriptedExecutor::new([down, ScriptStep::After(SECOND, json!(1))]);
    let mut tool = cached("search");
    tool.descriptor.overrides.set(RetrySettings::default());
    let plane = plane(&script, Configuration::default(), tool);
    let (first, second) = tokio::join!(
        plane.call_explained(request(&json!({}))),
        plane.call_explained(request(&json!({})))
    );
    assert!(first.result.is_ok() && second.result.is_ok());
    assert_eq!(script.n_calls(), 2);
    let layers = |explained: &toolplane::ExplainedCall| -> Vec<_> {
        explained.decisions.iter().map(|note| note.layer).collect()
    };
    let before = ["watch", "deadline", "admission", "validation", "cache"];
    assert_eq!(layers(&first)[..5], before);
    assert!(layers(&first).contains(&"retry"), "{:?}", first.decisions);
    assert_eq!(layers(&first).last(), Some(&"cache"), "it is kept at the end");
    assert_eq!(layers(&second), before);
}

/// Tests that a caller whose deadline ends during a shared execution may call again: a tool with a cache changes
/// nothing.
#[tokio::test(start_paused = true)]
async fn whose_time_ends_while_a_shared_call_runs_is_told_timeout_and_not_that_nobody_knows() {
    let hasty = || request(&json!({})).deadline(SECOND);
    for (configuration, tool) in [
        (Configuration::default(), cached("search")),
        (by_default(), TestTool::new("search").metadata(declared())),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::After(2 * SECOND, json!("there"))]);
        let plane = plane(&script, configuration, tool);
        let (patient, hasty) = tokio::join!(plane.call(request(&json!({}))), plane.call(hasty()));
        patient.expect("it has a minute");
        assert_eq!(hasty.expect_err("it has a second").kind(), ErrorKind::Timeout);
        assert_eq!(script.n_calls(), 1);
    }
    let (no_cache, own_call) = (TestTool::new("search"), hasty().bypass_cache());
    for (tool, request) in [(no_cache, hasty()), (cached("search"), own_call)] {
        let plane = plane(
            &ScriptedExecutor::new([ScriptStep::Hang(true)]),
            Configuration::default(),
            tool,
        );
        let error = plane.call(request).await.expect_err("it hangs");
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_neither_reads_nor_fills_the_cache() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, Configuration::default(), cached("search"));
    for _ in 0..2 {
        let dry = plane.dry_run(request(&json!({}))).await;
        assert!(matches!(dry.result, Ok(Outcome::Pending(_))));
    }
    assert_eq!(status(&plane, request(&json!({}))).await, Value::Null);
    let dry = plane.dry_run(request(&json!({}))).await;
    assert!(matches!(dry.result, Ok(Outcome::Pending(_))));
}

/// Embedder to which all texts mean the same, so that the words alone tell them apart.
struct OneMeaning;

impl Embedder for OneMeaning {
    fn model(&self) -> &str {
        "one meaning"
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move { Ok(vec![vec![1.0, 0.0]; texts.len()]) })
    }
}

const ANSWERS: &str = "
tools:
  answer:
    description: Answers questions.
    required_permissions: [ask]
    cache: {semantic: {fields: [question]}}
    executor: {kind: mock, result: an answer}
";

fn question(text: &str, principal: &str, may_ask: bool) -> CallRequest {
    let mut caller = Caller::new(principal);
    if may_ask {
        caller.permissions.insert("ask".into());
    }
    let arguments = json!({"question": text}).to_string();
    let request = CallRequest::new("answer")
        .json(arguments)
        .expect("valid arguments");
    request.caller(Arc::new(caller))
}

#[tokio::test(start_paused = true)]
async fn a_question_in_other_words_is_answered_from_the_cache_for_its_principal_alone() {
    let plane = Toolplane::builder()
        .yaml(ANSWERS)
        .expect("usable")
        .embedder(Arc::new(OneMeaning))
        .build()
        .expect("usable");
    for (text, principal, expected) in [
        ("What is the capital of Norway?", "ann", Value::Null),
        ("Please tell me the capital of Norway", "ann", json!("semantic")),
        ("Please tell me the capital of Norway", "ben", Value::Null),
        ("What is the capital of Norway?", "ben", json!("semantic")),
        ("What is the capital of Sweden?", "ann", Value::Null),
    ] {
        assert_eq!(
            status(&plane, question(text, principal, true)).await,
            expected,
            "{text}, {principal}"
        );
    }
    let refused = plane.call(question("capital of Norway", "ann", false)).await;
    assert_eq!(refused.expect_err("no permission").kind(), ErrorKind::Denied);
}

/// The model is that of the configuration, also after a reload.
#[tokio::test(start_paused = true)]
async fn a_reload_brings_and_takes_the_model_of_a_semantic_cache() {
    let load =
        |text: &str| load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)).expect("usable");
    let plane = Toolplane::builder()
        .loaded(&load(ANSWERS))
        .build()
        .expect("usable");
    let decisions = async |text: &str| {
        let outcome = plane.call_explained(question(text, "ann", true)).await;
        let cache = outcome
            .decisions
            .iter()
            .find(|decision| decision.layer == "cache");
        cache
            .map(|decision| decision.decision.clone())
            .unwrap_or_default()
    };
    assert_eq!(
        decisions("capital of Norway").await,
        "not compared by meaning: there is no embedder"
    );
    let with =
        format!("search: {{embeddings: {{url: 'http://127.0.0.1:9/v1/embeddings', model: m}}}}\n{ANSWERS}");
    plane.reload(&load(&with)).expect("usable");
    let failed = decisions("capital of Sweden").await;
    assert!(
        failed.starts_with("not compared by meaning: the embedder failed: the embeddings endpoint"),
        "{failed}"
    );
    plane.reload(&load(ANSWERS)).expect("usable");
    assert_eq!(
        decisions("capital of Finland").await,
        "not compared by meaning: there is no embedder"
    );
}
