use httparse::Status;

use super::{
    arrived::Arrived,
    framing::{LARGEST_HEAD, MOST_HEADERS, Malformed},
};

/// How long the line before a chunk may be.
pub(super) const LONGEST_SIZE: usize = 4 * 1024;
/// Hexadecimal digits of the largest size that fits 64 bits.
const MOST_SIZE_DIGITS: usize = 16;

/// What comes next of a body in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    Size,
    Data(u64),
    /// The end of the line behind the data.
    End,
    Trailers,
    Over,
}

impl Chunk {
    /// What comes after what stands at the front of the buffer; nothing when that is not whole.
    pub(super) fn step(self, arrived: &mut Arrived) -> Result<Option<Self>, Malformed> {
        match self {
            Self::Size => match arrived.line_end() {
                Some(length) if length <= LONGEST_SIZE => {
                    let size = chunk_size(&arrived.as_slice()[..length]);
                    let size = size.ok_or(Malformed("the size of a chunk is none"))?;
                    arrived.skip(length);
                    Ok(Some(if size == 0 {
                        Self::Trailers
                    } else {
                        Self::Data(size)
                    }))
                }
                None if arrived.len() < LONGEST_SIZE => Ok(None),
                _ => Err(Malformed("the line before a chunk is too long")),
            },
            Self::Data(_) => Ok(Some(Self::End)),
            Self::End => match arrived.as_slice() {
                [b'\r', b'\n', ..] => {
                    arrived.skip(2);
                    Ok(Some(Self::Size))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(Malformed("a chunk is longer than it says")),
            },
            // In which nothing is said.
            Self::Trailers => match arrived.block_end() {
                Some(length) if length <= LARGEST_HEAD && are_trailers(&arrived.as_slice()[..length]) => {
                    arrived.skip(length);
                    Ok(Some(Self::Over))
                }
                None if arrived.len() < LARGEST_HEAD => Ok(None),
                _ => Err(Malformed("what follows the last chunk is no trailer")),
            },
            Self::Over => Ok(None),
        }
    }
}

/// Reads the line before a chunk (RFC 9112, section 7.1): a size, and extensions that may hold no control character. One
/// that is read in another way by somebody else would be another body there.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r\n")?;
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let n_digits = line.iter().take_while(|byte| is_digit(byte)).count();
    let (digits, rest) = line
        .split_at_checked(n_digits)
        .filter(|_| n_digits <= MOST_SIZE_DIGITS)?;
    let mut extension = rest.iter().skip_while(|byte| matches!(byte, b' ' | b'\t'));
    let is_valid = extension.next().is_none_or(|byte| *byte == b';')
        && rest.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    let digits = str::from_utf8(digits).ok().filter(|_| is_valid)?;
    u64::from_str_radix(digits, 16).ok()
}

/// Whether a block holds header fields alone, each on a line that ends as it must.
fn are_trailers(block: &[u8]) -> bool {
    let mut lines = block.split_inclusive(|byte| *byte == b'\n');
    let mut trailers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    lines.all(|line| line.ends_with(b"\r\n"))
        && matches!(httparse::parse_headers(block, &mut trailers), Ok(Status::Complete((length, _))) if length == block.len())
}
