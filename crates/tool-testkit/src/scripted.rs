use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{
    CallContext, Descriptor, DynBackend, Executor, InProcess, Invoke, Outcome, PrepareError, Reply, ToolError,
};

/// An executor that does what a test tells it to, step by step; the last step is repeated. Cloning shares it.
#[derive(Clone)]
pub struct ScriptedExecutor(Arc<Inner>);

struct Inner {
    steps: Mutex<Vec<ScriptStep>>,
    n_calls: AtomicUsize,
    n_running: AtomicUsize,
}

/// What a scripted executor does for one call.
#[derive(Debug, Clone)]
pub enum ScriptStep {
    /// Answers with this value.
    Value(serde_json::Value),
    /// Answers with this reply.
    Reply(Reply),
    /// Comes to this.
    Outcome(Outcome),
    /// Fails like this, before anything was sent.
    Fail(ToolError),
    /// Fails like this, after the call was sent.
    FailSent(ToolError),
    /// Answers with this failure.
    FailAnswered(ToolError),
    /// Answers with this failure, which says that the call was not taken.
    FailNotTaken(ToolError),
    /// Waits on the runtime's clock, having sent the call, and answers with this value.
    After(Duration, serde_json::Value),
    /// Never answers; the flag tells whether the call was sent.
    Hang(bool),
    /// Answers with the arguments.
    Echo,
}

impl ScriptedExecutor {
    /// An executor with these steps; without any it echoes.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        let mut steps: Vec<_> = steps.into_iter().collect();
        steps.reverse();
        Self(Arc::new(Inner {
            steps: Mutex::new(steps),
            n_calls: AtomicUsize::new(0),
            n_running: AtomicUsize::new(0),
        }))
    }

    /// How many calls have arrived.
    #[must_use]
    pub fn n_calls(&self) -> usize {
        self.0.n_calls.load(Ordering::SeqCst)
    }

    /// How many calls are running now.
    #[must_use]
    pub fn n_running(&self) -> usize {
        self.0.n_running.load(Ordering::SeqCst)
    }

    fn next(&self) -> ScriptStep {
        let mut steps = self.0.steps.lock();
        if steps.len() > 1 {
            steps.pop()
        } else {
            steps.last().cloned()
        }
        .unwrap_or(ScriptStep::Echo)
    }
}

impl Invoke for ScriptedExecutor {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.n_calls.fetch_add(1, Ordering::SeqCst);
        let _running = Running::begin(&self.0.n_running);
        let answered = |value: RawJson| {
            cx.dispatch().sent();
            cx.dispatch().answered();
            Ok(Reply::value(value).into())
        };
        match self.next() {
            ScriptStep::Value(value) => answered(RawJson::from(value)),
            ScriptStep::Echo => answered(cx.arguments.raw().clone()),
            ScriptStep::Reply(reply) => {
                cx.dispatch().sent();
                cx.dispatch().answered();
                Ok(reply.into())
            }
            ScriptStep::Outcome(outcome) => Ok(outcome),
            ScriptStep::Fail(error) => Err(error),
            ScriptStep::FailSent(error) => {
                cx.dispatch().sent();
                Err(error)
            }
            ScriptStep::FailAnswered(error) => {
                cx.dispatch().answered();
                Err(error)
            }
            ScriptStep::FailNotTaken(error) => {
                cx.dispatch().not_taken();
                Err(error)
            }
            ScriptStep::After(delay, value) => {
                cx.dispatch().sent();
                tokio::time::sleep(delay).await;
                answered(RawJson::from(value))
            }
            ScriptStep::Hang(sent) => {
                if sent {
                    cx.dispatch().sent();
                }
                std::future::pending().await
            }
        }
    }
}

/// Counts a running call, also when its future is dropped.
struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn begin(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The kind is `scripted`; settings are not read.
impl Executor for ScriptedExecutor {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn prepare(&self, _descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        Ok(Arc::new(InProcess(self.clone())))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}

impl fmt::Debug for ScriptedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("n_calls", &self.n_calls())
            .finish_non_exhaustive()
    }
}
