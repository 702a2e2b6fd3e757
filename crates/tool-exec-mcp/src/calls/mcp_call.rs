use std::{borrow::Cow, sync::Arc};

use mcp_client::{ClientError, RequestHook, RequestOptions, ServerInfo};
use mcp_wire::{Era, Params, meta_key, method, param_key};
use raw_json::{JsonKind, RawJson};
use tool_core::{
    Backend, CallContext, Claim, Descriptor, ErrorKind, Feature, Invoke, Outcome, Preview, Refresh, Target,
    TaskHandle, TaskMode, Tool, ToolError, TraceContext,
};

use crate::{
    KeyPlace, McpServer,
    calls::request_options,
    connection::Checkout,
    errors::{call_error, no_resource},
    tasks::{self, is_task_result, run_task},
};

/// A tool, prompt, resource or template of a server, ready to be called.
pub(crate) struct McpCall {
    pub(crate) server: Arc<McpServer>,
    /// Its name or URI at the server, as a JSON string.
    pub(crate) upstream_name: RawJson,
    /// `true` if it can be called as a task only.
    pub(crate) is_task: bool,
    /// Place of the call's idempotency key in the request.
    pub(crate) key_place: Option<KeyPlace>,
}

impl McpCall {
    /// Returns the method and the params, which contain the caller's own text.
    pub(crate) fn request(&self, cx: &CallContext, era: Era) -> Result<(&'static str, Params), ToolError> {
        let arguments = self.arguments(cx)?;
        let mut params = Params::from(extra_params(cx));
        let method = match &cx.target {
            Target::Tool(_) => {
                params.push("name", self.upstream_name.clone());
                params.push("arguments", arguments);
                method::TOOLS_CALL
            }
            Target::Prompt(_) => {
                params.push("name", self.upstream_name.clone());
                // A server may refuse an empty object for a prompt without arguments, or a missing one.
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
                let message = "MCP servers do not support this kind of call";
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

    /// Returns the caller's arguments, with the idempotency key if the tool takes it as an argument.
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

    /// Checks that the configuration does not exclude a resource that is read by its URI.
    fn check_uri(&self, listed: &Descriptor, uri: &str) -> Result<(), ToolError> {
        let is_template = listed.feature == Feature::ResourceTemplate;
        let is_listed = !is_template && listed.uri.as_deref() == Some(uri);
        match is_listed || self.server.settings().offers_unlisted_uri(uri, is_template) {
            true => Ok(()),
            false => Err(no_resource(uri)),
        }
    }

    /// Returns the params of a completion: the caller's argument, with a reference to the prompt or template.
    fn completion(&self, cx: &CallContext, tool: &Tool) -> RawJson {
        let (kind, key) = match tool.descriptor().feature {
            Feature::Prompt => ("ref/prompt", "name"),
            _ => ("ref/resource", "uri"),
        };
        let reference =
            RawJson::from_members(&[("type", RawJson::from(kind)), (key, self.upstream_name.clone())]);
        let rest: Vec<(Cow<'_, str>, RawJson)> = cx.arguments.raw().members().collect();
        let rest = rest.iter().filter(|(key, _)| key != "ref" && key != "_meta");
        let mut members = vec![("ref", reference)];
        members.extend(rest.map(|(key, value)| (&**key, value.clone())));
        let extra = extra_params(cx).unwrap_or(RawJson::object());
        extra
            .with_members(&members)
            .expect("what is passed on is an object")
    }
}

/// Call that is ready to be sent.
struct PreparedRequest {
    method: &'static str,
    params: Params,
    options: RequestOptions,
    /// `true` if the call can be made as a task only.
    is_task: bool,
    /// `true` if the server may require a task. It has not run the tool then: the answer of the task counts, and
    /// `answered` is to be called for any other answer.
    may_insist: bool,
    answered: Option<RequestHook>,
}

impl McpCall {
    fn prepare(&self, cx: &CallContext, server: &ServerInfo) -> Result<PreparedRequest, ToolError> {
        let era = server.era();
        let (method, mut params) = self.request(cx, era)?;
        let mut options = request_options(cx);
        let may_be_task =
            matches!(cx.target, Target::Tool(_)) && (cx.extras.task.is_some() || era == Era::Modern);
        let runs_tasks = may_be_task && tasks::runs_tasks(server);
        let mut is_task = false;
        match (&cx.extras.task, era) {
            (Some(TaskMode::Requested(params_of_task)), Era::Legacy) if runs_tasks => {
                params.push("task", params_of_task.clone());
            }
            (Some(TaskMode::Allowed), Era::Modern) if runs_tasks => tasks::declare_extension(&mut options),
            (_, Era::Legacy) => is_task = self.is_task,
            _ => {}
        }
        let may_insist = era == Era::Modern && runs_tasks;
        Ok(PreparedRequest {
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
        let generation = connections.credential_generation();
        let result = self.send(cx).await;
        let is_refused = |error: &ToolError| error.kind() == ErrorKind::Auth;
        if result.as_ref().is_err_and(is_refused) {
            connections.report_refused_credentials(generation);
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

    /// Identifies the server: its connections use the secrets that were resolved when it was first reached.
    fn backend_id(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.server).addr())
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        self.previewed(cx).map(Some)
    }
}

impl McpCall {
    async fn send(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let mut has_moved = false;
        loop {
            let connection = self.server.checkout(cx).await?;
            let server = &self.server.settings().name;
            // Taken apart, so that the future does not hold what the request takes with it.
            let PreparedRequest {
                method,
                params,
                options,
                is_task,
                may_insist,
                answered,
            } = self.prepare(cx, connection.connection.server())?;
            let era = connection.connection.server().era();
            if is_task {
                // Rare, and the future of every call would have to hold it.
                let result = Box::pin(run_task(cx, server, &connection, params)).await?;
                return self.outcome(cx, era, &result);
            }
            let again = may_insist.then(|| params.clone());
            let result = connection.request(method, params, options).await;
            if let Err(error) = &result
                && let Some(params) = again
                && tasks::requires_tasks_extension(error)
            {
                let result = Box::pin(run_task(cx, server, &connection, params)).await?;
                return self.outcome(cx, era, &result);
            }
            if let Err(error) = &result
                && !has_moved
                && error.may_indicate_other_era()
                && Box::pin(connection.detect_era_change()).await
            {
                // The refused call has not run.
                has_moved = true;
                continue;
            }
            if let Some(answered) = answered.filter(|_| was_answered(&result)) {
                answered();
            }
            let result = result.map_err(|error| call_error(cx, server, error))?;
            return match self.task_handle(cx, &connection, &result) {
                Some(handle) => Ok(Outcome::Task(Box::new(handle))),
                None => self.outcome(cx, era, &result),
            };
        }
    }
}

/// Returns `true` if a request was answered, with a result or an error.
fn was_answered(result: &Result<RawJson, ClientError>) -> bool {
    result.as_ref().err().is_none_or(|error| error.as_rpc().is_some())
}

impl McpCall {
    /// Returns the handle of the task that a call has become, for a caller that follows it.
    fn task_handle(&self, cx: &CallContext, connection: &Checkout, result: &RawJson) -> Option<TaskHandle> {
        let task = match (&cx.extras.task, connection.connection.server().era()) {
            (Some(TaskMode::Requested(_)), Era::Legacy) => result.get("task")?,
            (Some(TaskMode::Allowed), Era::Modern) if is_task_result(result) => result.clone(),
            _ => return None,
        };
        tasks::task_handle(&self.server, connection, &task, result.clone())
    }
}

/// Returns the unknown members of the caller's request, without those that are set here.
fn extra_params(cx: &CallContext) -> Option<RawJson> {
    let extra = cx.extras.extra_params.as_ref()?;
    let extra = extra.without_members(param_key::OF_CALLS).ok()?;
    extra.members().next().is_some().then_some(extra)
}

/// Adds `_meta`: the caller's members, and the trace context, which is parsed before it is forwarded.
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
    // Members that are set below replace the caller's. A trace context that cannot be parsed is dropped.
    let unread = [
        context.is_none().then_some(meta_key::TRACE_PARENT),
        state.is_none().then_some(meta_key::TRACE_STATE),
    ];
    // Keys of different clients may be equal, and to the server all of them are one client: see
    // `CallContext::upstream_idempotency_key`.
    let left_out: Vec<&str> = meta_key::PER_HOP
        .iter()
        .copied()
        .chain([Claim::META_KEY])
        .chain(unread.into_iter().flatten())
        .collect();
    let sent = sent.map(|meta| meta.without_members(&left_out).expect("an object"));
    let sent = sent.filter(|meta| meta.members().next().is_some());
    let is_alone = sent.is_none();
    if let Some(sent) = sent {
        params.push("_meta", sent);
    }
    let Some(context) = &context else { return };
    // Replaces the caller's: the server's spans belong to the attempt.
    let parent = RawJson::from(context.to_string().as_str());
    let state = state.map(|state| (meta_key::TRACE_STATE, RawJson::from(state)));
    let said = [(meta_key::TRACE_PARENT, parent)].into_iter().chain(state);
    if is_alone {
        said.for_each(|(key, value)| params.push_to_meta(key, value));
    } else {
        params.add_to_meta(&said.collect::<Vec<_>>());
    }
}
