use bytes::{Bytes, BytesMut};

/// Cuts a stream of bytes into lines: the framing of the stdio transport.
///
/// Bytes go in through [`buffer`](Self::buffer), in chunks of any size; lines come out of
/// [`next_line`](Self::next_line). A line that is longer than the limit is told as soon as it is; it does not end the stream and
/// takes no memory beyond the limit. Carriage returns before the newline, a byte order mark and empty lines are passed over.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    max_length: usize,
    /// How much was discarded of a line that is too long, which was told already.
    passed_over: Option<usize>,
}

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Complete(Bytes),
    /// A line beyond the limit, of which only the head was kept: enough to find an id in it. It may not have ended yet.
    Oversize {
        /// The first 4 KiB.
        head: Bytes,
    },
}

const HEAD: usize = 4 * 1024;
/// Lines up to this size are copied out: that is cheaper than sharing, and a small answer that is kept does not keep
/// a large buffer alive. Larger ones share the buffer.
const COPY: usize = 4 * 1024;
/// A buffer beyond this size is left to the line that needed it.
const KEEP: usize = 256 * 1024;

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_LENGTH)
    }
}

impl LineDecoder {
    /// 16 MiB.
    pub const DEFAULT_MAX_LENGTH: usize = 16 * 1024 * 1024;

    /// A decoder of lines of at most `max_length` bytes.
    #[must_use]
    pub fn new(max_length: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            max_length,
            passed_over: None,
        }
    }

    /// Where to append what was read, with room for at least 8 KiB.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.rewind();
        if self.buffer.capacity() - self.buffer.len() < 8 * 1024 {
            self.buffer.reserve(64 * 1024);
        }
        &mut self.buffer
    }

    /// Appends what was read elsewhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.rewind();
        self.buffer.extend_from_slice(bytes);
    }

    /// Gives back the memory of an empty buffer.
    pub fn release(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > 0 {
            self.buffer = BytesMut::new();
        }
    }

    /// The next line, if the buffer holds one.
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

    /// The last line, after the stream has ended without a newline.
    pub fn finish(&mut self) -> Option<Line> {
        self.next_line().or_else(|| {
            self.searched = 0;
            self.take(self.buffer.len())
        })
    }

    /// Whether a line has begun that has not ended.
    #[must_use]
    pub fn is_mid_line(&self) -> bool {
        !self.buffer.is_empty() || self.passed_over.is_some()
    }

    /// How much was read of a line that is too long and has not ended; 0 if there is none.
    #[must_use]
    pub fn passed_over(&self) -> usize {
        self.passed_over.unwrap_or_default()
    }

    /// Takes the first `length` bytes as the end of a line; nothing when that line is empty or was told already.
    fn take(&mut self, length: usize) -> Option<Line> {
        if self.passed_over.take().is_some() {
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

    /// Tells of a line that has grown too long, once, and keeps nothing of it.
    fn discard_long(&mut self) -> Option<Line> {
        let length = self.buffer.len();
        let mut told = None;
        if let Some(before) = &mut self.passed_over {
            *before += length;
            self.buffer.clear();
        } else if length > self.max_length {
            told = Some(Line::Oversize { head: self.head() });
            self.passed_over = Some(length);
            self.buffer = BytesMut::new();
        } else {
            return None;
        }
        self.searched = 0;
        told
    }

    /// The head of a line that is too long.
    fn head(&self) -> Bytes {
        Bytes::copy_from_slice(&self.buffer[..self.max_length.min(HEAD)])
    }

    /// Begins an empty buffer at its beginning again: pages further on are never touched if lines are short.
    fn rewind(&mut self) {
        if self.buffer.is_empty() {
            let _ = self.buffer.try_reclaim(self.buffer.capacity() + 1);
        }
    }

    fn discard_bytes(&mut self, count: usize) {
        bytes::Buf::advance(&mut self.buffer, count);
    }
}

/// The line without a byte order mark and a carriage return.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
