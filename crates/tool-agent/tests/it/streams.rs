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
    match format {
        ProviderFormat::OpenAiChat => openai_chat(whole, cuts),
        ProviderFormat::OpenAiResponses => openai_responses(whole, cuts),
        ProviderFormat::Anthropic => anthropic(whole, cuts),
        ProviderFormat::Gemini => gemini(whole, cuts),
        _ => ollama(whole, cuts),
    }
}

/// Returns a text.
fn words(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Returns the items of a list, which may be absent.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn openai_chat(whole: &Value, cuts: &[f64]) -> Vec<Value> {
    let message = &whole["choices"][0]["message"];
    let event = |choices: Value| json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices});
    let chunk = |delta: Value| event(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut events = vec![chunk(
        json!({"role": "assistant", "content": "", "refusal": null}),
    )];
    for piece in cut(words(&message["content"]), cuts) {
        events.push(chunk(json!({"content": piece})));
    }
    for (index, call) in items(&message["tool_calls"]).iter().enumerate() {
        let function = json!({"name": call["function"]["name"], "arguments": ""});
        let begun = json!({"index": index, "id": call["id"], "type": "function", "function": function});
        events.push(chunk(json!({"tool_calls": [begun]})));
        for piece in cut(words(&call["function"]["arguments"]), cuts) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            events.push(chunk(json!({"tool_calls": [more]})));
        }
    }
    let reason = &whole["choices"][0]["finish_reason"];
    events.push(event(json!([{"index": 0, "delta": {}, "finish_reason": reason}])));
    let mut usage = event(json!([]));
    usage["usage"] = whole["usage"].clone();
    events.push(usage);
    events
}

fn openai_responses(whole: &Value, cuts: &[f64]) -> Vec<Value> {
    let mut begun = whole.clone();
    begun["output"] = json!([]);
    begun["status"] = "in_progress".into();
    begun.as_object_mut().expect("an object").remove("usage");
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in items(&whole["output"]).iter().enumerate() {
        openai_item(index, item, cuts, &mut events);
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

/// Appends the events of one item of the output.
fn openai_item(index: usize, item: &Value, cuts: &[f64], events: &mut Vec<Value>) {
    let mut begun = item.clone();
    let part = &item["content"][0];
    let mut pieces = Vec::new();
    let event = |kind: &str, key: &str, value: Value| {
        let mut event = json!({"type": kind, "output_index": index, "item_id": item["id"]});
        event[key] = value;
        event
    };
    let in_part = |kind: &str, key: &str, value: Value| {
        let mut event = event(kind, key, value);
        event["content_index"] = 0.into();
        event
    };
    match words(&item["type"]) {
        "message" => {
            begun["content"] = json!([]);
            let mut empty = part.clone();
            empty["text"] = "".into();
            pieces.push(in_part("response.content_part.added", "part", empty));
            let text = [
                (
                    "response.output_text.delta",
                    "delta",
                    cut(words(&part["text"]), cuts),
                ),
                (
                    "response.output_text.done",
                    "text",
                    vec![words(&part["text"]).to_owned()],
                ),
            ];
            for (kind, key, values) in text {
                pieces.extend(values.into_iter().map(|value| {
                    let mut event = in_part(kind, key, value.into());
                    event["logprobs"] = json!([]);
                    event
                }));
            }
            pieces.push(in_part("response.content_part.done", "part", part.clone()));
        }
        "function_call" => {
            begun["arguments"] = "".into();
            let kind = "response.function_call_arguments.delta";
            let deltas = cut(words(&item["arguments"]), cuts);
            pieces.extend(deltas.into_iter().map(|piece| event(kind, "delta", piece.into())));
            let kind = "response.function_call_arguments.done";
            pieces.push(event(kind, "arguments", item["arguments"].clone()));
        }
        _ => {}
    }
    if let Some(status) = begun.get_mut("status") {
        *status = "in_progress".into();
    }
    events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
    events.append(&mut pieces);
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}

fn anthropic(whole: &Value, cuts: &[f64]) -> Vec<Value> {
    let message = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 7, "output_tokens": 1},
    });
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "ping"}),
    ];
    for (index, block) in items(&whole["content"]).iter().enumerate() {
        let mut start = block.clone();
        let mut deltas = Vec::new();
        let mut grow = |kind: &str, member: &str, text: &str| {
            for piece in cut(text, cuts) {
                deltas.push(json!({"type": kind, member: piece}));
            }
        };
        match words(&block["type"]) {
            "text" => {
                grow("text_delta", "text", words(&block["text"]));
                start["text"] = "".into();
            }
            "thinking" => {
                grow("thinking_delta", "thinking", words(&block["thinking"]));
                grow("signature_delta", "signature", words(&block["signature"]));
                start["thinking"] = "".into();
                start["signature"] = "".into();
            }
            _ => {
                grow("input_json_delta", "partial_json", &block["input"].to_string());
                start["input"] = json!({});
            }
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn gemini(whole: &Value, cuts: &[f64]) -> Vec<Value> {
    let chunk = |part: &Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let mut events = Vec::new();
    for part in items(&whole["candidates"][0]["content"]["parts"]) {
        match part.get("text").and_then(Value::as_str) {
            Some(text) if part.get("thought").is_none() => {
                let pieces = cut(text, cuts).into_iter();
                events.extend(pieces.map(|piece| chunk(&json!({"text": piece}))));
            }
            _ => events.push(chunk(part)),
        }
    }
    let last = [json!({"finishReason": "STOP"})];
    events.push(json!({"candidates": last, "usageMetadata": whole["usageMetadata"]}));
    events
}

fn ollama(whole: &Value, cuts: &[f64]) -> Vec<Value> {
    let mut events = Vec::new();
    for piece in cut(words(&whole["message"]["content"]), cuts) {
        let message = json!({"role": "assistant", "content": piece});
        events.push(json!({
            "model": "m", "created_at": whole["created_at"], "message": message, "done": false,
        }));
    }
    let mut last = whole.clone();
    last["message"]["content"] = "".into();
    events.push(last);
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

/// Returns the history of a turn without members that are null, which streams leave out.
fn history(turn: &AssistantTurn) -> Vec<Value> {
    let mut history: Vec<_> = turn.messages.iter().map(crate::value).collect();
    for message in history.iter_mut().filter_map(Value::as_object_mut) {
        message.retain(|_, member| !member.is_null());
    }
    history
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

/// Anthropic refuses a history with arguments that are no object.
#[test]
fn arguments_that_were_cut_off_are_an_object_in_the_history() {
    let mut whole = response(ProviderFormat::Anthropic);
    whole["stop_reason"] = "max_tokens".into();
    let made = definitions(ProviderFormat::Anthropic, &["files.read"]);
    let mut stream = TurnStream::new(&made);
    let mut events = events(ProviderFormat::Anthropic, &whole, &[0.5]);
    // Only the first half of the arguments of the last call arrives.
    let is_end = |event: &Value| event["delta"]["type"] == "input_json_delta";
    let last = events.iter().rposition(is_end).expect("there is one");
    events.remove(last);
    for event in &events {
        stream.push(&RawJson::from(event)).expect("it is no failure");
    }
    let turn = stream.finish().expect("it is whole");
    let [first, second] = turn.calls.as_slice() else {
        panic!("{turn:?}")
    };
    assert!(first.has_valid_arguments() && !second.has_valid_arguments());
    assert_eq!(second.arguments.string().as_deref(), Some("{"));
    let content = &crate::value(&turn.messages[0])["content"];
    assert_eq!(content[2]["input"], json!({"n": 1}));
    assert_eq!(
        content[3],
        json!({"type": "tool_use", "id": "c2", "name": "other", "input": {}})
    );
}
