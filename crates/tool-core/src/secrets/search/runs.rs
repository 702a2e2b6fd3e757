//! Runs of hexadecimal digits and of base64, found by the bytes that they may represent.

use std::ops::Range;

use memchr::{memchr, memmem};

use super::{
    is_escape,
    lanes::{BASE64_LANES, HEX_LANES, Kind, N_LANES, OTHER, Phase, Reading, SKIPPED, is_prefix, place},
    probe::Probe,
};

/// Maximum number of letters before a part counts: lanes count to 127 at most.
const LONGEST_WAIT: usize = 100;
/// Highest bit of every lane's byte.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Finds the parts of a text that may be a secret, or an encoding of one, in hexadecimal digits or in base64 (RFC
/// 4648, both alphabets).
///
/// The start of an encoded text is unknown: letters before it may look like part of it. So one pass reads the text at
/// all four offsets of base64 and both of hexadecimal digits, a *lane* each. A lane continues while its letters can
/// be bytes of secrets and their encodings; only a part in which one lane continues for the length of the shortest
/// secret is decoded. White space and separators of hexadecimal digits do not count.
///
/// A part cannot begin before a position at which every lane ends. So a [`Probe`] first tests the last letters that
/// the shortest part from here would have, and skips past them if no lane reads them (after Boyer and Moore, 1977).
pub(super) struct Runs {
    reading: Reading,
    /// For every phase and byte, the lanes that continue with it, as bits.
    goes_on: Box<[[u8; 256]; 8]>,
    /// For every byte, the lanes that count it as a letter, as bits.
    counted: Box<[u8; 256]>,
    probe: Probe,
    /// Makes each lane reach 128 at the number of letters of the shortest secret.
    bias: u64,
    /// Number of letters of the shortest secret, in base64 and in hexadecimal digits.
    wait: [usize; 2],
}

/// Part of a text that is to be decoded.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) range: Range<usize>,
    kind: Kind,
    /// Number of letters of its group before the first one.
    skipped: usize,
}

/// Decoded bytes of a run.
pub(super) struct RunBytes {
    pub(super) bytes: Vec<u8>,
    run: Run,
}

impl Runs {
    /// Creates the runs that may hold a text of `shortest` bytes, all of them in `alphabet`.
    pub(super) fn new(reading: Reading, alphabet: &[bool; 256], shortest: usize) -> Self {
        let letters = |bits: usize| (shortest.saturating_mul(8)).div_ceil(bits);
        // The last letter of base64 may have bits of the following byte, which may be any.
        let wait = [letters(6) - 1, letters(4)].map(|n| n.clamp(1, LONGEST_WAIT));
        let bias = expanded(BASE64_LANES, 128 - wait[0]) + expanded(HEX_LANES, 128 - wait[1]);
        let mut goes_on = Box::new([[0; 256]; 8]);
        for lane in 0..N_LANES {
            let kind = reading.kind(lane);
            let possible = kind.possible(alphabet);
            for (phase, lanes) in goes_on.iter_mut().enumerate() {
                let possible = &possible[place(phase, lane)];
                for (mask, &value) in lanes.iter_mut().zip(kind.values()) {
                    let is_on = match value {
                        OTHER => false,
                        SKIPPED => true,
                        value => possible[usize::from(value)],
                    };
                    *mask |= u8::from(is_on) << lane;
                }
            }
        }
        let mut counted = Box::new([0; 256]);
        (0..=255_u8).for_each(|byte| counted[usize::from(byte)] = reading.counted(byte));
        Self {
            reading,
            goes_on,
            counted,
            probe: Probe::new(reading, alphabet),
            bias,
            wait,
        }
    }

    /// Returns `true` if this reading of a text may differ from the plain one.
    pub(super) fn is_of(&self, text: &[u8]) -> bool {
        self.reading == Reading::Plain
            || memchr(b'+', text).is_some()
            || memmem::find(text, b"0x").is_some()
            || memmem::find(text, b"0X").is_some()
    }

    /// Finds the runs of a text.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Run> {
        let mut runs = Vec::new();
        // No lane continues from before this position.
        let mut at = 0;
        while at + self.wait[0] <= text.len() {
            let end = at + self.wait[0];
            if let Some(next) = self.probe.next_start(text, end, self.wait[0]) {
                at = next;
                continue;
            }
            // Any run that begins up to here reads the whole window after it.
            let window = end - self.wait[0].div_ceil(2);
            at = match self.next_start(text, window..end) {
                Some(next) => next,
                None => self.find_from(text, at, window, &mut runs),
            };
        }
        if self.reading == Reading::Spaced {
            // All others equal those of the plain reading.
            runs.retain(|run| run.is_spaced(text));
        }
        runs
    }

    /// Returns the first position at which a run may begin if no lane continues through the whole of a window.
    fn next_start(&self, text: &[u8], window: Range<usize>) -> Option<usize> {
        let (mut lanes, mut phase) = (u8::MAX, Phase::default());
        for at in window.clone() {
            let byte = usize::from(text[at]);
            lanes &= self.goes_on[phase.index()][byte];
            if lanes == 0 {
                let ends_all = self.goes_on.iter().all(|lanes| lanes[byte] == 0);
                return Some(if ends_all { at + 1 } else { window.start + 1 });
            }
            self.count(text, at, &mut phase);
        }
        None
    }

    /// Counts a byte. Returns `true` if the digit before it was the zero of a prefix.
    fn count(&self, text: &[u8], at: usize, phase: &mut Phase) -> bool {
        phase.count(self.counted[usize::from(text[at])]);
        let ends_prefix =
            self.reading == Reading::Spaced && text[at] | 0x20 == b'x' && at > 0 && is_prefix(text, at - 1);
        if ends_prefix {
            phase.take_back_digit();
        }
        ends_prefix
    }

    /// Returns `true` if a run may continue through an escape at this position: half of its minimum length precedes
    /// the escape, or follows it, or reaches another escape.
    pub(super) fn may_span(&self, text: &[u8], escape: &Range<usize>) -> bool {
        // The first and last letter alone are not enough, and one may have bits of another byte.
        let half = (self.wait[0].div_ceil(2)).saturating_sub(2).max(1);
        let before = &text[..escape.start];
        let before = &before[before.trim_ascii_end().len().saturating_sub(half)..];
        let after = text[escape.end..].trim_ascii_start();
        let after = &after[..half.min(after.len())];
        let goes_on = |part: &[u8]| {
            part.iter().any(|&byte| is_escape(byte)) || self.next_start(part, 0..part.len()).is_none()
        };
        (before.len() >= half && goes_on(before)) || (after.len() >= half && goes_on(after))
    }

    /// Reads until no lane is left that continues from before `least`, and returns the position at which a run may
    /// begin next.
    fn find_from(&self, text: &[u8], from: usize, mut least: usize, runs: &mut Vec<Run>) -> usize {
        // End of each lane as found so far.
        let mut done = [0; N_LANES];
        let (mut counts, mut phase) = (0_u64, Phase::default());
        // Lanes that continue from before `least`, and the first letter after it.
        let (mut lanes, mut next_letter) = (u8::MAX, None);
        for (at, &byte) in text.iter().enumerate().skip(from) {
            let counted = self.counted[usize::from(byte)];
            let goes_on = self.goes_on[phase.index()][usize::from(byte)];
            counts += ONES[usize::from(counted & 63)];
            counts &= ONES[usize::from(goes_on & 63)] * 255;
            if at <= least {
                (lanes, next_letter) = (u8::MAX, None);
            } else {
                lanes &= goes_on;
                next_letter = next_letter.or((counted != 0).then_some(at));
                if lanes == 0 {
                    return next_letter.unwrap_or(at + 1);
                }
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
            if self.count(text, at, &mut phase) {
                for lane in [4, 5] {
                    counts -= (counts >> (lane * 8) & 255).min(1) << (lane * 8);
                }
            }
        }
        text.len()
    }

    /// Returns the whole run of which a lane has just read enough, with one more letter on each side: those may have
    /// bits of bytes of the run and of others.
    fn run_at(&self, text: &[u8], at: usize, lane: usize, phase: usize) -> Run {
        let kind = self.reading.kind(lane);
        let (start, n_before) = self.start_of(text, at, kind);
        // Number of them before the letter that was read last.
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
                    let phase = match kind.bits() {
                        6 => (phase + n_after) & 3,
                        _ => (phase & 4) ^ ((n_after & 1) << 2),
                    };
                    n_after += 1;
                    if self.goes_on[phase][usize::from(text[next])] >> lane & 1 == 0 {
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

    /// Returns the start of the letters that a lane has waited for, the last of which is at `at`, and their number
    /// including the one before them.
    fn start_of(&self, text: &[u8], at: usize, kind: Kind) -> (usize, usize) {
        let wait = self.wait[usize::from(kind.bits() == 4)];
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
    /// Returns `true` if the run contains a `+` that is read as a space, or a prefix of hexadecimal digits.
    fn is_spaced(&self, text: &[u8]) -> bool {
        let text = &text[self.range.clone()];
        match self.kind {
            Kind::FormBase64 => memchr(b'+', text).is_some(),
            _ => (1..text.len()).any(|at| text[at] | 0x20 == b'x' && is_prefix(text, at - 1)),
        }
    }

    /// Decodes the whole bytes of the run.
    pub(super) fn decode(&self, text: &[u8]) -> RunBytes {
        let bits = self.kind.bits();
        let mut bytes = Vec::with_capacity(self.range.len() * bits / 8 + 1);
        let (mut held, mut n_held) = (0_u32, 0);
        // The bits of the first letter that belong to an earlier byte are skipped.
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
    /// Returns the source ranges of parts of the decoded bytes, which are in order: every letter that has one of
    /// their bits.
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
        // Starts of the last letters: ranges may share one.
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
            // Including the padding after it, or the prefix before it.
            let (mut start, mut end) = (first.start, last.end);
            if kind.bits() == 6 {
                end += padding(&text[end..]);
            } else if text[..start].ends_with(b"0x") || text[..start].ends_with(b"\\x") {
                start -= 2;
            }
            sources.push(start..end);
        }
        sources
    }
}

/// For every set of lanes, 1 in the byte of each.
const ONES: [u64; 64] = {
    let mut ones = [0; 64];
    let mut lanes = 0;
    while lanes < 64 {
        let mut lane = 0;
        while lane < N_LANES {
            ones[lanes] |= (lanes as u64 >> lane & 1) << (lane * 8);
            lane += 1;
        }
        lanes += 1;
    }
    ones
};

/// Returns a number in the byte of each of these lanes.
fn expanded(lanes: u8, number: usize) -> u64 {
    ONES[usize::from(lanes)] * number as u64
}

/// Returns the length of the padding at the start of a text, which may be on another line.
fn padding(text: &[u8]) -> usize {
    let is_space = |byte: u8| Kind::FormBase64.values()[usize::from(byte)] == SKIPPED;
    let mut signs = (0..text.len())
        .take_while(|&at| text[at] == b'=' || is_space(text[at]))
        .filter(|&at| text[at] == b'=');
    let first = signs.next();
    signs.next().or(first).map_or(0, |at| at + 1)
}
