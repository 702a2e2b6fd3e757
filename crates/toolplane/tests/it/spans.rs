//! Spans of calls through the standard stack.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{
        ArgumentHandling, Arguments, ConcurrencySettings, ErrorKind, Metadata, Overrides, RateLimitSettings,
        ToolError,
    },
    observe::{AttributeValue, EndedSpan, Sampler, SpanKind, SpanProcessor, Tracer},
    policy::Redactor,
    policy::{ArgumentSettings, BreakerSettings, Breakers, RedactionMode},
    runtime::{CacheSettings, RetrySettings},
};

const SECOND: Duration = Duration::from_secs(1);

/// Events of each call, in words: time, name and attributes.
#[derive(Default)]
struct Kept(Mutex<Vec<Vec<String>>>);

impl SpanProcessor for Kept {
    fn on_end(&self, span: EndedSpan) {
        if span.kind() == SpanKind::Attempt {
            assert!(span.events.is_empty());
            return;
        }
        let line = |event: &toolplane::observe::SpanEvent| {
            let mut line = format!("{:?} {}", event.after, event.name);
            for (key, value) in event.attributes() {
                line.push_str(&match value {
                    AttributeValue::Number(number) => format!(" {key}={number}"),
                    text => format!(" {key}={}", text.as_str().unwrap_or_default()),
                });
            }
            line
        };
        self.0
            .lock()
            .expect("no test panics with it")
            .push(span.events.iter().map(line).collect());
    }
}

fn plane(steps: impl IntoIterator<Item = ScriptStep>, tool: TestTool) -> (Toolplane, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new(steps)))
        .tracer(Tracer::new(Sampler::DEFAULT, kept.clone()))
        .tool(tool.descriptor)
        .build()
        .expect("can be set up");
    (plane, kept)
}

fn with(overrides: Overrides) -> TestTool {
    let mut tool = TestTool::new("t");
    tool.descriptor.overrides = overrides;
    tool
}

fn down() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

/// The events of the calls that ended since this was asked the last time.
fn told(kept: &Kept) -> Vec<Vec<String>> {
    std::mem::take(&mut *kept.0.lock().expect("no test panics with it"))
}

async fn call(plane: &Toolplane) {
    // The result does not matter.
    let _ = plane.call(CallRequest::new("t")).await;
}

#[tokio::test(start_paused = true)]
async fn it_says_where_an_answer_of_a_cache_came_from() {
    let overrides = Overrides::default().with(CacheSettings::default());
    let (plane, kept) = plane([ScriptStep::After(SECOND, json!(1))], with(overrides));
    tokio::join!(call(&plane), call(&plane));
    call(&plane).await;
    let mut told = told(&kept);
    // Two that get the same answer end in any order.
    told[..2].sort();
    assert_eq!(
        told,
        [
            ["1s toolplane.cache toolplane.cache.outcome=miss"],
            ["1s toolplane.cache toolplane.cache.outcome=shared"],
            ["0ns toolplane.cache toolplane.cache.outcome=hit"],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn it_says_for_how_long_a_call_waited_for_its_turn_and_that_one_got_none() {
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.concurrency = Some({
            let mut new = ConcurrencySettings::new(1);
            new.queue = 1;
            new.wait = Some(9 * SECOND);
            new
        });
        metadata
    };
    let tool = TestTool::new("t").metadata(metadata);
    let (plane, kept) = plane([ScriptStep::After(SECOND, json!(1))], tool);
    tokio::join!(call(&plane), call(&plane), call(&plane));
    assert_eq!(
        told(&kept),
        [
            vec!["0ns toolplane.shed toolplane.scope=tool"],
            vec![],
            vec!["1s toolplane.queued toolplane.waited_ms=1000"],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn it_says_how_long_a_call_paused_and_which_breaker_held_one_back() {
    let overrides = Overrides::default()
        .with(RetrySettings::default().with_max_attempts(2))
        .with(Breakers::from(BreakerSettings::default().with_max_failures(2)));
    let (plane, kept) = plane([down(), down()], with(overrides));
    let start = tokio::time::Instant::now();
    call(&plane).await;
    let paused = start.elapsed();
    call(&plane).await;
    let told = told(&kept);
    let [retry, opened] = &told[0][..] else {
        panic!("two events: {told:?}")
    };
    let pause = retry.strip_prefix("0ns toolplane.retry error.type=unavailable toolplane.pause_ms=");
    let pause: u128 = pause.expect("a retry").parse().expect("a number");
    // Timers have a resolution of a millisecond.
    assert!(paused.as_millis() - pause <= 1, "{retry}, and it was {paused:?}");
    assert_eq!(
        *opened,
        format!("{paused:?} toolplane.breaker toolplane.scope=tool toolplane.breaker.state=open")
    );
    assert_eq!(told[1], ["0ns toolplane.held_back toolplane.scope=tool"]);
}

#[tokio::test(start_paused = true)]
async fn it_says_that_arguments_were_changed_and_which_limit_refused() {
    let mut tool = TestTool::new("t").input(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}}
    }));
    tool.descriptor
        .overrides
        .set(ArgumentSettings::default().with_handling(ArgumentHandling::Coerce));
    tool.descriptor.metadata.rate_limit = Some(RateLimitSettings::new(1, 60 * SECOND));
    let (plane, kept) = plane([ScriptStep::Echo], tool);
    for arguments in [json!({"n": "5"}), json!({"n": 5})] {
        let request = CallRequest::new("t").arguments(Arguments::from_value(arguments).expect("an object"));
        let _ = plane.call(request).await;
    }
    assert_eq!(
        told(&kept),
        [
            ["0ns toolplane.arguments_changed toolplane.changes=1"],
            ["0ns toolplane.rate_limited toolplane.scope=tool"],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn it_says_that_a_call_came_to_what_another_has_come_to() {
    let (plane, kept) = plane([ScriptStep::Value(json!("paid"))], TestTool::new("t"));
    for _ in 0..2 {
        let _ = plane.call(CallRequest::new("t").idempotency_key("k")).await;
    }
    assert_eq!(told(&kept), [vec![], vec!["0ns toolplane.replayed"]]);
}

/// Descriptions of failed spans.
#[derive(Default)]
struct Failures(Mutex<Vec<String>>);

impl SpanProcessor for Failures {
    fn on_end(&self, span: EndedSpan) {
        let failure = span.failure().expect("it failed").to_owned();
        self.0.lock().expect("no test panics with it").push(failure);
    }
}

#[tokio::test]
async fn it_says_no_secret_of_the_operator_also_where_results_may_hold_them() {
    let redactor = Redactor::default();
    redactor.learn("hunter2-hunter2");
    let error = ToolError::new(ErrorKind::Auth, "the key hunter2-hunter2 is not known");
    let tool = with(Overrides::default().with(RedactionMode::Off));
    let failures = Arc::new(Failures::default());
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Fail(error)])))
        .tracer(Tracer::new(Sampler::DEFAULT, failures.clone()))
        .redactor(redactor)
        .tool(tool.descriptor)
        .build()
        .expect("can be set up");
    call(&plane).await;
    assert_eq!(
        *failures.0.lock().expect("no test panics with it"),
        ["the key [redacted] is not known"; 2]
    );
}
