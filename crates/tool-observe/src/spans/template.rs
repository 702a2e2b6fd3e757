//! Attributes of spans, named by the semantic conventions.

use std::sync::Arc;

use tool_core::{CallContext, Caller, Descriptor, FallbackOf, Outcome, Target, ToolError};

use crate::{EndedSpan, SpanKind, conventions, logs::call_log};

/// Value of a span attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttributeValue<'a> {
    /// Borrowed text.
    Text(&'a str),
    /// Text from the source code, kept without a copy.
    Static(&'static str),
    /// Reference-counted text, kept without a copy.
    Shared(&'a Arc<str>),
    /// Integer.
    Number(i64),
}

impl<'a> AttributeValue<'a> {
    /// Returns the text, or `None` for a number.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::Text(text) | Self::Static(text) => Some(text),
            Self::Shared(text) => Some(text),
            Self::Number(_) => None,
        }
    }
}

/// Maximum length of the description of an error, in characters.
const MAX_REASON: usize = 256;

/// Attributes shared by all spans of one tool with the same outcome.
#[derive(Debug, Clone)]
pub(crate) struct SpanTemplate {
    pub(crate) kind: SpanKind,
    tool: Arc<Descriptor>,
    method: &'static str,
    names_subject: bool,
    /// Protocol of the backend that runs the tool or the task; `None` if it runs in this process.
    pub(crate) protocol: Option<&'static str>,
    /// `true` if the call came over a connection.
    #[cfg(feature = "otel")]
    pub(crate) has_client: bool,
    dispatch: &'static str,
    outcome: &'static str,
    error_type: Option<&'static str>,
}

/// Per-span attributes.
#[derive(Debug, Clone)]
pub(crate) struct SpanFields {
    caller: Arc<Caller>,
    attempt: u32,
    n_bytes: Option<i64>,
    sandbox: Option<Box<str>>,
    degraded: Option<&'static str>,
    fallback_of: Option<FallbackOf>,
    may_have_run: bool,
    /// Description of an error.
    reason: Option<Box<str>>,
}

impl SpanTemplate {
    pub(crate) fn new(cx: &CallContext, kind: SpanKind, result: Option<&Result<Outcome, ToolError>>) -> Self {
        Self {
            kind,
            tool: cx.tool().descriptor().clone(),
            method: conventions::method(&cx.target),
            names_subject: conventions::subject(cx).is_some(),
            protocol: match &cx.target {
                Target::Task { task, .. } => task.runner.dyn_protocol(),
                target => target.tool().executor().dyn_protocol(),
            },
            #[cfg(feature = "otel")]
            has_client: cx.origin.client.is_some(),
            dispatch: conventions::dispatch(cx),
            outcome: conventions::outcome(result),
            error_type: conventions::error_type(result),
        }
    }

    /// Returns the parts of the span's name: the operation, and the tool or prompt.
    pub(crate) fn name(&self) -> [&str; 3] {
        let operation = match self.kind {
            SpanKind::Attempt if self.method == conventions::TOOLS_CALL => conventions::EXECUTE_TOOL,
            _ => self.method,
        };
        match self.subject() {
            Some(subject) => [operation, " ", subject],
            None => [operation, "", ""],
        }
    }

    pub(crate) fn for_each_attribute<'a>(&'a self, set: &mut impl FnMut(&'static str, AttributeValue<'a>)) {
        use AttributeValue::{Shared, Static, Text};
        if self.is_mcp() {
            set(conventions::MCP_METHOD, Static(self.method));
        }
        match (self.method, self.subject()) {
            (conventions::TOOLS_CALL, Some(name)) => {
                set(conventions::OPERATION, Static(conventions::EXECUTE_TOOL));
                set(conventions::TOOL, Shared(name));
            }
            (conventions::PROMPTS_GET, Some(name)) => set(conventions::PROMPT, Shared(name)),
            (_, Some(name)) => set(conventions::TOOL, Shared(name)),
            (_, None) => {}
        }
        if let Some(kind) = self.error_type {
            set(conventions::ERROR_TYPE, Static(kind));
        }
        match self.kind {
            SpanKind::Call => set(conventions::OUTCOME, Static(self.outcome)),
            SpanKind::Attempt => {
                set(conventions::EXECUTOR, Text(&self.tool.executor.kind));
                set(conventions::DISPATCH, Static(self.dispatch));
            }
        }
    }

    fn subject(&self) -> Option<&Arc<str>> {
        self.names_subject.then_some(&self.tool.name)
    }

    /// Returns `true` if the span is about MCP. A call is, since MCP's terms describe every call. An attempt is if the
    /// backend speaks MCP. Prompts, resources, completions and tasks exist in MCP only.
    fn is_mcp(&self) -> bool {
        self.kind == SpanKind::Call || self.method != conventions::TOOLS_CALL || self.protocol == Some("mcp")
    }
}

impl SpanFields {
    pub(crate) fn new(cx: &CallContext, kind: SpanKind, result: Option<&Result<Outcome, ToolError>>) -> Self {
        let n_bytes = match result {
            Some(Ok(Outcome::Reply(reply))) => Some(i64::try_from(reply.raw().len()).unwrap_or(i64::MAX)),
            _ => None,
        };
        let reason = match result {
            Some(Err(error)) => Some(reason(error)),
            _ => None,
        };
        let is_call = kind == SpanKind::Call;
        Self {
            caller: cx.origin.caller.clone(),
            attempt: if is_call { cx.n_begun() } else { cx.attempt },
            n_bytes,
            sandbox: match result {
                Some(Ok(Outcome::Reply(reply))) if !is_call => reply.sandbox_level().map(Into::into),
                _ => None,
            },
            degraded: is_call.then(|| conventions::degraded(result)).flatten(),
            fallback_of: is_call.then(|| cx.fallback_of.clone()).flatten(),
            may_have_run: result.is_some_and(Result::is_err) && cx.may_have_run(),
            reason,
        }
    }

    /// Returns the description of a failure: its reason, or else its kind.
    pub(crate) fn failure<'a>(&'a self, template: &SpanTemplate) -> Option<&'a str> {
        let kind = template.error_type?;
        Some(self.reason.as_deref().unwrap_or(kind))
    }

    pub(crate) fn for_each_attribute<'a>(
        &'a self,
        kind: SpanKind,
        set: &mut impl FnMut(&'static str, AttributeValue<'a>),
    ) {
        use AttributeValue::{Number, Shared, Static, Text};
        match kind {
            SpanKind::Call => {
                set(conventions::PRINCIPAL, Shared(&self.caller.principal));
                set(conventions::TENANT, Shared(&self.caller.tenant));
                set(conventions::ATTEMPTS, Number(self.attempt.into()));
            }
            SpanKind::Attempt => set(conventions::ATTEMPT, Number(self.attempt.into())),
        }
        if let Some(step) = self.degraded {
            set(conventions::DEGRADED, Static(step));
        }
        if let Some(fallback_of) = &self.fallback_of {
            set(conventions::INSTEAD_OF, Shared(fallback_of.first()));
        }
        if self.may_have_run {
            set(conventions::MAY_HAVE_RUN, Static("true"));
        }
        if let Some(level) = &self.sandbox {
            set(conventions::SANDBOX, Text(level));
        }
        if let Some(n_bytes) = self.n_bytes {
            set(conventions::RESULT_BYTES, Number(n_bytes));
        }
    }
}

/// Returns the description of an error, cut to [`MAX_REASON`].
fn reason(error: &ToolError) -> Box<str> {
    let text = call_log::loggable(error);
    match text.char_indices().nth(MAX_REASON) {
        Some((end, _)) => text[..end].into(),
        None => text.into(),
    }
}

impl EndedSpan {
    /// Returns the kind of the span: a call or an attempt.
    #[must_use]
    pub fn kind(&self) -> SpanKind {
        self.template.kind
    }

    /// Returns the span's name. Names are few, since no text of a caller is part of them.
    #[must_use]
    pub fn name(&self) -> String {
        self.template.name().concat()
    }

    /// Returns the description of the failure, or `None` if the span did not fail. It has no text that a caller sent.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.fields.failure(&self.template)
    }

    /// Calls `set` for each attribute. Neither arguments nor results are among them.
    pub fn for_each_attribute<'a>(&'a self, mut set: impl FnMut(&'static str, AttributeValue<'a>)) {
        self.template.for_each_attribute(&mut set);
        self.fields.for_each_attribute(self.template.kind, &mut set);
    }
}
