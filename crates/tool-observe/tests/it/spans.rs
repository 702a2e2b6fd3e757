//! Spans of calls and attempts, and the trace context that the tool receives.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use tool_core::{
    AccessDecision, AccessVerdict, AccessedResource, AccessingCall, AlertSubject, Backend, CallContext,
    CorrelationId, ErrorKind, Event, Invoke, Layer, Layers, Outcome, Reply, Scope, ToolError, TraceContext,
};
use tool_observe::{
    AttributeValue, EndedSpan, Sampler, SpanEvent, SpanProcessor, Tracer, WatchAttemptLayer, WatchLayer,
};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Processor that records ended spans.
#[derive(Default)]
struct SpanRecorder(Mutex<Vec<Span>>);

#[derive(Debug, Clone)]
struct Span {
    name: String,
    context: TraceContext,
    parent: Option<TraceContext>,
    elapsed: Duration,
    failure: Option<String>,
    attributes: Vec<(&'static str, String)>,
    events: Vec<String>,
    n_more_events: u32,
}

fn text(value: AttributeValue<'_>) -> String {
    match value {
        AttributeValue::Number(number) => number.to_string(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}

fn event(event: &SpanEvent) -> String {
    let mut line = format!("{:?} {}", event.after, event.name);
    for (key, value) in event.attributes() {
        line.push_str(&format!(" {key}={}", text(value)));
    }
    line
}

impl SpanProcessor for SpanRecorder {
    fn on_end(&self, span: EndedSpan) {
        let mut attributes = Vec::new();
        span.for_each_attribute(|key, value| {
            attributes.push((key, text(value)));
        });
        self.0.lock().unwrap().push(Span {
            name: span.name(),
            context: span.context.clone(),
            parent: span.parent.clone(),
            elapsed: span.elapsed,
            failure: span.failure().map(Into::into),
            attributes,
            events: span.events.iter().map(event).collect(),
            n_more_events: span.n_more_events,
        });
    }
}

/// Tool that returns the trace context it receives.
struct TraceEcho(ScriptedExecutor);

impl Invoke for TraceEcho {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.invoke(cx).await?;
        let trace = cx.trace.as_ref().map(ToString::to_string);
        Ok(Reply::value(json!({ "trace": trace }).into()).into())
    }
}

struct Fixture {
    recorder: Arc<SpanRecorder>,
    tracer: Tracer,
    script: ScriptedExecutor,
}

impl Fixture {
    fn new(sampler: Sampler, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        let recorder = Arc::new(SpanRecorder::default());
        Self {
            tracer: Tracer::new(sampler, recorder.clone()),
            recorder,
            script: ScriptedExecutor::new(steps),
        }
    }

    fn call(&self, trace: Option<&str>) -> CallContext {
        let tool = TestTool::new("echo").build(self.script.clone());
        let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
        cx.correlation_id = CorrelationId(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
        cx.trace = trace.and_then(|parent| TraceContext::parse(parent, Some("a=b")));
        cx
    }

    async fn run(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let stack = Layers::outermost(WatchLayer::default().with_tracer(Some(self.tracer.clone())))
            .then(WatchAttemptLayer::default().with_tracer(Some(self.tracer.clone())))
            .around(TraceEcho(self.script.clone()));
        stack.invoke(cx).await
    }

    fn spans(&self) -> Vec<Span> {
        self.recorder.0.lock().unwrap().clone()
    }
}

fn received_trace(outcome: &Outcome) -> Option<TraceContext> {
    let Outcome::Reply(reply) = outcome else {
        panic!("{outcome:?}")
    };
    TraceContext::parse(&reply.raw().get("trace")?.string()?, None)
}

#[tokio::test(start_paused = true)]
async fn a_call_and_its_attempt_are_spans_of_the_callers_trace() {
    let fixture = Fixture::new(
        Sampler::DEFAULT,
        [ScriptStep::After(Duration::from_secs(2), json!({}))],
    );
    let mut cx = fixture.call(Some(PARENT));
    let outcome = fixture.run(&mut cx).await.unwrap();
    let [attempt, call] = &fixture.spans()[..] else {
        panic!("two spans")
    };
    assert_eq!(
        (&*call.name, &*attempt.name),
        ("tools/call echo", "execute_tool echo")
    );
    assert_eq!(
        call.parent.as_ref().map(ToString::to_string).as_deref(),
        Some(PARENT)
    );
    assert_eq!(attempt.parent.as_ref(), Some(&call.context));
    assert_eq!(call.context.tracestate.as_deref(), Some("a=b"));
    let ids = [call, attempt].map(|span| (span.context.trace_id, span.context.span_id));
    assert!(
        ids.iter()
            .all(|(trace, _)| *trace == 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736)
    );
    assert_ne!(ids[0].1, ids[1].1);
    assert_eq!(
        (call.elapsed, attempt.elapsed),
        (Duration::from_secs(2), Duration::from_secs(2))
    );
    // Requests of the tool are children of the attempt's span.
    let seen = received_trace(&outcome).unwrap();
    assert_eq!((seen.span_id, seen.is_sampled()), (ids[1].1, true));
    assert_eq!(cx.trace.unwrap().to_string(), PARENT, "the caller's is back");
}

#[tokio::test(start_paused = true)]
async fn spans_say_what_was_called_and_how_it_ended() {
    let down = ToolError::new(ErrorKind::Unavailable, "nobody answers");
    let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Fail(down)]);
    fixture.run(&mut fixture.call(None)).await.unwrap_err();
    let spans = fixture.spans();
    let attributes: Vec<Vec<_>> = spans
        .iter()
        .map(|span| {
            span.attributes
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect()
        })
        .collect();
    assert_eq!(
        attributes[0],
        [
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=echo",
            "error.type=unavailable",
            "toolplane.executor=scripted",
            "toolplane.dispatch=not_sent",
            "toolplane.attempt=1",
        ]
    );
    assert_eq!(
        attributes[1],
        [
            "mcp.method.name=tools/call",
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=echo",
            "error.type=unavailable",
            "toolplane.outcome=unavailable",
            "toolplane.principal=local",
            "toolplane.tenant=default",
            "toolplane.attempts=1",
        ]
    );
    assert!(
        spans
            .iter()
            .all(|span| span.failure.as_deref() == Some("nobody answers"))
    );
    // A trace that begins here has the call's correlation id as its trace id.
    assert_eq!(
        spans[1].context.trace_id,
        0x1234_5678_9abc_def0_0fed_cba9_8765_4321
    );
    assert_eq!(spans[1].parent, None);
}

#[tokio::test(start_paused = true)]
async fn a_failed_span_says_addresses_and_no_credentials() {
    let down = ToolError::new(ErrorKind::Unavailable, "10.1.2.3:80 refused api_key=hunter2");
    let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Fail(down)]);
    fixture.run(&mut fixture.call(None)).await.unwrap_err();
    for span in fixture.spans() {
        assert_eq!(
            span.failure.as_deref(),
            Some("10.1.2.3:80 refused api_key=[redacted]")
        );
    }
}

/// Backend that speaks MCP.
struct Served;

impl Invoke for Served {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        Ok(Reply::value(json!({}).into()).into())
    }
}

impl Backend for Served {
    fn protocol(&self) -> Option<&'static str> {
        Some("mcp")
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_in_the_words_of_mcp_where_that_is_spoken() {
    let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Echo]);
    let tool = TestTool::new("echo").build_on(Served);
    let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
    fixture.run(&mut cx).await.unwrap();
    for span in fixture.spans() {
        assert_eq!(span.attributes[0], ("mcp.method.name", "tools/call".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_has_its_spans() {
    let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Hang(true)]);
    let mut cx = fixture.call(None);
    timeout(Duration::from_secs(3), fixture.run(&mut cx))
        .await
        .unwrap_err();
    let spans = fixture.spans();
    assert_eq!(spans.len(), 2);
    assert!(
        spans
            .iter()
            .all(|span| span.failure.as_deref() == Some("cancelled"))
    );
    assert_eq!(spans[0].parent.as_ref(), Some(&spans[1].context));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_sampled_makes_no_span_and_says_so_to_the_tool() {
    let unsampled = PARENT.replace("-01", "-00");
    let never = Sampler::DEFAULT.with_ratio(0.0).with_parent_based(false);
    for (sampler, parent) in [
        (Sampler::DEFAULT, Some(&*unsampled)),
        (never, Some(PARENT)),
        (never, None),
    ] {
        let fixture = Fixture::new(sampler, [ScriptStep::Echo]);
        let outcome = fixture.run(&mut fixture.call(parent)).await.unwrap();
        assert!(fixture.spans().is_empty());
        assert!(!received_trace(&outcome).unwrap().is_sampled());
    }
    let always = Sampler::DEFAULT.with_parent_based(false);
    let fixture = Fixture::new(always, [ScriptStep::Echo]);
    fixture.run(&mut fixture.call(Some(&unsampled))).await.unwrap();
    assert_eq!(fixture.spans().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_share_of_traces_is_sampled_as_a_whole() {
    let tenth = Sampler::DEFAULT.with_ratio(0.1);
    let fixture = Fixture::new(tenth, [ScriptStep::Echo]);
    for n in 0..1000_u64 {
        let mut cx = fixture.call(None);
        // Uniform over the range of the last 64 bits.
        cx.correlation_id = CorrelationId(1 << 100 | u128::from(n * (u64::MAX / 1000) + u64::MAX / 2000));
        fixture.run(&mut cx).await.unwrap();
    }
    assert_eq!(fixture.spans().len(), 2 * 100);
}

/// Layer that emits this number of refusals before it forwards a call.
struct RefusalLayer(u32);

impl<S: Invoke> Layer<S> for RefusalLayer {
    type Invoke = Refusal<S>;

    fn layer(self, inner: S) -> Refusal<S> {
        Refusal(self.0, inner)
    }
}

struct Refusal<S>(u32, S);

impl<S: Invoke> Invoke for Refusal<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        for _ in 0..self.0 {
            sleep(Duration::from_millis(5)).await;
            let scope = Scope::Upstream;
            cx.observers.emit(&Event::breaker_rejected(cx, scope));
        }
        assert!(!cx.observers.is_empty() || !cx.trace.as_ref().unwrap().is_sampled());
        self.1.invoke(cx).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_layers_do_is_kept_for_the_span_of_the_call_up_to_a_number() {
    let unsampled = PARENT.replace("-01", "-00");
    for (n_events, n_kept, n_more) in [(0, 0, 0), (3, 3, 0), (40, 32, 8)] {
        let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Echo]);
        let stack = Layers::outermost(WatchLayer::default().with_tracer(Some(fixture.tracer.clone())))
            .then(RefusalLayer(n_events))
            .then(WatchAttemptLayer::default().with_tracer(Some(fixture.tracer.clone())))
            .around(TraceEcho(fixture.script.clone()));
        for parent in [PARENT, &unsampled] {
            let mut cx = fixture.call(Some(parent));
            stack.invoke(&mut cx).await.unwrap();
            let is_listening = !cx.observers.is_empty();
            assert_eq!(is_listening, parent == PARENT, "unsampled calls record no events");
        }
        let [attempt, call] = &fixture.spans()[..] else {
            panic!("two spans")
        };
        assert_eq!((attempt.events.len(), attempt.n_more_events), (0, 0));
        assert_eq!((call.events.len(), call.n_more_events), (n_kept, n_more));
        for (index, event) in call.events.iter().enumerate() {
            let expected = format!(
                "{}ms toolplane.held_back toolplane.scope=upstream",
                5 * (index + 1)
            );
            assert_eq!(*event, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_tracer_the_callers_trace_is_passed_on() {
    let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Echo]);
    let stack = Layers::outermost(WatchLayer::default())
        .then(WatchAttemptLayer::default())
        .around(TraceEcho(fixture.script.clone()));
    let outcome = stack.invoke(&mut fixture.call(Some(PARENT))).await.unwrap();
    assert_eq!(received_trace(&outcome).unwrap().to_string(), PARENT);
    let outcome = stack.invoke(&mut fixture.call(None)).await.unwrap();
    assert_eq!(received_trace(&outcome), None);
}

/// Layer whose tool is denied a host.
struct DenialLayer;

impl<S: Invoke> Layer<S> for DenialLayer {
    type Invoke = Denial<S>;

    fn layer(self, inner: S) -> Denial<S> {
        Denial(inner)
    }
}

struct Denial<S>(S);

impl<S: Invoke> Invoke for Denial<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        sleep(Duration::from_millis(5)).await;
        let access = AccessDecision::new(
            AlertSubject::Tool("echo".into()),
            AccessedResource::host("text.of.the.program", 443),
            AccessVerdict::Denied("no rule names it".to_owned()),
            cx.clock.now(),
        );
        let access = access.with_call(Some(AccessingCall::new(cx)));
        cx.observers.emit(&Event::access_decided(&access));
        self.0.invoke(cx).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_access_is_kept_for_the_span_of_its_call_without_its_host() {
    let fixture = Fixture::new(Sampler::DEFAULT, [ScriptStep::Echo]);
    let stack = Layers::outermost(WatchLayer::default().with_tracer(Some(fixture.tracer.clone())))
        .then(DenialLayer)
        .around(TraceEcho(fixture.script.clone()));
    stack.invoke(&mut fixture.call(Some(PARENT))).await.unwrap();
    let [call] = &fixture.spans()[..] else {
        panic!("one span")
    };
    let expected = "5ms toolplane.access toolplane.verdict=denied toolplane.resource.kind=host";
    assert_eq!(call.events, [expected]);
}
