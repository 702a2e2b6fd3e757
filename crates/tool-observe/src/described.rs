//! What a span says, in the words of the conventions.

use std::sync::Arc;

use tool_core::{CallContext, Caller, Descriptor, FallbackOf, Outcome, Target, ToolError};

use crate::{EndedSpan, SpanKind, conventions, log};

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// A text.
    Text(&'a str),
    /// A text of the code: it needs no copy to be kept.
    Static(&'static str),
    /// A text that others hold as well: it needs no copy to be kept.
    Shared(&'a Arc<str>),
    /// A number.
    Number(i64),
}

impl<'a> AttributeValue<'a> {
    /// Returns the text; `None` for a number.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::Text(text) | Self::Static(text) => Some(text),
            Self::Shared(text) => Some(text),
            Self::Number(_) => None,
        }
    }
}

/// How much is said of an error.
const MAX_REASON: usize = 256;

/// What is the same of all spans that are of the same tool and ended alike.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) kind: SpanKind,
    tool: Arc<Descriptor>,
    method: &'static str,
    names_subject: bool,
    /// The protocol that is spoken with what runs the tool, or works on the task; nothing if that is in this process.
    pub(crate) protocol: Option<&'static str>,
    /// Whether the call came over a connection.
    #[cfg(feature = "otel")]
    pub(crate) has_client: bool,
    dispatch: &'static str,
    outcome: &'static str,
    error_type: Option<&'static str>,
}

/// What may be another for each span.
#[derive(Debug, Clone)]
pub(crate) struct Details {
    caller: Arc<Caller>,
    attempt: u32,
    n_bytes: Option<i64>,
    degraded: Option<&'static str>,
    fallback_of: Option<FallbackOf>,
    may_have_run: bool,
    /// What is said of an error.
    reason: Option<Box<str>>,
}

impl Form {
    pub(crate) fn of(cx: &CallContext, kind: SpanKind, result: Option<&Result<Outcome, ToolError>>) -> Self {
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

    /// The words of the span's name: what is done, and to which tool or prompt.
    pub(crate) fn name(&self) -> [&str; 3] {
        let what = match self.kind {
            SpanKind::Attempt if self.method == conventions::TOOLS_CALL => conventions::EXECUTE_TOOL,
            _ => self.method,
        };
        match self.subject() {
            Some(subject) => [what, " ", subject],
            None => [what, "", ""],
        }
    }

    pub(crate) fn attributes<'a>(&'a self, tell: &mut impl FnMut(&'static str, AttributeValue<'a>)) {
        use AttributeValue::{Shared, Static, Text};
        if self.is_of_mcp() {
            tell(conventions::MCP_METHOD, Static(self.method));
        }
        match (self.method, self.subject()) {
            (conventions::TOOLS_CALL, Some(name)) => {
                tell(conventions::OPERATION, Static(conventions::EXECUTE_TOOL));
                tell(conventions::TOOL, Shared(name));
            }
            (conventions::PROMPTS_GET, Some(name)) => tell(conventions::PROMPT, Shared(name)),
            (_, Some(name)) => tell(conventions::TOOL, Shared(name)),
            (_, None) => {}
        }
        if let Some(kind) = self.error_type {
            tell(conventions::ERROR_TYPE, Static(kind));
        }
        match self.kind {
            SpanKind::Call => tell(conventions::OUTCOME, Static(self.outcome)),
            SpanKind::Attempt => {
                tell(conventions::EXECUTOR, Text(&self.tool.executor.kind));
                tell(conventions::DISPATCH, Static(self.dispatch));
            }
        }
    }

    fn subject(&self) -> Option<&Arc<str>> {
        self.names_subject.then_some(&self.tool.name)
    }

    /// Whether MCP is spoken: with whoever calls, since all calls are put in its words, and in an attempt with what runs the tool.
    /// All but tools is MCP's own.
    fn is_of_mcp(&self) -> bool {
        self.kind == SpanKind::Call || self.method != conventions::TOOLS_CALL || self.protocol == Some("mcp")
    }
}

impl Details {
    pub(crate) fn of(cx: &CallContext, kind: SpanKind, result: Option<&Result<Outcome, ToolError>>) -> Self {
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
            degraded: is_call.then(|| conventions::degraded(result)).flatten(),
            fallback_of: is_call.then(|| cx.fallback_of.clone()).flatten(),
            may_have_run: result.is_some_and(Result::is_err) && cx.may_have_run(),
            reason,
        }
    }

    /// Returns the description of a failure: its reason, or else its kind.
    pub(crate) fn failure<'a>(&'a self, form: &Form) -> Option<&'a str> {
        let kind = form.error_type?;
        Some(self.reason.as_deref().unwrap_or(kind))
    }

    pub(crate) fn attributes<'a>(
        &'a self,
        kind: SpanKind,
        tell: &mut impl FnMut(&'static str, AttributeValue<'a>),
    ) {
        use AttributeValue::{Number, Shared, Static};
        match kind {
            SpanKind::Call => {
                tell(conventions::PRINCIPAL, Shared(&self.caller.principal));
                tell(conventions::TENANT, Shared(&self.caller.tenant));
                tell(conventions::ATTEMPTS, Number(self.attempt.into()));
            }
            SpanKind::Attempt => tell(conventions::ATTEMPT, Number(self.attempt.into())),
        }
        if let Some(step) = self.degraded {
            tell(conventions::DEGRADED, Static(step));
        }
        if let Some(fallback_of) = &self.fallback_of {
            tell(conventions::INSTEAD_OF, Shared(fallback_of.first()));
        }
        if self.may_have_run {
            tell(conventions::MAY_HAVE_RUN, Static("true"));
        }
        if let Some(n_bytes) = self.n_bytes {
            tell(conventions::RESULT_BYTES, Number(n_bytes));
        }
    }
}

/// What is said of an error.
fn reason(error: &ToolError) -> Box<str> {
    let text = log::loggable(error);
    match text.char_indices().nth(MAX_REASON) {
        Some((end, _)) => text[..end].into(),
        None => text.into(),
    }
}

impl EndedSpan {
    /// What it is of.
    #[must_use]
    pub fn kind(&self) -> SpanKind {
        self.form.kind
    }

    /// The span's name. There are few: none has anything of a caller's in it.
    #[must_use]
    pub fn name(&self) -> String {
        self.form.name().concat()
    }

    /// Whether it failed, and what is said of it then: nothing that a caller sent.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.details.failure(&self.form)
    }

    /// Tells each attribute: neither arguments nor results are among them.
    pub fn attributes<'a>(&'a self, mut tell: impl FnMut(&'static str, AttributeValue<'a>)) {
        self.form.attributes(&mut tell);
        self.details.attributes(self.form.kind, &mut tell);
    }
}
