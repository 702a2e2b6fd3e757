use mcp_wire::{Era, Request, RpcError, code, method};
use raw_json::RawJson;

use crate::{Answer, RequestContext};

/// Answer to a modern request that needs input of the client: questions, and a state that the client returns with the next
/// round.
///
/// The next round is a request of its own, with [`RequestContext::input_response`] and
/// [`RequestContext::request_state`].
///
/// # Examples
///
/// ```
/// use mcp_server::{Answer, InputRequired, RequestContext};
/// use mcp_wire::{Request, RpcError, method};
/// use raw_json::RawJson;
///
/// fn roots(request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
///     match cx.input_response("roots") {
///         Some(_roots) => Ok(RawJson::parse(r#"{"content":[]}"#).expect("valid JSON").into()),
///         None => InputRequired::new().ask("roots", method::ROOTS_LIST, None).answer(request, cx),
///     }
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct InputRequired {
    questions: Vec<Question>,
    state: Option<String>,
}

#[derive(Debug, Clone)]
struct Question {
    key: String,
    method: String,
    params: Option<RawJson>,
}

/// Requests that may be answered with questions.
const ASKING: [&str; 3] = [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ];

impl InputRequired {
    /// Creates an answer without questions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a question under a unique key: a method such as `elicitation/create`, and its parameters.
    #[must_use]
    pub fn ask(mut self, key: impl Into<String>, method: impl Into<String>, params: Option<RawJson>) -> Self {
        self.questions.push(Question {
            key: key.into(),
            method: method.into(),
            params,
        });
        self
    }

    /// Sets the state that the client returns. A client can change it: see [`StateSeal`](crate::StateSeal).
    #[must_use]
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// Returns the answer to a request.
    ///
    /// # Errors
    /// Fails if the client did not declare the capability for one of the questions; the error names it. Fails with an
    /// internal error if this request cannot be answered with questions at all.
    pub fn answer(self, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        let fault = |message: &str| RpcError::new(code::INTERNAL_ERROR, message);
        if cx.era() != Era::Modern || !ASKING.contains(&&*request.method) {
            return Err(fault("this request cannot be answered with questions"));
        }
        if self.questions.is_empty() && self.state.is_none() {
            return Err(fault("an answer that asks needs a question or a state"));
        }
        let mut questions = Vec::with_capacity(self.questions.len());
        for Question { key, method, params } in &self.questions {
            cx.check_askable(method, params.as_ref())?;
            let mut members = vec![("method", RawJson::from(method.as_str()))];
            members.extend(params.clone().map(|params| ("params", params)));
            questions.push((key.as_str(), RawJson::from_members(&members)));
        }
        let mut result = vec![("resultType", RawJson::from("input_required"))];
        if !questions.is_empty() {
            result.push(("inputRequests", RawJson::from_members(&questions)));
        }
        result.extend(
            self.state
                .as_deref()
                .map(|state| ("requestState", RawJson::from(state))),
        );
        Ok(Answer::verbatim(RawJson::from_members(&result)))
    }
}
