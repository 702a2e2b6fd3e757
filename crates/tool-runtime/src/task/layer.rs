use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tool_core::{
    CallContext, Invoke, Layer, NamedLayer, Outcome, Target, Task, TaskForm, TaskMode, TaskSupport, ToolError,
};

use super::{reports::PartialReports, runner::BackgroundRun};

/// Makes a task of a call whose tool reports while it works, if its client supports tasks: the tool runs in the background, and
/// the state of the task has what it has reported so far.
///
/// Acts on calls with a [`TaskMode`], of tools with [`TaskSupport::Background`] in their `Settings`. A client that may get a task
/// but asks for reports of progress gets those instead, and the result of the call.
///
/// Requests about the task run what remains of the stack, so the result passes the layers around this one: redaction and
/// validation belong around it. The deadline of the call applies to its task.
///
/// # Cancellation
/// A task that is cancelled or dropped drops the future of the tool.
///
/// # Examples
/// ```
/// use std::future::ready;
/// use tool_core::{
///     Arguments, CallContext, Invoke, Layer, Outcome, Reply, Settings, TargetBackend, TaskMode, TaskSupport, Tool, ToolError,
///     invoke_fn, serde_json::json,
/// };
/// use tool_runtime::TaskLayer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let mut settings = Settings::default();
/// settings.task_support = TaskSupport::Background;
/// let tool = Tool::builder("count").settings(settings).run(invoke_fn(|_| ready(Ok::<_, ToolError>(Reply::from(json!(3))))));
/// let stack = TaskLayer.layer(TargetBackend);
/// let mut cx = CallContext::local(&tool, Arguments::none());
/// cx.extras.task = Some(TaskMode::Allowed);
/// assert!(matches!(stack.invoke(&mut cx).await?, Outcome::Task(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskLayer;

/// Service of [`TaskLayer`].
pub struct RunAsTask<S> {
    inner: Arc<S>,
}

/// Time for which a task can be asked for.
const TTL: Duration = Duration::from_secs(60 * 60);
/// Time between two looks at a task that clients are advised to keep.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl NamedLayer for TaskLayer {
    const NAME: &'static str = "task";
}

impl<S> Layer<S> for TaskLayer {
    type Invoke = RunAsTask<S>;

    fn layer(self, inner: S) -> RunAsTask<S> {
        RunAsTask {
            inner: Arc::new(inner),
        }
    }
}

impl<S: Invoke + 'static> Invoke for RunAsTask<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.extras.task.is_none() {
            return self.inner.invoke(cx).await;
        }
        // Boxed, so that the future of any other call has no room for it.
        Box::pin(self.invoke_with_mode(cx)).await
    }
}

impl<S: Invoke + 'static> RunAsTask<S> {
    async fn invoke_with_mode(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let mode = cx.extras.task.clone().filter(|mode| is_for(cx, mode));
        let Some(mode) = mode else {
            return self.inner.invoke(cx).await;
        };
        cx.explain(TaskLayer::NAME, || "runs in the background, as a task".to_owned());
        static N_BEGUN: AtomicU64 = AtomicU64::new(0);
        let n = N_BEGUN.fetch_add(1, Ordering::Relaxed) + 1;
        let reports = Arc::new(PartialReports::default());
        let mut work = cx.fork_detached(Arc::default());
        work.extras.task = None;
        work.origin.ask = None;
        work.origin.progress = Some(Arc::clone(&reports) as _);
        let form = TaskForm::new(&mode, cx.clock.wall(), TTL, POLL_INTERVAL);
        let run = BackgroundRun::start(Arc::clone(&self.inner), work, form.clone(), reports);
        // The task has the outcome from now on.
        cx.dispatch().answered();
        let task = Task::new(format!("task-{n}"), Arc::new(run));
        Ok(Outcome::Task(Box::new(form.created(task))))
    }
}

/// Returns `true` if this call becomes a task.
fn is_for(cx: &CallContext, mode: &TaskMode) -> bool {
    let supports_it = cx.tool().settings().task_support == TaskSupport::Background;
    let is_wanted = matches!(mode, TaskMode::Requested(_)) || cx.origin.progress.is_none();
    supports_it && is_wanted && matches!(cx.target, Target::Tool(_)) && !cx.is_dry_run()
}

impl<S> Clone for RunAsTask<S> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for RunAsTask<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAsTask").field("inner", &self.inner).finish()
    }
}
