//! Runs of hexadecimal digits and of base64, found by what they can stand for.

use std::ops::Range;

use super::{
    is_escape,
    lanes::{BASE64_LANES, COUNTED, HEX_LANES, HIGH_BITS, Kind, LANES, OTHER, Phase, SKIPPED, can_be, place},
};

/// Maximum number of letters that is waited for before a part counts: lanes count no further than 127.
const LONGEST_WAIT: usize = 100;

/// Finds the parts of a text that may be a secret, or an encoding of one, in hexadecimal digits or in base64 (RFC 4648, both
/// alphabets).
///
/// Where an encoded text begins is unknown: letters before it may look like part of it. So the text is read at all four
/// offsets of base64 and both of hexadecimal digits at once, a *lane* each, in one pass. A lane goes on as long as what it
/// reads can be bytes that secrets and their encodings consist of; only a part where one lane goes on for as long as the
/// shortest secret takes is decoded. White space does not count, nor does what may separate hexadecimal digits.
pub(super) struct Runs {
    /// For every phase and byte, 255 in the lanes that go on with it.
    goes_on: Box<[[u64; 256]; 8]>,
    /// Makes each lane reach 128 at the number of letters that the shortest secret takes.
    bias: u64,
    /// That number for base64 and for hexadecimal digits.
    wait: [usize; 2],
}

/// A part of a text that is to be decoded.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) range: Range<usize>,
    kind: Kind,
    /// How many letters of its group come before the first one.
    skipped: usize,
}

/// What was decoded from a run.
pub(super) struct RunBytes {
    pub(super) bytes: Vec<u8>,
    run: Run,
}

impl Runs {
    /// Runs that may hold a text of `shortest` bytes, all of them among `alphabet`.
    pub(super) fn new(alphabet: &[bool; 256], shortest: usize) -> Self {
        let letters = |bits: usize| (shortest.saturating_mul(8)).div_ceil(bits);
        // The last letter of base64 may have bits of the byte that follows, which may be any.
        let wait = [letters(6) - 1, letters(4)].map(|n| n.clamp(1, LONGEST_WAIT));
        let bias = BASE64_LANES * (128 - wait[0] as u64) + HEX_LANES * (128 - wait[1] as u64);
        let mut goes_on = Box::new([[0; 256]; 8]);
        for (phase, lanes) in goes_on.iter_mut().enumerate() {
            for (byte, mask) in lanes.iter_mut().enumerate() {
                for (lane, &kind) in LANES.iter().enumerate() {
                    let place = place(phase, lane);
                    let is_on = match kind.values()[byte] {
                        OTHER => false,
                        SKIPPED => true,
                        value => can_be(kind, place, value, alphabet),
                    };
                    *mask |= (u64::from(is_on) * 255) << (lane * 8);
                }
            }
        }
        Self { goes_on, bias, wait }
    }

    /// Finds the runs of a text.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Run> {
        let mut runs = Vec::new();
        // No lane goes on from before this place.
        let mut at = 0;
        while at + self.wait[0] <= text.len() {
            // Any run that begins up to here reads all of the window behind it.
            let window = at + self.wait[0] - self.wait[0].div_ceil(2);
            if self.is_dead(text, window..at + self.wait[0]) {
                at = window + 1;
            } else {
                at = self.find_from(text, at, window, &mut runs);
            }
        }
        runs
    }

    /// Whether no lane goes on through the whole of a window.
    fn is_dead(&self, text: &[u8], window: Range<usize>) -> bool {
        let (mut lanes, mut phase) = (u64::MAX, Phase::default());
        for at in window {
            lanes &= self.goes_on[phase.index()][usize::from(text[at])];
            if lanes == 0 {
                return true;
            }
            phase.read(text, at);
        }
        false
    }

    /// Whether a run may go on through an escape at this place: half of what a run has at least goes on before it or behind
    /// it, or up to another escape.
    pub(super) fn may_span(&self, text: &[u8], escape: &Range<usize>) -> bool {
        // Whatever comes first or last of the letters is not enough by itself, and one may have bits of another byte.
        let half = (self.wait[0].div_ceil(2)).saturating_sub(2).max(1);
        let before = &text[..escape.start];
        let before = &before[before.trim_ascii_end().len().saturating_sub(half)..];
        let after = text[escape.end..].trim_ascii_start();
        let after = &after[..half.min(after.len())];
        let goes_on =
            |part: &[u8]| part.iter().any(|&byte| is_escape(byte)) || !self.is_dead(part, 0..part.len());
        (before.len() >= half && goes_on(before)) || (after.len() >= half && goes_on(after))
    }

    /// Reads on until no lane goes on behind `least`, and returns where that is.
    fn find_from(&self, text: &[u8], from: usize, mut least: usize, runs: &mut Vec<Run>) -> usize {
        // How far each lane was found to go on.
        let mut done = [0; LANES.len()];
        let (mut counts, mut phase) = (0_u64, Phase::default());
        for (at, &byte) in text.iter().enumerate().skip(from) {
            counts += COUNTED[usize::from(byte)];
            counts &= self.goes_on[phase.index()][usize::from(byte)];
            if counts == 0 && at > least {
                return at + 1;
            }
            if (counts + self.bias) & HIGH_BITS != 0 {
                for (lane, done) in done.iter_mut().enumerate() {
                    if (counts + self.bias) & (128 << (lane * 8)) == 0 {
                        continue;
                    }
                    if at >= *done {
                        let run = self.run_at(text, at, lane, phase.index());
                        *done = run.range.end;
                        least = least.max(run.range.end);
                        runs.push(run);
                    }
                    counts &= !(255 << (lane * 8));
                }
            }
            if phase.read(text, at) {
                for lane in [4, 5] {
                    if counts & (255 << (lane * 8)) != 0 {
                        counts -= 1 << (lane * 8);
                    }
                }
            }
        }
        text.len()
    }

    /// The whole of the run of which a lane has just read enough, with one letter more on each side: those may have bits of
    /// the run's bytes and of others.
    fn run_at(&self, text: &[u8], at: usize, lane: usize, phase: usize) -> Run {
        let kind = LANES[lane];
        let (start, n_before) = self.start_of(text, at, kind);
        // How many of them come before the letter that was read last.
        let n_earlier = n_before.saturating_sub(1);
        let skipped = (place(phase, lane) + kind.group() * LONGEST_WAIT - n_earlier) % kind.group();
        let (mut end, mut next, mut n_after) = (at + 1, at, 0);
        while next < text.len() {
            let (value, to) = kind.read(text, next);
            match value {
                OTHER => break,
                SKIPPED => {}
                _ => {
                    end = to;
                    let phase = match kind {
                        Kind::Base64 => (phase + n_after) & 3,
                        Kind::Hex => (phase & 4) ^ ((n_after & 1) << 2),
                    };
                    n_after += 1;
                    if (self.goes_on[phase][usize::from(text[next])] >> (lane * 8)) & 1 == 0 {
                        break;
                    }
                }
            }
            next = to;
        }
        Run {
            range: start..end,
            kind,
            skipped,
        }
    }

    /// Where the letters begin that a lane has waited for, of which the last is at `at`, and how many they are with the one
    /// before them.
    fn start_of(&self, text: &[u8], at: usize, kind: Kind) -> (usize, usize) {
        let wait = match kind {
            Kind::Base64 => self.wait[0],
            Kind::Hex => self.wait[1],
        };
        let (mut start, mut n_letters, mut end) = (at, 0, at + 1);
        while n_letters <= wait && end > 0 {
            let (value, from) = kind.read_back(text, end);
            match value {
                OTHER => break,
                SKIPPED => {}
                _ => {
                    n_letters += 1;
                    start = from;
                }
            }
            end = from;
        }
        (start, n_letters)
    }
}

impl Run {
    /// Decodes what is whole in the run.
    pub(super) fn decode(&self, text: &[u8]) -> RunBytes {
        let bits = self.kind.bits();
        let mut bytes = Vec::with_capacity(self.range.len() * bits / 8 + 1);
        let (mut held, mut n_held) = (0_u32, 0);
        // The bits of the first letter that belong to a byte which began before it are left out.
        let mut left_out = (8 - self.skipped * bits % 8) % 8;
        let mut at = self.range.start;
        while at < self.range.end {
            let (value, next) = self.kind.read(text, at);
            at = next;
            if value >= SKIPPED {
                continue;
            }
            let taken = bits - left_out.min(bits);
            left_out = left_out.saturating_sub(bits);
            held = held << taken | u32::from(value) & ((1 << taken) - 1);
            n_held += taken;
            if n_held >= 8 {
                n_held -= 8;
                bytes.push((held >> n_held) as u8);
                held &= (1 << n_held) - 1;
            }
        }
        RunBytes {
            bytes,
            run: self.clone(),
        }
    }
}

impl RunBytes {
    /// The places in the text of parts of what was decoded, which are in order: every letter that has a bit of theirs.
    pub(super) fn sources(&self, text: &[u8], ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let Run { range, kind, skipped } = &self.run;
        let bits = kind.bits();
        let left_out = (8 - skipped * bits % 8) % 8;
        let letters = ranges.iter().map(|range| {
            let first = (left_out + range.start * 8) / bits;
            first..(left_out + range.end * 8).div_ceil(bits)
        });
        let (mut at, mut n) = (range.start, 0);
        let mut sources: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
        // Where each of the last letters begins: ranges may share one.
        let mut begins = Vec::new();
        let mut n_begins = 0;
        for letters in letters {
            while n < letters.end && at < range.end {
                let (value, next) = kind.read(text, at);
                if value < SKIPPED {
                    n += 1;
                    begins.push(at..next);
                }
                at = next;
            }
            let drop = letters.start.saturating_sub(n_begins);
            begins.drain(..drop.min(begins.len()));
            n_begins += drop;
            let (Some(first), Some(last)) = (begins.first(), begins.last()) else {
                continue;
            };
            // With what belongs to it: the padding behind it, or the prefix before it.
            let (mut start, mut end) = (first.start, last.end);
            match kind {
                Kind::Base64 => end += padding(&text[end..]),
                Kind::Hex if text[..start].ends_with(b"0x") || text[..start].ends_with(b"\\x") => start -= 2,
                Kind::Hex => {}
            }
            sources.push(start..end);
        }
        sources
    }
}

/// How long the padding is that a text begins with.
fn padding(text: &[u8]) -> usize {
    text.iter().take(2).take_while(|&&byte| byte == b'=').count()
}
