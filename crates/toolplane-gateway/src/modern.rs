//! Calls of modern clients: what a tool needs is the answer to one request, and what the client gives comes with the
//! next.

use std::sync::Arc;

use mcp_server::{Answer, InputRequired, RequestContext};
use mcp_wire::{Era, Request, RpcError, code, method};
use raw_json::RawJson;
use toolplane::{
    CallRequest,
    core::{ErrorKind, InputRequest, Outcome, Resume, ToolError},
};

use crate::{
    Gateway,
    call::Done,
    client::Direct,
    dialogue::Dialogue,
    fault::{self, Failure},
    legacy::question,
    parked::{Next, OpenCall},
};

/// The requests whose answers may ask for something.
const ASKING: [&str; 3] = [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ];

/// What a client gives back from the round before, once the seal is broken.
enum State {
    /// A call is parked under this number.
    Parked(u64),
    /// The upstream's own state.
    Upstream(RawJson),
    /// The user was to visit a page.
    Visit,
}

/// Whether a request goes on with a call, or its client may be asked something for it.
pub(crate) fn is_dialogue(request: &Request, cx: &RequestContext) -> bool {
    cx.era() == Era::Modern
        && (cx.request_state().is_some()
            || cx.input_responses().is_some()
            || (cx.is_askable() && ASKING.contains(&&*request.method)))
}

/// Makes a call, or goes on with the one that the client was asked something for.
pub(crate) async fn run(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
    call: CallRequest,
) -> Result<Done, Failure> {
    let given = cx.input_responses();
    let state = match cx.request_state() {
        Some(sealed) => Some(State::read(&gateway.seal()?.open(&sealed, request, cx)?)?),
        None => None,
    };
    let resumed = |state| {
        let responses = given.cloned().unwrap_or(RawJson::object());
        call.clone().resume(Resume { responses, state })
    };
    let call = match state {
        Some(State::Parked(number)) => {
            let parked = gateway.parked().take(number).ok_or_else(no_longer_there)?;
            parked.dialogue.go_on(cx.client(), given);
            return follow(gateway, request, cx, parked).await;
        }
        Some(State::Upstream(state)) => resumed(Some(state)),
        Some(State::Visit) => {
            check_visited(given)?;
            call
        }
        // The server has told the client to give back no state, or it was nobody's question.
        None if given.is_some() => resumed(None),
        None => call,
    };
    if !cx.is_askable() || !ASKING.contains(&&*request.method) {
        let call = match Direct::of(cx) {
            Some(ask) => call.ask(ask),
            None => call,
        };
        let ended = gateway.plane().call(call).await;
        return done(gateway, request, cx, ended);
    }
    let dialogue = Dialogue::new(cx);
    let mut call = call.ask(dialogue.clone());
    if cx.progress().is_wanted() {
        call = call.progress(dialogue.clone());
    }
    let plane = gateway.plane().clone();
    let call = OpenCall::new(dialogue, Box::pin(async move { plane.call(call).await }));
    follow(gateway, request, cx, call).await
}

/// Waits until a call ends or asks. When this is dropped, so is the call.
async fn follow(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
    mut call: OpenCall,
) -> Result<Done, Failure> {
    loop {
        match call.next().await {
            Next::Ended(ended) => return done(gateway, request, cx, ended),
            Next::Asked => {}
        }
        let dialogue = Arc::clone(&call.dialogue);
        let number = match gateway.parked().park(call, cx.principal()) {
            Ok(number) => number,
            Err(back) => {
                dialogue.refuse("too many calls wait for their clients already");
                call = back;
                continue;
            }
        };
        let questions = dialogue.put();
        if questions.is_empty() {
            // They were taken back at the same moment.
            call = gateway.parked().take(number).ok_or_else(no_longer_there)?;
            continue;
        }
        let state = format!("parked {number}");
        let asked = questions
            .into_iter()
            .fold(InputRequired::new(), |asked, (key, question)| {
                asked.ask(key, question.method, question.params)
            });
        let seal = gateway.seal();
        let answer = seal.and_then(|seal| asked.state(seal.seal(&state, request, cx)).answer(request, cx));
        // Without an answer nobody knows the number, and nobody could come back for the call.
        let answer = answer.inspect_err(|_| drop(gateway.parked().take(number)))?;
        return Ok(Done::Answer(answer));
    }
}

/// What a call that has ended is answered with: it may have ended with questions.
pub(crate) fn done(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
    ended: Result<Outcome, ToolError>,
) -> Result<Done, Failure> {
    match ended {
        Ok(Outcome::NeedsInput(input)) => relay(gateway, request, cx, &input).map(Done::Answer),
        Ok(outcome) => Ok(Done::Outcome(outcome)),
        Err(error) => match visit(gateway, request, cx, &error) {
            Some(answer) => Ok(Done::Answer(answer?)),
            None => Err(error.into()),
        },
    }
}

/// Passes on what an upstream asks for, in its own bytes.
fn relay(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
    input: &InputRequest,
) -> Result<Answer, Failure> {
    let mut members = vec![("resultType", RawJson::from("input_required"))];
    for (_, asked) in input.requests.members() {
        let (method, params) = question(&asked)?;
        cx.check_askable(&method, params.as_ref())?;
    }
    if input.requests.members().next().is_some() {
        members.push(("inputRequests", input.requests.clone()));
    }
    if let Some(state) = &input.state {
        let sealed = gateway.seal()?.seal(&format!("upstream {state}"), request, cx);
        members.push(("requestState", RawJson::from(sealed.as_str())));
    }
    if members.len() == 1 || !ASKING.contains(&&*request.method) {
        let message = "the tool asks for input in a way that cannot be passed on";
        return Err(ToolError::new(ErrorKind::Protocol, message).into());
    }
    Ok(Answer::verbatim(RawJson::from_members(&members)))
}

/// Asks the user to visit the pages without which a legacy server does not answer, if that is what it said.
fn visit(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
    error: &ToolError,
) -> Option<Result<Answer, RpcError>> {
    let data = fault::upstream(error).filter(fault::wants_visit)?.data?;
    let pages = data.get("elicitations")?;
    let mut asked = InputRequired::new();
    for (number, page) in (1..).zip(pages.items()) {
        // Up to 2025-11-25 the mode goes without saying here.
        let page = page.with_members(&[("mode", RawJson::from("url"))]).ok()?;
        cx.check_askable(method::ELICITATION_CREATE, Some(&page)).ok()?;
        asked = asked.ask(format!("page-{number}"), method::ELICITATION_CREATE, Some(page));
    }
    let answer = gateway
        .seal()
        .and_then(|seal| asked.state(seal.seal("visit", request, cx)).answer(request, cx));
    Some(answer)
}

/// Checks that the user agreed to visit the pages.
fn check_visited(given: Option<&RawJson>) -> Result<(), ToolError> {
    let answers = given.into_iter().flat_map(RawJson::members);
    let mut actions = answers
        .map(|(_, answer)| answer.get("action")?.string())
        .peekable();
    if actions.peek().is_some() && actions.all(|action| action.as_deref() == Some("accept")) {
        return Ok(());
    }
    let message = "the tool needs the user to visit a page, and the user did not agree to";
    Err(ToolError::new(ErrorKind::Cancelled, message))
}

fn no_longer_there() -> RpcError {
    let message = "the call that `requestState` belongs to is over or was answered already; make it anew";
    RpcError::new(code::INVALID_PARAMS, message)
}

impl State {
    fn read(text: &str) -> Result<Self, RpcError> {
        let unknown = || RpcError::new(code::INVALID_PARAMS, "`requestState` is not known here");
        if text == "visit" {
            return Ok(Self::Visit);
        }
        let (kind, rest) = text.split_once(' ').ok_or_else(unknown)?;
        match kind {
            "parked" => rest.parse().map(Self::Parked).map_err(|_| unknown()),
            "upstream" => RawJson::parse(rest.to_owned())
                .map(Self::Upstream)
                .map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}
