//! Requests on a stream: JSON values one after the other, with or without line breaks between them.

use std::io;

use serde_json::{Deserializer, value::RawValue};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 8 << 20;
/// Size of one read, in bytes.
const CHUNK: usize = 64 << 10;

/// Requests on a stream.
pub(super) struct Requests<R> {
    input: R,
    buffer: Vec<u8>,
    /// `true` at the end of the stream.
    is_over: bool,
    /// `true` while the rest of a line is skipped that is no JSON.
    is_skipping: bool,
}

/// Next request of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextRequest {
    /// A JSON value, as it was written.
    Request(Vec<u8>),
    /// Text that is no JSON value, and the reason. The rest of its line is skipped.
    Refused(String),
    /// The end of the stream.
    End,
}

impl<R: AsyncRead + Unpin> Requests<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            is_over: false,
            is_skipping: false,
        }
    }

    /// Waits for the next request.
    pub(super) async fn next(&mut self) -> io::Result<NextRequest> {
        loop {
            if self.is_skipping {
                self.skip_line();
            }
            let n_spaces = self
                .buffer
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            self.buffer.drain(..n_spaces);
            match split(&self.buffer, self.is_over) {
                Split::Value(end) => {
                    let rest = self.buffer.split_off(end);
                    let request = std::mem::replace(&mut self.buffer, rest);
                    return Ok(NextRequest::Request(request));
                }
                Split::Malformed(reason) => {
                    self.is_skipping = true;
                    return Ok(NextRequest::Refused(format!("the request is no JSON: {reason}")));
                }
                Split::Incomplete if self.buffer.len() > MAX_REQUEST => {
                    self.is_skipping = true;
                    let reason = format!("the request has more than {MAX_REQUEST} bytes");
                    return Ok(NextRequest::Refused(reason));
                }
                Split::Incomplete if self.is_over => {
                    return Ok(match std::mem::take(&mut self.buffer).is_empty() {
                        true => NextRequest::End,
                        false => NextRequest::Refused("the request ends in the middle".to_owned()),
                    });
                }
                Split::Incomplete => self.read().await?,
            }
        }
    }

    /// Reads until a value may be complete: requests end with a brace.
    async fn read(&mut self) -> io::Result<()> {
        loop {
            let before = self.buffer.len();
            self.buffer.reserve(CHUNK);
            self.is_over = self.input.read_buf(&mut self.buffer).await? == 0;
            let is_end = |byte: &u8| matches!(byte, b'}' | b'\n');
            if self.is_over || self.buffer[before..].iter().any(is_end) || self.buffer.len() > MAX_REQUEST {
                return Ok(());
            }
        }
    }

    /// Removes the text up to the next line break.
    fn skip_line(&mut self) {
        let end = self.buffer.iter().position(|byte| *byte == b'\n');
        self.is_skipping = end.is_none() && !self.is_over;
        self.buffer.drain(..end.map_or(self.buffer.len(), |end| end + 1));
    }
}

/// Beginning of a buffer.
#[derive(Debug)]
enum Split {
    /// A value that ends at this index.
    Value(usize),
    /// The beginning of a value, or nothing.
    Incomplete,
    /// No value, for this reason.
    Malformed(String),
}

fn split(buffer: &[u8], is_over: bool) -> Split {
    let mut values = Deserializer::from_slice(buffer).into_iter::<&RawValue>();
    match values.next() {
        None => Split::Incomplete,
        Some(Ok(value)) => {
            let end = values.byte_offset();
            // More digits of a number, or letters of a word, may follow.
            let is_closed = value.get().ends_with(['}', ']', '"']) || end < buffer.len() || is_over;
            match is_closed {
                true => Split::Value(end),
                false => Split::Incomplete,
            }
        }
        Some(Err(error)) if error.is_eof() => Split::Incomplete,
        Some(Err(error)) => Split::Malformed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads all requests of a stream that arrives in pieces of this size.
    async fn read(text: &[u8], piece: usize) -> Vec<NextRequest> {
        let (mut writer, reader) = tokio::io::duplex(piece);
        let text = text.to_vec();
        let writing = tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            writer.write_all(&text).await.unwrap();
        });
        let mut requests = Requests::new(reader);
        let mut read = Vec::new();
        loop {
            match requests.next().await.unwrap() {
                NextRequest::End => break,
                next => read.push(next),
            }
        }
        writing.await.unwrap();
        read
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(future)
    }

    fn request(text: &str) -> NextRequest {
        NextRequest::Request(text.as_bytes().to_vec())
    }

    #[test]
    fn values_are_requests_and_other_lines_are_refused() {
        for piece in [1, 7, 4096] {
            let read = |text: &str| block_on(read(text.as_bytes(), piece));
            assert_eq!(read(""), []);
            assert_eq!(read(" \n "), []);
            assert_eq!(read("{\"a\": \"}\"}"), [request("{\"a\": \"}\"}")]);
            assert_eq!(read("{}\n{\n}"), [request("{}"), request("{\n}")]);
            assert_eq!(read("{}{}"), [request("{}"), request("{}")]);
            assert_eq!(read("12\n{}"), [request("12"), request("{}")]);
            let mixed = read("\n list_tools now\n{}");
            assert!(
                matches!(&mixed[..], [NextRequest::Refused(reason), second]
                if reason.contains("no JSON") && *second == request("{}")),
                "{mixed:?}"
            );
            let cut = read("{\"action\": ");
            assert!(matches!(&cut[..], [NextRequest::Refused(reason)] if reason.contains("in the middle")));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The requests of a stream do not depend on the pieces in which it arrives, and are what serde_json reads.
        #[test]
        fn pieces_do_not_matter(text in "[ {}\\[\\]\":,a1\n]{0,24}", piece in 1_usize..9) {
            let whole = block_on(read(text.as_bytes(), 4096));
            prop_assert_eq!(&block_on(read(text.as_bytes(), piece)), &whole);
            if whole.iter().all(|next| matches!(next, NextRequest::Request(_))) {
                let values: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&text)
                    .into_iter().collect::<Result<_, _>>().unwrap();
                prop_assert_eq!(values.len(), whole.len());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            block_on(read(&bytes, 16));
        }
    }
}
