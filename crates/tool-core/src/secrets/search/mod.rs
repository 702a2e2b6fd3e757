//! Search for secrets in every encoding in which an upstream may return them.

mod escapes;
mod lanes;
mod probe;
mod runs;
mod tokens;
mod walk;

use std::{borrow::Cow, fmt, ops::Range};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use raw_json::{JsonLimits, RawJson};

use self::{
    escapes::{Escape, Escaping},
    lanes::Reading,
    runs::Runs,
    tokens::replace_in_json,
    walk::Walk,
};
use crate::HIDDEN;

/// Finds known secrets in texts and JSON, and replaces them by [`HIDDEN`].
///
/// A secret is found in plain form; with any of its characters as backslash escapes, in percent-encoding or as
/// character references of HTML; and as part of hexadecimal digits or base64, in any alignment, separation or
/// wrapping. It is found under up to three nested encodings, and under any number of nested JSON strings. The whole
/// encoded form is hidden: no letter with a bit of the secret remains. A text without secrets keeps its bytes.
///
/// The work is bounded by a multiple of the length of the text. If a text needs more, the part that was not decoded
/// is hidden as a whole.
///
/// # Examples
/// ```
/// use tool_core::SecretSearch;
///
/// let search = SecretSearch::new(["hunter2hunter2"]);
/// assert_eq!(search.hide_in_text("token=hunter2%68unter2"), "token=[redacted]");
/// assert_eq!(search.hide_in_text("Basic YWRhOmh1bnRlcjJodW50ZXIy"), "Basic YWRhO[redacted]");
/// ```
pub struct SecretSearch {
    /// Finds the secrets in plain form; `None` if there are none.
    literal: Option<AhoCorasick>,
    runs: [Runs; 2],
    /// Kinds of escapes that can matter.
    escapings: [Escaping; 4],
    /// First and last bytes of the secrets.
    begins: [bool; 256],
    ends: [bool; 256],
    /// Pairs of adjacent bytes in the secrets.
    pairs: Pairs,
    has_backslash: bool,
    /// Length of the longest encoded form of the longest secret.
    reach: usize,
    /// Upper bound of the bytes that are decoded for each byte of a text.
    work: usize,
}

/// Maximum number of bytes that one byte of a secret takes in one more encoding, such as `&#x0043;`.
const MAX_EXPANSION: usize = 8;
/// Usual bound of the bytes that are decoded for each byte of a text.
const WORK: usize = 24;
/// Maximum number of bytes within which the escape before another one begins.
const MAX_ESCAPE: usize = 12;
/// Bytes that may be decoded in any text, however short.
const FREE_WORK: usize = 64 << 10;

impl SecretSearch {
    /// Creates a search for these values. Ignores empty ones.
    #[must_use]
    pub fn new<V: AsRef<str>>(values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<V> = values.into_iter().collect();
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_ref().as_bytes()).collect();
        let values: Vec<&[u8]> = values.into_iter().filter(|value| !value.is_empty()).collect();
        let mut used = [false; 256];
        for byte in values.iter().copied().flatten() {
            used[usize::from(*byte)] = true;
        }
        // Secrets and their encodings consist of these bytes.
        let mut alphabet = used;
        for byte in 0..=255_u8 {
            let is_text = byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            alphabet[usize::from(byte)] |= is_text;
        }
        let (mut begins, mut ends) = ([false; 256], [false; 256]);
        for value in &values {
            begins[usize::from(value[0])] = true;
            ends[usize::from(value[value.len() - 1])] = true;
        }
        let shortest = values.iter().map(|value| value.len()).min().unwrap_or(1);
        let longest = values.iter().map(|value| value.len()).max().unwrap_or(1);
        let has_space = used[usize::from(b' ')];
        let form = if has_space {
            Escaping::Form
        } else {
            Escaping::FormPlus
        };
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostLongest);
        Self {
            literal: (!values.is_empty())
                .then(|| builder.build(&values).ok())
                .flatten(),
            runs: [Reading::Plain, Reading::Spaced].map(|reading| Runs::new(reading, &alphabet, shortest)),
            escapings: [Escaping::Json, Escaping::Percent, Escaping::Html, form],
            begins,
            ends,
            pairs: Pairs::new(values.iter().copied()),
            has_backslash: used[usize::from(b'\\')],
            reach: longest * MAX_EXPANSION + 64,
            work: WORK,
        }
    }

    /// Sets the bound of the work: the number of bytes that may be decoded for each byte of a text.
    #[must_use]
    pub fn with_work(self, work: usize) -> Self {
        Self { work, ..self }
    }

    /// Returns `true` if there are no secrets to find.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.literal.is_none()
    }

    /// Returns a text without the secrets.
    #[must_use]
    pub fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut ranges = self.walk(text).text(text.as_bytes());
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut hidden = String::with_capacity(text.len());
        let mut end = 0;
        for range in &mut ranges {
            range.start = text.floor_char_boundary(range.start).max(end);
            range.end = text.ceil_char_boundary(range.end);
            hidden.push_str(&text[end..range.start]);
            hidden.push_str(HIDDEN);
            end = range.end;
        }
        hidden.push_str(&text[end..]);
        Cow::Owned(hidden)
    }

    /// Returns a JSON value without the secrets; `None` if it contains none. Everything else keeps its bytes. A
    /// number that contains a secret becomes a string.
    #[must_use]
    pub fn hide_in_json(&self, value: &RawJson) -> Option<RawJson> {
        let text = value.as_str();
        let ranges = self.walk(text).json(text.as_bytes());
        if ranges.is_empty() {
            return None;
        }
        let limits = JsonLimits::RELAY.with_depth(usize::MAX);
        let hidden = RawJson::parse_within(replace_in_json(text, &ranges), limits);
        Some(hidden.unwrap_or_else(|_| RawJson::from(HIDDEN)))
    }

    fn walk(&self, text: &str) -> Walk<'_> {
        Walk::new(
            self,
            text.len().saturating_mul(self.work).saturating_add(FREE_WORK),
        )
    }

    /// Finds the ranges of the secrets in plain form.
    fn find_literal(&self, text: &[u8], found: &mut Vec<Range<usize>>) {
        let Some(literal) = &self.literal else { return };
        let mut at = 0;
        // Continue at the next byte: another secret may overlap.
        while let Some(one) = literal.find(Input::new(text).range(at..)) {
            found.push(one.range());
            at = one.start() + 1;
        }
    }

    /// Returns `true` if an escape can be part of a secret or of an encoding of one.
    fn is_relevant(&self, text: &[u8], escape: &Escape) -> bool {
        let (before, after) = text.split_at(escape.range.start);
        let after = &after[escape.range.len()..];
        let &[.., last] = escape.decoded() else {
            return false;
        };
        let first = escape.decoded()[0];
        // Nobody escapes these without need.
        if first.is_ascii_alphanumeric() || matches!(first, b'#' | b';') {
            return true;
        }
        let next = after.first().copied().unwrap_or_default();
        let is_escape_next = is_escape(next);
        let begins_escape = match first {
            b'\\' => is_escape_next || b"\"/bfnrtux'".contains(&next),
            b'%' => is_escape_next || next.is_ascii_hexdigit(),
            b'&' => is_escape_next || b"#alqgALQG".contains(&next),
            _ => false,
        };
        if begins_escape {
            return true;
        }
        let is_escape_before = before.iter().rev().take(MAX_ESCAPE).any(|&byte| is_escape(byte));
        let follows = is_escape_before
            || self.begins[usize::from(first)]
            || before
                .last()
                .is_some_and(|&byte| self.pairs.contains(byte, first));
        let goes_on = is_escape_next || self.ends[usize::from(last)] || self.pairs.contains(last, next);
        (follows && goes_on)
            || (is_of_run(first) && self.runs.iter().any(|runs| runs.may_span(text, &escape.range)))
    }
}

/// Returns `true` if a byte begins an escape.
fn is_escape(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'&' | b'+')
}

/// Returns `true` if a byte that is not a letter may occur in a run.
fn is_of_run(byte: u8) -> bool {
    b"+/-_ \t\r\n:,.|".contains(&byte)
}

/// Set of pairs of bytes.
struct Pairs(Box<[[u64; 4]; 256]>);

impl Pairs {
    fn new<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut pairs = Box::new([[0; 4]; 256]);
        for pair in values.flat_map(|value| value.windows(2)) {
            pairs[usize::from(pair[0])][usize::from(pair[1] >> 6)] |= 1 << (pair[1] & 63);
        }
        Self(pairs)
    }

    fn contains(&self, first: u8, second: u8) -> bool {
        self.0[usize::from(first)][usize::from(second >> 6)] >> (second & 63) & 1 == 1
    }
}

impl fmt::Debug for SecretSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretSearch")
            .field(
                "n_values",
                &self.literal.as_ref().map_or(0, AhoCorasick::patterns_len),
            )
            .finish_non_exhaustive()
    }
}
