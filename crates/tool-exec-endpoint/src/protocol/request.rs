use raw_json::{JsonKind, JsonLimits, RawJson};

use super::ProtocolError;

/// Request to an endpoint.
///
/// # Examples
/// ```
/// use tool_exec_endpoint::protocol::EndpointRequest;
///
/// let text = r#"{"action": "call_tool", "tool": "echo", "arguments": {"message": "hi"}}"#;
/// let request = EndpointRequest::parse(text)?;
/// assert!(matches!(&request, EndpointRequest::CallTool { tool, .. } if tool == "echo"));
/// assert_eq!(request.to_json().get("action").unwrap().as_str(), r#""call_tool""#);
/// # Ok::<(), tool_exec_endpoint::protocol::ProtocolError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointRequest {
    /// List all tools.
    ListTools,
    /// Describe one tool.
    #[non_exhaustive]
    DescribeTool {
        /// Name of the tool.
        tool: String,
    },
    /// Call a tool.
    #[non_exhaustive]
    CallTool {
        /// Name of the tool.
        tool: String,
        /// Arguments: an object.
        arguments: RawJson,
        /// Statements about the call, such as an idempotency key: an object in the member `_meta`, which toolplane adds.
        meta: Option<RawJson>,
    },
}

impl EndpointRequest {
    /// Words of all actions.
    pub const ACTIONS: &'static [&'static str] = &["list_tools", "describe_tool", "call_tool"];

    /// Creates a request for the description of a tool.
    #[must_use]
    pub fn describe_tool(tool: impl Into<String>) -> Self {
        Self::DescribeTool { tool: tool.into() }
    }

    /// Creates a call of a tool.
    ///
    /// # Errors
    /// If the arguments are no JSON object.
    pub fn call_tool(tool: impl Into<String>, arguments: RawJson) -> Result<Self, ProtocolError> {
        match arguments.kind() {
            JsonKind::Object => Ok(Self::CallTool {
                tool: tool.into(),
                arguments,
                meta: None,
            }),
            _ => Err(ProtocolError::new("the `arguments` are no JSON object")),
        }
    }

    /// Sets statements about a call: an object. Other requests have none.
    #[must_use]
    pub fn with_meta(mut self, statements: RawJson) -> Self {
        if let Self::CallTool { meta, .. } = &mut self {
            *meta = Some(statements).filter(|statements| statements.kind() == JsonKind::Object);
        }
        self
    }

    /// Reads a request. A call without `arguments` has none.
    ///
    /// # Errors
    /// If the text is no request: with the reason, for the one who wrote it.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, ProtocolError> {
        let request = RawJson::parse_within(text.as_ref().to_vec(), JsonLimits::STRICT)
            .map_err(|error| ProtocolError::new(format!("the request is no JSON: {error}")))?;
        if request.kind() != JsonKind::Object {
            return Err(ProtocolError::new("the request is no JSON object"));
        }
        let action = request.get("action").and_then(|action| action.string());
        match action.as_deref() {
            Some("list_tools") => Ok(Self::ListTools),
            Some("describe_tool") => Ok(Self::describe_tool(tool(&request)?)),
            Some("call_tool") => {
                let arguments = request.get("arguments").unwrap_or_else(RawJson::object);
                let call = Self::call_tool(tool(&request)?, arguments)?;
                Ok(match request.get("_meta") {
                    Some(meta) => call.with_meta(meta),
                    None => call,
                })
            }
            Some(other) => Err(ProtocolError::new(format!(
                "unknown `action` `{}`: there are {}",
                other.chars().take(64).collect::<String>().escape_debug(),
                Self::ACTIONS.join(", ")
            ))),
            None => Err(ProtocolError::new(format!(
                "the request has no text `action`: there are {}",
                Self::ACTIONS.join(", ")
            ))),
        }
    }

    /// Returns the request as JSON.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let mut members = vec![("action", RawJson::from(self.action()))];
        match self {
            Self::ListTools => {}
            Self::DescribeTool { tool } => members.push(("tool", RawJson::from(tool.as_str()))),
            Self::CallTool {
                tool,
                arguments,
                meta,
            } => {
                members.push(("tool", RawJson::from(tool.as_str())));
                members.push(("arguments", arguments.clone()));
                members.extend(meta.clone().map(|meta| ("_meta", meta)));
            }
        }
        RawJson::from_members(&members)
    }

    /// Returns the word of the action.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::ListTools => "list_tools",
            Self::DescribeTool { .. } => "describe_tool",
            Self::CallTool { .. } => "call_tool",
        }
    }
}

fn tool(request: &RawJson) -> Result<String, ProtocolError> {
    let tool = request.get("tool").and_then(|tool| tool.string());
    tool.filter(|tool| !tool.is_empty())
        .ok_or_else(|| ProtocolError::new("the request has no text `tool` with the name of a tool"))
}
