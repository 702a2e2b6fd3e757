//! Loops of the SDKs from npm: they read turns that were written here, call tools of their own, and their requests are read here.

use tool_agent::{
    AssistantTurn, CallOutput, ContentPart, ModelCall, ModelToolChoice, ProviderFormat, RawJson,
    ToolDefinitions,
    serde_json::{Value, json},
};

use super::{
    provider::Provider,
    script::{Registry, Sdks},
};
use crate::{calls::response, definitions, json as raw, value};

/// Puts messages of the model into the response in which its provider sends them.
pub(super) fn envelope(format: ProviderFormat, messages: &[RawJson]) -> Value {
    let mut whole = response(format);
    let mut messages: Vec<_> = messages.iter().map(value).collect();
    let has_calls = messages[0]["tool_calls"].is_array() || messages[0].to_string().contains("tool_use");
    match format {
        ProviderFormat::OpenAiChat => {
            let reason = if has_calls { "tool_calls" } else { "stop" };
            whole["choices"][0]["finish_reason"] = reason.into();
            whole["choices"][0]["message"] = messages.remove(0);
        }
        ProviderFormat::OpenAiResponses => {
            // A message of a request is shorter than one of a response.
            let said = json!([{"type": "output_text", "text": messages[0]["content"], "annotations": []}]);
            // Ids are unique in a conversation.
            let id = format!("m{}", messages.len());
            messages[0] = json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": said});
            for (index, call) in messages.iter_mut().enumerate().skip(1) {
                call["id"] = format!("f{index}").into();
                call["status"] = "completed".into();
            }
            whole["output"] = messages.into();
        }
        ProviderFormat::Anthropic => {
            let reason = if has_calls { "tool_use" } else { "end_turn" };
            whole["stop_reason"] = reason.into();
            whole["content"] = messages[0]["content"].take();
        }
        ProviderFormat::Gemini => whole["candidates"][0]["content"] = messages.remove(0),
        _ => whole["message"] = messages.remove(0),
    }
    whole
}

/// Returns calls of both tools of the script.
fn calls(made: &ToolDefinitions) -> Vec<ModelCall> {
    let response = match made.format() {
        ProviderFormat::Gemini => json!({"candidates": [{"content": {"parts": [
            {"functionCall": {"id": "c1", "name": "look", "args": {"city": "Oslo"}}},
            {"functionCall": {"id": "c2", "name": "fail", "args": {"city": "Atlantis"}}},
        ]}}]}),
        ProviderFormat::Ollama => json!({"message": {"tool_calls": [
            {"function": {"name": "look", "arguments": {"city": "Oslo"}}},
            {"function": {"name": "fail", "arguments": {"city": "Atlantis"}}},
        ]}}),
        ProviderFormat::Anthropic => json!({"content": [
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"city": "Oslo"}},
            {"type": "tool_use", "id": "c2", "name": "fail", "input": {"city": "Atlantis"}},
        ]}),
        ProviderFormat::OpenAiChat => json!({"choices": [{"message": {"tool_calls": [
            {"id": "c1", "function": {"name": "look", "arguments": r#"{"city":"Oslo"}"#}},
            {"id": "c2", "function": {"name": "fail", "arguments": r#"{"city":"Atlantis"}"#}},
        ]}}]}),
        _ => json!({"output": [
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": r#"{"city":"Oslo"}"#},
            {"type": "function_call", "call_id": "c2", "name": "fail", "arguments": r#"{"city":"Atlantis"}"#},
        ]}),
    };
    let turn = AssistantTurn::read(made, &raw(&response.to_string())).expect("it is read");
    turn.calls
}

#[test]
fn sdks_of_npm_run_what_we_write_and_we_read_what_they_send() {
    let Some(mut sdks) = Sdks::start(Registry::Npm) else {
        return;
    };
    for &format in ProviderFormat::ALL {
        let made = definitions(format, &["look", "fail"]);
        let calls = calls(&made);
        let turn = envelope(format, &AssistantTurn::write(&made, "I look.", &calls));
        let answer = envelope(format, &AssistantTurn::write(&made, "It rains.", &[]));
        // That of Responses does not begin a loop that would have to call a tool each time.
        let n_choices = if format == ProviderFormat::OpenAiResponses {
            1
        } else {
            2
        };
        for wanted in &[ModelToolChoice::Auto, ModelToolChoice::Required][..n_choices] {
            let provider = Provider::start(format, vec![turn.clone(), answer.clone()]);
            let choice = wanted.to_provider(format, made.names());
            let seen = sdks.call(&json!({
                "run": true,
                "format": format.as_str(),
                "url": provider.url,
                "choice": choice.map(|(_, choice)| value(&choice)),
            }));
            assert_eq!(seen["text"], "It rains.", "{format:?}");
            let requests = provider.requests();
            assert_eq!(requests.len(), 2, "{format:?}");
            for request in &requests {
                check_tools(format, request, wanted);
            }
            check_results(format, &requests[1]);
        }
    }
}

/// Checks the tools and the choice that are read from a request.
fn check_tools(format: ProviderFormat, request: &Value, wanted: &ModelToolChoice) {
    let request = RawJson::from(request);
    let tools = request.get("tools").expect("it is there");
    let specs = ToolDefinitions::read(format, &tools).expect("they are read");
    let [look, fail] = specs.as_slice() else {
        panic!("{format:?}: {specs:?}")
    };
    assert_eq!((&*look.name, &*fail.name), ("look", "fail"), "{format:?}");
    assert_eq!(look.description, "Looks at a city.", "{format:?}");
    assert_eq!(
        value(&look.input_schema)["required"],
        json!(["city"]),
        "{format:?}"
    );
    let made = definitions(format, &["look", "fail"]);
    let key = match format {
        ProviderFormat::Gemini => "toolConfig",
        _ => "tool_choice",
    };
    match request.get(key) {
        Some(choice) => {
            let read = ModelToolChoice::from_provider(format, &choice, made.names());
            assert_eq!(read.as_ref(), Ok(wanted), "{format:?}");
        }
        None => assert_eq!(format, ProviderFormat::Ollama),
    }
}

/// Checks the results that are read from a request.
fn check_results(format: ProviderFormat, request: &Value) {
    let messages = match format {
        ProviderFormat::OpenAiResponses => "input",
        ProviderFormat::Gemini => "contents",
        _ => "messages",
    };
    let messages = request[messages].as_array().expect("a list").iter();
    let results: Vec<_> = messages
        .flat_map(|message| CallOutput::read(format, &RawJson::from(message)))
        .collect();
    let [look, fail] = results.as_slice() else {
        panic!("{format:?}: {results:?}")
    };
    if format != ProviderFormat::Ollama {
        let ids = [look.call.as_deref(), fail.call.as_deref()];
        assert_eq!(ids, [Some("c1"), Some("c2")], "{format:?}");
    }
    let text = ContentPart::Text("It rains in Oslo.".to_owned());
    assert_eq!(look.content[0], text, "{format:?}");
    assert!(!look.is_error && fail.is_error, "{format:?}: {results:?}");
    let failed = format!("{:?}", fail.content);
    assert!(failed.contains("there is no such city"), "{format:?}: {failed}");
    // Chat Completions has no images in results.
    if format != ProviderFormat::OpenAiChat {
        let image = ContentPart::Image {
            mime: "image/png".to_owned(),
            data: "iVBORw0KGgo=".to_owned(),
        };
        assert_eq!(look.content[1..], [image], "{format:?}");
    }
}
