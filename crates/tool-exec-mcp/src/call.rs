use std::{borrow::Cow, mem, sync::Arc};

use mcp_client::{ClientError, RequestHook, RequestOptions, ServerInfo};
use mcp_wire::{Era, Params, meta_key, method};
use raw_json::{JsonKind, RawJson};
use tool_core::{
    Backend, CallContext, Claim, Descriptor, ErrorKind, Feature, InputRequest, Invoke, Outcome, Preview,
    Refresh, Reply, Target, TaskHandle, TaskMode, Tool, ToolError, TraceContext, UriCompletion,
};

use crate::{
    KeyPlace, McpServer,
    connections::Checkout,
    drive::{drive, is_made},
    fault::{call_error, no_resource},
    kept::keep,
    task,
};

/// A tool, prompt, resource or template of a server, ready to be called.
pub(crate) struct McpCall {
    pub(crate) server: Arc<McpServer>,
    /// The server's own name for it, or its URI, as a JSON string.
    pub(crate) own: RawJson,
    /// Whether it can be called as a task only.
    pub(crate) is_task: bool,
    /// Where the server takes the call's idempotency key.
    pub(crate) key_place: Option<KeyPlace>,
}

/// What an application says to those within its trace, in the form of the W3C header.
const BAGGAGE: &str = "baggage";

/// Members of `_meta` that speak of one hop: the caller's are not the server's business, ours are put in below. Baggage
/// may name users and is meant for the caller's own services.
const OF_ONE_HOP: [&str; 10] = [
    BAGGAGE,
    // Another client's key may be the same, and to the server we are one client: see `CallContext::upstream_idempotency_key`.
    Claim::META_KEY,
    meta_key::PROGRESS_TOKEN,
    meta_key::PROTOCOL_VERSION,
    meta_key::CLIENT_CAPABILITIES,
    meta_key::CLIENT_INFO,
    meta_key::SERVER_INFO,
    meta_key::LOG_LEVEL,
    meta_key::SUBSCRIPTION_ID,
    meta_key::RELATED_TASK,
];

/// The members of a request that are said by us.
const SAID: [&str; 10] = [
    "name",
    "arguments",
    "uri",
    "ref",
    "argument",
    "context",
    "task",
    "inputResponses",
    "requestState",
    "_meta",
];

impl McpCall {
    /// The method, and its parameters with the caller's own text in them.
    pub(crate) fn request(&self, cx: &CallContext, era: Era) -> Result<(&'static str, Params), ToolError> {
        let arguments = self.arguments(cx)?;
        let mut params = Params::from(beside(cx));
        let method = match &cx.target {
            Target::Tool(_) => {
                params.push("name", self.own.clone());
                params.push("arguments", arguments);
                method::TOOLS_CALL
            }
            Target::Prompt(_) => {
                params.push("name", self.own.clone());
                // A prompt may refuse an empty object where it takes nothing, and the other way round.
                if cx.arguments.are_given() {
                    params.push("arguments", arguments);
                }
                method::PROMPTS_GET
            }
            Target::Resource { resource, uri } => {
                self.check_uri(resource.descriptor(), uri)?;
                params.push("uri", RawJson::from(&**uri));
                method::RESOURCES_READ
            }
            Target::Completion(tool) => {
                let mut params = Params::from(self.completion(cx, tool));
                add_meta(&mut params, cx);
                return Ok((method::COMPLETION_COMPLETE, params));
            }
            _ => {
                let message = "servers of MCP have nothing that is called in this way";
                return Err(ToolError::new(ErrorKind::Internal, message));
            }
        };
        if let Some(resume) = cx.extras.resume.as_ref().filter(|_| era == Era::Modern) {
            params.push("inputResponses", resume.responses.clone());
            if let Some(state) = &resume.state {
                params.push("requestState", state.clone());
            }
        }
        add_meta(&mut params, cx);
        if let (Some(KeyPlace::Meta(name)), Some(key)) = (&self.key_place, cx.upstream_idempotency_key()) {
            params.add_to_meta(&[(name, RawJson::from(key.as_str()))]);
        }
        Ok((method, params))
    }

    /// The caller's arguments, and the idempotency key if the tool takes it as one.
    fn arguments(&self, cx: &CallContext) -> Result<RawJson, ToolError> {
        let raw = cx.arguments.raw();
        let (Some(KeyPlace::Argument(name)), Some(key)) = (&self.key_place, cx.upstream_idempotency_key())
        else {
            return Ok(raw.clone());
        };
        if raw.get(name).is_some() {
            let message = format!("leave out the argument `{name}`: it is made from the idempotency key");
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        Ok(raw
            .with_members(&[(name, RawJson::from(key.as_str()))])
            .expect("arguments are an object"))
    }

    /// What the configuration leaves out is not read by its URI either.
    fn check_uri(&self, listed: &Descriptor, uri: &str) -> Result<(), ToolError> {
        let is_template = listed.feature == Feature::ResourceTemplate;
        let is_listed = !is_template && listed.uri.as_deref() == Some(uri);
        match is_listed || self.server.settings().takes_unlisted(uri, is_template) {
            true => Ok(()),
            false => Err(no_resource(uri)),
        }
    }

    /// What the caller says of the argument, with a reference to what it belongs to.
    fn completion(&self, cx: &CallContext, tool: &Tool) -> RawJson {
        let (kind, key) = match tool.descriptor().feature {
            Feature::Prompt => ("ref/prompt", "name"),
            _ => ("ref/resource", "uri"),
        };
        let reference = RawJson::from_members(&[("type", RawJson::from(kind)), (key, self.own.clone())]);
        let rest: Vec<(Cow<'_, str>, RawJson)> = cx.arguments.raw().members().collect();
        let rest = rest.iter().filter(|(key, _)| key != "ref" && key != "_meta");
        let mut members = vec![("ref", reference)];
        members.extend(rest.map(|(key, value)| (&**key, value.clone())));
        let beside = beside(cx).unwrap_or(RawJson::object());
        beside
            .with_members(&members)
            .expect("what is passed on is an object")
    }

    /// The result without the values of a completion that lead to what the configuration leaves out.
    fn without_excluded(&self, cx: &CallContext, result: &RawJson) -> RawJson {
        let Target::Completion(template) = &cx.target else {
            return result.clone();
        };
        let settings = self.server.settings();
        match &template.descriptor().uri {
            Some(uri) => UriCompletion::new(uri, cx.arguments.raw())
                .retain(result, |uri| settings.takes_unlisted(uri, true)),
            None => result.clone(),
        }
    }

    /// What came of the call, as the result says.
    fn outcome(&self, cx: &CallContext, era: Era, result: &RawJson) -> Result<Outcome, ToolError> {
        let protocol = |what: &str| {
            let message = format!(
                "the server `{}` answered with {what}",
                self.server.settings().name
            );
            Err(ToolError::new(ErrorKind::Protocol, message))
        };
        if result.kind() != JsonKind::Object {
            return protocol("a result that is no object");
        }
        let (mut is_error, mut kind) = (false, None);
        let mut seen = [false; READ.len()];
        for (key, value) in result.parts() {
            if let Some(place) = READ.iter().position(|read| *read == key)
                && mem::replace(&mut seen[place], true)
            {
                return protocol(&format!("a result that says `{key}` twice"));
            }
            match &*key {
                "isError" => is_error = value.as_str() == "true",
                "resultType" if era == Era::Modern => kind = Some(value.text().unwrap_or_default()),
                _ => {}
            }
        }
        match kind.as_deref() {
            None | Some("complete") => {
                let is_error = is_error && matches!(cx.target, Target::Tool(_));
                Ok(Reply::result(self.without_excluded(cx, result), is_error).into())
            }
            Some("input_required") => match questions(result) {
                Ok(request) => Ok(Outcome::NeedsInput(Box::new(request))),
                Err(what) => protocol(what),
            },
            Some("task") => protocol("a task that cannot be followed"),
            Some(_) => protocol("a result of a type that is not known"),
        }
    }
}

/// What is read of a result here, by layers, and by clients: of two members of one name each could take another one.
const READ: [&str; 7] = [
    "content",
    "structuredContent",
    "isError",
    "_meta",
    "resultType",
    "inputRequests",
    "requestState",
];

/// How many things a server may ask for in one round: each of them may be put before a person.
const MOST_QUESTIONS: usize = 64;
/// What a client can be asked for.
const ASKED: [&str; 3] = [
    method::ELICITATION_CREATE,
    method::SAMPLING_CREATE_MESSAGE,
    method::ROOTS_LIST,
];

/// What a result asks for, or what is wrong with that.
pub(crate) fn questions(result: &RawJson) -> Result<InputRequest, &'static str> {
    let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
    if requests.is_none() && state.is_none() {
        return Err("a question that asks for nothing");
    }
    let requests = requests.unwrap_or(RawJson::object());
    if requests.kind() != JsonKind::Object {
        return Err("questions that are no object");
    }
    for (number, (_, question)) in requests.members().enumerate() {
        if number == MOST_QUESTIONS {
            return Err("more questions than anybody is asked at once");
        }
        let method = question.get("method").and_then(|method| method.string());
        if !method.is_some_and(|method| ASKED.contains(&&*method)) {
            return Err("a question that no client can be asked");
        }
    }
    Ok(InputRequest { requests, state })
}

/// A call that is ready to be made.
struct Ready {
    method: &'static str,
    params: Params,
    options: RequestOptions,
    /// Whether a task is all that the call can be made as.
    is_task: bool,
    /// Whether the server may insist on a task. It has not run the tool then: what counts is the answer of the task,
    /// and this is to be told of any other.
    may_insist: bool,
    answered: Option<RequestHook>,
}

impl McpCall {
    fn ready(&self, cx: &CallContext, server: &ServerInfo) -> Result<Ready, ToolError> {
        let era = server.era();
        let (method, mut params) = self.request(cx, era)?;
        let mut options = options(cx);
        let may_be_task =
            matches!(cx.target, Target::Tool(_)) && (cx.extras.task.is_some() || era == Era::Modern);
        let runs_tasks = may_be_task && task::are_run(server);
        let mut is_task = false;
        match (&cx.extras.task, era) {
            (Some(TaskMode::Requested(wanted)), Era::Legacy) if runs_tasks => {
                params.push("task", wanted.clone());
            }
            (Some(TaskMode::Allowed), Era::Modern) if runs_tasks => task::declare(&mut options),
            (_, Era::Legacy) => is_task = self.is_task,
            _ => {}
        }
        let may_insist = era == Era::Modern && runs_tasks;
        Ok(Ready {
            method,
            params,
            answered: options.on_answered.take_if(|_| may_insist),
            options,
            is_task,
            may_insist,
        })
    }
}

impl Invoke for McpCall {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let connections = self.server.connections();
        let generation = connections.generation();
        let result = self.make(cx).await;
        let is_refused = |error: &ToolError| error.kind() == ErrorKind::Auth;
        if result.as_ref().is_err_and(is_refused) {
            connections.refused(generation);
        }
        result
    }
}

impl Backend for McpCall {
    async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        self.server.connections().refresh_credentials(refresh).await
    }

    fn protocol(&self) -> Option<&'static str> {
        Some("mcp")
    }

    /// The server itself: it goes on with the values that it was reached with first.
    fn backend_id(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.server).addr())
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        self.previewed(cx).map(Some)
    }
}

impl McpCall {
    async fn make(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let mut has_moved = false;
        loop {
            let connection = self.server.connection_for(cx).await?;
            let server = &self.server.settings().name;
            // Taken apart, so that the future has no room for what the request takes with it.
            let Ready {
                method,
                params,
                options,
                is_task,
                may_insist,
                answered,
            } = self.ready(cx, connection.connection.server())?;
            let era = connection.connection.server().era();
            if is_task {
                // Rare, and the future of every call would have room for it.
                let result = Box::pin(drive(cx, server, &connection, params)).await?;
                return self.outcome(cx, era, &result);
            }
            let again = may_insist.then(|| params.clone());
            let result = connection.request(method, params, options).await;
            if let Err(error) = &result
                && let Some(params) = again
                && task::is_insisted_on(error)
            {
                let result = Box::pin(drive(cx, server, &connection, params)).await?;
                return self.outcome(cx, era, &result);
            }
            if let Err(error) = &result
                && !has_moved
                && error.may_indicate_other_era()
                && Box::pin(connection.detect_era_change()).await
            {
                // What was refused has not run.
                has_moved = true;
                continue;
            }
            if let Some(answered) = answered.filter(|_| was_answered(&result)) {
                answered();
            }
            let result = result.map_err(|error| call_error(cx, server, error))?;
            return match self.made(cx, &connection, &result) {
                Some(handle) => Ok(Outcome::Task(Box::new(handle))),
                None => self.outcome(cx, era, &result),
            };
        }
    }
}

/// Whether a request came to an answer, whatever it says.
fn was_answered(result: &Result<RawJson, ClientError>) -> bool {
    result.as_ref().err().is_none_or(|error| error.as_rpc().is_some())
}

impl McpCall {
    /// The task that a call has become for a caller that follows it.
    fn made(&self, cx: &CallContext, connection: &Checkout, result: &RawJson) -> Option<TaskHandle> {
        let task = match (&cx.extras.task, connection.connection.server().era()) {
            (Some(TaskMode::Requested(_)), Era::Legacy) => result.get("task")?,
            (Some(TaskMode::Allowed), Era::Modern) if is_made(result) => result.clone(),
            _ => return None,
        };
        keep(&self.server.settings().name, connection, &task, result.clone())
    }
}

/// How the call is made. The attempt's own limit is kept by the layers above; the client's is a net below it.
pub(crate) fn options(cx: &CallContext) -> RequestOptions {
    let limit = cx.remaining().unwrap_or(cx.tool().settings().call_timeout);
    let mut options = RequestOptions::with_timeout(limit);
    let sent = cx.dispatch().clone();
    options.on_sent = Some(Arc::new(move || sent.sent()));
    let answered = cx.dispatch().clone();
    options.on_answered = Some(Arc::new(move || answered.answered()));
    if let Some(progress) = cx.origin.progress.clone() {
        options.on_progress = Some(Arc::new(move |report| progress.report(report)));
    }
    if let Some(ask) = &cx.origin.ask {
        options.capabilities = Some(ask.client().capabilities());
        options.log_level = ask.client().log_level();
    }
    options
}

/// What the caller says beside all that is known of a call, without what is said by us.
fn beside(cx: &CallContext) -> Option<RawJson> {
    let beside = cx.extras.extra_params.as_ref()?;
    let beside = beside.without_members(&SAID).ok()?;
    beside.members().next().is_some().then_some(beside)
}

/// Adds what goes with the call beside its arguments: what the caller sent, and its trace, which is read before it goes on.
fn add_meta(params: &mut Params, cx: &CallContext) {
    let sent = cx
        .extras
        .meta
        .as_ref()
        .filter(|meta| meta.kind() == JsonKind::Object);
    let of_caller = || {
        let text = |key| sent?.get(key)?.string();
        let state = text(meta_key::TRACE_STATE);
        TraceContext::parse(&text(meta_key::TRACE_PARENT)?, state.as_deref())
    };
    let context = cx.trace.clone().or_else(of_caller);
    let state = context.as_ref().and_then(|context| context.tracestate.as_deref());
    // What is said anew below takes the place of the caller's.
    let unread = [
        context.is_none().then_some(meta_key::TRACE_PARENT),
        state.is_none().then_some(meta_key::TRACE_STATE),
    ];
    let left_out: Vec<&str> = OF_ONE_HOP
        .into_iter()
        .chain(unread.into_iter().flatten())
        .collect();
    let sent = sent.map(|meta| meta.without_members(&left_out).expect("an object"));
    let sent = sent.filter(|meta| meta.members().next().is_some());
    let is_alone = sent.is_none();
    if let Some(sent) = sent {
        params.push("_meta", sent);
    }
    let Some(context) = &context else { return };
    // In the place of the caller's: the server's spans belong to the attempt.
    let parent = RawJson::from(context.to_string().as_str());
    let state = state.map(|state| (meta_key::TRACE_STATE, RawJson::from(state)));
    let said = [(meta_key::TRACE_PARENT, parent)].into_iter().chain(state);
    if is_alone {
        said.for_each(|(key, value)| params.push_to_meta(key, value));
    } else {
        params.add_to_meta(&said.collect::<Vec<_>>());
    }
}
