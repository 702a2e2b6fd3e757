use bytes::{Bytes, BytesMut};

/// Splits a stream of bytes into lines: the framing of the stdio transport.
///
/// Bytes go in through [`buffer`](Self::buffer), in chunks of any size; lines come out of
/// [`next_line`](Self::next_line). A line is reported as [`Line::Oversize`] as soon as it exceeds the limit; it does not end
/// the stream and takes no memory beyond the limit. Carriage returns before the newline, a byte order mark and empty lines
/// are skipped.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// Length of the start of the buffer that is known to have no newline.
    searched: usize,
    max_length: usize,
    /// Number of bytes discarded of a line beyond the limit, which was reported already.
    skipped: Option<usize>,
}

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Line without its end.
    Complete(Bytes),
    /// Line beyond the limit, of which only the head is kept: enough to find an id in it. It may not have ended yet.
    Oversize {
        /// First 4 KiB of the line.
        head: Bytes,
    },
}

/// Length of the head that is kept of an oversize line, in bytes.
const HEAD: usize = 4 * 1024;
/// Maximum length of a line that is copied out of the buffer, in bytes. A copy is cheaper than sharing, and a small
/// response that is kept does not keep a large buffer alive. Longer lines share the buffer.
const COPY: usize = 4 * 1024;
/// Maximum size of a buffer that is reused, in bytes. A larger one is handed to the line that needed it.
const KEEP: usize = 256 * 1024;

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_LENGTH)
    }
}

impl LineDecoder {
    /// Default limit of a line: 16 MiB.
    pub const DEFAULT_MAX_LENGTH: usize = 16 * 1024 * 1024;

    /// Creates a decoder of lines of at most `max_length` bytes.
    #[must_use]
    pub fn new(max_length: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            max_length,
            skipped: None,
        }
    }

    /// Returns the buffer to read into, with room for at least 8 KiB.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.rewind();
        if self.buffer.capacity() - self.buffer.len() < 8 * 1024 {
            self.buffer.reserve(64 * 1024);
        }
        &mut self.buffer
    }

    /// Appends bytes that were read elsewhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.rewind();
        self.buffer.extend_from_slice(bytes);
    }

    /// Frees the memory of an empty buffer.
    pub fn release(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > 0 {
            self.buffer = BytesMut::new();
        }
    }

    /// Returns the next line, if the buffer has a whole one.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.discard_long();
            };
            let length = self.searched + offset;
            let line = self.take(length);
            self.discard_bytes(1);
            self.searched = 0;
            if line.is_some() {
                return line;
            }
        }
    }

    /// Returns the last line, after the stream has ended without a newline.
    pub fn finish(&mut self) -> Option<Line> {
        self.next_line().or_else(|| {
            self.searched = 0;
            self.take(self.buffer.len())
        })
    }

    /// Returns `true` if a line has begun and not ended.
    #[must_use]
    pub fn is_mid_line(&self) -> bool {
        !self.buffer.is_empty() || self.skipped.is_some()
    }

    /// Number of bytes read so far of an unfinished line beyond the limit; 0 if there is none.
    #[must_use]
    pub fn n_skipped(&self) -> usize {
        self.skipped.unwrap_or_default()
    }

    /// Takes the first `length` bytes as the end of a line. Returns `None` if the line is empty or was reported already.
    fn take(&mut self, length: usize) -> Option<Line> {
        if self.skipped.take().is_some() {
            self.discard_bytes(length);
            return None;
        }
        if length > self.max_length {
            let head = self.head();
            self.discard_bytes(length);
            return Some(Line::Oversize { head });
        }
        let line = trim(&self.buffer[..length]);
        if line.is_empty() {
            self.discard_bytes(length);
            return None;
        }
        if length <= COPY {
            let line = Bytes::copy_from_slice(line);
            self.discard_bytes(length);
            return Some(Line::Complete(line));
        }
        let (start, end) = (line.as_ptr() as usize - self.buffer.as_ptr() as usize, line.len());
        let whole = self.buffer.split_to(length).freeze();
        if length > KEEP {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Some(Line::Complete(whole.slice(start..start + end)))
    }

    /// Reports a line that exceeds the limit, once, and discards its bytes.
    fn discard_long(&mut self) -> Option<Line> {
        let length = self.buffer.len();
        let mut oversize = None;
        if let Some(before) = &mut self.skipped {
            *before += length;
            self.buffer.clear();
        } else if length > self.max_length {
            oversize = Some(Line::Oversize { head: self.head() });
            self.skipped = Some(length);
            self.buffer = BytesMut::new();
        } else {
            return None;
        }
        self.searched = 0;
        oversize
    }

    /// Copies the head of a line beyond the limit.
    fn head(&self) -> Bytes {
        Bytes::copy_from_slice(&self.buffer[..self.max_length.min(HEAD)])
    }

    /// Moves an empty buffer back to its start, so that short lines never touch its later pages.
    fn rewind(&mut self) {
        if self.buffer.is_empty() {
            let _ = self.buffer.try_reclaim(self.buffer.capacity() + 1);
        }
    }

    fn discard_bytes(&mut self, count: usize) {
        bytes::Buf::advance(&mut self.buffer, count);
    }
}

/// Removes a byte order mark and a carriage return.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
