//! Fallback tools: which are called, in which order, and for how long.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::Instant;
use tool_core::{CallContext, ErrorKind, FallbackOf, Invoke, Layer, Layers, Reply, ToolError};
use tool_runtime::{DeadlineLayer, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

use crate::fallback::{
    Ill, Others, SECOND, fails, fallback, given, kind, layer, repeatable, run, told, tool,
};

#[tokio::test(start_paused = true)]
async fn the_first_that_answers_stands_in_and_the_reply_says_so() {
    let mut reply = Reply::value(RawJson::from(json!("from b")));
    reply.add_meta(
        "dev.toolplane/cache",
        RawJson::from(json!({"status": "hit", "age_ms": 1200})),
    );
    let others = Others::default()
        .with("a", fails(ErrorKind::Timeout))
        .with("denied", fails(ErrorKind::Denied))
        .with("b", ScriptStep::Reply(reply))
        .with("c", ScriptStep::Echo);
    let others = Arc::new(others);
    let steps = ["a", "denied", "b", "c"].map(fallback);
    let result = run(layer(&others), tool(&steps), fails(ErrorKind::Unavailable)).await;
    let said = json!({
        "degraded": true, "step": "fallback", "source": "b", "age_ms": 1200,
        "errors": [
            {"tool": "search", "error": "unavailable"},
            {"tool": "a", "error": "timeout"},
            {"error": "denied"},
        ],
        "meta": {"dev.toolplane/cache": {"status": "hit", "age_ms": 1200}},
    });
    assert_eq!(told(result), (json!("from b"), said));
    assert_eq!(others.names(), ["a", "denied", "b"]);
}

#[tokio::test(start_paused = true)]
async fn unhealthy_ones_are_tried_after_the_others_of_their_run() {
    let others = ["a", "b", "c", "d"]
        .into_iter()
        .fold(Others::default(), |others, name| {
            others.with(name, fails(ErrorKind::Unavailable))
        });
    let others = Arc::new(others);
    let stale = tool_runtime::FailureStep::Stale(SECOND);
    let steps = [fallback("a"), fallback("b"), fallback("c"), stale, fallback("d")];
    let layer_with_health = layer(&others).with_health(Arc::new(Ill(&["a", "d"])));
    let result = run(layer_with_health, tool(&steps), fails(ErrorKind::Unavailable)).await;
    assert_eq!(kind(result), ErrorKind::Unavailable);
    assert_eq!(others.names(), ["b", "c", "a", "d"]);
}

#[tokio::test(start_paused = true)]
async fn everything_fits_into_one_deadline() {
    let names = ["a", "b", "c", "d", "e"];
    let hung = |others: Others, name| others.with(name, ScriptStep::Hang(false));
    for (ending, took) in [(None, 60 * SECOND), (Some(given(json!("at last"))), 60 * SECOND)] {
        let others = Arc::new(names.into_iter().fold(Others::default(), hung));
        let steps: Vec<_> = names.into_iter().map(fallback).chain(ending.clone()).collect();
        let start = Instant::now();
        let result = run(layer(&others), tool(&steps), ScriptStep::Hang(false)).await;
        let lefts: Vec<_> = others.arrived().iter().filter_map(|call| call.left).collect();
        assert_eq!(
            lefts[..4],
            [15_000, 7_500, 3_750, 1_875].map(std::time::Duration::from_millis)
        );
        assert_eq!(others.names(), names);
        match ending {
            Some(_) => {
                assert_eq!(told(result).0, json!("at last"));
                assert!(start.elapsed() < took, "{:?}", start.elapsed());
            }
            None => {
                assert_eq!(kind(result), ErrorKind::Timeout);
                assert_eq!(start.elapsed(), took);
            }
        }
    }
}

/// Returns the context of a call after its end.
async fn context(others: &Arc<Others>, steps: &[&str], step: ScriptStep) -> (CallContext, ErrorKind) {
    let steps: Vec<_> = steps.iter().copied().map(fallback).collect();
    let script = ScriptedExecutor::new([step]);
    let tool = tool(&steps).metadata(repeatable()).build(script.clone());
    let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
    let stack = Layers::outermost(DeadlineLayer)
        .then(layer(others))
        .around(script);
    let kind = kind(stack.invoke(&mut cx).await);
    (cx, kind)
}

#[tokio::test(start_paused = true)]
async fn one_of_which_nobody_knows_whether_it_ran_ends_everything() {
    let invalid = ToolError::new(ErrorKind::ResultInvalid, "nonsense");
    for (step, expected) in [
        (ScriptStep::Hang(true), ErrorKind::OutcomeUnknown),
        (ScriptStep::FailSent(invalid), ErrorKind::ResultInvalid),
    ] {
        let others = Others::default()
            .with("pay", step)
            .with("other", ScriptStep::Echo);
        let others = Arc::new(others);
        let down = fails(ErrorKind::Unavailable);
        let (cx, kind) = context(&others, &["pay", "other"], down).await;
        assert_eq!((kind, others.names()), (expected, vec!["pay".to_owned()]));
        assert!(!cx.may_run_twice(), "the call must not be made again");
    }
    // A fallback that may run twice does no harm.
    let others = Others::default()
        .with_tool(
            TestTool::new("look").metadata(repeatable()),
            ScriptStep::Hang(true),
        )
        .with("other", fails(ErrorKind::Unavailable));
    let others = Arc::new(others);
    let (cx, kind) = context(&others, &["look", "other"], fails(ErrorKind::Unavailable)).await;
    assert_eq!((kind, others.names().len()), (ErrorKind::Unavailable, 2));
    assert!(cx.may_run_twice());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_withdrawn_meanwhile_knows_that_another_tool_may_have_run() {
    let others = Arc::new(Others::default().with("pay", ScriptStep::Hang(true)));
    let script = ScriptedExecutor::new([fails(ErrorKind::Unavailable)]);
    let tool = tool(&[fallback("pay")])
        .metadata(repeatable())
        .build(script.clone());
    let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
    let stack = layer(&others).layer(script);
    let answered = tokio::time::timeout(SECOND, stack.invoke(&mut cx)).await;
    assert!(answered.is_err(), "it hangs");
    assert!(!cx.may_run_twice() && cx.max_dispatch_state() == tool_core::DispatchState::Sent);
    let error = cx.unanswered(ErrorKind::Timeout, "no answer");
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
}

#[tokio::test(start_paused = true)]
async fn a_stand_in_has_the_callers_words_and_nothing_of_the_first_call() {
    let others = Arc::new(Others::default().with("other", ScriptStep::Echo));
    let script = ScriptedExecutor::new([fails(ErrorKind::Unavailable)]);
    let tool = tool(&[fallback("other")]).build(script.clone());
    let mut cx = call(tool, json!({"q": 7}), Arc::new(TokioClock::new()));
    let meta = RawJson::from(json!({"dev.toolplane/conversation": 1}));
    cx.extras.meta = Some(meta.clone());
    let result = layer(&others).layer(script).invoke(&mut cx).await;
    assert_eq!(told(result).0, json!({"q": 7}));
    let arrived = &others.arrived()[0];
    assert_eq!(
        (arrived.meta.clone(), arrived.first.as_deref()),
        (Some(meta), Some("search"))
    );
}

#[tokio::test(start_paused = true)]
async fn no_tool_is_tried_twice() {
    let others = Arc::new(
        Others::default()
            .with("a", ScriptStep::Echo)
            .with("search", ScriptStep::Echo),
    );
    let script = ScriptedExecutor::new([fails(ErrorKind::Unavailable)]);
    let tool = tool(&[fallback("a"), fallback("search")]).build(script.clone());
    let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
    let tried = FallbackOf::new("first".into(), false);
    assert!(tried.adds(&"search".into()) && tried.adds(&"a".into()) && !tried.adds(&"first".into()));
    cx.fallback_of = Some(tried);
    let result = layer(&others).layer(script).invoke(&mut cx).await;
    assert_eq!(kind(result), ErrorKind::Unavailable);
    assert_eq!(others.names().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_must_fit_what_the_tool_declares() {
    let failed = Reply::result(RawJson::from(json!({"content": [], "isError": true})), true);
    let others = Others::default()
        .with_tool(
            TestTool::new("reports").metadata(repeatable()),
            ScriptStep::Reply(failed),
        )
        .with_tool(
            TestTool::new("text").metadata(repeatable()),
            ScriptStep::Value(json!("five")),
        )
        .with("number", ScriptStep::Value(json!(5)));
    let others = Arc::new(others);
    let steps = ["reports", "text", "number"].map(fallback);
    let tool = tool(&steps).output(json!({"type": "integer"}));
    let (value, said) = told(run(layer(&others), tool, fails(ErrorKind::Timeout)).await);
    assert_eq!(value, json!(5));
    let errors = json!([
        {"tool": "search", "error": "timeout"},
        {"tool": "reports", "error": "upstream_error"},
        {"tool": "text", "error": "result_invalid"},
    ]);
    assert_eq!(said["errors"], errors);
    assert_eq!(said.get("meta"), None::<&Value>);
}
