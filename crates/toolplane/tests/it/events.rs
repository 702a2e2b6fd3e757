//! Events of calls through the standard stack, as observers receive them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::advance;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{
        ConcurrencySettings, ErrorKind, Event, Metadata, Observe, Overrides, RateLimitSettings, ToolError,
    },
    policy::{BreakerSettings, Breakers},
    runtime::RetrySettings,
};

/// Records events in words.
#[derive(Default)]
struct Notebook(Mutex<Vec<String>>);

impl Observe for Notebook {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::CallStarted { .. } | Event::CallFinished { .. } | Event::AttemptFinished { .. } => return,
            Event::Unresolved { caller, error, .. } => format!("{}: {}", caller.principal, error.kind()),
            Event::Retried { cx, error, .. } => format!("attempt {} {}, again", cx.attempt, error.kind()),
            Event::RateLimited { scope, .. } => format!("rate of {}", scope.as_str()),
            Event::Queued { waited, .. } => format!("waited {waited:?}"),
            Event::Shed { scope, .. } => format!("no place of {}", scope.as_str()),
            Event::BreakerRejected { scope, .. } => format!("held back by {}", scope.as_str()),
            Event::BreakerChanged { scope, change, .. } => {
                format!("breaker of {} {}", scope.as_str(), change.to.as_str())
            }
            _ => return,
        };
        self.0.lock().expect("no test panics with it").push(line);
    }
}

impl Notebook {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test panics with it"))
    }
}

fn plane(script: &ScriptedExecutor, tool: TestTool) -> (Toolplane, Arc<Notebook>) {
    let notebook = Arc::new(Notebook::default());
    let plane = Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .observer(notebook.clone())
        .build()
        .expect("can be set up");
    (plane, notebook)
}

fn down() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

async fn call(plane: &Toolplane) {
    // The events tell how it ends.
    let _ = plane.call(CallRequest::new("t")).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_nothing_is_told_of() {
    let (plane, notebook) = plane(&ScriptedExecutor::new([ScriptStep::Echo]), TestTool::new("t"));
    let _ = plane.call(CallRequest::new("nothing")).await;
    assert_eq!(notebook.take(), ["local: not_found"]);
}

#[tokio::test(start_paused = true)]
async fn retries_and_every_move_of_a_breaker_are_told_of() {
    let mut tool = TestTool::new("t");
    tool.descriptor.overrides = Overrides::default()
        .with(RetrySettings::default().with_max_attempts(2))
        .with(Breakers::from(BreakerSettings::default().with_max_failures(2)));
    let (plane, notebook) = plane(
        &ScriptedExecutor::new([down(), down(), down(), ScriptStep::Echo]),
        tool,
    );
    call(&plane).await;
    assert_eq!(
        notebook.take(),
        ["attempt 1 unavailable, again", "breaker of tool open"]
    );
    call(&plane).await;
    assert_eq!(notebook.take(), ["held back by tool"]);
    advance(Duration::from_secs(10)).await;
    call(&plane).await;
    assert_eq!(
        notebook.take(),
        [
            "breaker of tool half_open",
            "breaker of tool open",
            "attempt 1 unavailable, again",
            "held back by tool"
        ]
    );
    advance(Duration::from_secs(10)).await;
    call(&plane).await;
    assert_eq!(
        notebook.take(),
        ["breaker of tool half_open", "breaker of tool closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn limits_tell_of_those_who_wait_and_of_those_they_refuse() {
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.rate_limit = Some(RateLimitSettings::new(3, Duration::from_secs(60)));
        metadata.concurrency = Some({
            let mut new = ConcurrencySettings::new(1);
            new.queue = 1;
            new
        });
        metadata
    };
    let second = Duration::from_secs(1);
    let script = ScriptedExecutor::new([ScriptStep::After(second, serde_json::json!({}))]);
    let (plane, notebook) = plane(&script, TestTool::new("t").metadata(metadata));
    tokio::join!(call(&plane), call(&plane), call(&plane), call(&plane));
    assert_eq!(notebook.take(), ["no place of tool", "rate of tool", "waited 1s"]);
}
