//! Vectorized search for the bytes that end or interrupt the plain text of a string.

use wide::u8x16;

/// Returns the offset of the first quote, backslash or control character from `start` on, or the length of the text if
/// there is none.
///
/// Most strings are keys and words and end within eight bytes: those are searched without a call.
#[inline(always)]
pub(crate) fn end_of_plain(bytes: &[u8], start: usize) -> usize {
    match whole_word(bytes, start).map(special_bytes) {
        Some(0) => in_vectors(bytes, start + 8),
        Some(marks) => start + first(marks),
        None => in_last_word(bytes, start),
    }
}

#[inline(never)]
fn in_vectors(bytes: &[u8], mut at: usize) -> usize {
    const FEW: usize = 4;
    for _ in 0..FEW {
        match chunk(bytes, at).map(special_bits) {
            Some(0) => at += VECTOR,
            Some(marks) => return at + marks.trailing_zeros() as usize,
            None => return in_words(bytes, at),
        }
    }
    SpecialBytes::new(bytes).next_from(at)
}

#[inline(never)]
fn in_words(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match whole_word(bytes, at).map(special_bytes) {
            Some(0) => at += 8,
            Some(marks) => return at + first(marks),
            None => return in_last_word(bytes, at),
        }
    }
}

#[cold]
#[inline(never)]
fn in_last_word(bytes: &[u8], at: usize) -> usize {
    at + first(special_bytes(last_word(bytes, at)))
}

/// Iterator over the special bytes of a text, for strings that contain many: each block is examined once.
pub(crate) struct SpecialBytes<'a> {
    bytes: &'a [u8],
    /// Offset up to which the text is examined, in whole blocks.
    scanned: usize,
    /// Bit set of the special bytes of the last block. The first byte has the lowest bit.
    marks: u64,
}

impl<'a> SpecialBytes<'a> {
    const BLOCK: usize = 64;

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            scanned: 0,
            marks: 0,
        }
    }

    /// Returns the same as [`end_of_plain`]. `start` must be greater than the offset returned before.
    #[inline(always)]
    pub(crate) fn next_from(&mut self, start: usize) -> usize {
        if start < self.scanned {
            self.marks &= u64::MAX << (Self::BLOCK - (self.scanned - start));
        } else {
            (self.scanned, self.marks) = (start, 0);
        }
        while self.marks == 0 {
            let Some(block) = chunk(self.bytes, self.scanned) else {
                return in_words(self.bytes, self.scanned);
            };
            self.marks = block_bits(block);
            self.scanned += Self::BLOCK;
        }
        self.scanned - Self::BLOCK + self.marks.trailing_zeros() as usize
    }
}

/// Number of bytes examined at once.
const VECTOR: usize = 16;

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// Bit set of the special bytes. The first byte has the lowest bit.
#[inline(always)]
fn special_bits(chunk: &[u8; VECTOR]) -> u32 {
    let bytes = u8x16::new(*chunk);
    let is = |byte| bytes.simd_eq(u8x16::splat(byte));
    let is_control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    (is(b'"') | is(b'\\') | is_control).to_bitmask()
}

#[inline(always)]
fn block_bits(block: &[u8; SpecialBytes::BLOCK]) -> u64 {
    let (vectors, _) = block.as_chunks::<VECTOR>();
    let marks = vectors.iter().enumerate();
    marks.fold(0, |bits, (index, vector)| {
        bits | u64::from(special_bits(vector)) << (VECTOR * index)
    })
}

/// Returns the eight bytes at `at` as a little-endian word. Bytes beyond the end of the text are zero, which is a
/// control character.
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

/// Index of the first marked byte of a word.
fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Marks the special bytes of a word by their highest bits. The lowest mark is exact; those above it may be false
/// positives. This is the "has less" trick of Sean Eron Anderson's "Bit Twiddling Hacks".
fn special_bytes(word: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // A byte below the limit borrows in the subtraction: its highest bit is set afterwards and was not set before.
    let below = |word: u64, limit: u8| word.wrapping_sub(each(limit)) & !word;
    // Flipping the second bit turns the quote into the first character above the control characters, so one comparison
    // finds both.
    let (quotes_and_controls, backslashes) = (below(word ^ each(2), 0x21), below(word ^ each(b'\\'), 1));
    (quotes_and_controls | backslashes) & each(0x80)
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
                    // Bytes after the first match have no effect.
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
    fn all_of_them_one_after_the_other() {
        for gap in 0..150 {
            for length in [0, 1, 60, 63, 64, 65, 127, 128, 129, 300, 1000] {
                let mut bytes = vec![b'x'; length];
                let places: Vec<usize> = (gap % 7..length).step_by(gap + 1).collect();
                for (place, byte) in places.iter().zip([b'"', b'\\', 0, 0x1f].iter().cycle()) {
                    bytes[*place] = *byte;
                }
                let (mut special_bytes, mut from, mut found) = (SpecialBytes::new(&bytes), 0, Vec::new());
                loop {
                    let place = special_bytes.next_from(from);
                    assert_eq!(place, end_of_plain(&bytes, from), "gap {gap}, {length} bytes");
                    if place == length {
                        break;
                    }
                    found.push(place);
                    from = place + 1;
                }
                assert_eq!(found, places, "gap {gap}, {length} bytes");
            }
        }
    }

    #[test]
    fn what_is_passed_over_is_not_found() {
        let bytes = [b'"'; 300];
        for step in 1..=150 {
            let mut special_bytes = SpecialBytes::new(&bytes);
            for from in (0..bytes.len()).step_by(step) {
                assert_eq!(special_bytes.next_from(from), from, "in steps of {step}");
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
