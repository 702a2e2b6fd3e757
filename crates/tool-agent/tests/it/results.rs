//! Results of tools, for models.

use tool_agent::{
    AssistantTurn, CallOutput, ContentPart, ModelCall, ProviderFormat, RawJson,
    serde_json::{Value, json},
    tool_core::{ErrorKind, Reply, ToolError},
};

use crate::{calls::response, definitions, json as raw, value};

/// Returns the first call of a turn in this format.
fn call(format: ProviderFormat) -> ModelCall {
    let made = definitions(format, &["files.read"]);
    let turn = AssistantTurn::read(&made, &raw(&response(format).to_string())).expect("it is read");
    turn.calls[0].clone()
}

fn written(format: ProviderFormat, result: CallOutput) -> (Vec<Value>, Vec<String>) {
    let made = CallOutput::write(format, &[result]);
    let notes = made.notes.into_iter().map(|(_, note)| note).collect();
    (made.messages.iter().map(value).collect(), notes)
}

#[test]
fn a_plain_value_is_text_or_structure() {
    let of = |format| {
        written(
            format,
            CallOutput::of_reply(&call(format), &Reply::from(json!({"sky": "clear"}))),
        )
        .0
    };
    let text = r#"{"sky":"clear"}"#;
    assert_eq!(
        of(ProviderFormat::OpenAiChat),
        [json!({"role": "tool", "tool_call_id": "c1", "content": text})]
    );
    assert_eq!(
        of(ProviderFormat::OpenAiResponses),
        [json!({"type": "function_call_output", "call_id": "c1", "output": text})]
    );
    assert_eq!(
        of(ProviderFormat::Anthropic),
        [json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": text}]},
        ]})]
    );
    // Gemini gave the call no id.
    assert_eq!(
        of(ProviderFormat::Gemini),
        [json!({"role": "user", "parts": [
            {"functionResponse": {"name": "files.read", "response": {"output": {"sky": "clear"}}}},
        ]})]
    );
    assert_eq!(
        of(ProviderFormat::Ollama),
        [json!({"role": "tool", "tool_name": "files.read", "content": text})]
    );
}

/// A result with a text, an image, a sound and a file.
fn rich() -> Reply {
    let result = json!({"content": [
        {"type": "text", "text": "Look:"},
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
        {"type": "audio", "mimeType": "audio/wav", "data": "c291bmQ="},
        {"type": "resource", "resource": {"uri": "file:///a/b.pdf", "mimeType": "application/pdf", "blob": "ZmlsZQ=="}},
    ]});
    Reply::result(RawJson::from(result), false)
}

#[test]
fn media_go_where_the_provider_takes_them() {
    let of = |format| written(format, CallOutput::of_reply(&call(format), &rich()));
    let (openai, notes) = of(ProviderFormat::OpenAiChat);
    assert_eq!(openai[0]["content"], "Look:");
    assert_eq!(openai[1]["role"], "user");
    let kinds = |parts: &Value| {
        let parts = parts.as_array().expect("a list").iter();
        parts
            .map(|part| part["type"].as_str().expect("it has one").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&openai[1]["content"]),
        ["text", "image_url", "text", "input_audio", "text", "file"]
    );
    assert_eq!(
        openai[1]["content"][1]["image_url"]["url"],
        "data:image/png;base64,iVBORw0KGgo="
    );
    assert_eq!(notes.len(), 3);

    let (responses, notes) = of(ProviderFormat::OpenAiResponses);
    assert_eq!(
        kinds(&responses[0]["output"]),
        ["input_text", "input_image", "input_file"]
    );
    assert_eq!(
        responses[0]["output"][0]["text"],
        "Look:\n[sound: audio/wav, 5 bytes]"
    );
    assert_eq!(notes, ["the model gets `[sound: audio/wav, 5 bytes]` instead"]);

    let (anthropic, notes) = of(ProviderFormat::Anthropic);
    let blocks = &anthropic[0]["content"][0]["content"];
    assert_eq!(kinds(blocks), ["text", "image", "text", "document"]);
    assert_eq!(blocks[2]["text"], "[sound: audio/wav, 5 bytes]");
    assert_eq!(notes.len(), 1);

    let (gemini, notes) = of(ProviderFormat::Gemini);
    let response = &gemini[0]["parts"][0]["functionResponse"];
    assert_eq!(response["response"], json!({"output": "Look:"}));
    assert_eq!(response["parts"].as_array().expect("a list").len(), 3);
    assert!(notes.is_empty());

    let (ollama, notes) = of(ProviderFormat::Ollama);
    assert_eq!(ollama[0]["images"], json!(["iVBORw0KGgo="]));
    assert_eq!(notes.len(), 2);
}

#[test]
fn a_failure_is_told_as_one() {
    let error = ToolError::new(ErrorKind::Timeout, "no answer within 5 s");
    for &format in ProviderFormat::ALL {
        let (messages, _) = written(format, CallOutput::of_error(&call(format), &error));
        let text = messages[0].to_string();
        assert!(text.contains("no answer within 5 s"), "{text}");
        match format {
            ProviderFormat::Anthropic => assert_eq!(messages[0]["content"][0]["is_error"], true),
            ProviderFormat::Gemini => {
                assert!(messages[0]["parts"][0]["functionResponse"]["response"]["error"].is_string());
            }
            _ => assert!(text.contains("Error: timeout"), "{text}"),
        }
        let read = CallOutput::read(format, &RawJson::from(&messages[0]));
        assert!(read[0].is_error, "{format:?}");
    }
}

#[test]
fn results_of_a_history_are_read() {
    for &format in ProviderFormat::ALL {
        let result = CallOutput::of_reply(&call(format), &rich());
        let made = CallOutput::write(format, &[result.clone(), result.clone()]);
        let read: Vec<_> = made
            .messages
            .iter()
            .flat_map(|message| CallOutput::read(format, message))
            .collect();
        assert_eq!(read.len(), 2, "{format:?}");
        assert_eq!(read[0].call, result.call, "{format:?}");
        assert!(
            matches!(&read[0].content[0], ContentPart::Text(text) if text.starts_with("Look:")),
            "{format:?}: {read:?}"
        );
        let has_image = read[0].content.iter().any(|part| {
            matches!(part, ContentPart::Image { mime, data } if mime == "image/png" && data == "iVBORw0KGgo=")
        });
        // Those of Chat Completions are in a message of the user.
        assert_eq!(has_image, format != ProviderFormat::OpenAiChat, "{format:?}");
        let has_file = read[0].content.iter().any(
            |part| matches!(part, ContentPart::File { mime, data, .. } if mime == "application/pdf" && data == "ZmlsZQ=="),
        );
        let keeps_files = [
            ProviderFormat::OpenAiResponses,
            ProviderFormat::Anthropic,
            ProviderFormat::Gemini,
        ];
        assert_eq!(has_file, keeps_files.contains(&format), "{format:?}");
        assert!(CallOutput::read(format, &raw(r#"{"role":"user","content":"hi"}"#)).is_empty());
    }
}

#[test]
fn results_of_gemini_are_read_under_each_of_their_keys() {
    for key in ["output", "result"] {
        let part = json!({"functionResponse": {"name": "look", "response": {key: "It rains."}}});
        let read = CallOutput::read(
            ProviderFormat::Gemini,
            &RawJson::from(json!({"role": "user", "parts": [part]})),
        );
        assert_eq!(
            read[0].content,
            [ContentPart::Text("It rains.".to_owned())],
            "{key}"
        );
        assert_eq!(
            (read[0].structured.as_ref(), read[0].is_error),
            (None, false),
            "{key}"
        );
    }
}

#[test]
fn parts_of_results_that_have_no_data_are_kept() {
    let part = json!({"type": "input_image", "file_id": "file-1"});
    let message = json!({"type": "function_call_output", "call_id": "c", "output": [part]});
    let read = CallOutput::read(ProviderFormat::OpenAiResponses, &RawJson::from(message));
    let [_, ContentPart::Other(kept)] = read[0].content.as_slice() else {
        panic!("{read:?}")
    };
    assert_eq!(value(kept), part);
}
