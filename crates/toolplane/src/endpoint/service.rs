use std::time::Duration;

use raw_json::RawJson;
use tool_core::{Arguments, Body, ErrorKind, Outcome, Reply, ToolError};
use tool_exec_endpoint::protocol::{EndpointFailure, EndpointReply, EndpointRequest};

use super::description::{as_object, descriptor};
use crate::{CallRequest, Toolplane};

/// Component that errors name.
const COMPONENT: &str = "toolplane";
/// Key in `_meta` of the idempotency key of a call.
const IDEMPOTENCY_KEY: &str = "dev.toolplane/idempotency-key";
/// Time that a list waits for a server that is starting.
const LIST_WAIT: Duration = Duration::from_secs(15);

/// Service that answers requests of the [endpoint protocol](tool_exec_endpoint::protocol) with the tools of a toolplane, for its
/// local caller. Calls pass all layers.
///
/// # Examples
/// ```
/// use toolplane::{EndpointService, Toolplane};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = Toolplane::from_yaml(
///     "tools: {greet: {description: Greets., executor: {kind: mock, result: {text: hello}}}}",
/// )?;
/// let service = EndpointService::new(plane);
/// let reply = service.answer(br#"{"action": "call_tool", "tool": "greet", "arguments": {}}"#).await;
/// assert_eq!(reply.as_str(), r#"{"type":"result","tool":"greet","result":{"text":"hello"}}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EndpointService {
    plane: Toolplane,
    list_wait: Duration,
}

impl EndpointService {
    /// Creates a service for the tools of a toolplane.
    #[must_use]
    pub fn new(plane: Toolplane) -> Self {
        Self {
            plane,
            list_wait: LIST_WAIT,
        }
    }

    /// Sets the time that a list waits for a server that is starting: 15 s by default.
    #[must_use]
    pub fn with_list_wait(mut self, list_wait: Duration) -> Self {
        self.list_wait = list_wait;
        self
    }

    /// Answers a request. The answer is a reply of the protocol, whatever the request is.
    ///
    /// # Cancellation
    /// Dropping the future cancels a call.
    pub async fn answer(&self, request: &[u8]) -> RawJson {
        let reply = match EndpointRequest::parse(request) {
            Ok(request) => self.reply(request).await,
            Err(error) => Err(ToolError::new(ErrorKind::InvalidArguments, error.to_string())),
        };
        match reply {
            Ok(reply) => reply.to_json(),
            Err(error) => Self::failure(&error),
        }
    }

    /// Returns the answer to a request that failed with this error, such as one that never reached a toolplane.
    #[must_use]
    pub fn failure(error: &ToolError) -> RawJson {
        let failure = EndpointFailure::new(COMPONENT, error.kind(), error.message());
        EndpointReply::Error(failure).to_json()
    }

    async fn reply(&self, request: EndpointRequest) -> Result<EndpointReply, ToolError> {
        let caller = self.plane.local_caller();
        match request {
            EndpointRequest::ListTools => {
                let listing = self.plane.list_within(&caller, self.list_wait).await;
                for missing in &listing.missing {
                    tracing::warn!(
                        server = missing.server,
                        state = missing.state.as_str(),
                        "the list lacks the tools of a server"
                    );
                }
                let tools = listing.view.tools().iter().map(|tool| descriptor(tool));
                Ok(EndpointReply::Tools(tools.collect()))
            }
            EndpointRequest::DescribeTool { tool, .. } => {
                let tool = self.plane.tool(&tool, &caller).await?;
                Ok(EndpointReply::Tool(descriptor(&tool)))
            }
            EndpointRequest::CallTool {
                tool,
                arguments,
                meta,
                ..
            } => self.call(tool, arguments, meta).await,
            _ => Err(ToolError::new(
                ErrorKind::InvalidArguments,
                "this action is not supported",
            )),
        }
    }

    async fn call(
        &self,
        tool: String,
        arguments: RawJson,
        meta: Option<RawJson>,
    ) -> Result<EndpointReply, ToolError> {
        // The whole request was read within the limits of arguments.
        let arguments = Arguments::from_checked(arguments)?;
        let mut request = CallRequest::new(tool.as_str()).arguments(arguments);
        let key = meta.and_then(|meta| meta.get(IDEMPOTENCY_KEY)?.string());
        if let Some(key) = key {
            request = request.idempotency_key(key);
        }
        let mut reply = finished(self.plane.call(request).await?)?;
        if reply.is_error {
            return Err(ToolError::new(ErrorKind::UpstreamError, reply.text()));
        }
        let meta = reply.take_meta();
        let result = match &reply.body {
            Body::Value(value) => as_object(value.clone()),
            Body::Result(result) => structured(result),
        };
        let reply = EndpointReply::result(tool, result)
            .map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
        Ok(match meta.is_empty() {
            true => reply,
            false => reply.with_meta(RawJson::from_members(&meta)),
        })
    }
}

/// Returns the structured content of a result of an MCP server, or else the result as it is.
fn structured(result: &RawJson) -> RawJson {
    let content = result.get("structuredContent");
    let content = content.filter(|content| content.kind() != raw_json::JsonKind::Null);
    as_object(content.unwrap_or_else(|| result.clone()))
}

/// Returns the reply of a call that is finished. A program that answers one request cannot be asked, nor continue a task.
fn finished(outcome: Outcome) -> Result<Reply, ToolError> {
    match outcome {
        Outcome::Pending(pending) => {
            let kind = match pending.is_at_work() {
                true => ErrorKind::Unavailable,
                false => ErrorKind::Denied,
            };
            Err(ToolError::new(kind, format!("pending: {}", pending.advice())))
        }
        Outcome::NeedsInput(_) => Err(ToolError::new(
            ErrorKind::MissingCapability,
            "the tool asks for input, which an endpoint cannot give",
        )),
        outcome => outcome.into_reply(),
    }
}
