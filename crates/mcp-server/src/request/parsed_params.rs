use mcp_wire::{meta_key, param_key};
use raw_json::{JsonKind, RawJson};

/// Members of a message's parameters that the protocol itself reads, found in one pass. Their keys are those of
/// [`param_key`] and [`meta_key`].
#[derive(Debug, Clone, Default)]
pub(crate) struct ParsedParams {
    /// `_meta`, if it is an object.
    pub(crate) meta: Option<RawJson>,
    /// `true` if `_meta` has members that the protocol does not define.
    pub(crate) has_custom_meta: bool,
    /// Revision that the message declares: the mark of the modern era.
    pub(crate) version: Option<RawJson>,
    /// Capabilities that the client declares with the message.
    pub(crate) capabilities: Option<RawJson>,
    /// Token under which the client wants progress.
    pub(crate) token: Option<RawJson>,
    /// `name` of the tool or prompt.
    pub(crate) name: Option<RawJson>,
    /// `arguments` of the tool or prompt.
    pub(crate) arguments: Option<RawJson>,
    /// Members that few requests have. Boxed, since the parsed parameters are moved often.
    rare: Option<Box<Rare>>,
}

/// Members of the parameters that few requests have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rare {
    /// `uri` of the resource.
    pub(crate) uri: Option<RawJson>,
    /// `inputResponses`, the answers to the questions of the round before, if it is an object.
    pub(crate) input_responses: Option<RawJson>,
    /// `requestState`, the state that the client returns.
    pub(crate) request_state: Option<RawJson>,
    /// `task`, the settings of the task that a call is to become.
    pub(crate) task: Option<RawJson>,
    /// `taskId` of the task that the request is about.
    pub(crate) task_id: Option<RawJson>,
    /// Lowest level of log messages that the client wants for this request.
    pub(crate) log_level: Option<RawJson>,
}

impl ParsedParams {
    /// Returns the members that few requests have.
    pub(crate) fn rare(&self) -> &Rare {
        static NONE: Rare = Rare {
            uri: None,
            input_responses: None,
            request_state: None,
            task: None,
            task_id: None,
            log_level: None,
        };
        self.rare.as_deref().unwrap_or(&NONE)
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Reads the parameters of a message.
    pub(crate) fn parse(params: Option<&RawJson>) -> Self {
        let mut parsed = Self::default();
        for (key, value) in params.into_iter().flat_map(RawJson::parts) {
            match &*key {
                param_key::META if value.kind() == JsonKind::Object => parsed.meta = Some(value.to_raw()),
                param_key::NAME => parsed.name = Some(value.to_raw()),
                param_key::URI => parsed.rare_mut().uri = Some(value.to_raw()),
                param_key::ARGUMENTS => parsed.arguments = Some(value.to_raw()),
                param_key::INPUT_RESPONSES if value.kind() == JsonKind::Object => {
                    parsed.rare_mut().input_responses = Some(value.to_raw());
                }
                param_key::TASK => parsed.rare_mut().task = Some(value.to_raw()),
                param_key::TASK_ID => parsed.rare_mut().task_id = Some(value.to_raw()),
                param_key::REQUEST_STATE => parsed.rare_mut().request_state = Some(value.to_raw()),
                _ => {}
            }
        }
        let Some(meta) = parsed.meta.clone() else {
            return parsed;
        };
        for (key, value) in meta.parts() {
            parsed.has_custom_meta |= !meta_key::is_of_protocol(&key);
            match &*key {
                meta_key::PROTOCOL_VERSION => parsed.version = Some(value.to_raw()),
                meta_key::CLIENT_CAPABILITIES => parsed.capabilities = Some(value.to_raw()),
                meta_key::LOG_LEVEL => parsed.rare_mut().log_level = Some(value.to_raw()),
                meta_key::PROGRESS_TOKEN if matches!(value.kind(), JsonKind::String | JsonKind::Number) => {
                    parsed.token = Some(value.to_raw());
                }
                _ => {}
            }
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_meta_is_recognized() {
        for (params, expected) in [
            (r#"{"name":"x"}"#, false),
            (r#"{"_meta":{}}"#, false),
            (
                r#"{"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"info"}}"#,
                false,
            ),
            (r#"{"_meta":{"progressToken":1,"traceparent":"00-1"}}"#, true),
            (
                r#"{"_meta":{"dev.toolplane/cache":"bypass","progressToken":1}}"#,
                true,
            ),
        ] {
            let parsed = ParsedParams::parse(Some(&RawJson::parse(params).expect("it is JSON")));
            assert_eq!(parsed.has_custom_meta, expected, "{params}");
        }
    }
}
