//! Bodies of requests, as an agent sends them.

use std::{
    collections::VecDeque,
    future::Future,
    pin::pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use tool_agent::{
    Agent, AgentEnd, AgentTools, AssistantTurn, Conversation, DefinitionOptions, Model, ModelCall,
    ModelError, ModelRequest, ModelToolChoice, ProviderFormat, RawJson, ToolDefinitions, ToolSpec,
    serde_json::{Value, json},
    tool_core::{BoxFuture, ErrorKind, Outcome, Reply, ToolError},
};

use super::runs::envelope;
use crate::{calls::response, json as raw, value};

/// Body of a request.
pub(super) struct Body {
    /// Description of its conversation, for messages.
    pub(super) name: String,
    /// Body as it is sent.
    pub(super) body: Value,
}

/// Returns tools with schemas of many kinds.
pub(super) fn specs() -> Vec<ToolSpec> {
    let nested = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Files",
        "description": "What to read.",
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 0, "description": "How many."},
            "order": {"type": "string", "enum": ["new", "old"], "default": "new"},
            "kind": {"const": "file"},
            "maybe": {"type": ["string", "null"], "format": "date", "pattern": "^2"},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": true},
            "where": {"$ref": "#/$defs/place"},
            "either": {"anyOf": [{"type": "string"}, {"type": "number", "multipleOf": 0.5}]},
            "deep": {"type": "object", "properties": {"x": {"type": "object", "additionalProperties": {"type": "number"}}}},
        },
        "required": ["n"],
        "additionalProperties": false,
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    });
    let union = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    // Schemas that take anything, or nothing.
    let booleans = json!({
        "type": "object",
        "properties": {"x": true, "y": {}, "z": false, "l": {"type": "array", "items": true},
            "o": {"type": "object", "properties": {"x": true}}, "e": {"anyOf": [true, {"type": "null"}]}},
    });
    let tools = [
        (
            "files.read",
            "Reads \"files\".\nLines \u{2028} and </script>.",
            nested,
        ),
        ("union", "", union),
        ("booleans", "Takes anything.", booleans),
        ("any", "Takes anything.", json!({"type": "object"})),
        ("nothing", "Has no type.", json!({})),
        ("types", "Has two types.", json!({"type": ["object", "null"]})),
        (
            "Über alles/very long: a name of more than 128 characters, which no provider takes as it is, so that all of them shorten it to what they take",
            "Größe.",
            json!(true),
        ),
    ];
    tools
        .into_iter()
        .map(|(name, description, schema)| ToolSpec::new(name, description, raw(&schema.to_string())))
        .collect()
}

/// A model that keeps the bodies of its requests.
struct KeepBodies {
    format: ProviderFormat,
    turns: Mutex<VecDeque<AssistantTurn>>,
    max_tokens: Option<u32>,
    bodies: Mutex<Vec<Value>>,
}

impl Model for KeepBodies {
    fn format(&self) -> ProviderFormat {
        self.format
    }

    fn turn<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<AssistantTurn, ModelError>> {
        let bodies = [false, true].map(|is_stream| value(&request.body("model", self.max_tokens, is_stream)));
        self.bodies.lock().expect("nothing panics with it").extend(bodies);
        let turn = self.turns.lock().expect("nothing panics with it").pop_front();
        Box::pin(async move { turn.ok_or_else(|| ModelError::new("there is no turn left")) })
    }
}

/// A tool that always ends in the same way.
#[derive(Clone, Copy)]
struct Tools(End);

/// End of a call.
type End = fn() -> Result<Reply, ToolError>;

impl AgentTools for Tools {
    fn call_turn<'a>(&'a self, calls: &'a [ModelCall]) -> BoxFuture<'a, Vec<Result<Outcome, ToolError>>> {
        let results = calls.iter().map(|_| (self.0)().map(Outcome::from)).collect();
        Box::pin(async move { results })
    }
}

/// Ends of calls, and their names.
const ENDS: [(&str, End); 5] = [
    ("media", || {
        let content = json!({"content": [
            {"type": "text", "text": "Look:"},
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
            {"type": "image", "mimeType": "image/tiff", "data": "aW1hZ2U="},
            {"type": "audio", "mimeType": "audio/wav", "data": "c291bmQ="},
            {"type": "audio", "mimeType": "audio/mpeg", "data": "c291bmQ="},
            {"type": "audio", "mimeType": "audio/ogg", "data": "c291bmQ="},
            {"type": "resource", "resource": {"uri": "file:///a/b.pdf", "mimeType": "application/pdf", "blob": "ZmlsZQ=="}},
            {"type": "resource_link", "uri": "https://example.com", "name": "elsewhere"},
        ]});
        Ok(Reply::result(RawJson::from(content), false))
    }),
    ("structure", || {
        Ok(Reply::from(json!({"sky": "clear", "n": [1, 2.5, null]})))
    }),
    ("nothing", || {
        Ok(Reply::result(RawJson::from(json!({"content": []})), false))
    }),
    ("text", || Ok(Reply::from(json!("It rains.")))),
    ("failure", || {
        Err(ToolError::new(ErrorKind::Timeout, "no answer within 5 s"))
    }),
];

/// Returns the bodies of a format: with each choice, with each end of calls, and without tools.
pub(super) fn bodies(format: ProviderFormat) -> Vec<Body> {
    let choices = [
        ModelToolChoice::Auto,
        ModelToolChoice::None,
        ModelToolChoice::Required,
        ModelToolChoice::Tool("files.read".into()),
    ];
    let mut bodies = Vec::new();
    for is_strict in [false, true] {
        let options = DefinitionOptions::default().with_strict(is_strict);
        let made = ToolDefinitions::new(format, &specs(), options);
        for ((end, result), choice) in ENDS.into_iter().zip(choices.iter().cycle()) {
            let name = format!("strict: {is_strict}, {choice:?}, {end}");
            bodies.extend(conversation(&name, &made, choice, Tools(result)));
        }
    }
    let made = ToolDefinitions::new(format, &[], DefinitionOptions::default());
    let (_, result) = ENDS[0];
    let without = conversation("no tools", &made, &ModelToolChoice::Auto, Tools(result));
    bodies.extend(without);
    bodies
}

/// Returns the bodies of a conversation. Its first turn is as a provider wrote it, and the next ones are
/// written here, one of them with arguments that were cut off.
fn conversation(name: &str, made: &ToolDefinitions, choice: &ModelToolChoice, tools: Tools) -> Vec<Body> {
    let format = made.format();
    let turn = |whole: &Value| AssistantTurn::read(made, &raw(&whole.to_string())).expect("it is read");
    let first = turn(&response(format));
    let mut second = first.clone();
    second.messages = AssistantTurn::write(made, "", &first.calls);
    let mut cut = first.clone();
    cut.calls = calls_cut_off();
    cut.messages = AssistantTurn::write(made, "I look.", &cut.calls);
    let last = turn(&envelope(format, &AssistantTurn::write(made, "Done.", &[])));
    // System and limit of tokens are there or not: each both ways.
    let has_system = matches!(choice, ModelToolChoice::Auto | ModelToolChoice::Required);
    let model = KeepBodies {
        format,
        turns: Mutex::new([first, second, cut, last].into()),
        max_tokens: has_system.then_some(500),
        bodies: Mutex::default(),
    };
    let mut conversation = Conversation::new(format);
    if has_system {
        conversation = conversation.with_system("Be brief.");
    }
    conversation.user("What is there?");
    let agent = Agent::new(&model, &tools, made).with_choice(choice.clone());
    let end = block_on(agent.run(&mut conversation, &())).expect("it ends");
    assert!(matches!(end, AgentEnd::Answered { text, .. } if text == "Done."));
    let bodies = model.bodies.into_inner().expect("nothing panics with it");
    let named = bodies.into_iter().map(|body| Body {
        name: name.to_owned(),
        body,
    });
    named.collect()
}

/// Returns a call whose arguments were cut off, as Chat Completions has it.
fn calls_cut_off() -> Vec<ModelCall> {
    let made = ToolDefinitions::new(ProviderFormat::OpenAiChat, &specs(), DefinitionOptions::default());
    let function = json!({"name": "files_read", "arguments": "{\"n\": 1"});
    let call = json!({"id": "c3", "type": "function", "function": function});
    let response = json!({"choices": [{"finish_reason": "length", "message": {"tool_calls": [call]}}]});
    let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
    assert!(!turn.calls[0].has_valid_arguments());
    turn.calls
}

/// Runs a future that waits for nothing.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits for something"),
    }
}
