//! Turns that arrive in pieces.

use proptest::prelude::*;
use tool_agent::{
    AssistantTurn, ProviderFormat, RawJson, ToolDefinitions, TurnStream,
    serde_json::{Value, json},
};

use crate::{calls::response, definitions, json as raw};

/// Cuts a text at these shares of its length.
fn cut(text: &str, cuts: &[f64]) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|share| (share * chars.len() as f64) as usize)
        .collect();
    at.sort_unstable();
    at.push(chars.len());
    let mut from = 0;
    at.into_iter()
        .map(|to| {
            let piece = chars[from..to].iter().collect();
            from = to;
            piece
        })
        .collect()
}

/// Cuts a whole response into the events of a stream, as its provider does.
pub(crate) fn events(format: ProviderFormat, whole: &Value, cuts: &[f64]) -> Vec<Value> {
    let mut events = Vec::new();
    match format {
        ProviderFormat::OpenAiChat => {
            let message = &whole["choices"][0]["message"];
            let chunk =
                |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
            events.push(chunk(json!({"role": "assistant", "content": ""})));
            for piece in cut(message["content"].as_str().expect("a text"), cuts) {
                events.push(chunk(json!({"content": piece})));
            }
            for (index, call) in message["tool_calls"]
                .as_array()
                .expect("a list")
                .iter()
                .enumerate()
            {
                let function = json!({"name": call["function"]["name"], "arguments": ""});
                let begun =
                    json!({"index": index, "id": call["id"], "type": "function", "function": function});
                events.push(chunk(json!({"tool_calls": [begun]})));
                for piece in cut(call["function"]["arguments"].as_str().expect("a text"), cuts) {
                    let more = json!({"index": index, "function": {"arguments": piece}});
                    events.push(chunk(json!({"tool_calls": [more]})));
                }
            }
            events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
            events.push(json!({"choices": [], "usage": whole["usage"]}));
        }
        ProviderFormat::OpenAiResponses => {
            events.push(json!({"type": "response.created"}));
            for piece in cut("I look.", cuts) {
                events.push(json!({"type": "response.output_text.delta", "delta": piece}));
            }
            events.push(json!({"type": "response.completed", "response": whole}));
        }
        ProviderFormat::Anthropic => {
            let message = json!({
                "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": null, "usage": {"input_tokens": 7, "output_tokens": 1},
            });
            events.push(json!({"type": "message_start", "message": message}));
            events.push(json!({"type": "ping"}));
            for (index, block) in whole["content"].as_array().expect("a list").iter().enumerate() {
                let mut start = block.clone();
                let mut deltas = Vec::new();
                let mut grow = |key: &str, kind: &str, member: &str, text: String| {
                    for piece in cut(&text, cuts) {
                        deltas.push(json!({"type": kind, member: piece}));
                    }
                    key.to_owned()
                };
                match block["type"].as_str().expect("a text") {
                    "text" => {
                        let text = block["text"].as_str().expect("a text").to_owned();
                        start[grow("text", "text_delta", "text", text)] = "".into();
                    }
                    "thinking" => {
                        let text = block["thinking"].as_str().expect("a text").to_owned();
                        start[grow("thinking", "thinking_delta", "thinking", text)] = "".into();
                        let signature = block["signature"].as_str().expect("a text").to_owned();
                        start[grow("signature", "signature_delta", "signature", signature)] = "".into();
                    }
                    _ => {
                        let text = block["input"].to_string();
                        start[grow("input", "input_json_delta", "partial_json", text)] = json!({});
                    }
                }
                events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
                for delta in deltas {
                    events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
                }
                events.push(json!({"type": "content_block_stop", "index": index}));
            }
            events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}));
            events.push(json!({"type": "message_stop"}));
        }
        ProviderFormat::Gemini => {
            let parts = whole["candidates"][0]["content"]["parts"]
                .as_array()
                .expect("a list");
            for part in parts {
                match part.get("text").and_then(Value::as_str) {
                    Some(text) if part.get("thought").is_none() => {
                        for piece in cut(text, cuts) {
                            events.push(json!({"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]}));
                        }
                    }
                    _ => {
                        events.push(json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
                    }
                }
            }
            events.push(
                json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": whole["usageMetadata"]}),
            );
        }
        _ => {
            for piece in cut("I look.", cuts) {
                events.push(json!({"message": {"role": "assistant", "content": piece}, "done": false}));
            }
            let mut last = whole.clone();
            last["message"]["content"] = "".into();
            events.push(last);
        }
    }
    events
}

pub(crate) fn read(made: &ToolDefinitions, events: &[Value]) -> (String, AssistantTurn) {
    let mut stream = TurnStream::new(made);
    let mut said = String::new();
    for event in events {
        said.push_str(&stream.push(&RawJson::from(event)).expect("it is no failure"));
    }
    (said, stream.finish().expect("it is whole"))
}

proptest! {
    /// Wherever a provider cuts its answer, the turn is the one of the whole response.
    #[test]
    fn a_turn_in_pieces_is_the_whole_turn(cuts in prop::collection::vec(0.0_f64..1.0, 0..6)) {
        for &format in ProviderFormat::ALL {
            let made = definitions(format, &["files.read"]);
            let whole = response(format);
            let (said, streamed) = read(&made, &events(format, &whole, &cuts));
            let whole = AssistantTurn::read(&made, &raw(&whole.to_string())).expect("it is read");
            prop_assert_eq!(&said, &whole.text);
            prop_assert_eq!(&streamed.text, &whole.text);
            prop_assert_eq!(&streamed.stop, &whole.stop);
            prop_assert_eq!(&streamed.usage, &whole.usage);
            prop_assert_eq!(&streamed.calls, &whole.calls);
            // Gemini's texts stay in their pieces.
            if format != ProviderFormat::Gemini {
                let history = |turn: &AssistantTurn| turn.messages.iter().map(crate::value).collect::<Vec<_>>();
                prop_assert_eq!(history(&streamed), history(&whole));
            }
        }
    }
}

#[test]
fn a_stream_that_fails_says_so() {
    for (format, event) in [
        (
            ProviderFormat::OpenAiChat,
            json!({"error": {"type": "server_error", "message": "secret"}}),
        ),
        (
            ProviderFormat::OpenAiResponses,
            json!({"type": "response.failed"}),
        ),
        (
            ProviderFormat::Anthropic,
            json!({"type": "error", "error": {"type": "overloaded_error"}}),
        ),
        (
            ProviderFormat::Gemini,
            json!({"error": {"code": 503, "status": "UNAVAILABLE"}}),
        ),
        (ProviderFormat::Ollama, json!({"error": "model not found"})),
    ] {
        let made = definitions(format, &[]);
        let error = TurnStream::new(&made)
            .push(&RawJson::from(event))
            .expect_err("it failed");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let made = definitions(ProviderFormat::OpenAiResponses, &[]);
    assert!(TurnStream::new(&made).finish().is_err());
}

/// The arguments of a call that was cut off may be empty, and a call without arguments may do harm.
#[test]
fn a_stream_that_ends_early_is_no_turn() {
    for &format in ProviderFormat::ALL {
        let made = definitions(format, &["files.read"]);
        let events = events(format, &response(format), &[0.5]);
        // Events after the one that ends the turn.
        let n_after = match format {
            ProviderFormat::OpenAiChat | ProviderFormat::Anthropic => 1,
            _ => 0,
        };
        for n in 0..events.len() {
            let mut stream = TurnStream::new(&made);
            for event in &events[..n] {
                stream.push(&RawJson::from(event)).expect("it is no failure");
            }
            let turn = stream.finish();
            assert_eq!(
                turn.is_ok(),
                n + n_after >= events.len(),
                "{format:?} after {n}: {turn:?}"
            );
        }
    }
}
