//! Properties of all messages, however they are split into chunks.

use bytes::Bytes;
use mcp_wire::{
    Id, Line, LineDecoder, Message, Notification, Params, Request, Response, RpcError, SSE_KEEP_ALIVE,
    SseDecoder, SseItem, id_in_head,
};
use proptest::{collection::vec, prelude::*};
use raw_json::RawJson;

use crate::{deterministic, raw};

/// Generates JSON of any shape, with spellings that parsing and writing again would lose.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "null|true|false|1e2|-0|0\\.10|12345678901234567890123|1E-400",
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        r#""([a-zA-Z é世:,{}\[\]]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,12}""#,
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let list = (vec(inner.clone(), 0..4), space())
            .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},{space}"))));
        prop_oneof![list, object_of(inner)]
    })
}

fn object() -> impl Strategy<Value = String> {
    object_of(json())
}

fn object_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (vec(("[a-zé ]{0,5}", value), 0..4), space()).prop_map(|(members, space)| {
        let members: Vec<_> = members
            .iter()
            .enumerate()
            // The number keeps keys apart.
            .map(|(index, (key, value))| format!("\"{key}{index}\"{space}:{space}{value}"))
            .collect();
        format!("{{{space}{}{space}}}", members.join(&format!("{space},{space}")))
    })
}

fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}

/// Generates a message with its bytes.
fn message() -> impl Strategy<Value = (Message, Vec<u8>)> {
    let id = prop_oneof![
        any::<u64>().prop_map(|id| id.to_string()),
        r#""[a-z0-9é-]{0,12}""#,
    ];
    (0..4_u8, id, "[a-z/é\"\\\\]{1,20}", object(), any::<i32>()).prop_map(
        |(kind, id, method, payload, code)| {
            let (id, payload) = (raw(&id), raw(&payload));
            // Where it is written as one line, line breaks between tokens become blanks.
            let flat = raw(&payload.as_str().replace(['\r', '\n'], " "));
            match kind {
                0 => {
                    let id = u64::from(code.unsigned_abs());
                    let frame = mcp_wire::request(id, &method, &Params::from(&payload));
                    let id = Id::from(id);
                    (
                        Message::Request(Request {
                            id,
                            method,
                            params: Some(flat),
                        }),
                        frame,
                    )
                }
                1 => {
                    let frame = mcp_wire::notification(&method, Some(&payload));
                    (
                        Message::Notification(Notification {
                            method,
                            params: Some(flat),
                        }),
                        frame,
                    )
                }
                2 => {
                    let frame = mcp_wire::result(&Id::new(&id).unwrap(), &payload);
                    (
                        Message::Response(Response {
                            id: Some(id),
                            outcome: Ok(flat),
                        }),
                        frame,
                    )
                }
                _ => {
                    let error = |data| RpcError::new(code.into(), method.as_str()).with_data(data);
                    let frame = mcp_wire::error(Some(&id), &error(payload));
                    (
                        Message::Response(Response {
                            id: Some(id),
                            outcome: Err(error(flat)),
                        }),
                        frame,
                    )
                }
            }
        },
    )
}

/// Splits a text at the given offsets.
fn cut<'a>(text: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn places() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    vec(any::<prop::sample::Index>(), 0..12)
}

proptest! {
    #![proptest_config(deterministic(256))]

    #[test]
    fn messages_cross_a_pipe_untouched(
        messages in vec((message(), prop_oneof![Just(""), Just("\n"), Just("\r\n \n")]), 1..5),
        places in places(),
    ) {
        let mut stream = Vec::new();
        for ((_, frame), noise) in &messages {
            stream.extend_from_slice(&mcp_wire::into_line(frame.clone()));
            stream.extend_from_slice(noise.as_bytes());
        }
        let mut decoder = LineDecoder::default();
        let mut received = Vec::new();
        for chunk in cut(&stream, &places) {
            decoder.buffer().extend_from_slice(chunk);
            while let Some(line) = decoder.next_line() {
                let Line::Complete(line) = line else { return Err(TestCaseError::fail("oversize")) };
                // A blank is no empty line, and no message either.
                if &line[..] != b" " {
                    received.push(Message::from_client(line).unwrap());
                }
            }
        }
        prop_assert_eq!(decoder.finish(), None);
        let sent: Vec<Message> = messages.into_iter().map(|((message, _), _)| message).collect();
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn messages_cross_a_stream_of_events_untouched(
        messages in vec((message(), proptest::option::of("[a-z0-9-]{1,9}"), any::<bool>()), 1..5),
        line_end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
        places in places(),
    ) {
        let mut stream = Vec::new();
        for ((_, frame), id, quiet) in &messages {
            if *quiet {
                stream.extend_from_slice(SSE_KEEP_ALIVE);
            }
            stream.extend_from_slice(&mcp_wire::sse_event(frame, Some("message"), id.as_deref()));
        }
        // A message has no line break of its own, so each one ends a line of the stream.
        let stream = String::from_utf8(stream).unwrap().replace('\n', line_end);
        let mut decoder = SseDecoder::default();
        let mut received = Vec::new();
        for chunk in cut(stream.as_bytes(), &places) {
            decoder.push(chunk);
            while let Some(item) = decoder.next_item() {
                let SseItem::Event(event) = item else { return Err(TestCaseError::fail("oversize")) };
                received.push((Message::from_client(event.data).unwrap(), event.id));
            }
        }
        let sent: Vec<_> = messages.into_iter().map(|((message, _), id, _)| (message, id)).collect();
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn a_head_tells_the_id_or_nothing(id: u32, result in json(), keep in any::<prop::sample::Index>()) {
        let frame = mcp_wire::result(&Id::from(u64::from(id)), &raw(&result));
        let head = &frame[..keep.index(frame.len() + 1)];
        let found = id_in_head(head);
        prop_assert!(found.is_none() || found == Some(u64::from(id)), "{:?}", found);
        // The id stands at the front, so little is enough.
        prop_assert!(head.len() < 40 || found.is_some());
    }

    /// A corrupted byte leads to an error or another message, and never to a message with a payload that was not sent.
    #[test]
    fn a_broken_message_is_refused_or_holds_what_was_sent(
        message in message(),
        place in any::<prop::sample::Index>(),
        byte: u8,
        how in 0..3,
    ) {
        let (_, mut frame) = message;
        let place = place.index(frame.len());
        match how {
            0 => frame[place] = byte,
            1 => frame.insert(place, byte),
            _ => drop(frame.remove(place)),
        }
        let _ = id_in_head(&frame);
        let frame = Bytes::from(frame);
        for read in [Message::from_client(frame.clone()), Message::from_server(frame.clone())] {
            let Ok(message) = read else { continue };
            for payload in payloads(&message) {
                let range = frame.as_ptr_range();
                prop_assert!(range.contains(&payload.as_bytes().as_ptr()) || payload.as_str().is_empty());
                prop_assert!(RawJson::parse(payload.as_bytes().clone()).is_ok());
            }
        }
    }

    /// The lenient reader understands every message that the strict reader accepts, in the same way.
    #[test]
    fn strict_and_lenient_agree(
        version in prop_oneof![9 => Just(r#""jsonrpc":"2.0""#), 1 => Just(r#""jsonrpc":2"#)],
        members in vec(prop_oneof![
            r#""id":(1|"a"|null|\{\})"#,
            r#""method":("m"|7)"#,
            r#""params":(\{\}|\{"a":1\}|null|\[\])"#,
            r#""result":(\{\}|null)"#,
            r#""error":(\{"code":1,"message":"m"\}|null)"#,
            r#""(Id|x|METHOD)":1"#,
        ], 0..4),
    ) {
        let text = format!("{{{version}{}}}", members.iter().map(|member| format!(",{member}")).collect::<String>());
        if let Ok(message) = Message::from_client(text.clone()) {
            prop_assert_eq!(Message::from_server(text), Ok(message));
        }
    }

    #[test]
    fn no_line_and_no_event_is_beyond_its_limit(
        pieces in vec(prop_oneof!["[a-z:]{1,40}", Just("\n".to_owned()), Just("\n\n".to_owned()), Just("data: x\n".to_owned())], 0..40),
        max_length in 0..60_usize,
    ) {
        let (mut lines, mut events) = (LineDecoder::new(max_length), SseDecoder::new(max_length));
        for piece in pieces {
            lines.buffer().extend_from_slice(piece.as_bytes());
            while let Some(line) = lines.next_line() {
                match line {
                    Line::Complete(line) => prop_assert!(line.len() <= max_length),
                    Line::Oversize { head } => prop_assert!(head.len() <= max_length),
                }
            }
            events.push(piece.as_bytes());
            while let Some(item) = events.next_item() {
                match item {
                    SseItem::Event(event) => prop_assert!(event.data.len() <= max_length),
                    SseItem::Oversize { .. } => {}
                }
            }
        }
    }

    #[test]
    fn a_decoder_keeps_no_more_than_a_line(chunks in vec(1..20_000_usize, 1..60), max_length in 1..50_000_usize) {
        let mut decoder = LineDecoder::new(max_length);
        for (number, chunk) in chunks.into_iter().enumerate() {
            decoder.buffer().extend_from_slice(&vec![b'x'; chunk]);
            if number % 7 == 6 {
                decoder.buffer().extend_from_slice(b"\n");
            }
            while decoder.next_line().is_some() {}
            let capacity = decoder.buffer().capacity();
            // Twice for a buffer that grows by doubling, and what one more read may bring.
            prop_assert!(capacity <= 2 * (max_length + 20_001) + 128 * 1024, "{}", capacity);
        }
    }
}

fn payloads(message: &Message) -> Vec<&RawJson> {
    match message {
        Message::Request(request) => request.params.iter().collect(),
        Message::Notification(notification) => notification.params.iter().collect(),
        Message::Response(response) => match &response.outcome {
            Ok(result) => vec![result],
            Err(error) => error.data.iter().collect(),
        },
    }
}
