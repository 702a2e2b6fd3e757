use mcp_wire::{meta_key, param_key};
use raw_json::{JsonKind, RawJson};

/// What the protocol itself reads of a message's parameters, found in one pass.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// `_meta`, if it is an object.
    pub(crate) meta: Option<RawJson>,
    /// Whether that has members which are not the protocol's own.
    pub(crate) has_more_meta: bool,
    /// The revision that the message says it is written in: the mark of the modern era.
    pub(crate) version: Option<RawJson>,
    /// What the client declares with the message.
    pub(crate) capabilities: Option<RawJson>,
    /// The token under which the client wants progress.
    pub(crate) token: Option<RawJson>,
    /// `name`: of the tool or prompt.
    pub(crate) name: Option<RawJson>,
    /// `arguments`: of the tool or prompt.
    pub(crate) arguments: Option<RawJson>,
    /// What few requests have. Boxed, since what is known of a request goes through many hands.
    rare: Option<Box<Rare>>,
}

/// Parameters that few requests have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// `uri`: of the resource.
    pub(crate) uri: Option<RawJson>,
    /// `inputResponses`: what the client was asked for in the round before, if it is an object.
    pub(crate) input_responses: Option<RawJson>,
    /// `requestState`: what the client was told to give back.
    pub(crate) request_state: Option<RawJson>,
    /// `task`: how a call is to be run as a task.
    pub(crate) task: Option<RawJson>,
    /// `taskId`: of the task that is asked about.
    pub(crate) task_id: Option<RawJson>,
    /// The lowest level of log messages that the client wants for this request.
    pub(crate) log_level: Option<RawJson>,
}

impl Outline {
    /// The parameters that few requests have.
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

    pub(crate) fn of(params: Option<&RawJson>) -> Self {
        let mut outline = Self::default();
        for (key, value) in params.into_iter().flat_map(RawJson::parts) {
            match &*key {
                param_key::META if value.kind() == JsonKind::Object => outline.meta = Some(value.to_raw()),
                param_key::NAME => outline.name = Some(value.to_raw()),
                param_key::URI => outline.rare_mut().uri = Some(value.to_raw()),
                param_key::ARGUMENTS => outline.arguments = Some(value.to_raw()),
                param_key::INPUT_RESPONSES if value.kind() == JsonKind::Object => {
                    outline.rare_mut().input_responses = Some(value.to_raw());
                }
                param_key::TASK => outline.rare_mut().task = Some(value.to_raw()),
                param_key::TASK_ID => outline.rare_mut().task_id = Some(value.to_raw()),
                param_key::REQUEST_STATE => outline.rare_mut().request_state = Some(value.to_raw()),
                _ => {}
            }
        }
        let Some(meta) = outline.meta.clone() else {
            return outline;
        };
        for (key, value) in meta.parts() {
            outline.has_more_meta |= !meta_key::is_of_protocol(&key);
            match &*key {
                meta_key::PROTOCOL_VERSION => outline.version = Some(value.to_raw()),
                meta_key::CLIENT_CAPABILITIES => outline.capabilities = Some(value.to_raw()),
                meta_key::LOG_LEVEL => outline.rare_mut().log_level = Some(value.to_raw()),
                meta_key::PROGRESS_TOKEN if matches!(value.kind(), JsonKind::String | JsonKind::Number) => {
                    outline.token = Some(value.to_raw());
                }
                _ => {}
            }
        }
        outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_protocols_own_is_noticed() {
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
            let outline = Outline::of(Some(&RawJson::parse(params).expect("it is JSON")));
            assert_eq!(outline.has_more_meta, expected, "{params}");
        }
    }
}
