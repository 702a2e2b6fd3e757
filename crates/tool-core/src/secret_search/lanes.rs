//! The lanes in which a text is read, and what a letter can stand for in each.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Base64,
    Hex,
}

/// Lanes of base64 and of hexadecimal digits.
pub(super) const LANES: [Kind; 6] = [
    Kind::Base64,
    Kind::Base64,
    Kind::Base64,
    Kind::Base64,
    Kind::Hex,
    Kind::Hex,
];
pub(super) const EACH_LANE: u64 = 0x0101_0101_0101_0101;
pub(super) const HIGH_BITS: u64 = EACH_LANE << 7;
/// The lanes of base64 and of hexadecimal digits, one in each.
pub(super) const BASE64_LANES: u64 = 0x0000_0000_0101_0101;
pub(super) const HEX_LANES: u64 = 0x0000_0101_0000_0000;

/// The 6 bits of a letter of base64, [`SKIPPED`] or [`OTHER`].
const BASE64: [u8; 256] = values(Kind::Base64);
/// The 4 bits of a hexadecimal digit, [`SKIPPED`] or [`OTHER`].
const HEX: [u8; 256] = values(Kind::Hex);
/// For every byte, 1 in the lanes that count it as a letter.
pub(super) const COUNTED: [u64; 256] = {
    let mut counted = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        counted[byte] =
            BASE64_LANES * (BASE64[byte] < SKIPPED) as u64 + HEX_LANES * (HEX[byte] < SKIPPED) as u64;
        byte += 1;
    }
    counted
};
pub(super) const SKIPPED: u8 = 254;
pub(super) const OTHER: u8 = 255;

const fn values(kind: Kind) -> [u8; 256] {
    let (letters, skipped): (&[u8], &[u8]) = match kind {
        Kind::Base64 => (
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            b" \t\r\n",
        ),
        Kind::Hex => (b"0123456789abcdef", b" \t\r\n:;,-_.|+\\xX"),
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
        if matches!(kind, Kind::Hex) {
            values[letter.to_ascii_uppercase() as usize] = value;
        }
        value += 1;
    }
    if matches!(kind, Kind::Base64) {
        values[b'-' as usize] = 62;
        values[b'_' as usize] = 63;
    }
    values
}

impl Kind {
    /// How many letters make a group.
    pub(super) fn group(self) -> usize {
        match self {
            Self::Base64 => 4,
            Self::Hex => 2,
        }
    }

    /// How many bits a letter has.
    pub(super) fn bits(self) -> usize {
        match self {
            Self::Base64 => 6,
            Self::Hex => 4,
        }
    }

    pub(super) fn values(self) -> &'static [u8; 256] {
        match self {
            Self::Base64 => &BASE64,
            Self::Hex => &HEX,
        }
    }

    /// The value of the byte at a place, and where the next one is. The zero of `0x` is none.
    pub(super) fn read(self, text: &[u8], at: usize) -> (u8, usize) {
        if self == Self::Hex && is_prefix(text, at) {
            return (SKIPPED, at + 2);
        }
        (self.values()[usize::from(text[at])], at + 1)
    }

    /// The value of the byte that ends at a place, and where it begins.
    pub(super) fn read_back(self, text: &[u8], end: usize) -> (u8, usize) {
        if self == Self::Hex && end >= 2 && is_prefix(text, end - 2) {
            return (SKIPPED, end - 2);
        }
        (self.values()[usize::from(text[end - 1])], end - 1)
    }
}

fn is_prefix(text: &[u8], at: usize) -> bool {
    matches!(text.get(at..at + 2), Some(b"0x" | b"0X"))
}

/// How many letters of base64 there were, modulo 4, and whether the number of hexadecimal digits is odd.
#[derive(Clone, Copy, Default)]
pub(super) struct Phase {
    n_letters: u32,
    is_odd: u32,
}

impl Phase {
    pub(super) fn index(self) -> usize {
        ((self.n_letters & 3) | (self.is_odd << 2)) as usize
    }

    /// Counts a byte. Returns whether the digit before it was none: the zero of `0x`.
    pub(super) fn read(&mut self, text: &[u8], at: usize) -> bool {
        let counted = COUNTED[usize::from(text[at])];
        self.n_letters = self.n_letters.wrapping_add((counted & 1) as u32);
        self.is_odd ^= (counted >> 32 & 1) as u32;
        let is_prefix = text[at] | 0x20 == b'x' && at > 0 && text[at - 1] == b'0';
        self.is_odd ^= u32::from(is_prefix);
        is_prefix
    }
}

/// The place in its group that the next letter has in a lane.
pub(super) fn place(phase: usize, lane: usize) -> usize {
    match LANES[lane] {
        Kind::Base64 => (phase + 4 - lane) & 3,
        Kind::Hex => (phase >> 2) ^ (lane & 1),
    }
}

/// Whether a letter at a place of its group can be part of bytes of the alphabet.
pub(super) fn can_be(kind: Kind, place: usize, value: u8, alphabet: &[bool; 256]) -> bool {
    let mut bytes = (0..=255_u8).filter(|&byte| alphabet[usize::from(byte)]);
    match (kind, place) {
        (Kind::Base64, 0) => bytes.any(|byte| byte >> 2 == value),
        (Kind::Base64, 1) => bytes.any(|byte| byte >> 4 == value & 15),
        (Kind::Base64, 2) => bytes.any(|byte| byte >> 6 == value & 3),
        (Kind::Base64, _) => bytes.any(|byte| byte & 63 == value),
        (Kind::Hex, 0) => bytes.any(|byte| byte >> 4 == value),
        (Kind::Hex, _) => bytes.any(|byte| byte & 15 == value),
    }
}
