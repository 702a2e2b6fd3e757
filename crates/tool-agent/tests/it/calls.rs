//! Turns of models.

use tool_agent::{
    AssistantTurn, DefinitionOptions, ModelCall, ProviderFormat, StopReason, ToolDefinitions, ToolSpec,
    serde_json::{Value, json},
};

use crate::{definitions, json as raw, value};

/// Responses with a text and two calls, in each format.
pub(crate) fn response(format: ProviderFormat) -> Value {
    match format {
        ProviderFormat::OpenAiChat => json!({
            "id": "r", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
                "role": "assistant",
                "content": "I look.",
                "refusal": null,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "files_read", "arguments": "{\"n\":12345678901234567890}"}},
                    {"id": "c2", "type": "function", "function": {"name": "other", "arguments": ""}},
                ],
            }}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
        }),
        ProviderFormat::OpenAiResponses => json!({
            "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "error": null, "incomplete_details": null,
            "output": [
                {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x"},
                {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [
                    {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []},
                ]},
                {"type": "function_call", "id": "f1", "call_id": "c1", "name": "files_read", "status": "completed",
                    "arguments": "{\"n\":12345678901234567890}"},
                {"type": "function_call", "id": "f2", "call_id": "c2", "name": "other", "status": "completed", "arguments": "{}"},
            ],
            "usage": {
                "input_tokens": 7, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12,
            },
        }),
        ProviderFormat::Anthropic => json!({
            "id": "m", "type": "message", "model": "m",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look.", "citations": null},
                {"type": "tool_use", "id": "c1", "name": "files_read", "input": {"n": 1}},
                {"type": "tool_use", "id": "c2", "name": "other", "input": {}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 7, "output_tokens": 5},
        }),
        ProviderFormat::Gemini => json!({
            "candidates": [{"content": {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"text": "I look."},
                {"functionCall": {"name": "files.read", "args": {"n": 1}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "c2", "name": "other"}},
            ]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 5},
            "modelVersion": "m", "responseId": "r",
        }),
        _ => json!({
            "model": "m", "created_at": "2026-11-29T10:00:00Z",
            "message": {"role": "assistant", "content": "I look.", "tool_calls": [
                {"function": {"name": "files.read", "arguments": {"n": 1}}},
                {"function": {"name": "other", "arguments": {}}},
            ]},
            "done": true, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 5,
        }),
    }
}

#[test]
fn a_turn_is_read_whole() {
    for &format in ProviderFormat::ALL {
        let made = definitions(format, &["files.read"]);
        let response = response(format);
        let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
        assert_eq!(turn.text, "I look.", "{format:?}");
        assert_eq!(turn.stop, StopReason::ToolCalls, "{format:?}");
        let usage = turn.usage.expect("it is told");
        assert_eq!((usage.input, usage.output), (7, 5), "{format:?}");
        let [first, second] = turn.calls.as_slice() else {
            panic!("{format:?}: {turn:?}")
        };
        assert_eq!(first.tool.as_deref(), Some("files.read"), "{format:?}");
        // The model calls a tool that it was not offered.
        assert_eq!(
            (second.tool.as_deref(), &*second.name),
            (None, "other"),
            "{format:?}"
        );
        assert!(first.has_valid_arguments() && second.has_valid_arguments());
        assert_eq!(second.arguments.as_str(), "{}");
        // The history has everything, also what only the provider understands.
        let history: Vec<_> = turn.messages.iter().map(value).collect();
        match format {
            ProviderFormat::OpenAiResponses => assert_eq!(Value::from(history), response["output"]),
            ProviderFormat::Anthropic => assert_eq!(history[0]["content"], response["content"]),
            ProviderFormat::Gemini => assert_eq!(history[0], response["candidates"][0]["content"]),
            ProviderFormat::Ollama => assert_eq!(history[0], response["message"]),
            _ => assert_eq!(history[0], response["choices"][0]["message"]),
        }
    }
}

#[test]
fn numbers_of_arguments_keep_their_digits() {
    let made = definitions(ProviderFormat::OpenAiChat, &["files.read"]);
    let response = response(ProviderFormat::OpenAiChat);
    let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
    assert_eq!(turn.calls[0].arguments.as_str(), r#"{"n":12345678901234567890}"#);
}

#[test]
fn arguments_that_are_no_json_are_kept_and_told() {
    let made = definitions(ProviderFormat::OpenAiChat, &["a"]);
    let response = json!({"choices": [{"finish_reason": "length", "message": {"content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "a", "arguments": "{\"city\": \"Os"}},
    ]}}]});
    let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
    assert_eq!(turn.stop, StopReason::MaxTokens);
    assert!(!turn.calls[0].has_valid_arguments());
    assert_eq!(
        turn.calls[0].arguments.string().as_deref(),
        Some("{\"city\": \"Os")
    );
}

#[test]
fn the_last_call_of_a_turn_that_was_cut_off_needs_its_arguments() {
    let calls = |written: &str, parsed: Value| {
        let chat = json!({"id": "c", "type": "function", "function": {"name": "a", "arguments": written}});
        let responses = json!({"type": "function_call", "call_id": "c", "name": "a", "arguments": written});
        let function = json!({"function": {"name": "a", "arguments": parsed}});
        [
            (
                ProviderFormat::OpenAiChat,
                json!({"choices": [{"message": {"role": "assistant", "tool_calls": [chat, chat]}, "finish_reason": "length"}]}),
            ),
            (
                ProviderFormat::OpenAiResponses,
                json!({"output": [responses, responses], "incomplete_details": {"reason": "max_output_tokens"}}),
            ),
            (
                ProviderFormat::Anthropic,
                json!({"stop_reason": "max_tokens", "content": [
                    {"type": "tool_use", "id": "1", "name": "a", "input": parsed},
                    {"type": "tool_use", "id": "2", "name": "a", "input": parsed},
                ]}),
            ),
            (
                ProviderFormat::Gemini,
                json!({"candidates": [{"finishReason": "MAX_TOKENS", "content": {"role": "model", "parts": [
                    {"functionCall": {"name": "a", "args": parsed}},
                    {"functionCall": {"name": "a", "args": parsed}},
                ]}}]}),
            ),
            (
                ProviderFormat::Ollama,
                json!({"message": {"role": "assistant", "tool_calls": [function, function]}, "done_reason": "length"}),
            ),
        ]
    };
    for (written, parsed, expected) in [
        ("", json!({}), [true, false]),
        (r#"{"n":1}"#, json!({"n": 1}), [true, true]),
    ] {
        for (format, response) in calls(written, parsed) {
            let made = definitions(format, &["a"]);
            let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
            let valid: Vec<_> = turn.calls.iter().map(ModelCall::has_valid_arguments).collect();
            assert_eq!(valid, expected, "{format:?}");
        }
    }
}

#[test]
fn nulls_of_strict_mode_are_absent_arguments() {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "nullable": {"type": ["string", "null"]},
            "inner": {"type": "array", "items": {"$ref": "#/$defs/i"}},
        },
        "required": ["query", "inner"],
        "$defs": {"i": {"type": "object", "properties": {"x": {"type": "number"}}}},
    });
    let tool = ToolSpec::new("find", "Finds.", raw(&schema.to_string()));
    let strict = DefinitionOptions::default().with_strict(true);
    let made = ToolDefinitions::new(ProviderFormat::OpenAiChat, &[tool], strict);
    let arguments = r#"{"query":"a","limit":null,"nullable":null,"inner":[{"x":null},{"x":1.50}]}"#;
    let response = json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "find", "arguments": arguments}},
    ]}}]});
    let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
    let read = turn.calls[0].arguments.as_str();
    assert_eq!(read, r#"{"query":"a","nullable":null,"inner":[{},{"x":1.50}]}"#);
}

#[test]
fn a_turn_is_written_for_a_history_from_elsewhere() {
    for &format in ProviderFormat::ALL {
        let made = definitions(format, &["files.read"]);
        let response = response(format);
        let turn = AssistantTurn::read(&made, &raw(&response.to_string())).expect("it is read");
        let written = AssistantTurn::write(&made, &turn.text, &turn.calls);
        // The same as what the provider would have said, as a whole response.
        let message = value(&written[0]);
        let again = match format {
            ProviderFormat::OpenAiChat => json!({"choices": [{"message": message}]}),
            ProviderFormat::OpenAiResponses => {
                let items: Vec<_> = written.iter().skip(1).map(value).collect();
                assert_eq!(message, json!({"role": "assistant", "content": "I look."}));
                json!({"output": items})
            }
            ProviderFormat::Anthropic => json!({"content": message["content"], "stop_reason": "tool_use"}),
            ProviderFormat::Gemini => json!({"candidates": [{"content": message}]}),
            _ => json!({"message": message}),
        };
        let again = AssistantTurn::read(&made, &raw(&again.to_string())).expect("it is read");
        let parts = |turn: &AssistantTurn| {
            let calls = turn.calls.iter();
            calls
                .map(|call| (call.tool.clone(), call.name.clone(), value(&call.arguments)))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts(&again), parts(&turn), "{format:?}");
    }
}

#[test]
fn what_is_no_response_is_refused() {
    for &format in ProviderFormat::ALL {
        let made = definitions(format, &[]);
        for wrong in [
            "{}",
            "[]",
            "null",
            "1",
            r#"{"choices":[]}"#,
            r#"{"output":null,"content":1}"#,
        ] {
            if let Ok(turn) = AssistantTurn::read(&made, &raw(wrong)) {
                assert!(
                    turn.calls.is_empty() && turn.text.is_empty(),
                    "{format:?}: {wrong}: {turn:?}"
                );
            }
        }
        let error = AssistantTurn::read(&made, &raw("{}")).expect_err("it is none");
        assert!(error.to_string().contains("is missing"), "{error}");
    }
}
