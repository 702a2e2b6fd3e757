use bytes::{Bytes, BytesMut};

/// Cuts a stream of bytes into lines: the framing of the stdio transport.
///
/// Bytes go in through [`buffer`](Self::buffer), in chunks of any size; lines come out of
/// [`next_line`](Self::next_line). A line that is longer than the limit does not end the stream and takes no memory
/// beyond the limit. Carriage returns before the newline, a byte order mark and empty lines are passed over.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    max_length: usize,
    /// The line that is being discarded.
    oversize: Option<(Bytes, usize)>,
}

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Complete(Bytes),
    /// A line beyond the limit, of which only the head was kept: enough to find an id in it.
    Oversize {
        /// The first 4 KiB.
        head: Bytes,
        /// How long the line was.
        length: usize,
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
            oversize: None,
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
                self.discard_long();
                return None;
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
        !self.buffer.is_empty() || self.oversize.is_some()
    }

    /// Takes the first `length` bytes as the end of a line; nothing when that line is empty.
    fn take(&mut self, length: usize) -> Option<Line> {
        if let Some((head, before)) = self.oversize.take() {
            self.discard_bytes(length);
            return Some(Line::Oversize {
                head,
                length: before + length,
            });
        }
        if length > self.max_length {
            let head = Bytes::copy_from_slice(&self.buffer[..self.max_length.min(HEAD)]);
            self.discard_bytes(length);
            return Some(Line::Oversize { head, length });
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

    /// Keeps the head of a line that has grown too long, and nothing else of it.
    fn discard_long(&mut self) {
        let length = self.buffer.len();
        if let Some((_, before)) = &mut self.oversize {
            *before += length;
            self.buffer.clear();
        } else if length > self.max_length {
            self.oversize = Some((
                Bytes::copy_from_slice(&self.buffer[..self.max_length.min(HEAD)]),
                length,
            ));
            self.buffer = BytesMut::new();
        } else {
            return;
        }
        self.searched = 0;
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
