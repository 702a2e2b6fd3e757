use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{Backend, CallContext, ErrorKind, Invoke, Outcome, Preview, Reply, ToolError, hide_fields};

use crate::{
    Endpoint,
    definition::META_KEY,
    failure::reported,
    protocol::{EndpointReply, EndpointRequest},
};

/// A tool of an endpoint, ready to be called.
pub(crate) struct EndpointCall {
    pub(crate) endpoint: Arc<Endpoint>,
    /// Name of the tool at the endpoint.
    pub(crate) tool: String,
}

impl EndpointCall {
    fn request(&self, cx: &CallContext) -> Result<EndpointRequest, ToolError> {
        EndpointRequest::call_tool(self.tool.as_str(), cx.arguments.raw().clone())
            .map_err(|error| ToolError::new(ErrorKind::InvalidArguments, error.to_string()))
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
