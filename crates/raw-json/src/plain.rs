//! How far a string goes on before something in it has to be looked at.

/// Where the first byte stands, from `start` on, that is a quote, a backslash or a control character; the end of the text if
/// there is none.
///
/// Most strings are keys and words, which end within eight bytes: those are looked at without a call.
#[inline(always)]
pub(crate) fn end_of_plain(bytes: &[u8], start: usize) -> usize {
    match whole_word(bytes, start).map(special_bytes) {
        Some(0) => in_few_words(bytes, start + 8),
        Some(marks) => start + first(marks),
        None => in_last_word(bytes, start),
    }
}

/// Vector instructions take longer to begin than a few words take to end.
#[inline(never)]
fn in_few_words(bytes: &[u8], start: usize) -> usize {
    const FEW: usize = 6;
    for at in (start..).step_by(8).take(FEW) {
        match whole_word(bytes, at).map(special_bytes) {
            Some(0) => {}
            Some(marks) => return at + first(marks),
            None => return in_last_word(bytes, at),
        }
    }
    in_blocks(bytes, start + 8 * FEW)
}

/// Each block is judged without a branch, which compilers turn into vector instructions.
#[inline(never)]
fn in_blocks(bytes: &[u8], mut at: usize) -> usize {
    const BLOCK: usize = 32;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        if block.iter().fold(false, |found, byte| found | is_special(*byte)) {
            break;
        }
        at += BLOCK;
    }
    while let Some(0) = whole_word(bytes, at).map(special_bytes) {
        at += 8;
    }
    at + first(special_bytes(word(bytes, at)))
}

#[cold]
#[inline(never)]
fn in_last_word(bytes: &[u8], at: usize) -> usize {
    at + first(special_bytes(last_word(bytes, at)))
}

/// The eight bytes that begin at a place, the first of them the lowest. Behind the end of the text stand zeros, which are
/// control characters.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    whole_word(bytes, at).unwrap_or_else(|| last_word(bytes, at))
}

#[inline(always)]
fn whole_word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match bytes.last_chunk() {
        Some(last) if !rest.is_empty() => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
        _ => rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Which of a word's bytes is the first that is marked.
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// A quote is the first character above the control characters when its second bit is turned.
const TURNED: u8 = 2;

fn is_special(byte: u8) -> bool {
    byte ^ TURNED <= 0x20 || byte == b'\\'
}

/// The highest bit of each byte that is special, for the lowest of them; those above it may be marked wrongly.
fn special_bytes(word: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // A byte below the limit borrows when the limit is taken away, so its highest bit is set then and was not before.
    let below = |word: u64, limit: u8| word.wrapping_sub(each(limit)) & !word;
    let backslashes = below(word ^ each(b'\\'), 1);
    (below(word ^ each(TURNED), 0x21) | backslashes) & each(0x80)
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
                    let expected = if matches!(byte, b'"' | b'\\' | 0..0x20) {
                        at
                    } else {
                        length
                    };
                    assert_eq!(end_of_plain(&bytes, 0), expected, "{byte:#x} at {at} of {length}");
                    // What comes behind is not looked at.
                    bytes[at + 1..].fill(b'"');
                    let expected = if matches!(byte, b'"' | b'\\' | 0..0x20) {
                        at
                    } else {
                        (at + 1).min(length)
                    };
                    assert_eq!(
                        end_of_plain(&bytes, 0),
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
                assert_eq!(end_of_plain(&bytes, 0), 2, "{first:#x} among {neighbour:#x}");
            }
        }
    }
}
