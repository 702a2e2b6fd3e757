use mcp_server::Answer;
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use toolplane::core::{Body, Outcome, Reply, ToolError};

use super::{
    incoming::{IncomingRequest, RoundResult},
    shape::RequestShape,
    subject::Subject,
};
use crate::{
    eras::{page_visit_error, unsupported_page_visit},
    render::{self, Failure},
};

impl IncomingRequest<'_> {
    /// Makes the call and answers the request.
    pub(crate) async fn answer(&self) -> Result<Answer, RpcError> {
        let reply = match self.run().await {
            Ok(RoundResult::Answer(answer)) => return Ok(answer),
            Ok(RoundResult::Outcome(Outcome::Task(task))) => return self.task_created(*task),
            Ok(RoundResult::Outcome(Outcome::Pending(pending))) => {
                return match self.subject {
                    Subject::Tool => Ok(render::pending_tool_result(&pending)),
                    _ => Err(render::pending_error(&pending)),
                };
            }
            Ok(RoundResult::Outcome(outcome)) => render::into_reply(outcome),
            Err(Failure::Call(error)) => Err(error),
            Err(Failure::Protocol(error)) => return Err(error),
        };
        match reply {
            Ok(reply) => Ok(self.render_reply(&reply)),
            Err(error) => self.render_failure(&error),
        }
    }

    /// Makes the call. Futures that most calls do not need are boxed: otherwise every call's future would reserve space for
    /// them.
    async fn run(&self) -> Result<RoundResult, Failure> {
        let task_mode = match self.shape {
            RequestShape::Legacy { as_task: true } => Box::pin(self.requested_task()).await?,
            _ => self.allowed_task(),
        };
        if let RequestShape::Dialogue { can_ask, .. } = self.shape {
            let call = self.call(task_mode)?;
            return Box::pin(self.run_dialogue(call, can_ask)).await;
        }
        let call = self.direct_call(task_mode.clone())?;
        let ended = self.gateway.plane.call(call).await;
        match (self.shape, ended) {
            (RequestShape::Legacy { .. }, Ok(Outcome::NeedsInput(input))) => {
                let outcome = Box::pin(self.continue_call(task_mode, *input)).await?;
                Ok(RoundResult::Outcome(outcome))
            }
            (RequestShape::Legacy { .. }, ended) => Ok(RoundResult::Outcome(ended?)),
            (_, ended) => self.finish(ended),
        }
    }

    fn render_reply(&self, reply: &Reply) -> Answer {
        let era = self.cx.era();
        match (&self.subject, &reply.body) {
            (Subject::Tool, _) => render::tool_result(reply, era),
            (Subject::Resource(uri), Body::Result(result) | Body::Value(result)) => {
                let is_public = || self.gateway.is_public(uri, self.cx.principal());
                render::resource_result(result, reply, era, is_public)
            }
            (_, Body::Result(result) | Body::Value(result)) => render::relay_result(result, reply, era),
        }
    }

    /// Renders a failed call. The failure of a tool is a result, so that models can read it; any other failure is an error of
    /// the protocol.
    fn render_failure(&self, error: &ToolError) -> Result<Answer, RpcError> {
        let cx = self.cx;
        match &self.subject {
            Subject::Tool if render::is_unknown_tool(error) => {
                Err(RpcError::new(code::INVALID_PARAMS, error.message()))
            }
            Subject::Tool => {
                let protocol_error = page_visit_error(error, cx);
                match protocol_error.or_else(|| render::missing_capability(error, cx.era())) {
                    Some(error) => Err(error),
                    None => Ok(render::failed_tool_result(
                        unsupported_page_visit(error, cx).as_ref().unwrap_or(error),
                    )),
                }
            }
            // A server without completions proposes no values.
            Subject::Completion if render::is_unknown_method(error) => {
                let none = r#"{"completion":{"values":[]}}"#;
                Ok(RawJson::parse(none).expect("the text is JSON").into())
            }
            subject => Err(render::rpc_error(error, cx.era(), subject.uri())),
        }
    }
}
