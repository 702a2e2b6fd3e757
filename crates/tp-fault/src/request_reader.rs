//! Splits HTTP requests: finds their ends and nothing more.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Reader of the requests of a connection.
pub(crate) struct RequestReader<R> {
    reader: R,
    buffer: BytesMut,
}

/// Maximum size of a request, in bytes: it is buffered whole.
const MAX: usize = 64 << 20;

impl<R: AsyncRead + Unpin> RequestReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
        }
    }

    /// Reads available bytes; returns 0 at the end. Cancel safe: no byte is lost.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.reader.read_buf(&mut self.buffer).await
    }

    /// Returns the next request, head and body; `None` if the connection ended before its end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(length) = length(&self.buffer) {
                return Ok(Some(self.buffer.split_to(length).freeze()));
            }
            if self.buffer.len() > MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads and discards until the end.
    pub(crate) async fn discard(&mut self) {
        while matches!(self.fill().await, Ok(1..)) {
            self.buffer.clear();
        }
    }

    /// Waits until the client has closed the connection, and keeps the bytes before.
    pub(crate) async fn gone(&mut self) {
        while matches!(self.fill().await, Ok(1..)) {}
    }

    /// Returns the next bytes; `None` at the end.
    pub(crate) async fn some(&mut self) -> Option<Bytes> {
        if self.buffer.is_empty() && !matches!(self.fill().await, Ok(1..)) {
            return None;
        }
        Some(self.buffer.split().freeze())
    }
}

/// Returns the length of the first request, if it is complete.
fn length(bytes: &[u8]) -> Option<usize> {
    let head = find(bytes, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]);
    let header = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let is_chunked = header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    if is_chunked {
        return Some(head + chunks(&bytes[head..])?);
    }
    let body: usize = header("content-length").map_or(0, |value| value.parse().unwrap_or(0));
    let whole = head.checked_add(body)?;
    (bytes.len() >= whole).then_some(whole)
}

/// Returns the length of a chunked body, if it is complete.
fn chunks(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = find(&bytes[at..], b"\r\n")?;
        let size = str::from_utf8(&bytes[at..at + line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        at += line + 2;
        if size == 0 {
            // Trailers may follow the last chunk, each on its line, then an empty line.
            return match bytes[at..].starts_with(b"\r\n") {
                true => Some(at + 2),
                false => Some(at + find(&bytes[at..], b"\r\n\r\n")? + 4),
            };
        }
        at = at.checked_add(size)?.checked_add(2)?;
        if at > bytes.len() {
            return None;
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_found_wherever_reads_end() {
        let all: [&[u8]; 4] = [
            b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n",
            b"POST /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\na;x=y\r\n0123456789\r\n0\r\n\r\n",
            b"POST /d HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n0\r\nx-trailer: 1\r\n\r\n",
        ];
        let whole = all.concat();
        for end in 0..=whole.len() {
            let mut requests = RequestReader::new((&whole[..end]).chain(&whole[end..]));
            for request in all {
                assert_eq!(requests.next().await.unwrap().unwrap(), request, "cut at {end}");
            }
            assert_eq!(requests.next().await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn a_request_without_its_end_is_none() {
        let whole = b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";
        for end in 0..whole.len() {
            let mut requests = RequestReader::new(&whole[..end]);
            assert_eq!(requests.next().await.unwrap(), None, "cut at {end}");
        }
    }
}
