//! Calls of modern clients: questions are the answer to one request, and the client's answers come with the next.

use std::sync::Arc;

use mcp_server::{Answer, InputRequired};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use toolplane::{
    CallRequest,
    core::{ErrorKind, InputRequest, Outcome, Resume, ToolError},
};

use super::{
    dialogue::Dialogue,
    open_call::{Next, OpenCall},
    page_visit::check_answer,
    resume_token::ResumeToken,
};
use crate::{
    client::{ClientChannel, parse_question},
    render::Failure,
    requests::{IncomingRequest, RoundResult},
};

impl IncomingRequest<'_> {
    /// Makes a round of a call: the first one, or the one that brings the client's answers.
    pub(crate) async fn run_dialogue(
        &self,
        call: CallRequest,
        can_ask: bool,
    ) -> Result<RoundResult, Failure> {
        let responses = self.cx.input_responses();
        let resume = |call: CallRequest, state| {
            let responses = responses.cloned().unwrap_or(RawJson::object());
            call.resume(Resume::new(responses).with_state(state))
        };
        let call = match self.resume_token()? {
            Some(ResumeToken::Parked(number)) => {
                let open = self.gateway.parked.take(number).ok_or_else(call_not_found)?;
                open.dialogue.resume(self.cx.client(), responses);
                return self.drive(open).await;
            }
            Some(ResumeToken::Upstream(state)) => resume(call, Some(state)),
            Some(ResumeToken::PageVisit) => {
                check_answer(responses)?;
                call
            }
            // The server asked without a state, or nobody asked.
            None if responses.is_some() => resume(call, None),
            None => call,
        };
        if !can_ask {
            let call = match ClientChannel::open(self.cx) {
                Some(channel) => call.ask(channel),
                None => call,
            };
            return self.finish(self.gateway.plane.call(call).await);
        }
        let dialogue = Dialogue::new(self.cx);
        let mut call = call.ask(dialogue.clone());
        if self.cx.progress().is_wanted() {
            call = call.progress(dialogue.clone());
        }
        let plane = self.gateway.plane.clone();
        let call = Box::pin(async move { plane.call(call).await });
        self.drive(OpenCall::new(dialogue, call)).await
    }

    /// Opens the token that the client sent, if it sent one.
    fn resume_token(&self) -> Result<Option<ResumeToken>, RpcError> {
        let Some(sealed) = self.cx.request_state() else {
            return Ok(None);
        };
        let seal = self.gateway.seal()?;
        ResumeToken::open(&sealed, seal, self.request, self.cx).map(Some)
    }

    /// Seals a token for the client of this request.
    pub(super) fn seal(&self, token: &ResumeToken) -> Result<String, RpcError> {
        let seal = self.gateway.seal()?;
        Ok(token.seal(seal, self.request, self.cx))
    }

    /// Waits until a call ends or asks. A call that asks is parked, and its questions become the answer.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call.
    async fn drive(&self, mut call: OpenCall) -> Result<RoundResult, Failure> {
        let parked = &self.gateway.parked;
        loop {
            match call.next().await {
                Next::Ended(ended) => return self.finish(ended),
                Next::Asked => {}
            }
            let dialogue = Arc::clone(&call.dialogue);
            let number = match parked.park(call, self.cx.principal()) {
                Ok(number) => number,
                Err(returned) => {
                    dialogue.refuse("too many calls wait for their clients already");
                    call = returned;
                    continue;
                }
            };
            let questions = dialogue.take_questions();
            if questions.is_empty() {
                // The tool withdrew them in the meantime.
                call = parked.take(number).ok_or_else(call_not_found)?;
                continue;
            }
            let asked = questions
                .into_iter()
                .fold(InputRequired::new(), |asked, (key, question)| {
                    asked.ask(key, question.method, question.params)
                });
            let sealed = self.seal(&ResumeToken::Parked(number));
            let answer = sealed.and_then(|state| asked.state(state).answer(self.request, self.cx));
            // Without an answer the client does not learn the number, and could not continue the call.
            let answer = answer.inspect_err(|_| drop(parked.take(number)))?;
            return Ok(RoundResult::Answer(answer));
        }
    }

    /// Returns the result of a round whose call has ended, possibly with questions.
    pub(crate) fn finish(&self, ended: Result<Outcome, ToolError>) -> Result<RoundResult, Failure> {
        match ended {
            Ok(Outcome::NeedsInput(input)) => self.relay_questions(&input).map(RoundResult::Answer),
            Ok(outcome) => Ok(RoundResult::Outcome(outcome)),
            Err(error) => match self.ask_page_visit(&error) {
                Some(answer) => Ok(RoundResult::Answer(answer?)),
                None => Err(error.into()),
            },
        }
    }

    /// Relays the questions of an upstream, in its own bytes.
    fn relay_questions(&self, input: &InputRequest) -> Result<Answer, Failure> {
        let mut members = vec![("resultType", RawJson::from("input_required"))];
        for (_, question) in input.requests.members() {
            let (method, params) = parse_question(&question)?;
            self.cx.check_askable(&method, params.as_ref())?;
        }
        if input.requests.members().next().is_some() {
            members.push(("inputRequests", input.requests.clone()));
        }
        if let Some(state) = &input.state {
            let sealed = self.seal(&ResumeToken::Upstream(state.clone()))?;
            members.push(("requestState", RawJson::from(sealed.as_str())));
        }
        if members.len() == 1 || !self.may_ask() {
            let message = "the tool asks for input in a form that cannot be forwarded";
            return Err(ToolError::new(ErrorKind::Protocol, message).into());
        }
        Ok(Answer::verbatim(RawJson::from_members(&members)))
    }
}

fn call_not_found() -> RpcError {
    let message =
        "the call of this `requestState` has ended or was answered already; make the call again without it";
    RpcError::new(code::INVALID_PARAMS, message)
}
