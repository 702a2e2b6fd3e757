//! Formats as the providers' own SDKs see them: an SDK sends what we write to a provider on this machine, and reads what we read.

mod bodies;
mod provider;
mod runs;
mod script;
mod types;

use tool_agent::{
    AssistantTurn, CallOutput, DefinitionOptions, ModelToolChoice, NoteKind, ProviderFormat, RawJson,
    ToolDefinitions, ToolSpec,
    serde_json::{self, Value, json},
    tool_core::Reply,
};

use self::{
    provider::Provider,
    script::{Registry, Sdks},
};
use crate::{
    calls::response,
    json as raw,
    streams::{events, read},
    value,
};

/// Returns the definitions of two tools, one of them with a name that no provider but Gemini takes.
fn tools(format: ProviderFormat) -> ToolDefinitions {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["n"],
    });
    let spec = |name: &str| ToolSpec::new(name, "A tool.", raw(&schema.to_string()));
    ToolDefinitions::new(
        format,
        &[spec("files.read"), spec("web_search")],
        DefinitionOptions::default().with_strict(true),
    )
}

/// Returns a history: a question, a turn with calls, and their results.
fn history(format: ProviderFormat, definitions: &ToolDefinitions) -> Vec<RawJson> {
    let question = match format {
        ProviderFormat::Gemini => json!({"role": "user", "parts": [{"text": "What is there?"}]}),
        _ => json!({"role": "user", "content": "What is there?"}),
    };
    let turn = AssistantTurn::read(definitions, &raw(&response(format).to_string())).expect("it is read");
    let image = json!({"content": [
        {"type": "text", "text": "Look:"},
        {"type": "image", "mimeType": "image/png", "data": "aW1hZ2U="},
    ]});
    let results: Vec<_> = turn
        .calls
        .iter()
        .zip([
            Reply::result(RawJson::from(image), false),
            Reply::from(json!({"n": 1})),
        ])
        .map(|(call, reply)| CallOutput::of_reply(call, &reply))
        .collect();
    let results = CallOutput::write(format, &results);
    let question = RawJson::from(question);
    [question]
        .into_iter()
        .chain(turn.messages)
        .chain(results.messages)
        .collect()
}

/// Writes names as Google documents them. Its SDK writes some in the other spelling that the API takes.
fn in_camel_case(value: Value) -> Value {
    let other = |key: String| match key.as_str() {
        "inline_data" => "inlineData".to_owned(),
        "mime_type" => "mimeType".to_owned(),
        "parameters_json_schema" => "parametersJsonSchema".to_owned(),
        _ => key,
    };
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (other(key), in_camel_case(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.into_iter().map(in_camel_case).collect(),
        leaf => leaf,
    }
}

#[test]
fn sdks_of_pypi_send_what_we_write_and_read_what_we_read() {
    converse(Registry::PyPi);
}

#[test]
fn sdks_of_npm_send_what_we_write_and_read_what_we_read() {
    converse(Registry::Npm);
}

/// Sends a history by the SDKs of a registry, and compares what they send and read with what is written and read here.
fn converse(registry: Registry) {
    let Some(mut sdks) = Sdks::start(registry) else {
        return;
    };
    for &format in ProviderFormat::ALL {
        let definitions = tools(format);
        let messages: Vec<_> = history(format, &definitions).iter().map(value).collect();
        let choice = ModelToolChoice::Required.to_provider(format, definitions.names());
        let choice: serde_json::Map<_, _> = choice
            .into_iter()
            .map(|(key, choice)| (key.to_owned(), value(&choice)))
            .collect();
        let whole = response(format);
        let provider = Provider::start(format, vec![whole.clone()]);
        for is_stream in [false, true] {
            let request = json!({
                "format": format.as_str(),
                "url": provider.url,
                "stream": is_stream,
                "tools": value(definitions.tools()),
                "messages": messages,
                "choice": choice,
            });
            let seen = sdks.call(&request);
            let (_, turn) = match is_stream {
                true => read(&definitions, &events(format, &whole, &[0.5])),
                false => {
                    let turn = AssistantTurn::read(&definitions, &raw(&whole.to_string()));
                    (String::new(), turn.expect("it is read"))
                }
            };
            check_turn(format, &seen, &turn);
            check_request(registry, &definitions, &request, provider.last());
        }
    }
}

/// Checks that an SDK read the same turn.
fn check_turn(format: ProviderFormat, seen: &Value, turn: &AssistantTurn) {
    assert_eq!(seen["text"], turn.text, "{format:?}");
    let calls = seen["calls"].as_array().expect("a list");
    assert_eq!(calls.len(), turn.calls.len(), "{format:?}");
    for (seen, call) in calls.iter().zip(&turn.calls) {
        assert_eq!(seen[1], call.name, "{format:?}");
        let arguments = seen[2].as_str().expect("a text");
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        assert_eq!(value(&raw(arguments)), value(&call.arguments), "{format:?}");
        if let Some(id) = seen[0].as_str() {
            assert_eq!(id, call.id, "{format:?}");
        }
    }
}

/// Checks that what an SDK sent is what was written.
fn check_request(registry: Registry, definitions: &ToolDefinitions, request: &Value, sent: Value) {
    let format = definitions.format();
    let sent = in_camel_case(sent);
    let mut tools = request["tools"].clone();
    if format == ProviderFormat::Ollama {
        let notes = definitions.notes().iter();
        let ignored = notes.filter(|note| note.kind == NoteKind::Ignored);
        assert_eq!(ignored.count(), 2);
        // As a note says, it ignores this keyword; its SDK from PyPI does not even send it.
        let not_sent = tools.as_array_mut().expect("a list").iter_mut();
        for tool in not_sent.filter(|_| registry == Registry::PyPi) {
            let property = tool.pointer_mut("/function/parameters/properties/n");
            property
                .and_then(Value::as_object_mut)
                .expect("it is there")
                .remove("minimum");
        }
    }
    assert_eq!(sent["tools"], tools, "{format:?}");
    let messages = match format {
        ProviderFormat::OpenAiResponses => "input",
        ProviderFormat::Gemini => "contents",
        _ => "messages",
    };
    assert_eq!(sent[messages], request["messages"], "{format:?}");
    for (key, choice) in request["choice"].as_object().expect("an object") {
        assert_eq!(sent[key], *choice, "{format:?}");
    }
}
