//! Lanes in which a text is read, and the values of a letter in each.

/// Alphabet that letters are read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Base64,
    /// Base64 on lines that were joined by `+`: form encoding writes `+` for a space, and `%2B` for the letter.
    FormBase64,
    Hex,
    /// Hexadecimal digits with `0x` before them.
    PrefixedHex,
}

/// One of the two readings of what a text may hold. Each has four lanes of base64 and two of hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// `+` is a letter of base64, and the zero of `0x` is a digit.
    Plain,
    /// `+` is a space, and `0x` is a prefix.
    Spaced,
}

/// Number of lanes of base64 and of hexadecimal digits.
pub(super) const N_LANES: usize = 6;
/// Every lane of base64, and every lane, as bits.
pub(super) const BASE64_LANES: u8 = 0b00_1111;
pub(super) const HEX_LANES: u8 = 0b11_0000;

const BASE64: [u8; 256] = values(Kind::Base64);
const FORM_BASE64: [u8; 256] = values(Kind::FormBase64);
const HEX: [u8; 256] = values(Kind::Hex);
/// Byte that does not count: white space, or a separator of hexadecimal digits.
pub(super) const SKIPPED: u8 = 254;
/// A byte that ends a run.
pub(super) const OTHER: u8 = 255;

/// Computes the value of every byte as a letter, [`SKIPPED`] or [`OTHER`].
const fn values(kind: Kind) -> [u8; 256] {
    let is_base64 = matches!(kind, Kind::Base64 | Kind::FormBase64);
    let (letters, skipped): (&[u8], &[u8]) = if is_base64 {
        (
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            b" \t\r\n",
        )
    } else {
        (b"0123456789abcdef", b" \t\r\n:;,-_.|+\\xX")
    };
    let mut values = [OTHER; 256];
    let mut index = 0;
    while index < skipped.len() {
        values[skipped[index] as usize] = SKIPPED;
        index += 1;
    }
    let mut value = 0_u8;
    while (value as usize) < letters.len() {
        let letter = letters[value as usize];
        values[letter as usize] = value;
        if !is_base64 {
            values[letter.to_ascii_uppercase() as usize] = value;
        }
        value += 1;
    }
    if is_base64 {
        values[b'-' as usize] = 62;
        values[b'_' as usize] = 63;
    }
    if matches!(kind, Kind::FormBase64) {
        values[b'+' as usize] = SKIPPED;
    }
    values
}

impl Reading {
    pub(super) fn base64(self) -> Kind {
        match self {
            Self::Plain => Kind::Base64,
            Self::Spaced => Kind::FormBase64,
        }
    }

    pub(super) fn hex(self) -> Kind {
        match self {
            Self::Plain => Kind::Hex,
            Self::Spaced => Kind::PrefixedHex,
        }
    }

    /// Returns the alphabet of a lane.
    pub(super) fn kind(self, lane: usize) -> Kind {
        if lane < 4 { self.base64() } else { self.hex() }
    }

    /// Returns the lanes that count a byte as a letter, as bits.
    pub(super) fn counted(self, byte: u8) -> u8 {
        let is_letter = |kind: Kind| kind.values()[usize::from(byte)] < SKIPPED;
        let base64 = if is_letter(self.base64()) { BASE64_LANES } else { 0 };
        base64 | if is_letter(self.hex()) { HEX_LANES } else { 0 }
    }
}

impl Kind {
    /// Returns the number of letters in a group.
    pub(super) fn group(self) -> usize {
        match self {
            Self::Base64 | Self::FormBase64 => 4,
            Self::Hex | Self::PrefixedHex => 2,
        }
    }

    /// Returns the number of bits of a letter.
    pub(super) fn bits(self) -> usize {
        match self {
            Self::Base64 | Self::FormBase64 => 6,
            Self::Hex | Self::PrefixedHex => 4,
        }
    }

    pub(super) fn values(self) -> &'static [u8; 256] {
        match self {
            Self::Base64 => &BASE64,
            Self::FormBase64 => &FORM_BASE64,
            Self::Hex | Self::PrefixedHex => &HEX,
        }
    }

    /// Returns the value of the byte at a position, and the position of the next one. The zero of a prefix has no
    /// value.
    pub(super) fn read(self, text: &[u8], at: usize) -> (u8, usize) {
        if self == Self::PrefixedHex && is_prefix(text, at) {
            return (SKIPPED, at + 2);
        }
        (self.values()[usize::from(text[at])], at + 1)
    }

    /// Returns the value of the byte that ends at a position, and its start.
    pub(super) fn read_back(self, text: &[u8], end: usize) -> (u8, usize) {
        if self == Self::PrefixedHex && end >= 2 && is_prefix(text, end - 2) {
            return (SKIPPED, end - 2);
        }
        (self.values()[usize::from(text[end - 1])], end - 1)
    }

    /// Returns the letters that can be part of bytes of an alphabet, for each place of a group.
    pub(super) fn possible(self, alphabet: &[bool; 256]) -> [[bool; 64]; 4] {
        let mut possible = [[false; 64]; 4];
        for byte in (0..=255_u8).filter(|&byte| alphabet[usize::from(byte)]) {
            let byte = usize::from(byte);
            if self.bits() == 4 {
                possible[0][byte >> 4] = true;
                possible[1][byte & 15] = true;
                continue;
            }
            possible[0][byte >> 2] = true;
            possible[3][byte & 63] = true;
            // The other bits of these letters belong to the neighbouring bytes.
            (0..4).for_each(|high| possible[1][high << 4 | byte >> 4] = true);
            (0..16).for_each(|high| possible[2][high << 2 | byte >> 6] = true);
        }
        possible
    }
}

/// Returns `true` if a prefix of hexadecimal digits is at `at`. The zero after a single digit is the other half of a
/// byte.
pub(super) fn is_prefix(text: &[u8], at: usize) -> bool {
    let is_digit = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_hexdigit);
    matches!(text.get(at..at + 2), Some(b"0x" | b"0X"))
        && (!is_digit(at.checked_sub(1)) || is_digit(at.checked_sub(2)))
}

/// Number of base64 letters so far, modulo 4, and whether the number of hexadecimal digits is odd (4 or 0).
#[derive(Clone, Copy, Default)]
pub(super) struct Phase {
    n_letters: u8,
    odd: u8,
}

impl Phase {
    pub(super) fn index(self) -> usize {
        usize::from((self.n_letters & 3) | self.odd)
    }

    /// Counts a byte that these lanes count.
    pub(super) fn count(&mut self, lanes: u8) {
        self.n_letters = self.n_letters.wrapping_add(lanes & 1);
        self.odd ^= lanes >> 3 & 4;
    }

    /// Uncounts the digit that was the zero of a prefix.
    pub(super) fn take_back_digit(&mut self) {
        self.odd ^= 4;
    }
}

/// Returns the place of the next letter in its group, in a lane.
pub(super) fn place(phase: usize, lane: usize) -> usize {
    match lane {
        0..4 => (phase + 4 - lane) & 3,
        _ => (phase >> 2) ^ (lane & 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_half_of_a_byte() {
        for (text, at, expected) in [
            ("0x61", 0, true),
            (" 0x61", 1, true),
            ("610x62", 2, true),
            ("30x", 1, false),
            ("0x30xa", 3, false),
            ("00", 0, false),
        ] {
            assert_eq!(is_prefix(text.as_bytes(), at), expected, "`{text}` at {at}");
        }
    }
}
