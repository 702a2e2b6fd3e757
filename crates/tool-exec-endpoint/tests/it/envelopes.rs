//! The reader of requests and replies against arbitrary bytes and JSON, compared with serde_json.

use proptest::prelude::*;
use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_core::ErrorKind;
use tool_exec_endpoint::protocol::{EndpointFailure, EndpointReply, EndpointRequest, ErrorCategory};

fn raw(value: &Value) -> RawJson {
    RawJson::from(value)
}

fn requests() -> [EndpointRequest; 3] {
    [
        EndpointRequest::ListTools,
        EndpointRequest::describe_tool("t"),
        EndpointRequest::call_tool("t", RawJson::object()).unwrap(),
    ]
}

/// Returns `true` if a value is a reply to a request, by the words of the specification.
fn is_reply(request: &EndpointRequest, value: &Value) -> bool {
    match value.get("type").and_then(Value::as_str) {
        Some("error") => value.get("error").is_some_and(|error| {
            ["name", "category", "message"]
                .iter()
                .all(|key| error.get(*key).is_some_and(Value::is_string))
        }),
        Some("result") => match request {
            EndpointRequest::ListTools => {
                let tools = value.get("tools").and_then(Value::as_array);
                tools.is_some_and(|tools| tools.iter().all(Value::is_object))
            }
            EndpointRequest::DescribeTool { .. } => value.get("tool").is_some_and(Value::is_object),
            _ => value["tool"] == "t" && value.get("result").is_some_and(Value::is_object),
        },
        _ => false,
    }
}

/// Returns `true` if a value is a request, by the words of the specification.
fn is_request(value: &Value) -> bool {
    let has_tool = value
        .get("tool")
        .and_then(Value::as_str)
        .is_some_and(|tool| !tool.is_empty());
    match value.get("action").and_then(Value::as_str) {
        Some("list_tools") => true,
        Some("describe_tool") => has_tool,
        Some("call_tool") => has_tool && value.get("arguments").is_none_or(Value::is_object),
        _ => false,
    }
}

/// Any JSON whose members often have the names of the protocol.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop_oneof![
            Just("result"),
            Just("error"),
            Just("t"),
            Just("usage"),
            Just("list_tools"),
            Just("describe_tool"),
            Just("call_tool"),
            Just(""),
            Just("\u{1F600}\n\"")
        ]
        .prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("tool"),
        Just("tools"),
        Just("result"),
        Just("error"),
        Just("name"),
        Just("category"),
        Just("message"),
        Just("action"),
        Just("arguments"),
        Just("_meta"),
        Just("kind")
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

/// JSON that is nearly a reply: a reply of which one member may be replaced or removed.
fn near_replies() -> impl Strategy<Value = Value> {
    let replies = prop_oneof![
        Just(json!({"type": "result", "tools": [{"name": "t"}]})),
        Just(json!({"type": "result", "tool": {"name": "t"}})),
        Just(json!({"type": "result", "tool": "t", "result": {"a": 1}})),
        Just(json!({"type": "error", "error": {"name": "n", "category": "usage", "message": "m"}})),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("tool"),
        Just("tools"),
        Just("result"),
        Just("error"),
        Just("none")
    ];
    (replies, key, prop::option::of(values())).prop_map(|(mut reply, key, other)| {
        let members = reply.as_object_mut().unwrap();
        match other {
            Some(other) => drop(members.insert(key.to_owned(), other)),
            None => drop(members.remove(key)),
        }
        reply
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_bytes_are_no_reply_unless_serde_reads_one(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let read: Option<Value> = serde_json::from_slice(&bytes).ok();
        for request in requests() {
            let is_read = EndpointReply::parse(&request, bytes.clone()).is_ok();
            prop_assert_eq!(is_read, read.as_ref().is_some_and(|value| is_reply(&request, value)));
        }
        let is_read = EndpointRequest::parse(&bytes).is_ok();
        prop_assert_eq!(is_read, read.as_ref().is_some_and(is_request));
    }

    #[test]
    fn a_json_value_is_read_if_it_is_what_the_specification_says(value in prop_oneof![values(), near_replies()]) {
        let text = value.to_string();
        for request in requests() {
            let read = EndpointReply::parse(&request, text.clone());
            prop_assert_eq!(read.is_ok(), is_reply(&request, &value), "{} {:?}", text, read);
        }
        let read = EndpointRequest::parse(&text);
        prop_assert_eq!(read.is_ok(), is_request(&value), "{} {:?}", text, read);
    }

    /// A text with a part removed or added, such as a truncated reply, never reads as another reply than serde_json reads.
    #[test]
    fn damaged_text(value in near_replies(), cut in any::<prop::sample::Index>(), junk in "[{}\\[\\]\",:a1 ]{0,3}") {
        let mut text = value.to_string();
        let mut at = cut.index(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.replace_range(at.., &junk);
        let read: Option<Value> = serde_json::from_str(&text).ok();
        for request in requests() {
            let is_read = EndpointReply::parse(&request, text.clone()).is_ok();
            let expected = read.as_ref().is_some_and(|value| is_reply(&request, value));
            // serde_json takes the last of several members with one name; here they are refused.
            prop_assert!(!is_read || expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again(
        tools in prop::collection::vec(values().prop_map(|value| json!({"v": value})), 0..4),
        result in values().prop_map(|value| json!({"v": value})),
        meta in prop::option::of(values().prop_map(|value| json!({"v": value}))),
        texts in prop::array::uniform3(".{0,8}"),
        kind in prop::sample::select(ErrorKind::ALL.to_vec()),
    ) {
        let [list, describe, call] = requests();
        let mut failure = EndpointFailure::new(texts[0].as_str(), kind, texts[1].as_str());
        let mut replies = vec![
            (&list, EndpointReply::Tools(tools.iter().map(raw).collect())),
            (&describe, EndpointReply::Tool(raw(&result))),
            (&call, EndpointReply::Error(failure.clone())),
        ];
        let reply = EndpointReply::result("t", raw(&result)).unwrap();
        replies.push((&call, match &meta {
            Some(meta) => reply.with_meta(raw(meta)),
            None => reply,
        }));
        failure.category.clone_from(&texts[2]);
        failure.kind = None;
        replies.push((&call, EndpointReply::Error(failure)));
        for (request, reply) in replies {
            let text = reply.to_json();
            prop_assert!(serde_json::from_str::<Value>(text.as_str()).is_ok());
            prop_assert_eq!(EndpointReply::parse(request, text.as_str()), Ok(reply));
        }
        let call = EndpointRequest::call_tool("x", raw(&result)).unwrap();
        for request in [list, describe, call.clone(), call.with_meta(raw(&result))] {
            prop_assert_eq!(EndpointRequest::parse(request.to_json().as_str()), Ok(request));
        }
    }
}

#[test]
fn arguments_and_results_are_objects() {
    for value in [json!(null), json!(1), json!("x"), json!([{}])] {
        assert!(EndpointRequest::call_tool("t", raw(&value)).is_err());
        assert!(EndpointReply::result("t", raw(&value)).is_err());
    }
}

#[test]
fn every_kind_has_a_category_that_it_fits() {
    for kind in ErrorKind::ALL {
        let failure = EndpointFailure::new("n", *kind, "m");
        let category = ErrorCategory::named(&failure.category).unwrap();
        assert_eq!(category, ErrorCategory::for_kind(*kind));
    }
    for category in ErrorCategory::ALL {
        assert_eq!(ErrorCategory::named(category.as_str()), Some(*category));
    }
    assert_eq!(ErrorCategory::named("weather"), None);
}

#[test]
fn deep_and_large_texts_are_refused_or_read_without_a_panic() {
    for depth in [10, 127, 128, 100_000] {
        let text = format!(
            r#"{{"type":"result","tool":"t","result":{{"a":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        for request in requests() {
            let is_read = EndpointReply::parse(&request, text.as_str()).is_ok();
            let is_call = matches!(request, EndpointRequest::CallTool { .. });
            assert_eq!(is_read, is_call && depth < 127, "{depth}");
        }
    }
}
