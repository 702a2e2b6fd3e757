//! Calls of legacy clients: what a tool needs, its client is asked for at once.

use std::time::Duration;

use mcp_server::{ClientRequestError, RequestContext};
use mcp_wire::{RpcError, method};
use raw_json::RawJson;
use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest,
    core::{ErrorKind, InputRequest, Outcome, Resume, ToolError},
};

use crate::{
    Gateway,
    call::FEW_ROUNDS,
    client::ANSWER,
    fault::{self, Failure},
};

/// How long to wait before another round that brings nothing new: the server wants to be asked again later.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes further rounds of a call while the tool needs input that the client gives.
pub(crate) async fn go_on(
    gateway: &Gateway,
    cx: &RequestContext,
    call: impl Fn() -> Result<CallRequest, Failure>,
    mut input: InputRequest,
) -> Result<Outcome, Failure> {
    for round in 1..=FEW_ROUNDS {
        if round == FEW_ROUNDS {
            break;
        }
        let responses = answers(cx, &input).await?;
        let state = input.state;
        let next = call()?.resume(Resume { responses, state });
        input = match gateway.plane().call(next).await? {
            Outcome::NeedsInput(input) => *input,
            outcome => return Ok(outcome),
        };
    }
    let message = format!("the tool asked for input {FEW_ROUNDS} times and came to no end");
    Err(ToolError::new(ErrorKind::Protocol, message).into())
}

/// Asks the client for everything that a tool needs, one after another.
async fn answers(cx: &RequestContext, input: &InputRequest) -> Result<RawJson, ToolError> {
    let mut answers = Vec::new();
    for (key, request) in input.requests.members() {
        let (method, params) = question(&request)?;
        let answer = timeout(ANSWER, cx.ask(&method, params.as_ref())).await;
        let answer = answer.map_err(|_| {
            let message = format!("the client did not answer `{method}` within {ANSWER:?}");
            ToolError::new(ErrorKind::Timeout, message)
        })?;
        answers.push((key, answer.map_err(|error| not_given(&method, error))?));
    }
    if answers.is_empty() {
        sleep(PAUSE).await;
    }
    let members: Vec<(&str, RawJson)> = answers
        .iter()
        .map(|(key, answer)| (&**key, answer.clone()))
        .collect();
    Ok(RawJson::from_members(&members))
}

/// What is asked, and with which parameters.
pub(crate) fn question(request: &RawJson) -> Result<(String, Option<RawJson>), ToolError> {
    let method = request.get("method").and_then(|method| method.string());
    let method = method.ok_or_else(|| {
        let message = "the tool asks for input without saying what it asks";
        ToolError::new(ErrorKind::Protocol, message)
    })?;
    Ok((method, request.get("params")))
}

fn not_given(method: &str, error: ClientRequestError) -> ToolError {
    let (kind, message) = match &error {
        ClientRequestError::NotDeclared(why) => {
            return cannot_give(&format!("the tool asks for `{method}`"), why);
        }
        ClientRequestError::NoChannel => (
            ErrorKind::MissingCapability,
            format!(
                "the tool asks for `{method}`, and this client takes no questions: it has to open a session and to take events"
            ),
        ),
        ClientRequestError::Refused(why) => (
            ErrorKind::Cancelled,
            format!("the client refused `{method}`: {}", why.message),
        ),
        other => (
            ErrorKind::Unavailable,
            format!("the tool asks for `{method}`, but {other}"),
        ),
    };
    ToolError::new(kind, message).with_source(error)
}

/// The error of a call that needs what its client did not declare: no other attempt brings it.
fn cannot_give(what: &str, why: &RpcError) -> ToolError {
    let error = ToolError::new(ErrorKind::MissingCapability, format!("{what}: {}", why.message));
    match &why.data {
        Some(required) => error.with_detail(required.clone()),
        None => error,
    }
}

/// The error when a server wants the user to visit a page first, and the client cannot have that done.
pub(crate) fn cannot_visit(error: &ToolError, cx: &RequestContext) -> Option<ToolError> {
    fault::upstream(error).filter(fault::wants_visit)?;
    let why = cx
        .check_askable(method::ELICITATION_CREATE, Some(&by_url()))
        .err()?;
    Some(cannot_give("the tool needs the user to visit a page", &why))
}

fn by_url() -> RawJson {
    RawJson::from_members(&[("mode", RawJson::from("url"))])
}

/// The error of a server that wants the user to visit a page first, for a client that knows what to do about it.
pub(crate) fn visit(error: &ToolError, cx: &RequestContext) -> Option<RpcError> {
    let error = fault::upstream(error).filter(fault::wants_visit)?;
    let can = cx.check_askable(method::ELICITATION_CREATE, Some(&by_url()));
    can.is_ok().then_some(error)
}
