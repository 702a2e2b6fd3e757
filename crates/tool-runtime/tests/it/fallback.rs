//! Fallback: replies after a failed call, and failures without a fallback.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::advance;
use tool_core::{
    BoxFuture, CallContext, Caller, Degraded, ErrorKind, Health, HealthReport, HealthStatus, Invoke, Layer,
    Layers, Metadata, Mode, Outcome, Reentry, Tool, ToolError,
};
use tool_runtime::{CacheLayer, DeadlineLayer, FallbackLadder, FallbackLayer, TokioClock};
use tool_runtime::{CacheSettings, FailureStep};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const ROOM: u64 = 1 << 20;

/// Makes a tool with these steps.
pub(crate) fn tool(steps: &[FailureStep]) -> TestTool {
    let mut tool = TestTool::new("search");
    if !steps.is_empty() {
        tool.settings.set(FallbackLadder(steps.into()));
    }
    tool
}

pub(crate) fn fallback(name: &str) -> FailureStep {
    FailureStep::Fallback(name.into())
}

pub(crate) fn given(value: Value) -> FailureStep {
    FailureStep::Default(RawJson::from(value))
}

pub(crate) fn fails(kind: ErrorKind) -> ScriptStep {
    ScriptStep::Fail(ToolError::new(kind, "it is ill"))
}

pub(crate) fn repeatable() -> Metadata {
    {
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    }
}

/// Returns the value of a reply, and its record of the fallback.
pub(crate) fn told(result: Result<Outcome, ToolError>) -> (Value, Value) {
    let Ok(Outcome::Reply(reply)) = result else {
        panic!("no reply: {result:?}");
    };
    let said = reply.meta().iter().find(|(key, _)| *key == Degraded::META_KEY);
    let said = said.map(|(_, value)| value.to().unwrap());
    (reply.raw().to().unwrap(), said.unwrap_or_default())
}

pub(crate) fn kind(result: Result<Outcome, ToolError>) -> ErrorKind {
    result.expect_err("nothing is given").kind()
}

/// Other tools, and the calls that they received.
#[derive(Default)]
pub(crate) struct Others {
    tools: HashMap<String, (Arc<Tool>, ScriptedExecutor)>,
    pub(crate) calls: Mutex<Vec<Arrived>>,
}

/// A call that a fallback tool received.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) tool: String,
    pub(crate) left: Option<Duration>,
    pub(crate) meta: Option<RawJson>,
    pub(crate) has_key: bool,
    pub(crate) first: Option<String>,
}

impl Others {
    pub(crate) fn with(self, name: &str, step: ScriptStep) -> Self {
        self.with_tool(TestTool::new(name), step)
    }

    pub(crate) fn with_tool(mut self, tool: TestTool, step: ScriptStep) -> Self {
        let script = ScriptedExecutor::new([step]);
        let name = tool.descriptor.name.to_string();
        self.tools.insert(name, (tool.build(script.clone()), script));
        self
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.arrived().into_iter().map(|call| call.tool).collect()
    }
}

impl Reentry for Others {
    fn find<'a>(&'a self, tool: &'a str, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>> {
        let found = self.tools.get(tool).map(|(tool, _)| tool.clone());
        let found = found.ok_or_else(|| ToolError::new(ErrorKind::NotFound, "there is no such tool"));
        Box::pin(async move { found })
    }

    fn call<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        let name = cx.tool().name().to_string();
        self.calls.lock().unwrap().push(Arrived {
            tool: name.clone(),
            left: cx.remaining(),
            meta: cx.extras.meta.clone(),
            has_key: cx.extras.idempotency_key.is_some(),
            first: cx.fallback_of.as_ref().map(|tried| tried.first().to_string()),
        });
        let script = self.tools[&name].1.clone();
        Box::pin(async move { DeadlineLayer.layer(script).invoke(cx).await })
    }
}

/// Health report with these names as unhealthy.
pub(crate) struct Ill(pub(crate) &'static [&'static str]);

impl Health for Ill {
    fn tool(&self, name: &str) -> HealthReport {
        let mut report = HealthReport::UNKNOWN;
        if self.0.contains(&name) {
            report.status = HealthStatus::Unhealthy;
        }
        report
    }

    fn upstream(&self, _: &str) -> HealthReport {
        HealthReport::UNKNOWN
    }
}

pub(crate) fn layer(others: &Arc<Others>) -> FallbackLayer {
    FallbackLayer::new(CacheLayer::new(ROOM)).with_reentry(others.clone())
}

/// Calls a tool that takes this step.
pub(crate) async fn run(
    degrade: FallbackLayer,
    tool: TestTool,
    step: ScriptStep,
) -> Result<Outcome, ToolError> {
    let script = ScriptedExecutor::new([step]);
    let mut cx = call(
        tool.build(script.clone()),
        json!({"q": 1}),
        Arc::new(TokioClock::new()),
    );
    let stack = Layers::outermost(DeadlineLayer).then(degrade).around(script);
    stack.invoke(&mut cx).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_left_alone() {
    let others = Arc::new(Others::default().with("other", ScriptStep::Echo));
    let tool = tool(&[fallback("other"), given(json!(0))]);
    let result = run(layer(&others), tool, ScriptStep::Value(json!("there"))).await;
    assert_eq!(told(result), (json!("there"), Value::Null));
    assert_eq!(others.names().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_depends_on_the_kind_of_the_failure() {
    for &kind in ErrorKind::ALL {
        let steps = [given(json!("instead"))];
        let result = run(layer(&Arc::default()), tool(&steps), fails(kind)).await;
        match result {
            Ok(outcome) => {
                assert!(kind.degrades(), "{kind}");
                let errors = json!([{"tool": "search", "error": kind.as_str()}]);
                let said = json!({
                    "degraded": true, "step": "default", "source": "configuration", "age_ms": 0, "errors": errors,
                });
                assert_eq!(told(Ok(outcome)), (json!("instead"), said));
            }
            Err(error) => assert!(!kind.degrades() && error.kind() == kind, "{kind}"),
        }
    }
    use ErrorKind::{Cancelled, Denied, Internal, InvalidArguments, NotFound, OutcomeUnknown};
    for kind in [
        InvalidArguments,
        Denied,
        NotFound,
        Cancelled,
        OutcomeUnknown,
        Internal,
    ] {
        assert!(!kind.degrades(), "{kind}");
    }
    use ErrorKind::{Auth, Overloaded, RateLimited, ResultInvalid, Timeout, Unavailable, UpstreamError};
    for kind in [
        Auth,
        Overloaded,
        RateLimited,
        ResultInvalid,
        Timeout,
        Unavailable,
        UpstreamError,
    ] {
        assert!(kind.degrades(), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_ladder_and_with_an_empty_end_the_call_fails_as_it_failed() {
    let result = run(layer(&Arc::default()), tool(&[]), fails(ErrorKind::Timeout)).await;
    assert_eq!(kind(result), ErrorKind::Timeout);
    let others = Arc::new(Others::default().with("other", fails(ErrorKind::RateLimited)));
    let steps = [fallback("other"), fallback("missing"), FailureStep::Stale(SECOND)];
    let error = run(layer(&others), tool(&steps), fails(ErrorKind::Unavailable))
        .await
        .expect_err("nothing is left");
    assert_eq!(
        (error.kind(), error.message()),
        (
            ErrorKind::Unavailable,
            "it is ill (and in its place, `other` failed as `rate_limited`, another failed as `not_found`)"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_have_had_its_effect_is_never_replaced() {
    let answered = |kind| {
        let error = ToolError::new(kind, "it is ill");
        ScriptStep::FailSent(error)
    };
    let steps = [given(json!("instead"))];
    for (metadata, step, is_replaced) in [
        (Metadata::default(), ScriptStep::Hang(true), false),
        (Metadata::default(), ScriptStep::Hang(false), true),
        (repeatable(), ScriptStep::Hang(true), true),
        (Metadata::default(), answered(ErrorKind::ResultInvalid), false),
        (Metadata::default(), answered(ErrorKind::Protocol), false),
        (Metadata::default(), answered(ErrorKind::UpstreamError), false),
        (repeatable(), answered(ErrorKind::UpstreamError), true),
        (repeatable(), answered(ErrorKind::ResultInvalid), true),
        (repeatable(), answered(ErrorKind::OutcomeUnknown), false),
    ] {
        let tool = tool(&steps).metadata(metadata.clone());
        let result = run(layer(&Arc::default()), tool, step.clone()).await;
        assert_eq!(result.is_ok(), is_replaced, "{metadata:?} {step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_answer_is_given_up_to_its_age() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("kept")), fails(ErrorKind::Unavailable)]);
    let share = CacheLayer::new(ROOM);
    let stack = FallbackLayer::new(share.clone()).layer(share.layer(script.clone()));
    let mut tool = tool(&[FailureStep::Stale(3600 * SECOND)]);
    // Kept for the ladder alone.
    tool.settings
        .set(CacheSettings::default().with_ttl(Duration::ZERO));
    let clock = Arc::new(TokioClock::new());
    let tool = tool.build(script.clone());
    let next = |caller: &str| {
        let mut cx = call(tool.clone(), json!({"q": 1}), clock.clone());
        cx.origin.caller = Arc::new(Caller::new(caller));
        cx
    };
    assert_eq!(
        told(stack.invoke(&mut next("ann")).await),
        (json!("kept"), Value::Null)
    );
    advance(3600 * SECOND).await;
    let said = json!({
        "degraded": true, "step": "stale", "source": "cache", "age_ms": 3_600_000,
        "errors": [{"tool": "search", "error": "unavailable"}],
    });
    assert_eq!(told(stack.invoke(&mut next("ann")).await), (json!("kept"), said));
    // The cached reply belongs to another principal.
    assert_eq!(kind(stack.invoke(&mut next("ben")).await), ErrorKind::Unavailable);
    let mut own = next("ann");
    own.extras.meta = Some(RawJson::from(json!({"dev.toolplane/cache": "bypass"})));
    assert_eq!(kind(stack.invoke(&mut own).await), ErrorKind::Unavailable);
    advance(SECOND).await;
    assert_eq!(kind(stack.invoke(&mut next("ann")).await), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_given_answer_must_fit_what_the_tool_declares() {
    let steps = [given(json!({"n": "one"})), given(json!({"n": 1}))];
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let fails = fails(ErrorKind::Timeout);
    let whole = tool(&steps).output(schema.clone());
    let (answer, said) = told(run(layer(&Arc::default()), whole, fails.clone()).await);
    assert_eq!(answer, json!({"n": 1}));
    assert_eq!(
        said["errors"],
        json!([{"tool": "search", "error": "timeout"}, {"tool": "configuration", "error": "result_invalid"}])
    );
    let nothing = tool(&steps[..1]).output(schema);
    let error = run(layer(&Arc::default()), nothing, fails)
        .await
        .expect_err("nothing is left");
    assert_eq!(
        error.message(),
        "it is ill (and in its place, `configuration` failed as `result_invalid`)"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_key_gets_nothing_that_was_not_done() {
    let others = Arc::new(Others::default().with("other", ScriptStep::Value(json!("done"))));
    for (steps, expected) in [
        (vec![given(json!(0))], None),
        (vec![given(json!(0)), fallback("other")], Some(json!("done"))),
    ] {
        let script = ScriptedExecutor::new([fails(ErrorKind::Unavailable)]);
        let tool = tool(&steps).build(script.clone());
        let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
        cx.extras.idempotency_key = Some("k".into());
        let result = layer(&others).layer(script).invoke(&mut cx).await;
        assert_eq!(result.ok().map(|outcome| told(Ok(outcome)).0), expected);
    }
    assert!(!others.arrived()[0].has_key, "the key is the other tool's");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_would_be_done() {
    let others = Arc::new(Others::default().with("other", ScriptStep::Echo));
    let steps = [
        fallback("other"),
        FailureStep::Stale(3600 * SECOND),
        given(json!(0)),
    ];
    let script = ScriptedExecutor::new([fails(ErrorKind::Unavailable)]);
    let mut cx = call(
        tool(&steps).build(script.clone()),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    cx.mode = Mode::DryRun;
    cx.record_decisions();
    let result = layer(&others).layer(script).invoke(&mut cx).await;
    assert_eq!(kind(result), ErrorKind::Unavailable);
    assert_eq!(others.names().len(), 0);
    assert_eq!(
        cx.decisions()[0].decision,
        "if it fails: `other`, then a stale reply of at most 1 h, then the default of the configuration"
    );
}
