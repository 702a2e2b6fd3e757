use std::sync::Arc;

use mcp_server::{Answer, RequestContext};
use mcp_wire::{RpcError, code};
use raw_json::{Kind, RawJson};
use toolplane::{
    CallRequest,
    core::{self, ErrorKind, TraceContext},
};

use crate::{Gateway, render};

/// Answers `tools/call`.
pub(crate) async fn call(gateway: &Gateway, cx: &RequestContext) -> Result<Answer, RpcError> {
    let name = cx.name().and_then(RawJson::string);
    let name = name.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`name` must be a string"))?;
    // Some clients write `null` for none.
    let arguments = cx.arguments().filter(|arguments| arguments.kind() != Kind::Null);
    let request = match arguments {
        // The transport has checked the message as a whole: `mcp_wire::Message::from_client`.
        Some(arguments) => CallRequest::new(name).checked(arguments.clone()),
        None => Ok(CallRequest::new(name)),
    };
    let outcome = match request {
        Ok(request) => gateway.plane().call(complete(gateway, request, cx)).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(outcome) => Ok(render::outcome(&outcome, cx.era())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(RpcError::new(code::INVALID_PARAMS, error.message()))
        }
        Err(error) => Ok(render::error(&error)),
    }
}

/// The request with what the connection knows of it.
fn complete(gateway: &Gateway, request: CallRequest, cx: &RequestContext) -> CallRequest {
    let mut request = request.caller(gateway.caller(cx.principal()));
    if cx.progress().is_wanted() {
        request = request.progress(Arc::new(Reports(cx.progress().clone())));
    }
    if let Some((traceparent, tracestate)) = cx.trace() {
        request = request.trace(TraceContext {
            traceparent: traceparent.into(),
            tracestate: tracestate.map(Into::into),
        });
    }
    request
}

/// The way of a tool's progress to the client.
struct Reports(mcp_server::Progress);

impl core::Progress for Reports {
    fn report(&self, report: RawJson) {
        self.0.report(&report);
    }
}
