//! How far a string goes on before something in it has to be looked at.

/// The number of bytes at the start that are no quote, no backslash and no control character.
///
/// Most strings are keys and words. They are passed eight bytes at a time, without a call: vector instructions take
/// longer to begin than such a string takes to end. What is long goes their way.
#[inline]
pub(crate) fn plain(bytes: &[u8]) -> usize {
    const SHORT: usize = 64;
    let (mut at, mut rest) = (0, bytes);
    while at < SHORT {
        let Some((word, behind)) = rest.split_first_chunk() else {
            return at + rest.iter().position(is_special).unwrap_or(rest.len());
        };
        let marks = special_bytes(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        (at, rest) = (at + 8, behind);
    }
    at + long(rest)
}

fn is_special(byte: &u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// The highest bit of each byte that is special, for the lowest of them; those above it may be marked wrongly.
fn special_bytes(word: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // A byte below the limit borrows when the limit is taken away, so its highest bit is set then and was not before.
    let below = |word: u64, limit: u8| word.wrapping_sub(each(limit)) & !word;
    let quotes = below(word ^ each(b'"'), 1);
    let backslashes = below(word ^ each(b'\\'), 1);
    (quotes | backslashes | below(word, 0x20)) & each(0x80)
}

#[cold]
#[inline(never)]
fn long(bytes: &[u8]) -> usize {
    let stop = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
    control_character(&bytes[..stop]).unwrap_or(stop)
}

/// Where the first control character stands. A whole block is judged without a branch, which compilers turn into
/// vector instructions; looking byte by byte was the larger part of what a check cost.
fn control_character(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let is_control = |byte: &u8| *byte < 0x20;
    let block = bytes
        .chunks(BLOCK)
        .position(|block| block.iter().fold(false, |found, byte| found | is_control(byte)))?;
    let start = block * BLOCK;
    bytes[start..]
        .iter()
        .position(is_control)
        .map(|offset| start + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for length in [0, 1, 7, 8, 9, 15, 16, 63, 64, 65, 71, 72, 130, 200] {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'x'; length];
                    bytes[at] = byte;
                    let expected = if is_special(&byte) { at } else { length };
                    assert_eq!(plain(&bytes), expected, "{byte:#x} at {at} of {length}");
                    // What comes behind is not looked at.
                    bytes[at + 1..].fill(b'"');
                    let expected = if is_special(&byte) {
                        at
                    } else {
                        (at + 1).min(length)
                    };
                    assert_eq!(
                        plain(&bytes),
                        expected,
                        "{byte:#x} at {at} of {length}, then quotes"
                    );
                }
            }
        }
    }

    #[test]
    fn borrows_mark_nothing_before_the_first() {
        for first in [b'"', b'\\', 0, 0x1f] {
            for neighbour in [b'!', b'#', b'[', b']', 0x20, 0x7f, 0x80, 0xff] {
                let bytes = [
                    neighbour, neighbour, first, neighbour, first, neighbour, neighbour, neighbour,
                ];
                assert_eq!(plain(&bytes), 2, "{first:#x} among {neighbour:#x}");
            }
        }
    }
}
