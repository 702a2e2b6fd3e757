use std::sync::Arc;

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::{sync::watch, task::AbortHandle, time::timeout};
use tool_core::{
    Backend, CallContext, ErrorKind, Invoke, Outcome, Reply, Target, TaskForm, TaskRequest, ToolError,
};

use super::reports::PartialReports;

/// A tool that runs in the background, as the backend of its task.
pub(super) struct BackgroundRun {
    form: TaskForm,
    reports: Arc<PartialReports>,
    /// Ended work; `None` while it goes on.
    ended: watch::Receiver<Option<Result<Reply, ToolError>>>,
    work: AbortHandle,
    is_cancelled: Mutex<bool>,
    protocol: Option<&'static str>,
}

impl BackgroundRun {
    /// Starts the work of a call.
    pub(super) fn start<S: Invoke + 'static>(
        inner: Arc<S>,
        mut cx: CallContext,
        form: TaskForm,
        reports: Arc<PartialReports>,
    ) -> Self {
        let (sender, ended) = watch::channel(None);
        let protocol = cx.tool().executor().dyn_protocol();
        let work = tokio::spawn(async move {
            let limit = cx.remaining().unwrap_or(cx.tool().settings().call_timeout);
            let outcome = timeout(limit, inner.invoke(&mut cx)).await;
            let ended = match outcome {
                Ok(outcome) => outcome.and_then(Outcome::into_reply),
                Err(_) => Err(cx.unanswered(ErrorKind::Timeout, "no answer before the deadline of the task")),
            };
            // The task may be gone.
            let _ = sender.send(Some(ended));
        });
        Self {
            form,
            reports,
            ended,
            work: work.abort_handle(),
            is_cancelled: Mutex::new(false),
            protocol,
        }
    }

    async fn result(&self) -> Result<Reply, ToolError> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().expect("it is some"),
            Err(_) if *self.is_cancelled.lock() => {
                Err(ToolError::new(ErrorKind::Cancelled, "the task was cancelled"))
            }
            Err(_) => Err(ToolError::new(
                ErrorKind::Internal,
                "the work of the task was aborted",
            )),
        }
    }
}

impl Invoke for BackgroundRun {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let Target::Task { task, request, .. } = &cx.target else {
            return Err(ToolError::new(ErrorKind::Internal, "a task cannot be called"));
        };
        match request {
            TaskRequest::Get => {}
            TaskRequest::Result => return self.result().await.map(Outcome::from),
            TaskRequest::Cancel => {
                if self.ended.borrow().is_none() {
                    *self.is_cancelled.lock() = true;
                    self.work.abort();
                }
            }
            _ => {
                let message = "the tool asks for no input";
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
        }
        let (task, now) = (task.clone(), cx.clock.wall());
        let ended = self.ended.borrow().clone();
        let handle = match ended {
            Some(ended) => self.form.ended(task, now, &ended),
            None if *self.is_cancelled.lock() => self.form.cancelled(task, now),
            None => {
                let (n, pieces) = self.reports.kept();
                let message = pieces.last().and_then(RawJson::string);
                self.form.working(task, now, message.as_deref(), (n, &pieces))
            }
        };
        Ok(Outcome::Task(Box::new(handle)))
    }
}

impl Backend for BackgroundRun {
    fn protocol(&self) -> Option<&'static str> {
        self.protocol
    }
}

impl Drop for BackgroundRun {
    fn drop(&mut self) {
        self.work.abort();
    }
}
