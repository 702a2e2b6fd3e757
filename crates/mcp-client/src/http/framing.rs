//! HTTP/1.1 as it is written: heads of requests and answers, and where a body ends (RFC 9112, sections 3 to 7).
//!
//! Without any I/O: bytes come in as they arrive. What is not understood is an error, never a guess: where an answer ends
//! decides which bytes the next one gets.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use httparse::Status;

use super::{arrived::Arrived, chunk::Chunk};

/// How large the head of an answer, and the trailers behind a body, may be.
pub(super) const LARGEST_HEAD: usize = 64 * 1024;
/// How many headers, or trailers, there may be.
pub(super) const MOST_HEADERS: usize = 128;
/// As many as most answers have, which are read without memory for more.
const FEW_HEADERS: usize = 24;
/// Bodies up to this size are copied behind their heads: one piece is cheaper to write than two.
pub(super) const COPIED: usize = 16 * 1024;
/// How many interim heads and empty lines may stand before the head of an answer.
const MOST_INTERIM: usize = 32;

/// What is no HTTP/1.1, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer is no valid HTTP/1.1: {0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// The head of a request.
pub(super) fn request_head(
    method: &Method,
    rest: &[u8],
    headers: &[(HeaderName, HeaderValue)],
    length: Option<usize>,
) -> Vec<u8> {
    // Lines of our own are shorter than this.
    const LINE: usize = 64;
    // And a small body is put behind them.
    let body = length.filter(|length| *length <= COPIED).unwrap_or_default();
    let mut head = Vec::with_capacity(rest.len() + headers.len() * LINE + 2 * LINE + body);
    head.extend_from_slice(method.as_str().as_bytes());
    head.extend_from_slice(rest);
    for (name, value) in headers {
        header_line(&mut head, name, value);
    }
    if let Some(length) = length {
        head.extend_from_slice(b"content-length: ");
        decimal(&mut head, length);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// A header as it stands in a head. Neither a name nor a value can hold the end of a line.
pub(super) fn header_line(head: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value.as_bytes());
    head.extend_from_slice(b"\r\n");
}

fn decimal(head: &mut Vec<u8>, mut number: usize) {
    let start = head.len();
    loop {
        head.push(b'0' + u8::try_from(number % 10).unwrap_or_default());
        number /= 10;
        if number == 0 {
            break;
        }
    }
    head[start..].reverse();
}

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    bytes: Bytes,
    /// Where the name and the value of each header are.
    headers: Vec<(Range<usize>, Range<usize>)>,
    /// Whether another request may follow over the same connection.
    pub(super) is_kept: bool,
    pub(super) framing: Framing,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many more bytes.
    Length(u64),
    /// By what stands before its pieces.
    Chunked(Chunk),
    /// With the connection.
    UntilClose,
}

impl Head {
    /// Takes the head of an answer off the front, if it is whole. Interim answers are passed over; `n_interim` counts them
    /// for as long as one answer is waited for.
    pub(super) fn take(
        arrived: &mut Arrived,
        method: &Method,
        n_interim: &mut usize,
    ) -> Result<Option<Self>, Malformed> {
        loop {
            // Some servers write an empty line behind a body (RFC 9112, section 2.2).
            let length = match arrived.as_slice() {
                [b'\n', ..] => 1,
                [b'\r', b'\n', ..] => 2,
                start if !has_version(start) => {
                    return Err(Malformed("it does not begin with `HTTP/1.1`"));
                }
                _ => match arrived.block_end() {
                    Some(length) if length <= LARGEST_HEAD => length,
                    None if arrived.len() < LARGEST_HEAD => return Ok(None),
                    _ => return Err(Malformed("its head is larger than 64 KiB")),
                },
            };
            let bytes = arrived.take(length);
            if !is_empty_line(&bytes) {
                let parsed = match parse::<FEW_HEADERS>(&bytes) {
                    Err(httparse::Error::TooManyHeaders) => parse::<MOST_HEADERS>(&bytes),
                    parsed => parsed,
                };
                let parsed = parsed.map_err(|error| malformed(&error))?;
                match parsed.status {
                    101 => return Err(Malformed("it changes the protocol, which was not asked for")),
                    100..200 => {}
                    200..600 => return Self::new(parsed, bytes, method).map(Some),
                    _ => return Err(malformed(&httparse::Error::Status)),
                }
            }
            *n_interim += 1;
            if *n_interim > MOST_INTERIM {
                return Err(Malformed("more than 32 interim heads stand before it"));
            }
        }
    }

    fn new(parsed: Parsed, bytes: Bytes, method: &Method) -> Result<Self, Malformed> {
        let Parsed {
            status,
            is_old,
            headers,
        } = parsed;
        let mut head = Self {
            status,
            bytes,
            headers,
            is_kept: false,
            framing: Framing::UntilClose,
        };
        let has = |option: &str| {
            let mut options = head.tokens("connection");
            options.any(|said| said.eq_ignore_ascii_case(option.as_bytes()))
        };
        head.is_kept = !has("close") && (!is_old || has("keep-alive"));
        head.framing = head.find_framing(method, is_old)?;
        head.is_kept &= head.framing != Framing::UntilClose;
        Ok(head)
    }

    /// RFC 9112, section 6.3.
    fn find_framing(&mut self, method: &Method, is_old: bool) -> Result<Framing, Malformed> {
        let is_bodiless = matches!(self.status, 204 | 304);
        if *method == Method::HEAD || is_bodiless {
            // A body that must not be there would be read as the next answer.
            let has_body =
                self.get("transfer-encoding").is_some() || !matches!(self.length(), Ok(None | Some(0)));
            self.is_kept &= !(is_bodiless && has_body);
            return Ok(Framing::Length(0));
        }
        let length = self.length()?;
        if is_old && self.get("transfer-encoding").is_some() {
            // RFC 9112, section 6.1: its framing is faulty.
            return Err(Malformed(
                "it has a transfer coding, which HTTP/1.0 does not know",
            ));
        }
        let mut codings = self.tokens("transfer-encoding");
        match (codings.next(), codings.next()) {
            (None, _) => Ok(length.map_or(Framing::UntilClose, Framing::Length)),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => {
                drop(codings);
                // What stands between us and the server may have gone by the length.
                self.is_kept &= length.is_none();
                Ok(Framing::Chunked(Chunk::Size))
            }
            _ => Err(Malformed("its transfer coding is not `chunked`")),
        }
    }

    /// What all headers agree that the length is.
    fn length(&self) -> Result<Option<u64>, Malformed> {
        let mut agreed = None;
        for said in self.tokens("content-length") {
            let is_number = !said.is_empty() && said.iter().all(u8::is_ascii_digit);
            let number = str::from_utf8(said).ok().filter(|_| is_number);
            let number = number.and_then(|number| number.parse::<u64>().ok());
            let number = number.ok_or(Malformed("its `content-length` is no number"))?;
            if agreed.is_some_and(|agreed| agreed != number) {
                return Err(Malformed("it has two lengths"));
            }
            agreed = Some(number);
        }
        Ok(agreed)
    }

    /// The value of the first header of this name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let of_name = self
            .headers
            .iter()
            .filter(move |(at, _)| self.bytes[at.clone()].eq_ignore_ascii_case(name.as_bytes()));
        of_name.map(|(_, value)| &self.bytes[value.clone()])
    }

    /// The members of the lists that headers of this name have.
    fn tokens(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
    }
}

struct Parsed {
    status: u16,
    /// HTTP/1.0, in which a connection ends with its answer.
    is_old: bool,
    headers: Vec<(Range<usize>, Range<usize>)>,
}

/// Whether this may be the start of an answer in HTTP/1.0 or 1.1.
fn has_version(start: &[u8]) -> bool {
    const VERSION: &[u8] = b"HTTP/1.";
    let length = start.len().min(VERSION.len());
    start[..length] == VERSION[..length] || start == b"\r"
}

fn is_empty_line(bytes: &[u8]) -> bool {
    matches!(bytes, b"\n" | b"\r\n")
}

fn parse<const N: usize>(bytes: &[u8]) -> Result<Parsed, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; N];
    let mut answer = httparse::Response::new(&mut headers);
    // Its end was found before: what goes on behind it, or ends earlier, is no head.
    if answer.parse(bytes)? != Status::Complete(bytes.len()) {
        return Err(httparse::Error::NewLine);
    }
    let start = bytes.as_ptr().addr();
    let place = |part: &[u8]| {
        let at = part.as_ptr().addr() - start;
        at..at + part.len()
    };
    let headers = answer.headers.iter();
    Ok(Parsed {
        status: answer.code.unwrap_or_default(),
        is_old: answer.version == Some(0),
        headers: headers
            .map(|header| (place(header.name.as_bytes()), place(header.value)))
            .collect(),
    })
}

fn malformed(error: &httparse::Error) -> Malformed {
    Malformed(match error {
        httparse::Error::HeaderName => "the name of a header is none",
        httparse::Error::HeaderValue => "the value of a header is none",
        httparse::Error::NewLine => "a line does not end where it must",
        httparse::Error::Status => "its status is none",
        httparse::Error::TooManyHeaders => "it has more than 128 headers",
        httparse::Error::Version => "it does not begin with `HTTP/1.1`",
        _ => "its head cannot be read",
    })
}

/// What there is of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Data(Bytes),
    /// Nothing until more has arrived.
    More,
    /// Nothing any more.
    End,
}

impl Framing {
    /// How many bytes are still to come, where that is known.
    pub(super) fn left(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunked(Chunk::Over) => Some(0),
            Self::Chunked(_) | Self::UntilClose => None,
        }
    }

    /// Takes the next piece of the body off the front of what has arrived.
    pub(super) fn take(&mut self, arrived: &mut Arrived) -> Result<Piece, Malformed> {
        loop {
            match self {
                Self::Length(0) | Self::Chunked(Chunk::Over) => return Ok(Piece::End),
                Self::UntilClose if arrived.is_empty() => return Ok(Piece::More),
                Self::UntilClose => return Ok(Piece::Data(arrived.take(arrived.len()))),
                Self::Length(left) => return Ok(data(arrived, left)),
                Self::Chunked(Chunk::Data(left)) if *left > 0 => return Ok(data(arrived, left)),
                Self::Chunked(chunk) => match chunk.step(arrived)? {
                    Some(next) => *chunk = next,
                    None => return Ok(Piece::More),
                },
            }
        }
    }

    /// Whether the body is whole, when the connection has ended.
    pub(super) fn may_end(&self) -> bool {
        matches!(self, Self::UntilClose) || self.left() == Some(0)
    }
}

fn data(arrived: &mut Arrived, left: &mut u64) -> Piece {
    let there = usize::try_from(*left).map_or(arrived.len(), |left| left.min(arrived.len()));
    if there == 0 {
        return Piece::More;
    }
    *left -= there as u64;
    Piece::Data(arrived.take(there))
}

#[cfg(test)]
mod tests;
