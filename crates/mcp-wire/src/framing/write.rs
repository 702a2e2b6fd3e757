//! Writers of messages. Each builds a frame in one buffer and copies payloads unchanged. The buffers have room for the
//! newline of [`into_line`], so that ending a line never moves the frame.

use std::io::Write as _;

use bytes::Bytes;
use raw_json::RawJson;

use crate::{Id, Params, RpcError};

/// Writes a request.
#[must_use]
pub fn request(id: u64, method: &str, params: &Params) -> Vec<u8> {
    let mut out = Vec::with_capacity(72 + method.len() + params.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    push_number(&mut out, id);
    out.extend_from_slice(b",\"method\":");
    push_string(&mut out, method);
    if !params.is_empty() {
        out.extend_from_slice(b",\"params\":");
        params.write(&mut out);
    }
    out.push(b'}');
    out
}

/// Writes a number in decimal. Every request has one, and the formatting machinery takes several times as long.
fn push_number(out: &mut Vec<u8>, number: u64) {
    const LONGEST: usize = 20;
    let (mut digits, mut start, mut left) = ([b'0'; LONGEST], LONGEST, number);
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Writes a notification.
#[must_use]
pub fn notification(method: &str, params: Option<&RawJson>) -> Vec<u8> {
    let mut out = Vec::with_capacity(48 + method.len() + params.map_or(0, RawJson::len));
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    push_string(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
    out
}

/// Writes the response to a batch: an array of the responses to its requests.
#[must_use]
pub fn batch_response<A: AsRef<[u8]>>(answers: &[A]) -> Vec<u8> {
    let length: usize = answers.iter().map(|answer| answer.as_ref().len() + 1).sum();
    let mut out = Vec::with_capacity(length + 2);
    out.push(b'[');
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(answer.as_ref());
    }
    out.push(b']');
    out
}

/// Writes the response to a request that succeeded.
#[must_use]
pub fn result(id: &Id, result: &RawJson) -> Vec<u8> {
    let mut out = response(id.as_raw(), 12 + result.len());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result.as_bytes());
    out.push(b'}');
    out
}

/// Writes the response to a request that failed; `id` is `None` if it could not be read.
#[must_use]
pub fn error(id: Option<&RawJson>, error: &RpcError) -> Vec<u8> {
    let message = RawJson::from(error.message.as_str());
    let mut out = response(
        id.unwrap_or(&RawJson::null()),
        64 + message.len() + error.data.as_ref().map_or(0, RawJson::len),
    );
    write!(out, ",\"error\":{{\"code\":{},\"message\":", error.code).expect("a vector takes any bytes");
    out.extend_from_slice(message.as_bytes());
    if let Some(data) = &error.data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data.as_bytes());
    }
    for (key, member) in &error.extra_members {
        out.push(b',');
        out.extend_from_slice(RawJson::from(key.as_str()).as_bytes());
        out.push(b':');
        out.extend_from_slice(member.as_bytes());
    }
    out.extend_from_slice(b"}}");
    out
}

/// Makes a frame one line with a newline at its end, as the stdio transport requires.
///
/// A payload may have several lines. JSON has no line breaks inside of strings, so each one is white space between tokens
/// and becomes a blank.
pub fn end_line(frame: &mut Vec<u8>) {
    flatten(frame);
    frame.push(b'\n');
}

/// Converts a frame into one line, see [`end_line`].
#[must_use]
pub fn into_line(mut frame: Vec<u8>) -> Bytes {
    end_line(&mut frame);
    frame.into()
}

/// Replaces line breaks with blanks.
pub(crate) fn flatten(frame: &mut [u8]) {
    let mut at = 0;
    while let Some(offset) = memchr::memchr2(b'\n', b'\r', &frame[at..]) {
        at += offset;
        frame[at] = b' ';
    }
}

/// Begins a response.
fn response(id: &RawJson, rest: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + id.len() + rest);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out
}

/// Writes a text as a JSON string. The names of the protocol need no escapes, which is the fast path.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(RawJson::from(text).as_bytes());
    }
}
