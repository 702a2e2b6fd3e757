//! Responses that are reported while they arrive.

use bytes::{Bytes, BytesMut};
use mcp_wire::{SseDecoder, SseItem};
use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{ErrorKind, Progress, ToolError, hide_fields};

use super::{BodyChunks, Failure, MediaType, decode_body};
use crate::redaction::SecretMasks;

/// Format of a response that is reported while it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StreamFormat {
    /// Server-sent events (WHATWG HTML, section 9.2). The result is the list of their data, each as JSON if it is JSON, else as a
    /// text. An event with a name is `{"event": …, "data": …}`. The end mark `[DONE]` is left out.
    Sse,
    /// One JSON value in each line. The result is the list of the values.
    Ndjson,
    /// Text, which is reported by lines. The result is that of the same response without `stream`.
    Text,
}

/// Maximum size of the message of a report, in bytes. The rest is cut off.
const MAX_MESSAGE: usize = 4096;
/// Data of the event that ends the streams of some APIs.
const END_MARK: &[u8] = b"[DONE]";

impl StreamFormat {
    /// Returns the value of `Accept`.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson, application/json;q=0.9, */*;q=0.8",
            Self::Text => "text/*, */*;q=0.8",
        }
    }

    /// Checks that a response has this format, as far as its media type tells.
    fn check(self, media: &MediaType) -> Result<(), ToolError> {
        if self != Self::Sse || media.essence == "text/event-stream" {
            return Ok(());
        }
        let answered = match media.essence.as_str() {
            "" => "without a media type".to_owned(),
            essence => format!("with `{essence}`"),
        };
        let message = format!("the upstream answered {answered}, not with `text/event-stream`");
        Err(ToolError::new(ErrorKind::Protocol, message))
    }
}

/// Collects the pieces of a response, and reports each to the caller as soon as it is complete. What is hidden in the result is
/// hidden in reports as well: no piece is reported in parts.
pub(crate) struct StreamReader<'a> {
    format: StreamFormat,
    decoder: Decoder,
    pieces: Vec<RawJson>,
    n_reported: u64,
    progress: Option<&'a dyn Progress>,
    masks: &'a SecretMasks,
    hidden: &'a [String],
}

enum Decoder {
    Sse(Box<SseDecoder>),
    Ndjson(LineSplitter),
    Text { lines: LineSplitter, whole: BytesMut },
}

impl<'a> StreamReader<'a> {
    /// Creates a reader of a response of at most `limit` bytes.
    pub(crate) fn new(
        format: StreamFormat,
        limit: usize,
        progress: Option<&'a dyn Progress>,
        (masks, hidden): (&'a SecretMasks, &'a [String]),
    ) -> Self {
        Self {
            format,
            decoder: match format {
                StreamFormat::Sse => Decoder::Sse(Box::new(SseDecoder::new(limit))),
                StreamFormat::Ndjson => Decoder::Ndjson(LineSplitter::default()),
                StreamFormat::Text => Decoder::Text {
                    lines: LineSplitter::default(),
                    whole: BytesMut::new(),
                },
            },
            pieces: Vec::new(),
            n_reported: 0,
            progress,
            masks,
            hidden,
        }
    }

    /// Reads a body. The outer error is a body that did not arrive, the inner one a body of another format.
    pub(crate) async fn read(
        mut self,
        mut chunks: BodyChunks<'_>,
        media: &MediaType,
    ) -> Result<Result<RawJson, ToolError>, Failure> {
        if let Err(error) = self.format.check(media) {
            return Ok(Err(error));
        }
        while let Some(chunk) = chunks.next().await? {
            if let Err(error) = self.push(&chunk) {
                return Ok(Err(error));
            }
        }
        Ok(self.finish(media))
    }

    /// Takes the next bytes.
    fn push(&mut self, chunk: &[u8]) -> Result<(), ToolError> {
        match &mut self.decoder {
            Decoder::Sse(decoder) => decoder.push(chunk),
            Decoder::Ndjson(lines) => lines.push(chunk),
            Decoder::Text { lines, whole } => {
                // Lines are for reports alone.
                if self.progress.is_some() {
                    lines.push(chunk);
                }
                whole.extend_from_slice(chunk);
            }
        }
        self.take_pieces()
    }

    fn take_pieces(&mut self) -> Result<(), ToolError> {
        while let Some(piece) = self.next_piece()? {
            self.report(&piece);
            if !matches!(self.decoder, Decoder::Text { .. }) {
                self.pieces.push(piece);
            }
        }
        Ok(())
    }

    fn next_piece(&mut self) -> Result<Option<RawJson>, ToolError> {
        match &mut self.decoder {
            Decoder::Sse(decoder) => loop {
                match decoder.next_item() {
                    None => return Ok(None),
                    Some(SseItem::Event(event)) if event.data.is_empty() || event.data == END_MARK => {}
                    Some(SseItem::Event(event)) => {
                        let data = json_or_text(&event.data);
                        return Ok(Some(match event.event {
                            Some(name) => RawJson::from_members(&[
                                ("event", RawJson::from(name.as_str())),
                                ("data", data),
                            ]),
                            None => data,
                        }));
                    }
                    Some(SseItem::Oversize { .. }) => {
                        let message = "the upstream sent an event that is too large";
                        return Err(ToolError::new(ErrorKind::ResultTooLarge, message));
                    }
                }
            },
            Decoder::Ndjson(lines) => {
                while let Some(line) = lines.next_line() {
                    if !line.iter().all(u8::is_ascii_whitespace) {
                        return json_line(line, lines.n_lines).map(Some);
                    }
                }
                Ok(None)
            }
            Decoder::Text { lines, .. } => Ok(lines.next_line().map(|line| text(&line))),
        }
    }

    /// Reports a piece to the caller, if it wants reports.
    fn report(&mut self, piece: &RawJson) {
        let Some(progress) = self.progress else { return };
        let masked = self.masks.result(piece);
        let shown = hide_fields(masked.as_ref().unwrap_or(piece), self.hidden);
        let message = shown.string();
        let message = message.as_deref().unwrap_or_else(|| shown.as_str());
        let message = &message[..message.floor_char_boundary(MAX_MESSAGE)];
        self.n_reported += 1;
        progress.report(RawJson::from_members(&[
            ("progress", RawJson::from(self.n_reported)),
            ("message", RawJson::from(message)),
        ]));
    }

    /// Returns the result at the end of the response. An event that the end cuts off does not count, as the standard requires.
    fn finish(mut self, media: &MediaType) -> Result<RawJson, ToolError> {
        match &mut self.decoder {
            Decoder::Sse(_) => {}
            Decoder::Ndjson(lines) | Decoder::Text { lines, .. } => lines.end(),
        }
        self.take_pieces()?;
        match self.decoder {
            Decoder::Text { whole, .. } => decode_body(whole.freeze(), media),
            _ => Ok(RawJson::from_items(&self.pieces)),
        }
    }
}

/// Splits bytes into lines, which end with a newline.
#[derive(Default)]
struct LineSplitter {
    buffer: BytesMut,
    /// Length of the start of the buffer that has no newline.
    n_searched: usize,
    n_lines: usize,
}

impl LineSplitter {
    fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Ends the last line, which may have no newline.
    fn end(&mut self) {
        if !self.buffer.is_empty() && !self.buffer.ends_with(b"\n") {
            self.buffer.extend_from_slice(b"\n");
        }
    }

    /// Returns the next complete line without its end.
    fn next_line(&mut self) -> Option<Bytes> {
        let rest = &self.buffer[self.n_searched..];
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            self.n_searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.n_searched + at + 1).freeze();
        line.truncate(line.len() - 1);
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        self.n_searched = 0;
        self.n_lines += 1;
        Some(line)
    }
}

fn json_line(line: Bytes, number: usize) -> Result<RawJson, ToolError> {
    RawJson::parse(line).map_err(|error| {
        let message = format!("line {number} of the upstream's answer is not usable JSON: {error}");
        ToolError::new(ErrorKind::Protocol, message)
    })
}

fn json_or_text(data: &Bytes) -> RawJson {
    RawJson::parse(data.clone()).unwrap_or_else(|_| text(data))
}

fn text(bytes: &[u8]) -> RawJson {
    RawJson::from(&*String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
    use parking_lot::Mutex;
    use proptest::prelude::*;
    use raw_json::RawJson;
    use tool_core::{ErrorKind, Progress};

    use super::{StreamFormat, StreamReader};
    use crate::{
        redaction::{MaskCache, SecretMasks},
        response::{MediaType, decode_body},
    };

    #[derive(Default)]
    struct Reports(Mutex<Vec<(u64, String)>>);

    impl Progress for Reports {
        fn report(&self, report: RawJson) {
            let number = report.get("progress").and_then(|number| number.to().ok());
            let message = report.get("message").and_then(|message| message.string());
            self.0
                .lock()
                .push((number.unwrap_or(0), message.unwrap_or_default()));
        }
    }

    fn no_masks() -> Arc<SecretMasks> {
        MaskCache::default().for_values(&HashMap::new(), &Default::default())
    }

    fn media(content_type: &'static str) -> MediaType {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        MediaType::from_headers(&headers)
    }

    /// Reads chunks, and returns the result and the reported messages.
    fn read(
        format: StreamFormat,
        chunks: &[&[u8]],
        hidden: &[String],
    ) -> Result<(String, Vec<String>), ErrorKind> {
        let (reports, masks) = (Reports::default(), no_masks());
        let mut reader = StreamReader::new(format, 1 << 20, Some(&reports), (&masks, hidden));
        let result = chunks
            .iter()
            .try_for_each(|chunk| reader.push(chunk))
            .and_then(|()| reader.finish(&media("text/plain")));
        let reported = reports.0.into_inner();
        let numbers: Vec<u64> = reported.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=reported.len() as u64).collect::<Vec<_>>());
        let messages = reported.into_iter().map(|(_, message)| message).collect();
        result
            .map(|result| (result.to_string(), messages))
            .map_err(|error| error.kind())
    }

    fn said(result: &str, messages: &[&str]) -> Result<(String, Vec<String>), ErrorKind> {
        Ok((
            result.to_owned(),
            messages.iter().map(|message| (*message).to_owned()).collect(),
        ))
    }

    #[test]
    fn events_are_json_or_text() {
        let stream = b": keep-alive\n\ndata: {\"n\":\ndata: 1}\n\nevent: note\ndata: hi\nid: 7\n\nevent: empty\n\ndata: \xc3\xa9t\xc3\xa9\n\ndata: [DONE]\n\ndata: cut off";
        let expected = said(
            "[{\"n\":\n1},{\"event\":\"note\",\"data\":\"hi\"},\"été\"]",
            &["{\"n\":\n1}", "{\"event\":\"note\",\"data\":\"hi\"}", "été"],
        );
        assert_eq!(read(StreamFormat::Sse, &[stream], &[]), expected);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(StreamFormat::Sse, &bytes, &[]), expected);
        assert_eq!(read(StreamFormat::Sse, &[], &[]), said("[]", &[]));
    }

    #[test]
    fn lines_are_json_values() {
        let expected = said("[{\"a\":1},2,\"x\"]", &["{\"a\":1}", "2", "x"]);
        assert_eq!(
            read(StreamFormat::Ndjson, &[b"{\"a\":1}\r\n\n2\n\"x\""], &[]),
            expected
        );
        assert_eq!(
            read(StreamFormat::Ndjson, &[b"1\n{\n"], &[]),
            Err(ErrorKind::Protocol)
        );
    }

    #[test]
    fn text_is_reported_by_lines_and_returned_whole() {
        let expected = said("\"one\\ntwo\\r\\nend\"", &["one", "two", "end"]);
        assert_eq!(
            read(StreamFormat::Text, &[b"one\ntw", b"o\r\n", b"end"], &[]),
            expected
        );
    }

    #[test]
    fn what_is_hidden_in_results_is_hidden_in_reports() {
        let hidden = ["pin".to_owned()];
        let (_, messages) =
            read(StreamFormat::Ndjson, &[b"{\"pin\":\"1234\",\"n\":1}\n"], &hidden).expect("read");
        assert!(
            !messages[0].contains("1234") && messages[0].contains("\"n\":1"),
            "{messages:?}"
        );
    }

    #[test]
    fn reports_are_cut_and_results_are_not() {
        let line = "é".repeat(5000);
        let (result, messages) = read(StreamFormat::Text, &[line.as_bytes()], &[]).expect("read");
        assert_eq!((result.len(), messages[0].len()), (10_002, 4096));
    }

    #[test]
    fn only_event_streams_are_read_as_such() {
        assert!(
            StreamFormat::Sse
                .check(&media("text/event-stream; charset=utf-8"))
                .is_ok()
        );
        let refused = StreamFormat::Sse
            .check(&media("application/json"))
            .expect_err("refused");
        assert!(refused.to_string().contains("`application/json`"), "{refused}");
        assert!(StreamFormat::Ndjson.check(&media("application/json")).is_ok());
    }

    proptest! {
        /// The values are those that the parser of serde_json finds in the whole, whatever the chunks.
        #[test]
        fn lines_are_split_as_the_whole_is(
            values in prop::collection::vec(prop_oneof![Just("1"), Just("{\"a\": [2]}"), Just("\"x\""), Just("  null ")], 0..9),
            size in 1_usize..9,
        ) {
            let whole = values.join("\n");
            let chunks: Vec<&[u8]> = whole.as_bytes().chunks(size).collect();
            let (result, _) = read(StreamFormat::Ndjson, &chunks, &[]).expect("JSON");
            let expected: Vec<serde_json::Value> =
                serde_json::Deserializer::from_str(&whole).into_iter().collect::<Result<_, _>>().expect("JSON");
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&result).expect("JSON"), serde_json::Value::Array(expected));
        }

        /// Text is the same as without `stream`, whatever the bytes and the chunks.
        #[test]
        fn text_is_that_of_the_whole_body(body in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..50) {
            let chunks: Vec<&[u8]> = body.chunks(size).collect();
            let whole = decode_body(Bytes::from(body.clone()), &media("text/plain")).map(|raw| raw.to_string());
            let (result, _) = read(StreamFormat::Text, &chunks, &[]).expect("text");
            prop_assert_eq!(Ok(result), whole.map_err(|error| error.kind()));
        }
    }
}
