//! Tasks of clients that follow them: the experiment of 2025-11-25, and the extension of the modern era.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use mcp_server::{Answer, RequestContext, unknown_method};
use mcp_wire::{Era, Request, Revision, RpcError, code, extension, meta, meta_key, method, with_meta};
use raw_json::{JsonKind, RawJson};
use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest,
    core::{
        Ask, AskError, Body, BoxFuture, ClientKey, ErrorKind, Outcome, Question, Reply, TaskHandle, TaskMode,
        TaskRequest, ToolError,
    },
};

use crate::{
    Gateway,
    client::{self, Direct},
    fault::{self, Failure},
    legacy::question,
    render::{self},
    tasks::{Known, LONGEST, Owner, Tasks},
};

/// How long to wait until a task is looked at again, if its server does not say.
const USUAL_PAUSE: Duration = Duration::from_millis(500);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How many tasks a page of the list holds.
const PAGE: usize = 32;
/// How long a server may take to say how a task is that is listed.
const LIST_LIMIT: Duration = Duration::from_secs(5);
/// What a cursor of the list begins with.
const CURSOR: &str = "after.";

/// Whether a legacy client wants its call run as a task.
pub(crate) fn is_wanted(request: &Request, cx: &RequestContext) -> bool {
    request.method == method::TOOLS_CALL
        && cx.revision() == Revision::V2025_11_25
        && cx.task().is_some_and(|task| task.kind() == JsonKind::Object)
}

/// Checks that a call can be run as the task that its client wants.
pub(crate) async fn wanted(gateway: &Gateway, cx: &RequestContext) -> Result<Option<TaskMode>, Failure> {
    let name = cx.name().and_then(RawJson::string).unwrap_or_default();
    let caller = gateway.caller(cx.principal());
    // A tool that is not there is the call's to tell.
    if let Ok(tool) = gateway.plane().tool(&name, &caller).await {
        let support = tool.definition().get("execution");
        let support = support.and_then(|execution| execution.get("taskSupport")?.string());
        if !matches!(support.as_deref(), Some("optional" | "required")) {
            let message = format!("the tool `{name}` cannot be called as a task");
            return Err(RpcError::new(code::METHOD_NOT_FOUND, message).into());
        }
    }
    if !gateway.tasks().have_room(&Owner::of(cx)) {
        return Err(no_room().into());
    }
    Ok(cx.task().cloned().map(TaskMode::Requested))
}

/// Whether a modern client lets its call become a task, and there is room for one.
pub(crate) fn welcome(gateway: &Gateway, request: &Request, cx: &RequestContext) -> Option<TaskMode> {
    let is_welcome = request.method == method::TOOLS_CALL
        && cx.era() == Era::Modern
        && cx.declares_extension(extension::TASKS)
        && gateway.tasks().have_room(&Owner::of(cx));
    is_welcome.then_some(TaskMode::Allowed)
}

/// The answer to a call that has become a task.
pub(crate) fn made(gateway: &Gateway, cx: &RequestContext, handle: TaskHandle) -> Result<Answer, RpcError> {
    let tool: Arc<str> = cx.name().and_then(RawJson::string).unwrap_or_default().into();
    let TaskHandle { task, state, .. } = handle;
    let described = match cx.era() {
        Era::Legacy => state.get("task").unwrap_or_default(),
        Era::Modern => state.clone(),
    };
    let lifetime = lifetime(&described);
    let kept = gateway
        .tasks()
        .keep(Owner::of(cx), Arc::clone(&tool), task.clone(), lifetime);
    let Some(id) = kept else {
        let plane = gateway.plane().clone();
        let cancel = CallRequest::task(tool, task, TaskRequest::Cancel)
            .caller(gateway.caller(cx.principal()))
            .client(client::key(cx))
            .client_capabilities(client::capabilities(cx));
        tokio::spawn(async move {
            if let Err(error) = plane.call(cancel).await {
                tracing::debug!(%error, "a task that there is no room for could not be cancelled");
            }
        });
        return Err(no_room());
    };
    let shown = outward(&described, &id);
    gateway.tasks().note(&id, &shown, lifetime);
    Ok(Answer::verbatim(match cx.era() {
        Era::Legacy => state.with_members(&[("task", shown)]).expect("it has a task"),
        Era::Modern => shown,
    }))
}

/// Answers a request about tasks.
pub(crate) async fn answer(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
) -> Result<Answer, RpcError> {
    let asked = match (cx.era(), &*request.method) {
        (Era::Modern, method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL) => {
            cx.check_extension(extension::TASKS)?;
            About::of(gateway, cx)?
        }
        (Era::Legacy, _) if cx.revision() != Revision::V2025_11_25 => {
            return Err(unknown_method(&request.method));
        }
        // Where clients cannot be told apart there is no list, as the specification wants it: whoever made a task knows
        // its id, and nobody else can guess it.
        (Era::Legacy, method::TASKS_LIST) if cx.connection().is_some() => {
            return list(gateway, request, cx).await;
        }
        (Era::Legacy, method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL) => {
            About::of(gateway, cx)?
        }
        _ => return Err(unknown_method(&request.method)),
    };
    match &*request.method {
        method::TASKS_GET => asked.state(TaskRequest::Get).await,
        method::TASKS_CANCEL => asked.state(TaskRequest::Cancel).await,
        method::TASKS_RESULT => asked.result().await,
        _ => {
            let given = cx
                .input_responses()
                .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`inputResponses` must be an object"))?;
            asked.state(TaskRequest::Update(given.clone())).await
        }
    }
}

/// A task that its client asks something about.
struct About<'a> {
    gateway: &'a Gateway,
    cx: &'a RequestContext,
    id: String,
    known: Known,
}

impl<'a> About<'a> {
    fn of(gateway: &'a Gateway, cx: &'a RequestContext) -> Result<Self, RpcError> {
        let id = cx.task_id().and_then(RawJson::string);
        let id = id.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`taskId` must be a string"))?;
        let known = gateway.tasks().get(&id, &Owner::of(cx)).ok_or_else(unknown)?;
        Ok(Self {
            gateway,
            cx,
            id,
            known,
        })
    }

    async fn call(&self, request: TaskRequest) -> Result<Outcome, ToolError> {
        let known = &self.known;
        let mut call = CallRequest::task(Arc::clone(&known.tool), known.task.clone(), request)
            .caller(self.gateway.caller(self.cx.principal()))
            .client(client::key(self.cx))
            .client_capabilities(client::capabilities(self.cx));
        if self.cx.era() == Era::Legacy
            && let Some(ask) = Direct::of(self.cx)
        {
            let id = self.id.clone();
            call = call.ask(Arc::new(Related { ask, id }));
        }
        self.gateway.plane().call(call).await
    }

    async fn handle(&self, request: TaskRequest) -> Result<TaskHandle, ToolError> {
        match self.call(request).await? {
            Outcome::Task(handle) => Ok(*handle),
            _ => Err(nothing_said()),
        }
    }

    /// How the task is, after what is asked of it.
    async fn state(&self, request: TaskRequest) -> Result<Answer, RpcError> {
        let handle = self.handle(request).await;
        let handle = handle.map_err(|error| fault::rpc_error(&error, self.cx.era(), None))?;
        let asked = handle.state.get("inputRequests").unwrap_or(RawJson::object());
        for (_, asked) in asked.members() {
            let question = question(&asked);
            let (method, params) = question.map_err(|error| fault::rpc_error(&error, self.cx.era(), None))?;
            self.cx.check_askable(&method, params.as_ref())?;
        }
        let shown = self.shown(&handle.state);
        Ok(match self.cx.era() {
            Era::Legacy => Answer::untyped(shown),
            Era::Modern => Answer::from(shown),
        })
    }

    fn shown(&self, state: &RawJson) -> RawJson {
        shown(self.gateway.tasks(), &self.id, state)
    }

    /// Waits until the task is over, and gives its result. What it asks meanwhile reaches the client.
    async fn result(&self) -> Result<Answer, RpcError> {
        loop {
            let look = self.handle(TaskRequest::Get).await;
            let state = look
                .map_err(|error| fault::rpc_error(&error, self.cx.era(), None))?
                .state;
            self.shown(&state);
            let status = state.get("status").and_then(|status| status.string());
            let is_open = match status.as_deref() {
                Some("working") => {
                    sleep(pause(&state)).await;
                    None
                }
                // It asks while somebody waits for its result.
                Some("input_required") => Some(true),
                _ => Some(false),
            };
            // Its time may be over meanwhile.
            self.gateway
                .tasks()
                .get(&self.id, &Owner::of(self.cx))
                .ok_or_else(unknown)?;
            let Some(is_open) = is_open else { continue };
            return match self.call(TaskRequest::Result).await {
                Ok(Outcome::Reply(reply)) => Ok(self.related(&reply)),
                Ok(_) => Err(fault::rpc_error(&nothing_said(), self.cx.era(), None)),
                // It works on, for longer than a single request may take.
                Err(error) if is_open && error.kind() == ErrorKind::Timeout => continue,
                // What the call itself would have been answered with.
                Err(error) => Ok(self.related(&render::failure(&error))),
            };
        }
    }

    /// A result that says which task it is of.
    fn related(&self, reply: &Reply) -> Answer {
        let (Body::Result(result) | Body::Value(result)) = &reply.body;
        let mut notes = vec![(meta_key::RELATED_TASK, related_to(&self.id))];
        notes.extend(reply.meta().iter().cloned());
        Answer::untyped(with_meta(Some(result), &notes))
    }
}

/// Lists the client's tasks as their servers say they are, or as they were when a server does not answer.
async fn list(gateway: &Gateway, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
    let params = request.params.as_ref();
    let cursor = params.and_then(|params| params.get("cursor"));
    let after = match cursor.filter(|cursor| cursor.kind() != JsonKind::Null) {
        Some(cursor) => cursor
            .string()
            .and_then(|cursor| cursor.strip_prefix(CURSOR)?.parse().ok())
            .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"))?,
        None => 0,
    };
    let mut own = gateway.tasks().of(&Owner::of(cx), after);
    let has_more = own.len() > PAGE;
    own.truncate(PAGE);
    let last = own.last().map(|(_, known)| known.number);
    let looks = own.into_iter().map(|(id, known)| async move {
        let told = known.told.clone();
        let about = About {
            gateway,
            cx,
            id,
            known,
        };
        match timeout(LIST_LIMIT, about.handle(TaskRequest::Get)).await {
            Ok(Ok(handle)) => Some(about.shown(&handle.state)),
            _ => told,
        }
    });
    let tasks: Vec<RawJson> = join_all(looks).await.into_iter().flatten().collect();
    let tasks = RawJson::from_serialize(&tasks).expect("a list of JSON is JSON");
    let mut members = vec![("tasks", tasks)];
    if let Some(last) = last.filter(|_| has_more) {
        members.push(("nextCursor", RawJson::from(&*format!("{CURSOR}{last}"))));
    }
    Ok(Answer::untyped(RawJson::from_members(&members)))
}

/// The same for a task of somebody else as for one that never was.
fn unknown() -> RpcError {
    RpcError::new(code::INVALID_PARAMS, "there is no such task, or its time is over")
}

fn no_room() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "too many tasks are kept already")
}

fn nothing_said() -> ToolError {
    ToolError::new(ErrorKind::Protocol, "the server does not say how the task is")
}

/// What a server says of a task as its client is told, who may come back for it; an answer that does not describe it
/// stays as it is.
pub(crate) fn shown(tasks: &Tasks, id: &str, state: &RawJson) -> RawJson {
    if state.get("taskId").is_none() {
        return state.clone();
    }
    let shown = outward(state, id);
    tasks.note(id, &shown, lifetime(state));
    shown
}

/// What is told of a task: under our id, and with a time for which it is kept here.
pub(crate) fn outward(task: &RawJson, id: &str) -> RawJson {
    let mut changed = vec![("taskId", RawJson::from(id))];
    for key in ["ttl", "ttlMs"] {
        if task.get(key).is_some() && lifetime(task).is_none_or(|lifetime| lifetime > LONGEST) {
            let longest = u64::try_from(LONGEST.as_millis()).unwrap_or(u64::MAX);
            changed.push((key, RawJson::from(longest)));
        }
    }
    task.with_members(&changed).expect("what has an id is an object")
}

/// How long a server keeps a task, counted from its beginning.
fn lifetime(task: &RawJson) -> Option<Duration> {
    milliseconds(task, ["ttlMs", "ttl"])
}

/// How long to leave a task alone until it is looked at again.
pub(crate) fn pause(task: &RawJson) -> Duration {
    let pause = milliseconds(task, ["pollIntervalMs", "pollInterval"]);
    pause.unwrap_or(USUAL_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn milliseconds(task: &RawJson, keys: [&str; 2]) -> Option<Duration> {
    let given = keys.iter().find_map(|key| task.get(key))?;
    Duration::try_from_secs_f64(given.to::<f64>().ok()? / 1000.0).ok()
}

fn related_to(id: &str) -> RawJson {
    RawJson::from_members(&[("taskId", RawJson::from(id))])
}

/// The way back to a client that waits for the result of a task: questions say which task they are about.
struct Related {
    ask: Arc<dyn Ask>,
    id: String,
}

impl Ask for Related {
    fn client(&self) -> ClientKey {
        self.ask.client()
    }

    fn capabilities(&self) -> RawJson {
        self.ask.capabilities()
    }

    fn ask(&self, mut question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        let is_marked =
            |params: &&RawJson| meta(params).is_some_and(|meta| meta.get(meta_key::RELATED_TASK).is_some());
        if let Some(params) = question.params.as_ref().filter(is_marked) {
            let mark = [(meta_key::RELATED_TASK, related_to(&self.id))];
            question.params = Some(with_meta(Some(params), &mark));
        }
        self.ask.ask(question)
    }

    fn log_level(&self) -> Option<Arc<str>> {
        self.ask.log_level()
    }

    fn log(&self, message: &RawJson) {
        self.ask.log(message);
    }
}
