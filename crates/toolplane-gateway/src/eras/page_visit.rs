//! URL elicitation: a server wants the user to visit a page before it answers (error code -32042 of MCP 2025-11-25).

use mcp_server::{Answer, InputRequired, RequestContext};
use mcp_wire::{RpcError, method};
use raw_json::RawJson;
use toolplane::core::{ErrorKind, ToolError};

use super::{legacy::missing_capability, resume_token::ResumeToken};
use crate::{
    render::{needs_page_visit, upstream_error},
    requests::IncomingRequest,
};

/// Returns the server's own error if the call failed for a page visit and the client declared that it can open pages.
pub(crate) fn page_visit_error(error: &ToolError, cx: &RequestContext) -> Option<RpcError> {
    let error = upstream_error(error).filter(needs_page_visit)?;
    let can_visit = cx.check_askable(method::ELICITATION_CREATE, Some(&url_mode()));
    can_visit.is_ok().then_some(error)
}

/// Returns the error of a call that failed for a page visit, if the client did not declare that it can open pages.
pub(crate) fn unsupported_page_visit(error: &ToolError, cx: &RequestContext) -> Option<ToolError> {
    upstream_error(error).filter(needs_page_visit)?;
    let reason = cx
        .check_askable(method::ELICITATION_CREATE, Some(&url_mode()))
        .err()?;
    Some(missing_capability(
        "the tool needs the user to visit a page",
        &reason,
    ))
}

/// Checks that the answers of a round agree to visit every page.
pub(super) fn check_answer(responses: Option<&RawJson>) -> Result<(), ToolError> {
    let answers = responses.into_iter().flat_map(RawJson::members);
    let mut actions = answers
        .map(|(_, answer)| answer.get("action")?.string())
        .peekable();
    if actions.peek().is_some() && actions.all(|action| action.as_deref() == Some("accept")) {
        return Ok(());
    }
    let message = "the tool needs the user to visit a page, and the user did not agree";
    Err(ToolError::new(ErrorKind::Cancelled, message))
}

fn url_mode() -> RawJson {
    RawJson::from_members(&[("mode", RawJson::from("url"))])
}

impl IncomingRequest<'_> {
    /// Asks a modern client to have its user visit the pages that a legacy server named. Returns `None` if the call failed
    /// for another reason, or the client cannot open pages.
    pub(super) fn ask_page_visit(&self, error: &ToolError) -> Option<Result<Answer, RpcError>> {
        let data = upstream_error(error).filter(needs_page_visit)?.data?;
        let pages = data.get("elicitations")?;
        let mut asked = InputRequired::new();
        for (number, page) in (1..).zip(pages.items()) {
            // Up to 2025-11-25 the error implies the mode and leaves it out.
            let page = page.with_members(&[("mode", RawJson::from("url"))]).ok()?;
            self.cx
                .check_askable(method::ELICITATION_CREATE, Some(&page))
                .ok()?;
            asked = asked.ask(format!("page-{number}"), method::ELICITATION_CREATE, Some(page));
        }
        let sealed = self.seal(&ResumeToken::PageVisit);
        Some(sealed.and_then(|state| asked.state(state).answer(self.request, self.cx)))
    }
}
