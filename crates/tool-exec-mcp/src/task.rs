//! Tools that can be called as a task only (2025-11-25): the task is made, followed to its end and left behind, so
//! that the call is like any other.

use std::time::Duration;

use futures_util::FutureExt as _;
use mcp_client::{Connection, Error, RequestOptions};
use mcp_wire::{meta, meta_key, method, with_progress_token};
use raw_json::{Kind, RawJson};
use tokio::{runtime::Handle, time::sleep};
use tool_core::{CallContext, ErrorKind, ToolError};

use crate::{
    call::options,
    connections::Checkout,
    fault::{cut, tool_error},
    task_progress::{TaskReports, Telling},
};

/// How long to wait until a task is looked at again, if the server does not say.
const USUAL_PAUSE: Duration = Duration::from_millis(500);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Calls a tool as a task and waits for its result, which is what an ordinary call would have been answered with.
///
/// # Cancellation
/// When the future is dropped, or the task cannot be followed to its end, the server is told to cancel it. Nothing
/// waits for its answer.
pub(crate) async fn drive(
    cx: &CallContext,
    server: &str,
    connection: &Checkout,
    params: &RawJson,
) -> Result<RawJson, ToolError> {
    let params = params
        .with_members(&[("task", RawJson::object())])
        .expect("parameters are an object");
    let Some(progress) = cx.progress.as_deref() else {
        return follow(cx, server, connection, params, None).await;
    };
    let mut telling = Telling::new(&connection.connection);
    let params = with_progress_token(Some(&params), &telling.token);
    let told = TaskReports::new(progress);
    let done = tokio::select! {
        never = telling.pass_on(&told) => match never {},
        done = follow(cx, server, connection, params, Some(&told)) => done,
    };
    // What the server told before the result is passed on before it.
    telling.pass_on(&told).now_or_never();
    done
}

/// Makes the task and goes with it to its end.
async fn follow(
    cx: &CallContext,
    server: &str,
    connection: &Checkout,
    params: RawJson,
    reports: Option<&TaskReports<'_>>,
) -> Result<RawJson, ToolError> {
    // The tool has answered when its task is done.
    let making = RequestOptions {
        on_answered: None,
        on_progress: None,
        ..options(cx)
    };
    let made = connection
        .request(method::TOOLS_CALL, Some(params), making)
        .await
        .map_err(|error| {
            if error.as_rpc().is_some() {
                cx.dispatch().answered();
            }
            tool_error(cx, server, error)
        })?;
    let Some(task) = made.get("task").filter(|task| task.kind() == Kind::Object) else {
        // A server may do at once what it was asked to do as a task.
        cx.dispatch().answered();
        return Ok(made);
    };
    let Some(id) = task.get("taskId").filter(|id| id.kind() == Kind::String) else {
        let message = format!("the server `{server}` answered with a task that has no id");
        return Err(cx.unanswered(ErrorKind::Protocol, message));
    };
    let mut running = Running {
        cx,
        server,
        connection,
        cancel: Cancel::new(&connection.connection, &id),
        id,
        reports,
    };
    let last = running.until_settled(Task::read(&task)).await?;
    running.result(&last).await
}

/// A task that the server works on.
struct Running<'a> {
    cx: &'a CallContext,
    server: &'a str,
    connection: &'a Checkout,
    cancel: Cancel,
    id: RawJson,
    reports: Option<&'a TaskReports<'a>>,
}

impl Running<'_> {
    /// Looks at the task until there is a result to fetch, or the server needs something, which it asks for when the
    /// result is fetched.
    async fn until_settled(&mut self, mut task: Task) -> Result<Task, ToolError> {
        loop {
            if let (Some(reports), Some(message)) = (self.reports, &task.message) {
                reports.status(message);
            }
            match task.status.as_str() {
                "working" => sleep(task.pause).await,
                "input_required" | "completed" | "failed" => return Ok(task),
                "cancelled" => {
                    self.cancel.disarm();
                    self.cx.dispatch().answered();
                    let what = task.with_message("has cancelled the task");
                    return Err(self.error(ErrorKind::UpstreamError, &what));
                }
                _ => {
                    let message = format!("the server `{}` has a task of no known status", self.server);
                    return Err(self.cx.unanswered(ErrorKind::Protocol, message));
                }
            }
            let options = RequestOptions {
                on_sent: None,
                on_answered: None,
                on_progress: None,
                ..options(self.cx)
            };
            let look = self
                .connection
                .request(method::TASKS_GET, Some(self.params()), options);
            task = Task::read(&look.await.map_err(|error| self.lost(error))?);
        }
    }

    /// Fetches the result, or the error that the call came to. Returns when the task is over.
    async fn result(mut self, task: &Task) -> Result<RawJson, ToolError> {
        let options = RequestOptions {
            on_sent: None,
            on_progress: None,
            ..options(self.cx)
        };
        let fetch = self
            .connection
            .request(method::TASKS_RESULT, Some(self.params()), options);
        match fetch.await {
            Ok(result) => {
                self.cancel.disarm();
                Ok(unrelated(result))
            }
            Err(error) if error.as_rpc().is_some() => {
                self.cancel.disarm();
                let error = tool_error(self.cx, self.server, error);
                Err(match (task.status.as_str(), error.detail()) {
                    ("failed", Some(detail)) if task.message.is_some() => {
                        let what = task.with_message("says that the task failed");
                        self.error(error.kind(), &what).with_detail(detail.clone())
                    }
                    _ => error,
                })
            }
            Err(error) => Err(tool_error(self.cx, self.server, error)),
        }
    }

    fn params(&self) -> RawJson {
        task_params(&self.id)
    }

    /// The error when the task cannot be looked at: an error that the server answers with is not the tool's.
    fn lost(&self, error: Error) -> ToolError {
        let Some(rpc) = error.as_rpc() else {
            return tool_error(self.cx, self.server, error);
        };
        let words = cut(&rpc.message);
        let message = format!("the server `{}` no longer knows the task: {words}", self.server);
        self.cx
            .unanswered(ErrorKind::UpstreamError, message)
            .with_source(error)
    }

    fn error(&self, kind: ErrorKind, what: &str) -> ToolError {
        ToolError::new(kind, format!("the server `{}` {what}", self.server))
    }
}

/// What a server says of a task.
struct Task {
    status: String,
    message: Option<RawJson>,
    /// How long to wait before it is looked at again.
    pause: Duration,
}

impl Task {
    fn read(task: &RawJson) -> Self {
        let pause = task
            .get("pollInterval")
            .and_then(|interval| interval.to::<f64>().ok())
            .and_then(|interval| Duration::try_from_secs_f64(interval / 1000.0).ok());
        Self {
            status: task
                .get("status")
                .and_then(|status| status.string())
                .unwrap_or_default(),
            message: task
                .get("statusMessage")
                .filter(|message| message.kind() == Kind::String),
            pause: pause.unwrap_or(USUAL_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
        }
    }

    fn with_message(&self, what: &str) -> String {
        match self.message.as_ref().and_then(RawJson::string) {
            Some(message) => format!("{what}: {}", cut(&message)),
            None => what.to_owned(),
        }
    }
}

/// Tells the server to cancel a task, unless it is known to be over.
struct Cancel(Option<(Connection, RawJson)>);

impl Cancel {
    const LIMIT: Duration = Duration::from_secs(5);

    fn new(connection: &Connection, id: &RawJson) -> Self {
        let tasks = connection.server().capabilities.get("tasks");
        let offered = tasks.is_some_and(|tasks| tasks.get("cancel").is_some());
        Self(offered.then(|| (connection.clone(), id.clone())))
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        let Some((connection, id)) = self.0.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let options = RequestOptions::within(Self::LIMIT);
            let cancelled = connection.request(method::TASKS_CANCEL, Some(task_params(&id)), options);
            if let Err(error) = cancelled.await {
                tracing::debug!(%error, "a task could not be cancelled");
            }
        });
    }
}

fn task_params(id: &RawJson) -> RawJson {
    RawJson::object()
        .with_members(&[("taskId", id.clone())])
        .expect("an empty object is an object")
}

/// The result without the mark of its task, of which the caller knows nothing.
fn unrelated(result: RawJson) -> RawJson {
    let Some(meta) = meta(&result).filter(|meta| meta.get(meta_key::RELATED_TASK).is_some()) else {
        return result;
    };
    let rest = meta
        .without_members(&[meta_key::RELATED_TASK])
        .expect("an object");
    let changed = match rest.members().next() {
        Some(_) => result.with_members(&[("_meta", rest)]),
        None => result.without_members(&["_meta"]),
    };
    changed.expect("what has `_meta` is an object")
}
