//! Names of span attributes and span events, and their values.
//!
//! `gen_ai.*`, `mcp.*` and `error.type` are OpenTelemetry's, as of [`SEMANTIC_CONVENTIONS`]. They are defined here since
//! OpenTelemetry's crate of conventions marks them as deprecated. Names that begin with `toolplane.` are our own.

use tool_core::{
    CallContext, Degraded, DegradedStep, DispatchState, Outcome, Target, TaskRequest, ToolError,
};

/// Version of OpenTelemetry's conventions for MCP and GenAI that spans follow.
///
/// Consists of a repository and its revision, since no release contains the conventions yet (status: development). The file
/// is `docs/gen-ai/mcp.md`.
pub const SEMANTIC_CONVENTIONS: &str = "open-telemetry/semantic-conventions-genai@0393513";

/// Attribute of the instrumentation scope that names the conventions of its spans and metrics.
#[cfg(feature = "otel")]
pub(crate) const CONVENTIONS: &str = "toolplane.semantic_conventions";

pub(crate) const MCP_METHOD: &str = "mcp.method.name";
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const TOOL: &str = "gen_ai.tool.name";
pub(crate) const PROMPT: &str = "gen_ai.prompt.name";
pub(crate) const ERROR_TYPE: &str = "error.type";
/// Value of [`ERROR_TYPE`] for a result in which the tool reports an error.
pub(crate) const TOOL_ERROR: &str = "tool_error";
/// Value of [`ERROR_TYPE`] for a call that was cancelled.
pub(crate) const CANCELLED: &str = "cancelled";

pub(crate) const TOOLS_CALL: &str = "tools/call";
pub(crate) const PROMPTS_GET: &str = "prompts/get";

pub(crate) const PRINCIPAL: &str = "toolplane.principal";
pub(crate) const TENANT: &str = "toolplane.tenant";
pub(crate) const ATTEMPT: &str = "toolplane.attempt";
pub(crate) const ATTEMPTS: &str = "toolplane.attempts";
pub(crate) const EXECUTOR: &str = "toolplane.executor";
pub(crate) const DISPATCH: &str = "toolplane.dispatch";
pub(crate) const OUTCOME: &str = "toolplane.outcome";
/// Step of the fallback ladder that answered a failed call.
pub(crate) const DEGRADED: &str = "toolplane.degraded";
/// Level of the sandbox in which code ran: `bwrap`, `landlock` or `none`.
pub(crate) const SANDBOX: &str = "toolplane.sandbox";
/// Tool for which this tool was called as a fallback.
pub(crate) const INSTEAD_OF: &str = "toolplane.instead_of";
/// Set after a failure if a tool that must not run twice may have run.
pub(crate) const MAY_HAVE_RUN: &str = "toolplane.may_have_run";
pub(crate) const RESULT_BYTES: &str = "toolplane.result.bytes";
/// Number of events that were dropped from a span.
#[cfg(feature = "otel")]
pub(crate) const MORE_EVENTS: &str = "toolplane.more_events";

/// Names of span events and of their attributes.
pub(crate) mod events {
    pub(crate) const ARGUMENTS_CHANGED: &str = "toolplane.arguments_changed";
    pub(crate) const CACHE: &str = "toolplane.cache";
    pub(crate) const REFUSED: &str = "toolplane.refused";
    pub(crate) const REPLAYED: &str = "toolplane.replayed";
    pub(crate) const RATE_LIMITED: &str = "toolplane.rate_limited";
    pub(crate) const QUEUED: &str = "toolplane.queued";
    pub(crate) const SHED: &str = "toolplane.shed";
    pub(crate) const HELD_BACK: &str = "toolplane.held_back";
    pub(crate) const BREAKER: &str = "toolplane.breaker";
    pub(crate) const RETRY: &str = "toolplane.retry";
    pub(crate) const HEDGE: &str = "toolplane.hedge";
    pub(crate) const HEDGE_WON: &str = "toolplane.hedge_won";
    pub(crate) const DEGRADED: &str = "toolplane.degraded";
    pub(crate) const ACCESS: &str = "toolplane.access";

    pub(crate) const CHANGES: &str = "toolplane.changes";
    pub(crate) const CACHE_OUTCOME: &str = "toolplane.cache.outcome";
    pub(crate) const BREAKER_STATE: &str = "toolplane.breaker.state";
    pub(crate) const LAYER: &str = "toolplane.layer";
    pub(crate) const REASON: &str = "toolplane.reason";
    pub(crate) const SCOPE: &str = "toolplane.scope";
    pub(crate) const WAITED: &str = "toolplane.waited_ms";
    pub(crate) const PAUSE: &str = "toolplane.pause_ms";
    pub(crate) const AFTER: &str = "toolplane.after_ms";
    pub(crate) const VERDICT: &str = "toolplane.verdict";
    pub(crate) const RESOURCE_KIND: &str = "toolplane.resource.kind";
    pub(crate) const STEP: &str = "toolplane.step";
}

/// Returns the MCP method of a target. There are few methods, so it is safe as a label.
pub(crate) fn method(target: &Target) -> &'static str {
    match target {
        Target::Prompt(_) => PROMPTS_GET,
        Target::Resource { .. } => "resources/read",
        Target::Completion(_) => "completion/complete",
        Target::Task { request, .. } => match request {
            TaskRequest::Cancel => "tasks/cancel",
            _ => "tasks/get",
        },
        _ => TOOLS_CALL,
    }
}

/// Returns the name of the tool or prompt. Returns `None` for a resource, since its URI can be any text.
pub(crate) fn subject(cx: &CallContext) -> Option<&str> {
    match &cx.target {
        Target::Resource { .. } => None,
        target => Some(target.tool().name()),
    }
}

/// Returns the outcome in one word: `ok`, `tool_error`, `cancelled`, an error kind, or the event that the call waits for.
pub(crate) fn outcome(result: Option<&Result<Outcome, ToolError>>) -> &'static str {
    match result {
        None => CANCELLED,
        Some(Err(error)) => error.kind().as_str(),
        Some(Ok(Outcome::Reply(reply))) if reply.is_error => TOOL_ERROR,
        Some(Ok(Outcome::Reply(_))) => "ok",
        Some(Ok(Outcome::NeedsInput(_))) => "needs_input",
        Some(Ok(Outcome::Task(_))) => "task",
        Some(Ok(_)) => "pending",
    }
}

/// Returns the fallback step that answered a failed call, by the reply's `_meta`. Returns `None` for any other result.
pub(crate) fn degraded(result: Option<&Result<Outcome, ToolError>>) -> Option<&'static str> {
    let Some(Ok(Outcome::Reply(reply))) = result else {
        return None;
    };
    let (_, record) = reply.meta().iter().find(|(key, _)| *key == Degraded::META_KEY)?;
    let step = record.get("step")?.string()?;
    let steps = DegradedStep::ALL.iter().map(|step| step.as_str());
    steps.into_iter().find(|known| **known == *step)
}

/// Returns the outcome of an error, in the words of [`outcome`]. Returns `None` for a success.
pub(crate) fn error_type(result: Option<&Result<Outcome, ToolError>>) -> Option<&'static str> {
    match result {
        Some(Ok(Outcome::Reply(reply))) => reply.is_error.then_some(TOOL_ERROR),
        Some(Ok(_)) => None,
        other => Some(outcome(other)),
    }
}

/// Returns the dispatch state of an attempt.
pub(crate) fn dispatch(cx: &CallContext) -> &'static str {
    match cx.dispatch().state() {
        DispatchState::NotSent => "not_sent",
        DispatchState::Sent => "sent",
        DispatchState::Answered => "answered",
    }
}
