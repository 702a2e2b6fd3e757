//! What a span says, in the words of the conventions.

use std::borrow::Cow;

use tool_core::Target;

use crate::{EndedSpan, SpanKind, conventions, log};

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(i64),
}

/// How much is said of an error.
const MAX_REASON: usize = 256;

impl EndedSpan<'_> {
    /// The span's name. There are few: none has anything of a caller's in it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.name_parts() {
            (what, Some(subject)) => format!("{what} {subject}"),
            (what, None) => what.to_owned(),
        }
    }

    /// What is done, and to which tool or prompt.
    pub(crate) fn name_parts(&self) -> (&'static str, Option<&str>) {
        let method = conventions::method(&self.cx.target);
        let what = match self.kind {
            SpanKind::Attempt if method == conventions::TOOLS_CALL => conventions::EXECUTE_TOOL,
            _ => method,
        };
        (what, conventions::subject(self.cx))
    }

    /// Whether it failed, and what is said of it then: nothing that a caller sent.
    #[must_use]
    pub fn failure(&self) -> Option<Cow<'_, str>> {
        let kind = conventions::error_type(self.result)?;
        Some(match self.result {
            Some(Err(error)) => {
                let text = log::loggable(error);
                match text.char_indices().nth(MAX_REASON) {
                    Some((end, _)) => Cow::Owned(text[..end].to_owned()),
                    None => text,
                }
            }
            _ => Cow::Borrowed(kind),
        })
    }

    /// Tells each attribute: neither arguments nor results are among them.
    pub fn attributes<'a>(&'a self, mut tell: impl FnMut(&'static str, AttributeValue<'a>)) {
        use AttributeValue::{Number, Text};
        let cx = self.cx;
        let method = conventions::method(&cx.target);
        if self.is_of_mcp(method) {
            tell(conventions::MCP_METHOD, Text(method));
        }
        match (method, conventions::subject(cx)) {
            (conventions::TOOLS_CALL, Some(name)) => {
                tell(conventions::OPERATION, Text(conventions::EXECUTE_TOOL));
                tell(conventions::TOOL, Text(name));
            }
            (conventions::PROMPTS_GET, Some(name)) => tell(conventions::PROMPT, Text(name)),
            (_, Some(name)) => tell(conventions::TOOL, Text(name)),
            (_, None) => {}
        }
        if let Some(kind) = conventions::error_type(self.result) {
            tell(conventions::ERROR_TYPE, Text(kind));
        }
        match self.kind {
            SpanKind::Call => {
                tell(conventions::PRINCIPAL, Text(&cx.caller.principal));
                tell(conventions::TENANT, Text(&cx.caller.tenant));
                tell(conventions::ATTEMPTS, Number(cx.attempt.into()));
                tell(conventions::OUTCOME, Text(conventions::outcome(self.result)));
                if let Some(step) = conventions::degraded(self.result) {
                    tell(conventions::DEGRADED, Text(step));
                }
                if let Some(instead_of) = &cx.instead_of {
                    tell(conventions::INSTEAD_OF, Text(instead_of.first()));
                }
            }
            SpanKind::Attempt => {
                tell(conventions::ATTEMPT, Number(cx.attempt.into()));
                tell(conventions::EXECUTOR, Text(&cx.tool().descriptor().executor.kind));
                tell(conventions::DISPATCH, Text(conventions::dispatch(cx)));
            }
        }
        if let Some(Ok(tool_core::Outcome::Reply(reply))) = self.result {
            let n_bytes = i64::try_from(reply.raw().len()).unwrap_or(i64::MAX);
            tell(conventions::RESULT_BYTES, Number(n_bytes));
        }
    }

    /// Whether MCP is spoken: with whoever calls, since all calls are put in its words, and in an attempt with what runs the tool.
    /// All but tools is MCP's own.
    fn is_of_mcp(&self, method: &str) -> bool {
        self.kind == SpanKind::Call
            || method != conventions::TOOLS_CALL
            || self.spoken_protocol() == Some("mcp")
    }

    /// The protocol that is spoken with what runs the tool, or works on the task; nothing if that is in this process.
    pub(crate) fn spoken_protocol(&self) -> Option<&'static str> {
        match &self.cx.target {
            Target::Task { task, .. } => task.runner.spoken_protocol(),
            target => target.tool().executor().spoken_protocol(),
        }
    }
}
