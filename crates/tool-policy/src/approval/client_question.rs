//! Question to the user at the client of a call (MCP, elicitation), and its answer.

use raw_json::RawJson;
use tool_core::{ApprovalRecord, Asker, CallContext, InputRequest, Outcome, Question};

use super::{bound_call::Unapproved, resume_token::resume_state, text::question_text};

/// Key of our question and its answer among those of a round.
pub(super) const QUESTION_KEY: &str = "approval";

/// Method of the question.
const METHOD: &str = "elicitation/create";

/// Returns the asker and the text of the question, if the user at the client may decide and can see the whole call.
pub(super) fn way_to_ask(cx: &CallContext, approval: &ApprovalRecord) -> Option<(Asker, String)> {
    let asker = cx.origin.ask.clone().filter(|_| !approval.call.by_another)?;
    let left = approval.expiry.since(cx.clock.now());
    supports_forms(&asker)
        .then(|| question_text(approval, left))
        .flatten()
        .map(|message| (asker, message))
}

/// Returns `true` if the client can show a form to its user.
fn supports_forms(asker: &Asker) -> bool {
    let capabilities = asker.client().capabilities();
    let Some(elicitation) = capabilities.get("elicitation") else {
        return false;
    };
    // An empty object is how clients declared forms before there were other modes.
    elicitation.get("form").is_some() || elicitation.members().next().is_none()
}

/// Returns the question for a client that is asked while the call waits.
pub(super) fn question(message: &str) -> Question {
    Question::new(METHOD.to_owned(), Some(form(message)))
}

/// Returns the outcome that makes the client ask its user and call again.
pub(super) fn question_outcome(approval: &ApprovalRecord, message: &str) -> Outcome {
    let request = RawJson::from_members(&[("method", RawJson::from(METHOD)), ("params", form(message))]);
    Outcome::NeedsInput(Box::new(
        InputRequest::new(RawJson::from_members(&[(QUESTION_KEY, request)])).with_state(Some(resume_state(
            &approval.handle,
            None,
            None,
        ))),
    ))
}

/// Returns the form with the question. Submitting it unchanged approves nothing.
fn form(message: &str) -> RawJson {
    RawJson::from(serde_json::json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "approve": {
                    "type": "boolean",
                    "title": "Approve this call",
                    "description": "Whether the call may be made, once.",
                    "default": false,
                },
            },
            "required": ["approve"],
        },
    }))
}

/// Checks that the user at the client approved the call.
///
/// # Errors
/// The error of a call that the user did not approve.
pub(super) fn check_answer(answer: &RawJson) -> Result<(), Unapproved> {
    let action = answer.get("action").and_then(|action| action.string());
    let is_yes = |content: RawJson| content.get("approve").is_some_and(|yes| yes.as_str() == "true");
    let end = match action.as_deref() {
        Some("accept") if answer.get("content").is_some_and(is_yes) => return Ok(()),
        Some("cancel") => "was asked to approve the call and did not decide",
        _ => "did not approve the call",
    };
    Err(Unapproved::denied("declined", format!("the user {end}")))
}
