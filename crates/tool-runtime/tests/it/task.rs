//! Calls that run in the background, as tasks.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};
use tool_core::{
    Arguments, CallContext, ErrorKind, Invoke, Layer, Outcome, Progress, Reply, Settings, Target,
    TargetBackend, Task, TaskForm, TaskMode, TaskRequest, TaskSupport, Tool, ToolError,
};
use tool_runtime::{RunAsTask, TaskLayer};

/// Tool that reports what it is told to, and ends when it is told.
struct Worker {
    tool: Arc<Tool>,
    reports: mpsc::UnboundedSender<&'static str>,
    end: Option<oneshot::Sender<Result<Reply, ToolError>>>,
}

/// Body of a [`Worker`], which runs once.
struct Run(Mutex<Option<Orders>>);

type Orders = (
    mpsc::UnboundedReceiver<&'static str>,
    oneshot::Receiver<Result<Reply, ToolError>>,
);

impl Invoke for Run {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let (mut received, ended) = self.0.lock().unwrap().take().expect("it is called once");
        cx.dispatch().sent();
        let progress = cx.origin.progress.clone();
        let reporting = async {
            while let Some(message) = received.recv().await {
                if let Some(progress) = &progress {
                    progress.report(RawJson::from(json!({"progress": 1, "message": message})));
                }
            }
            pending::<()>().await;
        };
        tokio::select! {
            ended = ended => ended.expect("it is told how to end").map(Outcome::from),
            () = reporting => unreachable!("it never ends"),
        }
    }
}

impl Worker {
    fn new(support: TaskSupport) -> Self {
        let (reports, received) = mpsc::unbounded_channel();
        let (end, ended) = oneshot::channel();
        let mut settings = Settings::default();
        settings.task_support = support;
        let run = Run(Mutex::new(Some((received, ended))));
        Self {
            tool: Tool::builder("worker").settings(settings).run(run),
            reports,
            end: Some(end),
        }
    }

    fn end(&mut self, result: Result<Reply, ToolError>) {
        assert!(
            self.end.take().unwrap().send(result).is_ok(),
            "it waits for its end"
        );
    }

    fn call(&self, mode: Option<TaskMode>) -> CallContext {
        let mut cx = CallContext::local(&self.tool, Arguments::none());
        cx.extras.task = mode;
        cx
    }
}

fn stack() -> RunAsTask<TargetBackend> {
    TaskLayer.layer(TargetBackend)
}

async fn begin(worker: &Worker, mode: TaskMode) -> (Task, RawJson) {
    match stack().invoke(&mut worker.call(Some(mode))).await {
        Ok(Outcome::Task(handle)) => (handle.task, handle.state),
        other => panic!("{other:?}"),
    }
}

async fn ask(worker: &Worker, task: &Task, request: TaskRequest) -> Result<Outcome, ToolError> {
    let mut cx = worker.call(None);
    cx.target = Target::Task {
        tool: worker.tool.clone(),
        task: task.clone(),
        request,
    };
    let asked = timeout(Duration::from_secs(600), stack().invoke(&mut cx)).await;
    asked.expect("it hangs")
}

async fn look(worker: &Worker, task: &Task) -> (Value, Option<Reply>) {
    match ask(worker, task, TaskRequest::Get).await {
        Ok(Outcome::Task(handle)) => (handle.state.to().unwrap(), handle.result),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_task_has_what_its_tool_has_reported() {
    let mut worker = Worker::new(TaskSupport::Background);
    let (task, made) = begin(&worker, TaskMode::Allowed).await;
    assert_eq!(
        made.get("resultType").and_then(|kind| kind.string()).as_deref(),
        Some("task")
    );
    let (state, _) = look(&worker, &task).await;
    assert_eq!(
        (&state["status"], &state["_meta"]),
        (&json!("working"), &Value::Null)
    );
    for piece in ["one", "two"] {
        worker.reports.send(piece).unwrap();
    }
    sleep(Duration::from_millis(1)).await;
    let (state, result) = look(&worker, &task).await;
    assert_eq!(state["statusMessage"], "two");
    assert_eq!(
        state["_meta"][TaskForm::PARTIAL_KEY],
        json!({"n": 2, "pieces": ["one", "two"]})
    );
    assert!(result.is_none());
    worker.end(Ok(Reply::from(json!({"n": 2}))));
    let reply = ask(&worker, &task, TaskRequest::Result)
        .await
        .unwrap()
        .into_reply()
        .unwrap();
    assert_eq!(reply.text(), r#"{"n":2}"#);
    let (state, result) = look(&worker, &task).await;
    assert_eq!(state["status"], "completed");
    assert_eq!(result.expect("a result").text(), r#"{"n":2}"#);
}

#[tokio::test(start_paused = true)]
async fn a_requested_task_has_the_form_of_its_revision_and_fails_as_a_call_does() {
    let mut worker = Worker::new(TaskSupport::Background);
    let (task, made) = begin(&worker, TaskMode::Requested(RawJson::object())).await;
    let made: Value = made.to().unwrap();
    assert_eq!(made["task"]["status"], "working");
    assert_eq!(made["task"]["pollInterval"], 500);
    worker.end(Err(ToolError::new(ErrorKind::UpstreamError, "no paper")));
    let failed = ask(&worker, &task, TaskRequest::Result)
        .await
        .expect_err("it failed");
    assert_eq!(
        (failed.kind(), failed.message()),
        (ErrorKind::UpstreamError, "no paper")
    );
    let (state, _) = look(&worker, &task).await;
    assert_eq!(state["status"], "failed");
    assert_eq!(state["statusMessage"], "upstream_error: no paper");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_or_dropped_task_ends_the_work() {
    let mut worker = Worker::new(TaskSupport::Background);
    let (task, _) = begin(&worker, TaskMode::Allowed).await;
    sleep(Duration::from_millis(1)).await;
    let cancelled = ask(&worker, &task, TaskRequest::Cancel).await;
    assert!(matches!(cancelled, Ok(Outcome::Task(_))), "{cancelled:?}");
    worker.reports.closed().await;
    assert_eq!(look(&worker, &task).await.0["status"], "cancelled");
    let result = ask(&worker, &task, TaskRequest::Result).await;
    assert_eq!(result.expect_err("it was cancelled").kind(), ErrorKind::Cancelled);
    drop(worker.end.take());

    let worker = Worker::new(TaskSupport::Background);
    let (task, _) = begin(&worker, TaskMode::Allowed).await;
    sleep(Duration::from_millis(1)).await;
    assert!(!worker.reports.is_closed());
    drop(task);
    worker.reports.closed().await;
}

/// The time of the call is the time of its task.
#[tokio::test(start_paused = true)]
async fn a_task_ends_at_the_deadline_of_its_call() {
    let worker = Worker::new(TaskSupport::Background);
    let (task, _) = begin(&worker, TaskMode::Allowed).await;
    let result = ask(&worker, &task, TaskRequest::Result).await;
    let error = result.expect_err("it takes longer than a call may");
    // The tool was called, and may not run twice.
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    worker.reports.closed().await;
}

struct Nobody;

impl Progress for Nobody {
    fn report(&self, _: RawJson) {}
}

#[tokio::test(start_paused = true)]
async fn other_calls_run_as_ever() {
    for (support, mode, has_progress) in [
        (TaskSupport::Background, None, false),
        (TaskSupport::Background, Some(TaskMode::Allowed), true),
        (TaskSupport::None, Some(TaskMode::Allowed), false),
        (
            TaskSupport::Own,
            Some(TaskMode::Requested(RawJson::object())),
            false,
        ),
    ] {
        let mut worker = Worker::new(support);
        worker.end(Ok(Reply::from(json!(1))));
        let mut cx = worker.call(mode.clone());
        if has_progress {
            cx.origin.progress = Some(Arc::new(Nobody));
        }
        let outcome = stack().invoke(&mut cx).await;
        assert!(
            matches!(outcome, Ok(Outcome::Reply(_))),
            "{support:?} {mode:?}: {outcome:?}"
        );
    }
    // Who requests a task gets it, with its reports.
    let worker = Worker::new(TaskSupport::Background);
    let mut cx = worker.call(Some(TaskMode::Requested(RawJson::object())));
    cx.origin.progress = Some(Arc::new(Nobody));
    let outcome = stack().invoke(&mut cx).await;
    assert!(matches!(outcome, Ok(Outcome::Task(_))), "{outcome:?}");
}
