//! Tools that can be called as a task only. The task is created and followed to its end, so that the call is like any
//! other.

use std::{collections::HashSet, time::Duration};

use futures_util::FutureExt as _;
use mcp_client::{ClientError, Connection, RequestOptions};
use mcp_wire::{Era, Params, RpcError, meta, meta_key, method};
use raw_json::{JsonKind, RawJson};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use tool_core::{AskError, CallContext, ErrorKind, Question, ToolError};

use super::{
    progress::{ProgressListener, TaskProgress},
    protocol::{self, TaskState, declare_extension, is_task_result},
};
use crate::{
    calls::{input_request, request_options},
    connection::{Checkout, PendingWork},
    errors::{call_error, cut, rpc_error, tool_error},
};

/// Calls a tool as a task and waits for the task's result, which is what an ordinary call would have returned.
///
/// # Cancellation
/// When the future is dropped, or the task cannot be followed to its end, the server is asked to cancel the task.
/// Nobody waits for its answer.
pub(crate) async fn run_task(
    cx: &CallContext,
    server: &str,
    connection: &Checkout,
    mut params: Params,
) -> Result<RawJson, ToolError> {
    let Some(progress) = cx.origin.progress.as_deref() else {
        return create_and_follow(cx, server, connection, params, None).await;
    };
    let task_progress = TaskProgress::new(progress);
    if connection.connection.server().era() == Era::Modern {
        // Tasks of the modern era report nothing but their status.
        return create_and_follow(cx, server, connection, params, Some(&task_progress)).await;
    }
    let mut listener = ProgressListener::new(&connection.connection);
    params.add_to_meta(&[(meta_key::PROGRESS_TOKEN, listener.token.clone())]);
    let done = tokio::select! {
        never = listener.forward(&task_progress) => match never {},
        done = create_and_follow(cx, server, connection, params, Some(&task_progress)) => done,
    };
    // Reports that came before the result are forwarded before it.
    listener.forward(&task_progress).now_or_never();
    done
}

/// Creates the task and follows it to its end.
async fn create_and_follow(
    cx: &CallContext,
    server: &str,
    connection: &Checkout,
    mut params: Params,
    progress: Option<&TaskProgress<'_>>,
) -> Result<RawJson, ToolError> {
    let era = connection.connection.server().era();
    // The tool has answered when its task is done, not before.
    let mut making = request_options(cx);
    making.on_answered = None;
    match era {
        Era::Legacy => {
            making.on_progress = None;
            params.push("task", RawJson::object());
        }
        Era::Modern => declare_extension(&mut making),
    }
    let made = connection.request(method::TOOLS_CALL, params, making).await;
    let made = made.map_err(|error| {
        if error.as_rpc().is_some() {
            cx.dispatch().answered();
        }
        call_error(cx, server, error)
    })?;
    let task = match era {
        Era::Legacy => made.get("task").filter(|task| task.kind() == JsonKind::Object),
        Era::Modern => is_task_result(&made).then(|| made.clone()),
    };
    let Some(task) = task else {
        // The server ran the call at once although it was asked for a task.
        cx.dispatch().answered();
        return Ok(made);
    };
    let Some(id) = protocol::id(&task) else {
        let message = format!("the server `{server}` answered with a task that has no id");
        return Err(cx.unanswered(ErrorKind::Protocol, message));
    };
    let runner = TaskRunner {
        cx,
        server,
        connection,
        era,
        begun: Instant::now(),
        cancel: CancelGuard::new(connection, &id),
        id,
        progress,
        answered: HashSet::new(),
    };
    runner.follow(task).await
}

/// Follows a task that the server runs.
struct TaskRunner<'a> {
    cx: &'a CallContext,
    server: &'a str,
    connection: &'a Checkout,
    era: Era,
    begun: Instant,
    cancel: CancelGuard<'a>,
    id: RawJson,
    progress: Option<&'a TaskProgress<'a>>,
    /// Keys of the input requests that were answered. A modern server never uses a key again.
    answered: HashSet<String>,
}

impl TaskRunner<'_> {
    /// Polls the task until there is a result. Asks the caller's client for the input that the task requires meanwhile.
    async fn follow(mut self, mut task: RawJson) -> Result<RawJson, ToolError> {
        // A modern task has its outcome when it is polled, and not when it is created.
        let mut is_look = false;
        loop {
            let state = TaskState::read(&task);
            if let (Some(progress), Some(message)) = (self.progress, &state.message) {
                progress.status(message);
            }
            match (state.status.as_str(), self.era) {
                ("working", _) => self.wait(&state).await,
                ("input_required" | "completed" | "failed", Era::Legacy) => {
                    return self.fetch_result(&state).await;
                }
                ("input_required", Era::Modern) if is_look => {
                    if !self.answer_input_requests(&task).await? {
                        self.wait(&state).await;
                    }
                }
                ("completed" | "failed", Era::Modern) if is_look => return self.final_result(&task),
                ("input_required" | "completed" | "failed", Era::Modern) => {}
                ("cancelled", _) => {
                    self.cancel.disarm();
                    self.cx.dispatch().answered();
                    let what = state.with_message("has cancelled the task");
                    return Err(self.error(ErrorKind::UpstreamError, &what));
                }
                _ => {
                    let message = format!("the server `{}` has a task with an unknown status", self.server);
                    return Err(self.cx.unanswered(ErrorKind::Protocol, message));
                }
            }
            task = self
                .request(method::TASKS_GET, protocol::params(&self.id))
                .await?;
            is_look = true;
        }
    }

    /// Waits for the server's poll interval, within the time of the attempt and of the call.
    async fn wait(&self, state: &TaskState) {
        let attempt = self.cx.tool().settings().attempt_timeout;
        // Progress may have extended the attempt beyond its limit.
        let of_attempt = attempt.checked_sub(self.begun.elapsed());
        let left = of_attempt.into_iter().chain(self.cx.remaining()).min();
        sleep(protocol::pause_within(state.pause, left)).await;
    }

    /// Makes a request about the task. It is not a dispatch of the tool.
    async fn request(&self, method: &str, params: RawJson) -> Result<RawJson, ToolError> {
        let mut options = request_options(self.cx);
        (options.on_sent, options.on_answered, options.on_progress) = (None, None, None);
        if self.era == Era::Modern {
            declare_extension(&mut options);
        }
        let answer = self.connection.request(method, Some(params), options).await;
        answer.map_err(|error| self.request_error(error))
    }

    /// Asks the caller's client for the input that a modern task requires, and sends the answers to the task. Returns
    /// `true` if there was a new request.
    async fn answer_input_requests(&mut self, task: &RawJson) -> Result<bool, ToolError> {
        let asked = input_request(task).map_err(|what| {
            let message = format!("the server `{}` has a task with {what}", self.server);
            self.cx.unanswered(ErrorKind::Protocol, message)
        })?;
        let mut answers = Vec::new();
        for (key, request) in asked.requests.members() {
            if self.answered.contains(&*key) {
                continue;
            }
            let method = request.get("method").and_then(|method| method.string());
            let question = Question::new(method.unwrap_or_default(), request.get("params"));
            answers.push((key, self.ask_client(question).await?));
        }
        if answers.is_empty() {
            return Ok(false);
        }
        let responses: Vec<(&str, RawJson)> = answers
            .iter()
            .map(|(key, answer)| (&**key, answer.clone()))
            .collect();
        let responses = [("inputResponses", RawJson::from_members(&responses))];
        let params = protocol::params(&self.id)
            .with_members(&responses)
            .expect("an object");
        self.request(method::TASKS_UPDATE, params).await?;
        self.answered
            .extend(answers.into_iter().map(|(key, _)| key.into_owned()));
        Ok(true)
    }

    async fn ask_client(&self, question: Question) -> Result<RawJson, ToolError> {
        let method = question.method.clone();
        let missing_answer = |kind, why: &str| {
            let message = format!("the tool asks for `{method}`: {why}");
            self.cx.unanswered(kind, message)
        };
        let missing = ErrorKind::MissingCapability;
        let Some(asker) = &self.cx.origin.ask else {
            return Err(missing_answer(missing, "there is no client to ask"));
        };
        // A client is not asked for what it did not declare.
        let capability = method.split('/').next().unwrap_or_default();
        if asker.client().capabilities().get(capability).is_none() {
            let why = format!("this needs the capability `{capability}`, which the client did not declare");
            return Err(missing_answer(missing, &why));
        }
        let answer = asker.ask(question).await;
        answer.map_err(|error| {
            let kind = match error {
                AskError::Impossible(_) => missing,
                _ => ErrorKind::Unavailable,
            };
            missing_answer(kind, &error.to_string())
        })
    }

    /// Fetches the result of a legacy task, or the error of the call. Returns when the task is over.
    async fn fetch_result(mut self, state: &TaskState) -> Result<RawJson, ToolError> {
        let mut options = request_options(self.cx);
        (options.on_sent, options.on_progress) = (None, None);
        let params = protocol::params(&self.id);
        let fetch = self
            .connection
            .request(method::TASKS_RESULT, Some(params), options);
        match fetch.await {
            Ok(result) => {
                self.cancel.disarm();
                Ok(without_related_task(result))
            }
            Err(error) if error.as_rpc().is_some() => {
                self.cancel.disarm();
                Err(self.failure(state, tool_error(self.cx, self.server, error)))
            }
            Err(error) => Err(tool_error(self.cx, self.server, error)),
        }
    }

    /// Returns the outcome of a modern task, which its state holds.
    fn final_result(mut self, task: &RawJson) -> Result<RawJson, ToolError> {
        self.cancel.disarm();
        self.cx.dispatch().answered();
        if let Some(result) = task.get("result") {
            return Ok(result);
        }
        match task.get("error") {
            Some(error) => {
                let error = rpc_error(self.server, &RpcError::from_raw(&error));
                Err(self.failure(&TaskState::read(task), error))
            }
            None => Err(self.error(ErrorKind::Protocol, "has a task without a result")),
        }
    }

    /// Returns the error of the call, with the status message of its task if there is one.
    fn failure(&self, state: &TaskState, error: ToolError) -> ToolError {
        match (state.status.as_str(), error.detail()) {
            ("failed", Some(detail)) if state.message.is_some() => {
                let what = state.with_message("says that the task failed");
                self.error(error.kind(), &what).with_detail(detail.clone())
            }
            _ => error,
        }
    }

    /// Converts the error of a failed poll. An error response to it is not the tool's error.
    fn request_error(&self, error: ClientError) -> ToolError {
        let Some(rpc) = error.as_rpc() else {
            return tool_error(self.cx, self.server, error);
        };
        let words = cut(&rpc.message);
        let message = format!("the server `{}` no longer knows the task: {words}", self.server);
        self.cx.unanswered(ErrorKind::UpstreamError, message)
    }

    fn error(&self, kind: ErrorKind, what: &str) -> ToolError {
        ToolError::new(kind, format!("the server `{}` {what}", self.server))
    }
}

/// Asks the server to cancel a task when dropped, unless the task is known to be over.
struct CancelGuard<'a> {
    task: Option<(Connection, RawJson)>,
    open: Option<PendingWork<'a>>,
}

impl<'a> CancelGuard<'a> {
    const LIMIT: Duration = Duration::from_secs(5);

    fn new(checkout: &'a Checkout, id: &RawJson) -> Self {
        let connection = &checkout.connection;
        let offered = protocol::cancels_tasks(connection.server());
        Self {
            task: offered.then(|| (connection.clone(), id.clone())),
            open: checkout.begin_work(),
        }
    }

    fn disarm(&mut self) {
        self.task = None;
        if let Some(open) = &mut self.open {
            open.finish();
        }
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let Some((connection, id)) = self.task.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let mut options = RequestOptions::with_timeout(Self::LIMIT);
            if connection.server().era() == Era::Modern {
                declare_extension(&mut options);
            }
            let cancelled = connection.request(method::TASKS_CANCEL, Some(protocol::params(&id)), options);
            if let Err(error) = cancelled.await {
                tracing::debug!(%error, "a task could not be cancelled");
            }
        });
    }
}

/// Returns the result without the mark of its task, which the caller does not know.
fn without_related_task(result: RawJson) -> RawJson {
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
