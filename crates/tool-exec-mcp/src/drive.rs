//! Tools that can be called as a task only: the task is made, followed to its end and left behind, so that the call is
//! like any other.

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

use crate::{
    call::{options, questions},
    calls::Open,
    connections::Checkout,
    fault::{call_error, cut, rpc_error, tool_error},
    task::{self, State},
    task_progress::{TaskReports, Telling},
};

/// Calls a tool as a task and waits for its result, which is what an ordinary call would have been answered with.
///
/// # Cancellation
/// When the future is dropped, or the task cannot be followed to its end, the server is told to cancel it. Nothing
/// waits for its answer.
pub(crate) async fn drive(
    cx: &CallContext,
    server: &str,
    connection: &Checkout,
    mut params: Params,
) -> Result<RawJson, ToolError> {
    let Some(progress) = cx.origin.progress.as_deref() else {
        return follow(cx, server, connection, params, None).await;
    };
    let told = TaskReports::new(progress);
    if connection.connection.server().era() == Era::Modern {
        // Tasks of this era report nothing but their status.
        return follow(cx, server, connection, params, Some(&told)).await;
    }
    let mut telling = Telling::new(&connection.connection);
    params.add_to_meta(&[(meta_key::PROGRESS_TOKEN, telling.token.clone())]);
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
    mut params: Params,
    reports: Option<&TaskReports<'_>>,
) -> Result<RawJson, ToolError> {
    let era = connection.connection.server().era();
    // The tool has answered when its task is done.
    let mut making = RequestOptions {
        on_answered: None,
        ..options(cx)
    };
    match era {
        Era::Legacy => {
            making.on_progress = None;
            params.push("task", RawJson::object());
        }
        Era::Modern => task::declare(&mut making),
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
        Era::Modern => is_made(&made).then(|| made.clone()),
    };
    let Some(task) = task else {
        // A server may do at once what it was asked to do as a task.
        cx.dispatch().answered();
        return Ok(made);
    };
    let Some(id) = task::id(&task) else {
        let message = format!("the server `{server}` answered with a task that has no id");
        return Err(cx.unanswered(ErrorKind::Protocol, message));
    };
    let running = Running {
        cx,
        server,
        connection,
        era,
        begun: Instant::now(),
        cancel: Cancel::new(connection, &id),
        id,
        reports,
        answered: HashSet::new(),
    };
    running.follow(task).await
}

/// Whether a modern server has made a call a task.
pub(crate) fn is_made(result: &RawJson) -> bool {
    result
        .get("resultType")
        .is_some_and(|kind| kind.as_str() == "\"task\"")
}

/// A task that the server works on.
struct Running<'a> {
    cx: &'a CallContext,
    server: &'a str,
    connection: &'a Checkout,
    era: Era,
    begun: Instant,
    cancel: Cancel<'a>,
    id: RawJson,
    reports: Option<&'a TaskReports<'a>>,
    /// What the task asked and was answered, by its keys, which a modern server never uses again.
    answered: HashSet<String>,
}

impl Running<'_> {
    /// Looks at the task until there is a result. What the task needs meanwhile, the caller's client is asked for.
    async fn follow(mut self, mut task: RawJson) -> Result<RawJson, ToolError> {
        // A modern task says with a look what it came to, and not when it is made.
        let mut is_look = false;
        loop {
            let state = State::read(&task);
            if let (Some(reports), Some(message)) = (self.reports, &state.message) {
                reports.status(message);
            }
            match (state.status.as_str(), self.era) {
                ("working", _) => self.wait(&state).await,
                ("input_required" | "completed" | "failed", Era::Legacy) => return self.result(&state).await,
                ("input_required", Era::Modern) if is_look => {
                    if !self.give(&task).await? {
                        self.wait(&state).await;
                    }
                }
                ("completed" | "failed", Era::Modern) if is_look => return self.end(&task),
                ("input_required" | "completed" | "failed", Era::Modern) => {}
                ("cancelled", _) => {
                    self.cancel.disarm();
                    self.cx.dispatch().answered();
                    let what = state.with_message("has cancelled the task");
                    return Err(self.error(ErrorKind::UpstreamError, &what));
                }
                _ => {
                    let message = format!("the server `{}` has a task of no known status", self.server);
                    return Err(self.cx.unanswered(ErrorKind::Protocol, message));
                }
            }
            task = self.request(method::TASKS_GET, task::params(&self.id)).await?;
            is_look = true;
        }
    }

    /// Waits for as long as the server wants to be left alone, within the time of the attempt and of the call.
    async fn wait(&self, state: &State) {
        let attempt = self.cx.tool().settings().attempt_timeout;
        // Progress may have put its end off.
        let of_attempt = attempt.checked_sub(self.begun.elapsed());
        let left = of_attempt.into_iter().chain(self.cx.remaining()).min();
        sleep(task::pause_within(state.pause, left)).await;
    }

    /// Makes a request about the task, which is nothing that the tool is sent.
    async fn request(&self, method: &str, params: RawJson) -> Result<RawJson, ToolError> {
        let mut options = RequestOptions {
            on_sent: None,
            on_answered: None,
            on_progress: None,
            ..options(self.cx)
        };
        if self.era == Era::Modern {
            task::declare(&mut options);
        }
        let answer = self.connection.request(method, Some(params), options).await;
        answer.map_err(|error| self.lost(error))
    }

    /// Asks the caller's client for what a modern task needs and gives that to the task. Returns whether there was
    /// anything new.
    async fn give(&mut self, task: &RawJson) -> Result<bool, ToolError> {
        let asked = questions(task).map_err(|what| {
            let message = format!("the server `{}` has a task with {what}", self.server);
            self.cx.unanswered(ErrorKind::Protocol, message)
        })?;
        let mut answers = Vec::new();
        for (key, request) in asked.requests.members() {
            if self.answered.contains(&*key) {
                continue;
            }
            let method = request.get("method").and_then(|method| method.string());
            let question = Question {
                method: method.unwrap_or_default(),
                params: request.get("params"),
            };
            answers.push((key, self.ask(question).await?));
        }
        if answers.is_empty() {
            return Ok(false);
        }
        let responses: Vec<(&str, RawJson)> = answers
            .iter()
            .map(|(key, answer)| (&**key, answer.clone()))
            .collect();
        let responses = [("inputResponses", RawJson::from_members(&responses))];
        let params = task::params(&self.id)
            .with_members(&responses)
            .expect("an object");
        self.request(method::TASKS_UPDATE, params).await?;
        self.answered
            .extend(answers.into_iter().map(|(key, _)| key.into_owned()));
        Ok(true)
    }

    async fn ask(&self, question: Question) -> Result<RawJson, ToolError> {
        let method = question.method.clone();
        let not_given = |kind, why: &str| {
            let message = format!("the tool asks for `{method}`: {why}");
            self.cx.unanswered(kind, message)
        };
        let missing = ErrorKind::MissingCapability;
        let Some(asker) = &self.cx.origin.ask else {
            return Err(not_given(missing, "there is nobody to ask"));
        };
        // What the client did not declare, it is not asked.
        let capability = method.split('/').next().unwrap_or_default();
        if asker.client().capabilities().get(capability).is_none() {
            let why = format!("this needs the capability `{capability}`, which the client did not declare");
            return Err(not_given(missing, &why));
        }
        let answer = asker.ask(question).await;
        answer.map_err(|error| {
            let kind = match error {
                AskError::Impossible(_) => missing,
                _ => ErrorKind::Unavailable,
            };
            not_given(kind, &error.to_string()).with_source(error)
        })
    }

    /// Fetches the result of a legacy task, or the error that the call came to. Returns when the task is over.
    async fn result(mut self, state: &State) -> Result<RawJson, ToolError> {
        let options = RequestOptions {
            on_sent: None,
            on_progress: None,
            ..options(self.cx)
        };
        let params = task::params(&self.id);
        let fetch = self
            .connection
            .request(method::TASKS_RESULT, Some(params), options);
        match fetch.await {
            Ok(result) => {
                self.cancel.disarm();
                Ok(unrelated(result))
            }
            Err(error) if error.as_rpc().is_some() => {
                self.cancel.disarm();
                Err(self.failed(state, tool_error(self.cx, self.server, error)))
            }
            Err(error) => Err(tool_error(self.cx, self.server, error)),
        }
    }

    /// What a modern task has come to, which the look at it says.
    fn end(mut self, task: &RawJson) -> Result<RawJson, ToolError> {
        self.cancel.disarm();
        self.cx.dispatch().answered();
        if let Some(result) = task.get("result") {
            return Ok(result);
        }
        match task.get("error") {
            Some(error) => {
                let error = rpc_error(self.server, &RpcError::from_raw(&error));
                Err(self.failed(&State::read(task), error))
            }
            None => Err(self.error(ErrorKind::Protocol, "has a task that came to nothing")),
        }
    }

    /// The error that a call came to, in the words of its task if that has any.
    fn failed(&self, state: &State, error: ToolError) -> ToolError {
        match (state.status.as_str(), error.detail()) {
            ("failed", Some(detail)) if state.message.is_some() => {
                let what = state.with_message("says that the task failed");
                self.error(error.kind(), &what).with_detail(detail.clone())
            }
            _ => error,
        }
    }

    /// The error when the task cannot be looked at: an error that the server answers with is not the tool's.
    fn lost(&self, error: ClientError) -> ToolError {
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

/// Tells the server to cancel a task, unless it is known to be over.
struct Cancel<'a> {
    task: Option<(Connection, RawJson)>,
    open: Option<Open<'a>>,
}

impl<'a> Cancel<'a> {
    const LIMIT: Duration = Duration::from_secs(5);

    fn new(checkout: &'a Checkout, id: &RawJson) -> Self {
        let connection = &checkout.connection;
        let offered = task::are_cancelled(connection.server());
        Self {
            task: offered.then(|| (connection.clone(), id.clone())),
            open: checkout.open(),
        }
    }

    fn disarm(&mut self) {
        self.task = None;
        if let Some(open) = &mut self.open {
            open.is_over();
        }
    }
}

impl Drop for Cancel<'_> {
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
                task::declare(&mut options);
            }
            let cancelled = connection.request(method::TASKS_CANCEL, Some(task::params(&id)), options);
            if let Err(error) = cancelled.await {
                tracing::debug!(%error, "a task could not be cancelled");
            }
        });
    }
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
