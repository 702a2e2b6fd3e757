use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{Backend, CallContext, ErrorKind, Invoke, Outcome, Preview, Reply, ToolError, hide_fields};

use crate::{
    CommandEndpoint, EndpointKeyPlace,
    definition::META_KEY,
    failure::reported,
    protocol::{EndpointReply, EndpointRequest},
};

/// A tool of an endpoint, ready to be called.
pub(crate) struct EndpointCall {
    pub(crate) endpoint: Arc<CommandEndpoint>,
    /// Name of the tool at the endpoint.
    pub(crate) tool: String,
    /// Place of the call's idempotency key in the request.
    pub(crate) key_place: Option<EndpointKeyPlace>,
}

impl EndpointCall {
    fn request(&self, cx: &CallContext) -> Result<EndpointRequest, ToolError> {
        let invalid = |message: String| ToolError::new(ErrorKind::InvalidArguments, message);
        let mut arguments = cx.arguments.raw().clone();
        let key = self.key_place.as_ref().zip(cx.upstream_idempotency_key());
        if let Some((EndpointKeyPlace::Argument(name), key)) = &key {
            if arguments.get(name).is_some() {
                let message = format!("leave out the argument `{name}`: it is made from the idempotency key");
                return Err(invalid(message));
            }
            let with_key = arguments.with_members(&[(name, RawJson::from(key.as_str()))]);
            arguments = with_key.map_err(|error| invalid(error.to_string()))?;
        }
        let request = EndpointRequest::call_tool(self.tool.as_str(), arguments);
        let request = request.map_err(|error| invalid(error.to_string()))?;
        Ok(match &key {
            Some((EndpointKeyPlace::Meta(name), key)) => {
                request.with_meta(RawJson::from_members(&[(name, RawJson::from(key.as_str()))]))
            }
            _ => request,
        })
    }
}

impl Invoke for EndpointCall {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let request = self.request(cx)?;
        let name = &self.endpoint.settings().name;
        let asked = self.endpoint.ask(&request, Some(cx.dispatch())).await;
        match asked {
            Ok(EndpointReply::Result { result, meta, .. }) => {
                let mut reply = Reply::value(result);
                if let Some(meta) = meta {
                    reply.add_meta(META_KEY, meta);
                }
                Ok(reply.into())
            }
            Ok(EndpointReply::Error(failure)) => Err(cx.mark(reported(name, &failure))),
            Ok(_) => Err(ToolError::new(
                ErrorKind::Internal,
                "the reply is one to another request",
            )),
            Err(error) => Err(cx.mark(error.into_tool_error(name, &*self.endpoint.secrets))),
        }
    }
}

impl Backend for EndpointCall {
    fn protocol(&self) -> Option<&'static str> {
        Some("endpoint")
    }

    /// Identifies the endpoint. Returns `None` for commands with references, whose values may change.
    fn backend_id(&self) -> Option<usize> {
        let has_references = self.endpoint.settings().command.has_references();
        (!has_references).then_some(Arc::as_ptr(&self.endpoint) as usize)
    }

    async fn preview(&self, cx: &CallContext) -> Result<Option<Preview>, ToolError> {
        let request = self.request(cx)?.to_json();
        let request = hide_fields(&request, cx.tool().settings().redacted_fields());
        let request = self.endpoint.secrets.hide_in_json(&request).unwrap_or(request);
        let name = &self.endpoint.settings().name;
        let members = [
            ("endpoint", RawJson::from(name.as_str())),
            ("request", request.clone()),
        ];
        let text = format!("nothing is run: the endpoint `{name}` would be started with\n\n{request}");
        Ok(Some(Preview::new(RawJson::from_members(&members), text)))
    }
}
