use bytes::Bytes;
use mcp_wire::{Line, LineDecoder, SseDecoder, SseEvent, SseItem};
use proptest::prelude::*;

use crate::deterministic;

/// Everything that comes out of a stream that arrives in these chunks.
fn lines(max_length: usize, chunks: &[&[u8]]) -> Vec<Line> {
    let mut decoder = LineDecoder::new(max_length);
    let mut out = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        // Either way in, and a buffer that is given back, make no difference.
        if index % 2 == 0 {
            decoder.buffer().extend_from_slice(chunk);
        } else {
            decoder.push(chunk);
        }
        out.extend(std::iter::from_fn(|| decoder.next_line()));
        if index % 3 == 0 {
            decoder.release();
        }
    }
    out.extend(decoder.finish());
    out
}

fn events(max_length: usize, chunks: &[&[u8]]) -> Vec<SseItem> {
    let mut decoder = SseDecoder::new(max_length);
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        out.extend(std::iter::from_fn(|| decoder.next_item()));
    }
    out
}

/// Cuts a text at the given places.
fn cut<'a>(text: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn complete(line: &str) -> Line {
    Line::Complete(Bytes::copy_from_slice(line.as_bytes()))
}

#[test]
fn line_ends_marks_and_empty_lines() {
    let text = "\u{feff}one\r\n\n\r\ntwo\nthree";
    assert_eq!(
        lines(100, &[text.as_bytes()]),
        [complete("one"), complete("two"), complete("three")]
    );
}

#[test]
fn a_long_line_leaves_its_head_and_the_stream_goes_on() {
    let mut decoder = LineDecoder::new(10_000);
    let long = [b'x'].repeat(3_000_000);
    for (number, chunk) in long.chunks(8_000).enumerate() {
        decoder.buffer().extend_from_slice(chunk);
        // It is told when it is too long, which is before it ends.
        match decoder.next_line() {
            Some(Line::Oversize { head }) => assert_eq!((number, head.len()), (1, 4096)),
            line => assert!(line.is_none() && number != 1, "{number}: {line:?}"),
        }
        assert!(
            decoder.buffer().capacity() < 200_000,
            "memory must not grow with the line"
        );
    }
    assert!(decoder.is_mid_line());
    assert_eq!(decoder.n_skipped(), 3_000_000);
    decoder.buffer().extend_from_slice(b"\nnext\n");
    assert_eq!(decoder.next_line(), Some(complete("next")));
    assert!(!decoder.is_mid_line());
    assert_eq!(decoder.n_skipped(), 0);
}

#[test]
fn a_large_line_does_not_keep_its_buffer_in_the_decoder() {
    let mut decoder = LineDecoder::default();
    decoder.buffer().extend_from_slice(&vec![b'x'; 5_000_000]);
    decoder.buffer().extend_from_slice(b"\ntail");
    let Some(Line::Complete(line)) = decoder.next_line() else {
        panic!("no line")
    };
    assert_eq!(line.len(), 5_000_000);
    assert!(decoder.buffer().capacity() < 200_000);
    assert_eq!(decoder.finish(), Some(complete("tail")));
}

fn event(data: &str) -> SseItem {
    SseItem::Event(SseEvent {
        data: Bytes::copy_from_slice(data.as_bytes()),
        ..SseEvent::default()
    })
}

#[test]
fn fields_of_events() {
    let text = "\u{feff}: hello\n\nevent: message\ndata: {\ndata:}\n\r\ndata\r\rid: 7\nretry: 500\n\n\
                event: ping\ndata: x\nunknown: y\nid: a\0b\nretry: soon\n\ndata: cut off";
    let items = events(1000, &[text.as_bytes()]);
    let stamp = SseEvent {
        id: Some("7".to_owned()),
        retry: Some(std::time::Duration::from_millis(500)),
        ..SseEvent::default()
    };
    let ping = SseEvent {
        event: Some("ping".to_owned()),
        data: Bytes::from_static(b"x"),
        ..SseEvent::default()
    };
    assert_eq!(
        items,
        [
            event("{\n}"),
            event(""),
            SseItem::Event(stamp),
            SseItem::Event(ping)
        ]
    );
}

#[test]
fn a_long_event_leaves_its_head_and_the_stream_goes_on() {
    let mut decoder = SseDecoder::new(10_000);
    decoder.push(b"event: message\ndata: {\"id\":7,");
    for number in 0..1000 {
        decoder.push(&[b'x'; 2_000]);
        // It is told when it is too long, which is before it ends.
        match decoder.next_item() {
            Some(SseItem::Oversize { head }) => {
                assert!(head.starts_with(b" {\"id\":7,"), "{head:?}");
                assert_eq!((number, head.len()), (4, 4096));
            }
            item => assert!(item.is_none() && number != 4, "{number}: {item:?}"),
        }
    }
    decoder.push(b"\ndata: more\n\ndata: next\n\n");
    assert_eq!(decoder.next_item(), Some(event("next")));
}

#[test]
fn comments_never_add_up_to_a_long_event() {
    let text = ": keep alive\n".repeat(1000) + "data: x\n\n";
    assert_eq!(events(100, &[text.as_bytes()]), [event("x")]);
}

proptest! {
    #![proptest_config(deterministic(256))]

    #[test]
    fn lines_do_not_depend_on_chunks(
        text in r"(a|b|\r|\n|\{\}|é){0,60}",
        places in proptest::collection::vec(any::<usize>(), 0..8),
        max_length in 1usize..20,
    ) {
        let text = text.as_bytes();
        prop_assert_eq!(lines(max_length, &cut(text, &places)), lines(max_length, &[text]));
    }

    #[test]
    fn lines_are_what_was_written(lengths in proptest::collection::vec(1usize..9000, 0..5)) {
        let texts: Vec<String> = lengths.iter().map(|length| "line".chars().cycle().take(*length).collect()).collect();
        let whole = texts.iter().map(|text| format!("{text}\n")).collect::<String>();
        let expected: Vec<Line> = texts.iter().map(|text| complete(text)).collect();
        prop_assert_eq!(lines(10_000, &[whole.as_bytes()]), expected);
    }

    #[test]
    fn events_do_not_depend_on_chunks(
        text in r"(data|id|event|:|: |x|\r|\n|\r\n|\n\n|data: abc\n|\x{feff}){0,60}",
        places in proptest::collection::vec(any::<usize>(), 0..8),
        max_length in 5usize..60,
    ) {
        let text = text.as_bytes();
        let without_heads = |items: Vec<SseItem>| -> Vec<SseItem> {
            let strip = |item| match item {
                SseItem::Oversize { .. } => SseItem::Oversize { head: Bytes::new() },
                event @ SseItem::Event(_) => event,
            };
            items.into_iter().map(strip).collect()
        };
        let whole = without_heads(events(max_length, &[text]));
        prop_assert_eq!(without_heads(events(max_length, &cut(text, &places))), whole);
    }

    #[test]
    fn events_read_back(message in r#"[a-z{}",: é]{1,200}"#, id in proptest::option::of("[a-z0-9]{1,9}")) {
        let frame = mcp_wire::sse_event(message.as_bytes(), None, id.as_deref());
        let expected = SseEvent { id, data: Bytes::from(message), ..SseEvent::default() };
        prop_assert_eq!(events(1000, &[&frame]), [SseItem::Event(expected)]);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..6),
        max_length in 0usize..40,
    ) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        lines(max_length, &chunks);
        events(max_length, &chunks);
    }
}

#[test]
fn fields_that_are_not_valid_are_passed_over() {
    let long = "9".repeat(40);
    for retry in ["+5", "-5", " 5", "5 ", "5.0", "0x5", "", "٥", &long] {
        let text = format!("retry: 7\nretry: {retry}\ndata: x\n\n");
        let [SseItem::Event(event)] = &events(1000, &[text.as_bytes()])[..] else {
            panic!("{retry}");
        };
        assert_eq!(
            event.retry,
            Some(std::time::Duration::from_millis(7)),
            "{retry:?}"
        );
    }
    for id in ["a\u{1}", "\u{7f}", "a\tb", "\0"] {
        let text = format!("id: 7\nid: {id}\ndata: x\n\n");
        let [SseItem::Event(event)] = &events(1000, &[text.as_bytes()])[..] else {
            panic!("{id:?}");
        };
        assert_eq!(event.id.as_deref(), Some("7"), "{id:?}");
    }
}
