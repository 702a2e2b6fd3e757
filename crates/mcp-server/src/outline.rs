use mcp_wire::meta_key;
use raw_json::{Kind, RawJson};

/// What the protocol itself reads of a message's parameters, found in one pass.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// `_meta`, if it is an object.
    pub(crate) meta: Option<RawJson>,
    /// The revision that the message says it is written in: the mark of the modern era.
    pub(crate) version: Option<RawJson>,
    /// What the client declares with the message.
    pub(crate) capabilities: Option<RawJson>,
    /// The token under which the client wants progress.
    pub(crate) token: Option<RawJson>,
    /// `name`: of the tool or prompt.
    pub(crate) name: Option<RawJson>,
    /// `uri`: of the resource.
    pub(crate) uri: Option<RawJson>,
    /// `arguments`: of the tool or prompt.
    pub(crate) arguments: Option<RawJson>,
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
    pub(crate) fn of(params: Option<&RawJson>) -> Self {
        let mut outline = Self::default();
        for (key, value) in params.into_iter().flat_map(RawJson::members) {
            match &*key {
                "_meta" if value.kind() == Kind::Object => outline.meta = Some(value),
                "name" => outline.name = Some(value),
                "uri" => outline.uri = Some(value),
                "arguments" => outline.arguments = Some(value),
                "inputResponses" if value.kind() == Kind::Object => outline.input_responses = Some(value),
                "task" => outline.task = Some(value),
                "taskId" => outline.task_id = Some(value),
                "requestState" => outline.request_state = Some(value),
                _ => {}
            }
        }
        let Some(meta) = &outline.meta else {
            return outline;
        };
        for (key, value) in meta.members() {
            match &*key {
                meta_key::PROTOCOL_VERSION => outline.version = Some(value),
                meta_key::CLIENT_CAPABILITIES => outline.capabilities = Some(value),
                meta_key::LOG_LEVEL => outline.log_level = Some(value),
                meta_key::PROGRESS_TOKEN if matches!(value.kind(), Kind::String | Kind::Number) => {
                    outline.token = Some(value);
                }
                _ => {}
            }
        }
        outline
    }
}
