use super::lanes::{BASE64_LANES, HEX_LANES, OTHER, Reading, place};

/// Tests a few letters at once and tells whether no lane can read all of them.
///
/// Letters are looked up in pairs, so no lookup depends on an earlier one, and eight letters take a few cycles. This
/// decides most parts of an image in base64.
pub(super) struct Probe {
    reading: Reading,
    /// For every two letters of base64, of which the first is in phase 0, the lanes that can read them, as bits. Both
    /// bits of hexadecimal digits are set if one of their lanes may read the letters in any phase.
    lanes: Box<[u8; 4096]>,
}

/// Number of tested letters.
const LETTERS: usize = 8;

impl Probe {
    /// Creates a probe for bytes of this alphabet.
    pub(super) fn new(reading: Reading, alphabet: &[bool; 256]) -> Self {
        let possible = reading.base64().possible(alphabet);
        let mut hex = [false; 64];
        for (&value, &digit) in reading.base64().values().iter().zip(reading.hex().values()) {
            if value < 64 && digit != OTHER {
                hex[usize::from(value)] = true;
            }
        }
        let mut lanes = Box::new([0; 4096]);
        for (pair, lanes) in lanes.iter_mut().enumerate() {
            let (first, second) = (pair >> 6, pair & 63);
            for lane in 0..4 {
                let place = place(0, lane);
                // The byte with bits of both letters, if all of its bits are in them.
                let byte = match place {
                    0 => Some(first << 2 | second >> 4),
                    1 => Some((first & 15) << 4 | second >> 2),
                    2 => Some((first & 3) << 6 | second),
                    _ => None,
                };
                let is_on = possible[place][first]
                    && possible[(place + 1) & 3][second]
                    && byte.is_none_or(|byte| alphabet[byte]);
                *lanes |= u8::from(is_on) << lane;
            }
            if hex[first] && hex[second] {
                *lanes |= HEX_LANES;
            }
        }
        Self { reading, lanes }
    }

    /// Returns the first position at which a run of `wait` letters may begin, if none may begin at `end - wait`
    /// according to the letters before `end`.
    pub(super) fn next_start(&self, text: &[u8], end: usize, wait: usize) -> Option<usize> {
        let letters: &[u8; LETTERS] = text[..end].last_chunk()?;
        if wait < LETTERS {
            return None;
        }
        let values = self.reading.base64().values();
        let letters = letters.map(|letter| values[usize::from(letter)]);
        let is_letter = |letters: &[u8]| letters.iter().fold(0, |all, letter| all | letter) < 64;
        if !is_letter(&letters[2..]) {
            return None;
        }
        let pair = |at: usize| self.lanes[usize::from(letters[at]) << 6 | usize::from(letters[at + 1])];
        let lanes = pair(2) & pair(6) & two_later(pair(4));
        if lanes == 0 {
            return Some(end - LETTERS + 3);
        }
        let is_none = is_letter(&letters[..2]) && lanes & two_later(pair(0)) == 0;
        is_none.then(|| end - LETTERS + 1)
    }
}

/// Shifts the lanes to the letters two phases later.
fn two_later(lanes: u8) -> u8 {
    let base64 = lanes & BASE64_LANES;
    lanes & HEX_LANES | (base64 << 2 | base64 >> 2) & BASE64_LANES
}
