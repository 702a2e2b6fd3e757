use raw_json::{JsonKind, JsonLimits, RawJson};

use super::{EndpointFailure, EndpointRequest, ProtocolError};

/// Reply of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointReply {
    /// Descriptors of all tools: objects.
    Tools(Vec<RawJson>),
    /// Descriptor of a tool: an object.
    Tool(RawJson),
    /// Result of a call.
    #[non_exhaustive]
    Result {
        /// Name of the tool.
        tool: String,
        /// Result: an object that the tool defines.
        result: RawJson,
        /// Statements about the result, such as that it is a fallback: an object in the member `_meta`, which toolplane adds.
        meta: Option<RawJson>,
    },
    /// Error.
    Error(EndpointFailure),
}

impl EndpointReply {
    /// Creates the result of a call.
    ///
    /// # Errors
    /// If the result is no JSON object.
    pub fn result(tool: impl Into<String>, result: RawJson) -> Result<Self, ProtocolError> {
        match result.kind() {
            JsonKind::Object => Ok(Self::Result {
                tool: tool.into(),
                result,
                meta: None,
            }),
            _ => Err(ProtocolError::new("the `result` is no JSON object")),
        }
    }

    /// Sets statements about the result of a call: an object. Other replies have none.
    #[must_use]
    pub fn with_meta(mut self, statements: RawJson) -> Self {
        if let Self::Result { meta, .. } = &mut self {
            *meta = Some(statements).filter(is_object);
        }
        self
    }

    /// Reads the reply to a request: exactly one JSON value.
    ///
    /// # Errors
    /// If the text is no reply to this request.
    ///
    /// # Examples
    /// ```
    /// use tool_exec_endpoint::protocol::{EndpointReply, EndpointRequest};
    ///
    /// let reply = EndpointReply::parse(&EndpointRequest::ListTools, r#"{"type": "result", "tools": []}"#)?;
    /// assert_eq!(reply, EndpointReply::Tools(Vec::new()));
    /// assert!(EndpointReply::parse(&EndpointRequest::ListTools, "ready").is_err());
    /// # Ok::<(), tool_exec_endpoint::protocol::ProtocolError>(())
    /// ```
    pub fn parse(request: &EndpointRequest, text: impl Into<Vec<u8>>) -> Result<Self, ProtocolError> {
        let text: Vec<u8> = text.into();
        if text.trim_ascii().is_empty() {
            return Err(ProtocolError::new("it wrote nothing"));
        }
        let reply = RawJson::parse_within(text, JsonLimits::STRICT)
            .map_err(|error| ProtocolError::new(format!("what it wrote is no JSON value: {error}")))?;
        let kind = reply.get("type").and_then(|kind| kind.string());
        match kind.as_deref() {
            Some("result") => Self::read_result(request, &reply),
            Some("error") => {
                let error = reply.get("error").filter(is_object);
                let error = error.ok_or_else(|| ProtocolError::new("its `error` is no object"))?;
                EndpointFailure::read(&error).map(Self::Error)
            }
            _ => Err(ProtocolError::new(
                "what it wrote has no `type` that is `result` or `error`",
            )),
        }
    }

    fn read_result(request: &EndpointRequest, reply: &RawJson) -> Result<Self, ProtocolError> {
        let object = |key: &str| {
            let member = reply.get(key).filter(is_object);
            member.ok_or_else(|| ProtocolError::new(format!("its result has no object `{key}`")))
        };
        match request {
            EndpointRequest::ListTools => {
                let tools = reply.get("tools").filter(|tools| tools.kind() == JsonKind::Array);
                let tools = tools.ok_or_else(|| ProtocolError::new("its result has no list `tools`"))?;
                let tools: Vec<RawJson> = tools.items().collect();
                match tools.iter().all(is_object) {
                    true => Ok(Self::Tools(tools)),
                    false => Err(ProtocolError::new(
                        "its list `tools` has an entry that is no object",
                    )),
                }
            }
            EndpointRequest::DescribeTool { .. } => object("tool").map(Self::Tool),
            EndpointRequest::CallTool { tool, .. } => {
                let named = reply.get("tool").and_then(|named| named.string());
                match named {
                    Some(named) if named == *tool => {
                        let result = Self::result(named, object("result")?)?;
                        Ok(match reply.get("_meta") {
                            Some(meta) => result.with_meta(meta),
                            None => result,
                        })
                    }
                    Some(_) => Err(ProtocolError::new("its result is of another tool")),
                    None => Err(ProtocolError::new("its result has no text `tool`")),
                }
            }
        }
    }

    /// Returns the reply as JSON.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let result = ("type", RawJson::from("result"));
        let members = match self {
            Self::Tools(tools) => vec![result, ("tools", RawJson::from_items(tools))],
            Self::Tool(tool) => vec![result, ("tool", tool.clone())],
            Self::Result {
                tool,
                result: own,
                meta,
            } => {
                let tool = ("tool", RawJson::from(tool.as_str()));
                let mut members = vec![result, tool, ("result", own.clone())];
                members.extend(meta.clone().map(|meta| ("_meta", meta)));
                members
            }
            Self::Error(failure) => vec![("type", RawJson::from("error")), ("error", failure.to_json())],
        };
        RawJson::from_members(&members)
    }
}

fn is_object(value: &RawJson) -> bool {
    value.kind() == JsonKind::Object
}
