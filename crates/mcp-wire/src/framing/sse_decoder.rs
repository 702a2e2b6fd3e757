use std::{mem, time::Duration};

use bytes::{Buf, Bytes, BytesMut};

use super::write::flatten;

/// Splits a stream of bytes into server-sent events (WHATWG HTML, section 9.2).
///
/// Bytes go in through [`push`](Self::push) in chunks of any size; events come out of
/// [`next_item`](Self::next_item). An event is reported as [`SseItem::Oversize`] as soon as it exceeds the limit, and skipped
/// without taking memory.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// Length of the start of the buffer that is known to have no line end.
    searched: usize,
    /// `true` if the last line ended with a carriage return, to which a newline right behind it belongs.
    after_return: bool,
    at_start: bool,
    event: Building,
    /// Number of bytes dropped of the current line.
    dropped: usize,
    max_length: usize,
}

/// Event that is being read.
#[derive(Debug, Default)]
struct Building {
    event: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
    data: Data,
    length: usize,
    /// `true` if the event exceeds the limit and was reported.
    is_reported: bool,
}

/// Data of an event. Most events have one line, which needs no copy.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    Many(Vec<u8>),
}

/// Item of a stream of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// Complete event.
    Event(SseEvent),
    /// Event beyond the limit, which may not have ended yet.
    Oversize {
        /// First 4 KiB of its data: enough to find an id in it.
        head: Bytes,
    },
}

/// Event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type, unless it is the default `message`.
    pub event: Option<String>,
    /// Id to resume the stream from.
    pub id: Option<String>,
    /// Pause before the stream is opened again.
    pub retry: Option<Duration>,
    /// Data; empty for an event that only sets an id or a retry time.
    pub data: Bytes,
}

/// Comment that keeps a quiet stream open.
pub const SSE_KEEP_ALIVE: &[u8] = b":\n\n";

/// Length of the head that is kept of an oversize event, in bytes.
const HEAD: usize = 4 * 1024;

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_LENGTH)
    }
}

impl SseDecoder {
    /// Default limit of an event: 16 MiB.
    pub const DEFAULT_MAX_LENGTH: usize = 16 * 1024 * 1024;

    /// Creates a decoder of events of at most `max_length` bytes.
    #[must_use]
    pub fn new(max_length: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            at_start: true,
            event: Building::default(),
            dropped: 0,
            max_length,
        }
    }

    /// Appends bytes that were read.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next event that is complete or exceeds the limit.
    ///
    /// An event that is cut off by the end of the stream is never returned, as the standard requires.
    pub fn next_item(&mut self) -> Option<SseItem> {
        if !self.skip_mark() {
            return None;
        }
        loop {
            if self.after_return && !self.buffer.is_empty() {
                self.after_return = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.advance(1);
                }
            }
            let Some(offset) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.drop_long();
            };
            let length = self.searched + offset;
            self.searched = 0;
            self.after_return = self.buffer[length] == b'\r';
            let line = self.buffer.split_to(length).freeze();
            self.buffer.advance(1);
            if let Some(item) = self.line(&line) {
                return Some(item);
            }
        }
    }

    /// Skips a byte order mark at the start of the stream. Returns `false` while too few bytes are read to recognize one.
    fn skip_mark(&mut self) -> bool {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        if self.at_start && self.buffer.starts_with(MARK) {
            self.buffer.advance(MARK.len());
        } else if self.at_start && MARK.starts_with(&self.buffer) {
            return false;
        }
        self.at_start = false;
        true
    }

    /// Processes one line; an empty one ends the event.
    fn line(&mut self, line: &Bytes) -> Option<SseItem> {
        let length = mem::take(&mut self.dropped) + line.len();
        if length == 0 {
            return mem::take(&mut self.event).finish();
        }
        // Comments within the limit do not count towards the event: any number of them may keep a stream open.
        let fits = self.event.length + length <= self.max_length;
        if fits && line.first() == Some(&b':') {
            return None;
        }
        self.event.length += length;
        if fits {
            self.event.field(line);
            return None;
        }
        self.event.overflow(line)
    }

    /// Drops the start of a line that makes the event exceed the limit.
    fn drop_long(&mut self) -> Option<SseItem> {
        let fits = self.event.length + self.dropped + self.buffer.len() <= self.max_length;
        if fits || self.buffer.is_empty() {
            return None;
        }
        let oversize = self.event.overflow(&self.buffer);
        self.dropped += self.buffer.len();
        self.buffer = BytesMut::new();
        self.searched = 0;
        oversize
    }
}

impl Building {
    fn field(&mut self, line: &Bytes) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let start = if line.get(colon + 1) == Some(&b' ') {
                    colon + 2
                } else {
                    colon + 1
                };
                (&line[..colon], line.slice(start..))
            }
            None => (&line[..], Bytes::new()),
        };
        match name {
            b"data" => self.data.push(value),
            b"event" => self.event = text(&value).filter(|event| event != "message"),
            // The standard ignores an id with NUL. One with another control character cannot be sent back in a header: the
            // stream could not be resumed.
            b"id" => {
                let id = text(&value).filter(|id| !id.contains(|c: char| c.is_ascii_control()));
                self.id = id.or(self.id.take());
            }
            b"retry" => {
                let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let millis = text(&value).filter(|_| is_number);
                let millis = millis.and_then(|millis| millis.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    /// Reports that the event exceeds the limit, once, and frees its data.
    fn overflow(&mut self, line: &[u8]) -> Option<SseItem> {
        if mem::replace(&mut self.is_reported, true) {
            return None;
        }
        let data = mem::take(&mut self.data).into_bytes().unwrap_or_default();
        let line = line.strip_prefix(b"data:").unwrap_or(line);
        let head = if data.is_empty() { line } else { &data };
        Some(SseItem::Oversize {
            head: Bytes::copy_from_slice(&head[..head.len().min(HEAD)]),
        })
    }

    fn finish(self) -> Option<SseItem> {
        if self.is_reported {
            return None;
        }
        let data = self.data.into_bytes();
        if data.is_none() && self.id.is_none() && self.retry.is_none() {
            return None;
        }
        let data = data.unwrap_or_default();
        Some(SseItem::Event(SseEvent {
            event: self.event,
            id: self.id,
            retry: self.retry,
            data,
        }))
    }
}

impl Data {
    fn push(&mut self, line: Bytes) {
        *self = match mem::take(self) {
            Self::None => Self::One(line),
            Self::One(first) => Self::Many([&first[..], b"\n", &line].concat()),
            Self::Many(mut lines) => {
                lines.push(b'\n');
                lines.extend_from_slice(&line);
                Self::Many(lines)
            }
        };
    }

    fn into_bytes(self) -> Option<Bytes> {
        match self {
            Self::None => None,
            Self::One(line) => Some(line),
            Self::Many(lines) => Some(lines.into()),
        }
    }
}

fn text(value: &[u8]) -> Option<String> {
    std::str::from_utf8(value).ok().map(str::to_owned)
}

/// Writes an event whose data is one message.
///
/// Line breaks in the message are white space between tokens of JSON and become blanks, so that the data is one line. An
/// id or a type with a line break would start another field, so it is left out.
#[must_use]
pub fn sse_event(message: &[u8], event: Option<&str>, id: Option<&str>) -> Vec<u8> {
    let fits = |value: &&str| !value.contains(['\n', '\r', '\0']);
    let (event, id) = (event.filter(fits), id.filter(fits));
    let mut out = Vec::with_capacity(message.len() + 24 + event.map_or(0, str::len) + id.map_or(0, str::len));
    for (name, value) in [("event: ", event), ("id: ", id)] {
        if let Some(value) = value {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
            out.push(b'\n');
        }
    }
    out.extend_from_slice(b"data: ");
    let start = out.len();
    out.extend_from_slice(message);
    flatten(&mut out[start..]);
    out.extend_from_slice(b"\n\n");
    out
}
