//! Calls of legacy clients: the client is asked by requests of the gateway while its own request is in progress.

use std::time::Duration;

use mcp_server::ClientRequestError;
use mcp_wire::RpcError;
use raw_json::RawJson;
use tokio::time::{sleep, timeout};
use toolplane::core::{ErrorKind, InputRequest, Outcome, Resume, TaskMode, ToolError};

use crate::{
    client::{ANSWER_TIMEOUT, parse_question},
    render::Failure,
    requests::IncomingRequest,
};

/// Number of rounds of one call after which it is taken for a loop.
const MAX_ROUNDS: usize = 16;
/// Pause before another round if the tool asks nothing: the server wants to be called again later.
const EMPTY_ROUND_PAUSE: Duration = Duration::from_secs(1);

impl IncomingRequest<'_> {
    /// Makes further rounds of a call, until the tool needs no more input of the client.
    pub(crate) async fn continue_call(
        &self,
        task_mode: Option<TaskMode>,
        mut input: InputRequest,
    ) -> Result<Outcome, Failure> {
        // The first round came before this.
        for _ in 1..MAX_ROUNDS {
            let responses = self.ask_client(&input).await?;
            let state = input.state;
            let call = self
                .direct_call(task_mode.clone())?
                .resume(Resume::new(responses).with_state(state));
            input = match self.gateway.plane.call(call).await? {
                Outcome::NeedsInput(input) => *input,
                outcome => return Ok(outcome),
            };
        }
        let message = format!("the tool asked for input {MAX_ROUNDS} times without a result");
        Err(ToolError::new(ErrorKind::Protocol, message).into())
    }

    /// Asks the client everything that the tool needs, one question after another.
    async fn ask_client(&self, input: &InputRequest) -> Result<RawJson, ToolError> {
        let mut answers = Vec::new();
        for (key, request) in input.requests.members() {
            let (method, params) = parse_question(&request)?;
            let answer = timeout(ANSWER_TIMEOUT, self.cx.ask(&method, params.as_ref())).await;
            let answer = answer.map_err(|_| {
                let message = format!("the client did not answer `{method}` within {ANSWER_TIMEOUT:?}");
                ToolError::new(ErrorKind::Timeout, message)
            })?;
            answers.push((key, answer.map_err(|error| client_error(&method, error))?));
        }
        if answers.is_empty() {
            sleep(EMPTY_ROUND_PAUSE).await;
        }
        let members: Vec<(&str, RawJson)> = answers
            .iter()
            .map(|(key, answer)| (&**key, answer.clone()))
            .collect();
        Ok(RawJson::from_members(&members))
    }
}

/// Returns the error of a call whose client did not answer a question.
fn client_error(method: &str, error: ClientRequestError) -> ToolError {
    let (kind, message) = match &error {
        ClientRequestError::NotDeclared(reason) => {
            return missing_capability(&format!("the tool asks for `{method}`"), reason);
        }
        ClientRequestError::NoChannel => (
            ErrorKind::MissingCapability,
            format!(
                "the tool asks for `{method}`, and this client cannot be asked: it must open a session and accept event streams"
            ),
        ),
        ClientRequestError::Refused(reason) => (
            ErrorKind::Cancelled,
            format!("the client refused `{method}`: {}", reason.message),
        ),
        other => (
            ErrorKind::Unavailable,
            format!("the tool asks for `{method}`, but {other}"),
        ),
    };
    ToolError::new(kind, message).with_source(error)
}

/// Returns the error of a call that needs a capability which its client did not declare. A retry would not help.
pub(super) fn missing_capability(need: &str, reason: &RpcError) -> ToolError {
    let message = format!("{need}: {}", reason.message);
    let error = ToolError::new(ErrorKind::MissingCapability, message);
    match &reason.data {
        Some(required) => error.with_detail(required.clone()),
        None => error,
    }
}
