use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, LAYERS, RawJson, Toolplane,
    core::{
        Caller, ConcurrencySettings, ErrorKind, Event, Metadata, Observe, Outcome, Pattern,
        RateLimitSettings, Reply, ToolError,
    },
    manifest::Configuration,
    policy::{BreakerSettings, Breakers},
    runtime::CacheSettings,
};

const SECOND: Duration = Duration::from_secs(1);

fn plane(script: &ScriptedExecutor, tool: TestTool) -> Toolplane {
    blocked(script, tool, &[])
}

fn blocked(script: &ScriptedExecutor, tool: TestTool, blocklist: &[&str]) -> Toolplane {
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = blocklist.iter().map(|&name| Pattern::new(name)).collect();
    Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .build()
        .expect("the standard primitives can be set up")
}

fn request(tool: &str, arguments: &Value) -> CallRequest {
    CallRequest::new(tool)
        .json(arguments.to_string())
        .expect("a test gives usable arguments")
}

fn raw(outcome: Result<Outcome, ToolError>) -> RawJson {
    match outcome {
        Ok(Outcome::Reply(reply)) => reply.raw().clone(),
        other => panic!("expected a reply: {other:?}"),
    }
}

fn kind(outcome: Result<Outcome, ToolError>) -> ErrorKind {
    outcome.expect_err("expected an error").kind()
}

#[tokio::test]
async fn a_reply_keeps_its_bytes() {
    let text = r#"{"big":123456789012345678901234567890, "e":1e2,"z":0,  "a":-0.0}"#;
    let reply = Reply::value(RawJson::parse(text).expect("valid"));
    let script = ScriptedExecutor::new([ScriptStep::Reply(reply)]);
    let plane = plane(&script, TestTool::new("numbers"));
    assert_eq!(
        raw(plane.call(request("numbers", &json!({}))).await).as_str(),
        text
    );
}

#[tokio::test]
async fn arguments_reach_the_tool_with_their_own_bytes() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, TestTool::new("echo"));
    let text = r#"{"n": 123456789012345678901234567890, "f":1.10}"#;
    let request = CallRequest::new("echo").json(text).expect("valid");
    assert_eq!(raw(plane.call(request).await).as_str(), text);
}

#[tokio::test]
async fn every_layer_decides_in_its_order() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let tool = TestTool::new("echo").output(json!({"type": "object"}));
    let plane = plane(&script, tool);
    let explained = plane.call_explained(request("echo", &json!({}))).await;
    let layers: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    assert_eq!(
        layers,
        [
            "watch",
            "deadline",
            "admission",
            "validation",
            "attempt",
            "timeout",
            "executor",
            "result validation"
        ]
    );
}

#[tokio::test]
async fn the_names_of_layers_are_those_that_they_explain_themselves_by() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut tool = TestTool::new("echo").output(json!({"type": "object"})).metadata({
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata.read_only = Some(true);
        metadata.rate_limit = Some(RateLimitSettings::new(10, Duration::from_secs(60)));
        metadata.concurrency = Some(ConcurrencySettings::new(1));
        metadata
    });
    tool.descriptor
        .overrides
        .set(Breakers::from(BreakerSettings::default()));
    tool.descriptor.overrides.set(CacheSettings::default());
    let plane = plane(&script, tool);
    let explained = plane.call_explained(request("echo", &json!({}))).await;
    let mut spoke: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    // Layers explain the answer on its way back.
    let answered = spoke
        .iter()
        .position(|layer| *layer == "executor")
        .expect("it ran")
        + 1;
    assert_eq!(spoke.split_off(answered), ["result validation", "cache"]);
    let named = LAYERS.iter().copied().filter(|layer| spoke.contains(layer));
    assert_eq!(named.collect::<Vec<_>>(), spoke);
    assert_eq!(spoke.len(), 11, "{spoke:?}");
    assert!(LAYERS.contains(&"result validation"));
}

/// Tests the diagram and the list of the page about the path of a call.
#[test]
fn the_page_about_the_path_of_a_call_names_the_layers_in_their_order() {
    let page = include_str!("../../../../docs/src/explanation/the-path-of-a-call.md");
    let diagram = page.split("```").nth(1).expect("a diagram");
    let drawn = diagram.trim_start_matches("text").split('>').map(str::trim);
    assert_eq!(drawn.collect::<Vec<_>>(), *LAYERS);
    let items = page
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let listed = items
        .filter_map(|line| line.split("**").nth(1))
        .map(str::to_lowercase);
    assert_eq!(listed.collect::<Vec<_>>(), *LAYERS);
}

#[tokio::test]
async fn a_dry_run_decides_everything_and_sends_nothing() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let schema = json!({"type": "object", "required": ["city"]});
    let plane = plane(
        &script,
        TestTool::new("weather")
            .input(schema)
            .output(json!({"type": "object"})),
    );
    let explained = plane.dry_run(request("weather", &json!({"city": "Oslo"}))).await;
    assert!(
        matches!(explained.result, Ok(Outcome::Pending(_))),
        "{:?}",
        explained.result
    );
    assert_eq!(
        explained.decisions.last().expect("notes").decision,
        "`scripted` would run now"
    );
    let refused = plane.dry_run(request("weather", &json!({}))).await;
    assert_eq!(kind(refused.result), ErrorKind::InvalidArguments);
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test]
async fn a_refused_call_reaches_nothing_and_is_watched() {
    #[derive(Default)]
    struct Last(Mutex<Option<ErrorKind>>);
    impl Observe for Last {
        fn observe(&self, event: &Event<'_>) {
            if let Event::CallFinished {
                result: Some(Err(error)),
                ..
            } = event
            {
                *self.0.lock().expect("no test panics with it") = Some(error.kind());
            }
        }
    }
    let (script, last) = (
        ScriptedExecutor::new([ScriptStep::Echo]),
        Arc::new(Last::default()),
    );
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = vec![Pattern::new("files__*")];
    let plane = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(script.clone()))
        .observer(last.clone())
        .tool(TestTool::new("files__delete").descriptor)
        .build()
        .expect("can be set up");
    assert_eq!(
        kind(plane.call(request("files__delete", &json!({}))).await),
        ErrorKind::Denied
    );
    assert_eq!(script.n_calls(), 0);
    assert_eq!(
        *last.0.lock().expect("no test panics with it"),
        Some(ErrorKind::Denied)
    );
}

#[tokio::test]
async fn what_may_not_be_called_is_not_listed() {
    let script = ScriptedExecutor::new([]);
    let plane = blocked(&script, TestTool::new("secret"), &["sec*"]);
    let caller = Caller::local();
    assert!(plane.view(&caller).await.tools().is_empty());
    assert_eq!(
        plane.tool("secret", &caller).await.expect_err("hidden").kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn permissions_decide_by_caller() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.required_permissions = vec!["network".to_owned()];
        metadata
    };
    let plane = plane(&script, TestTool::new("search").metadata(metadata));
    let allowed = {
        let mut new = Caller::new("ann");
        new.permissions = ["network".into()].into();
        new
    };
    let call = |caller: Caller| plane.call(request("search", &json!({})).caller(Arc::new(caller)));
    assert!(call(allowed.clone()).await.is_ok());
    assert_eq!(kind(call(Caller::new("bob")).await), ErrorKind::Denied);
    assert_eq!(plane.view(&allowed).await.tools().len(), 1);
    assert_eq!(plane.view(&Caller::new("bob")).await.tools().len(), 0);
}

#[tokio::test]
async fn an_unknown_name_gets_the_nearest_one() {
    let plane = plane(&ScriptedExecutor::new([]), TestTool::new("get_weather"));
    let error = plane
        .call(request("get_wether", &json!({})))
        .await
        .expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.message(),
        "there is no tool `get_wether`; did you mean `get_weather`?"
    );
    let error = plane.call(request("zzz", &json!({}))).await.expect_err("unknown");
    assert_eq!(error.message(), "there is no tool `zzz`");
}

#[tokio::test(start_paused = true)]
async fn no_call_outlives_its_deadline() {
    for (requested, expected) in [
        (None, 30 * SECOND),
        (Some(5 * SECOND), 5 * SECOND),
        (Some(90 * SECOND), 30 * SECOND),
    ] {
        let script = ScriptedExecutor::new([ScriptStep::Hang(false)]);
        let plane = plane(&script, TestTool::new("slow"));
        let mut request = request("slow", &json!({}));
        if let Some(requested) = requested {
            request = request.deadline(requested);
        }
        let start = Instant::now();
        assert_eq!(kind(plane.call(request).await), ErrorKind::Timeout);
        assert_eq!(
            (start.elapsed(), script.n_running()),
            (expected, 0),
            "{requested:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_limit_wins_over_both_defaults() {
    let script = ScriptedExecutor::new([ScriptStep::After(100 * SECOND, json!(1))]);
    let mut tool = TestTool::new("very_slow");
    tool.descriptor.timeout = Some(120 * SECOND);
    assert!(
        plane(&script, tool)
            .call(request("very_slow", &json!({})))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
    let plane = plane(&script, TestTool::new("slow"));
    timeout(SECOND, plane.call(request("slow", &json!({}))))
        .await
        .expect_err("dropped");
    assert_eq!((script.n_calls(), script.n_running()), (1, 0));
}

#[tokio::test]
async fn a_result_that_breaks_its_promise_is_an_error() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!({"t": "warm"}))]);
    let schema = json!({"type": "object", "properties": {"t": {"type": "number"}}});
    let plane = plane(&script, TestTool::new("measure").output(schema));
    assert_eq!(
        kind(plane.call(request("measure", &json!({}))).await),
        ErrorKind::ResultInvalid
    );
}

#[tokio::test]
async fn two_calls_do_not_share_an_identity() {
    #[derive(Default)]
    struct Ids(Mutex<Vec<String>>);
    impl Observe for Ids {
        fn observe(&self, event: &Event<'_>) {
            if let Event::CallStarted { cx, .. } = event {
                self.0
                    .lock()
                    .expect("no test panics with it")
                    .push(cx.correlation_id.to_string());
            }
        }
    }
    let ids = Arc::new(Ids::default());
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Echo])))
        .observer(ids.clone())
        .tool(TestTool::new("echo").descriptor)
        .build()
        .expect("can be set up");
    for _ in 0..2 {
        plane.call(request("echo", &json!({}))).await.expect("echoes");
    }
    let ids = ids.0.lock().expect("no test panics with it");
    assert!(ids[0] != ids[1] && ids[0].len() == 32, "{ids:?}");
}
