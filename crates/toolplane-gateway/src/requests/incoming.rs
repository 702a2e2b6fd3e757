use std::{borrow::Cow, sync::Arc};

use mcp_server::{Answer, RequestContext};
use mcp_wire::{Request, RpcError, meta_key};
use raw_json::RawJson;
use toolplane::{
    CallRequest,
    core::{Claim, ErrorKind, Outcome, TaskMode, ToolError, TraceContext},
};

use super::{shape::RequestShape, subject::Subject};
use crate::{
    client::{ClientChannel, ProgressChannel},
    discovery::IndirectTarget,
    gateway::GatewayState,
    render::Failure,
};

/// A request that makes a call: of a tool or prompt, of a resource, or for a completion.
pub(crate) struct IncomingRequest<'a> {
    pub(crate) gateway: &'a GatewayState,
    pub(crate) request: &'a Request,
    pub(crate) cx: &'a RequestContext,
    pub(super) subject: Subject,
    /// Target of a call by `tool_call`.
    target: Option<IndirectTarget>,
    pub(crate) shape: RequestShape,
}

/// Result of one round of a call.
pub(crate) enum RoundResult {
    /// The call has ended.
    Outcome(Outcome),
    /// The client must give something first. This answer asks for it.
    Answer(Answer),
}

impl<'a> IncomingRequest<'a> {
    /// Reads a request. Its method must be one of those that make a call. With a target, the request calls the tool that the
    /// target names, with the target's arguments; everything else of the request applies to that call.
    pub(crate) fn new(
        gateway: &'a GatewayState,
        request: &'a Request,
        cx: &'a RequestContext,
        target: Option<IndirectTarget>,
    ) -> Result<Self, RpcError> {
        let subject = Subject::new(request, cx)?;
        Ok(Self {
            gateway,
            request,
            cx,
            shape: RequestShape::new(&subject, cx),
            subject,
            target,
        })
    }

    /// Returns `true` if the request may be answered with questions.
    pub(crate) fn may_ask(&self) -> bool {
        self.subject.may_ask()
    }

    /// Returns the name of the called tool or prompt.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match &self.target {
            Some(target) => Cow::Borrowed(&target.name),
            None => self.cx.name().unwrap_or_default(),
        }
    }

    /// Returns the call that the request makes, with everything that the connection adds to it.
    pub(crate) fn call(&self, task_mode: Option<TaskMode>) -> Result<CallRequest, Failure> {
        let cx = self.cx;
        let mut call = self.gateway.attribute(self.target_call()?, cx);
        if cx.progress().is_wanted() {
            call = call.progress(Arc::new(ProgressChannel(cx.progress().clone())));
        }
        if let Some(extra) = Subject::extra_params(self.request) {
            call = call.extra_params(extra);
        }
        if let Some(task_mode) = task_mode {
            call = call.task_mode(task_mode);
        }
        if let Some((parent, state)) = cx.trace()
            && let Some(trace) = TraceContext::parse(&parent, state.as_deref())
        {
            call = call.trace(trace);
        }
        if let Some(key) = self.meta_text(Claim::META_KEY)? {
            call = call.idempotency_key(key);
        }
        if let Some(version) = self.meta_text(CallRequest::VERSION_KEY)? {
            call = call.version(version);
        }
        Ok(match cx.custom_meta().and_then(end_to_end_meta) {
            Some(meta) => call.meta(meta),
            None => call,
        })
    }

    /// Returns a text of the request's `_meta`.
    fn meta_text(&self, name: &str) -> Result<Option<String>, ToolError> {
        let Some(value) = self.cx.custom_meta().and_then(|meta| meta.get(name)) else {
            return Ok(None);
        };
        let text = value.string().ok_or_else(|| {
            let message = format!("`{name}` in `_meta` must be a string");
            ToolError::new(ErrorKind::InvalidArguments, message)
        })?;
        Ok(Some(text))
    }

    fn target_call(&self) -> Result<CallRequest, Failure> {
        let Some(target) = &self.target else {
            return self.subject.call(self.request, self.cx);
        };
        let call = CallRequest::new(target.name.as_str());
        Ok(match &target.arguments {
            // Already validated with the whole message.
            Some(arguments) => call.checked(arguments.clone())?,
            None => call,
        })
    }

    /// Returns the call that the request makes. The client is asked and notified while the request is in progress.
    pub(crate) fn direct_call(&self, task_mode: Option<TaskMode>) -> Result<CallRequest, Failure> {
        let call = self.call(task_mode)?;
        Ok(match ClientChannel::open(self.cx) {
            Some(channel) => call.ask(channel),
            None => call,
        })
    }
}

/// Returns the members of a request's `_meta` that are meant for its final recipient, without those of a single hop.
fn end_to_end_meta(meta: &RawJson) -> Option<RawJson> {
    let is_of_one_hop = |key: &str| key == meta_key::PROGRESS_TOKEN || key.starts_with(meta_key::PREFIX);
    if meta.parts().all(|(key, _)| is_of_one_hop(&key)) {
        return None;
    }
    let own: Vec<_> = meta
        .members()
        .map(|(key, _)| key)
        .filter(|key| is_of_one_hop(key))
        .collect();
    let own: Vec<&str> = own.iter().map(|key| &**key).collect();
    meta.without_members(&own).ok()
}
