//! Each layer keeps its promise without its sibling. Where another test shows that, it is named here and not repeated.
//!
//! | layer | promise | test |
//! |---|---|---|
//! | watch | reports the call, also if it is dropped | `main.rs` |
//! | watch | every call has an id of its own | [`a_call_without_an_id_gets_one_of_its_own`] |
//! | watch | events of inner layers reach its observers | [`events_of_inner_layers_reach_the_observers_of_the_call`] |
//! | watch | metrics of calls are complete | [`calls_are_counted_without_the_layer_of_attempts`] |
//! | watch attempt | attempts are numbered and reported | [`attempts_are_numbered_and_counted_without_the_layer_of_calls`] |
//! | health tracker | counts attempts | `health.rs` |

use std::sync::{Arc, Mutex};

use tool_core::{
    Arguments, CallContext, CorrelationId, Event, Health, Invoke, Layer, Observe, Observers, Outcome, Tool,
    ToolError, invoke_fn, observe_fn, serde_json::json,
};
use tool_observe::{HealthTracker, Metrics, WatchAttemptLayer, WatchLayer};
use tool_runtime::TokioClock;

fn observers(observer: impl Observe + 'static) -> Observers {
    [Arc::new(observer) as Arc<dyn Observe>].into_iter().collect()
}

/// A tool that says done, and refuses nothing though it says so.
struct Says;

impl Invoke for Says {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        cx.emit_refused("says", "nothing");
        Ok(json!("done").into())
    }
}

fn call() -> CallContext {
    CallContext::local(&Tool::builder("t").run(Says), Arguments::none())
}

#[tokio::test]
async fn a_call_without_an_id_gets_one_of_its_own() {
    let seen: Arc<Mutex<Vec<CorrelationId>>> = Arc::default();
    let ids = seen.clone();
    let observer = observe_fn(move |event| {
        if let Event::CallStarted { cx, .. } = event {
            ids.lock()
                .expect("no test panics with it")
                .push(cx.correlation_id);
        }
    });
    let stack = WatchLayer::new(observers(observer)).layer(Says);
    let mut with_id = call();
    with_id.correlation_id = CorrelationId(7);
    for mut cx in [call(), call(), with_id] {
        stack.invoke(&mut cx).await.expect("it answers");
    }
    let seen = seen.lock().expect("no test panics with it");
    assert!(
        seen[0] != seen[1] && !seen[..2].contains(&CorrelationId(0)),
        "{seen:?}"
    );
    assert_eq!(seen[2], CorrelationId(7));
}

#[tokio::test]
async fn events_of_inner_layers_reach_the_observers_of_the_call() {
    let names: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let seen = names.clone();
    let observer = observe_fn(move |event| seen.lock().expect("no test panics with it").push(event.name()));
    let stack = WatchLayer::new(observers(observer)).layer(Says);
    stack.invoke(&mut call()).await.expect("it answers");
    assert_eq!(
        *names.lock().expect("no test panics with it"),
        ["call_started", "refused", "call_finished"]
    );
}

#[tokio::test]
async fn calls_are_counted_without_the_layer_of_attempts() {
    let metrics = Arc::new(Metrics::new());
    let all = [metrics.clone() as Arc<dyn Observe>].into_iter().collect();
    let stack = WatchLayer::new(all).layer(Says);
    stack.invoke(&mut call()).await.expect("it answers");
    let text = metrics.render();
    assert!(
        text.contains(r#"toolplane_calls_total{tool="t",outcome="ok"} 1"#),
        "{text}"
    );
}

#[tokio::test]
async fn attempts_are_numbered_and_counted_without_the_layer_of_calls() {
    let tracker = Arc::new(HealthTracker::new(
        Arc::new(TokioClock::new()),
        HealthTracker::DEFAULT_WINDOW,
    ));
    let all = [tracker.clone() as Arc<dyn Observe>].into_iter().collect();
    let works = invoke_fn(|_| async { Ok::<_, ToolError>(json!("done")) });
    let stack = WatchAttemptLayer::new(all).layer(works);
    let tool = Tool::builder("t").run(Says);
    for _ in 0..3 {
        let mut cx = CallContext::local(&tool, Arguments::none());
        stack.invoke(&mut cx).await.expect("it answers");
        assert_eq!((cx.attempt, cx.n_begun()), (1, 1));
    }
    assert_eq!(tracker.tool("t").n_calls, 3);
}
