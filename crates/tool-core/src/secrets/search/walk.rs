use std::ops::Range;

use memchr::memchr;

use super::{SecretSearch, escapes::Escaping};

/// Walk through the encodings of one text. Every range refers to the current text and is mapped to the enclosing text
/// on the way out.
pub(super) struct Walk<'a> {
    search: &'a SecretSearch,
    /// Number of bytes that may still be decoded.
    left: usize,
}

/// Maximum number of nested encodings, other than JSON strings.
const MAX_DEPTH: usize = 3;
/// Maximum number of nested JSON strings: each level doubles the backslashes of the one within it.
const MAX_STRINGS: usize = 24;

/// Depth of a text within others.
#[derive(Clone, Copy, Default)]
struct Depth {
    encodings: usize,
    strings: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(search: &'a SecretSearch, work: usize) -> Self {
        Self { search, left: work }
    }

    /// Returns the ranges of secrets in a text, in order.
    pub(super) fn text(mut self, text: &[u8]) -> Vec<Range<usize>> {
        if self.search.is_empty() {
            return Vec::new();
        }
        self.visit(text, Depth::default())
    }

    /// Returns the ranges of secrets in JSON, in order. Its own escapes are certain, so no other reading is tried.
    pub(super) fn json(mut self, text: &[u8]) -> Vec<Range<usize>> {
        if self.search.is_empty() {
            return Vec::new();
        }
        let Some(decoded) = memchr(b'\\', text).and_then(|_| Escaping::Json.decode(text)) else {
            return self.visit(text, Depth::default());
        };
        let mut found = Vec::new();
        if self.search.has_backslash {
            self.search.find_literal(text, &mut found);
        }
        let inside = self.visit(&decoded.bytes, Depth::default());
        found.extend(inside.iter().map(|range| decoded.source(range)));
        merged(found)
    }

    fn visit(&mut self, text: &[u8], depth: Depth) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.search.find_literal(text, &mut found);
        for &escaping in &self.search.escapings {
            self.unescape(escaping, text, depth, &mut found);
        }
        if depth.encodings < MAX_DEPTH {
            let runs = self.search.runs.iter().filter(|runs| runs.is_of(text));
            for run in runs.flat_map(|runs| runs.find(text)) {
                if !self.pay(run.range.len()) {
                    found.push(run.range);
                    continue;
                }
                let decoded = run.decode(text);
                let inside = self.visit(&decoded.bytes, depth.within_encoding());
                found.extend(decoded.sources(text, &inside));
            }
        }
        merged(found)
    }

    /// Searches the text without one kind of escapes, around each escape as far as a secret may reach.
    fn unescape(&mut self, escaping: Escaping, text: &[u8], depth: Depth, found: &mut Vec<Range<usize>>) {
        let inner = match escaping {
            Escaping::Json => depth.within_string(),
            _ if depth.encodings == MAX_DEPTH => return,
            _ => depth.within_encoding(),
        };
        let mut next = self.next_relevant(escaping, text, 0);
        while let Some(first) = next.take() {
            let mut end = first.end;
            let mut at = first.end;
            while let Some(escape) = self.next_relevant(escaping, text, at) {
                if escape.start - end > self.search.reach {
                    next = Some(escape);
                    break;
                }
                end = escape.end;
                at = escape.end;
            }
            let from = start_before(text, first.start.saturating_sub(self.search.reach));
            let to = text.len().min(end + self.search.reach);
            if escaping == Escaping::FormPlus && memchr(b'+', &text[from..to]).is_none() {
                continue;
            }
            if !self.pay(to - from) || inner.strings > MAX_STRINGS {
                found.push(first.start..end);
                continue;
            }
            if let Some(decoded) = escaping.decode(&text[from..to]) {
                let inside = self.visit(&decoded.bytes, inner);
                let sources = inside.iter().map(|range| decoded.source(range));
                found.extend(sources.map(|range| range.start + from..range.end + from));
            }
        }
    }

    /// Returns the range of the next relevant escape.
    fn next_relevant(&self, escaping: Escaping, text: &[u8], from: usize) -> Option<Range<usize>> {
        let is_plus = escaping == Escaping::FormPlus;
        let escaping = if is_plus { Escaping::Percent } else { escaping };
        let mut at = from;
        loop {
            let escape = escaping.next(text, at)?;
            let is_looked_at = !is_plus || escape.decoded() == b"+";
            if is_looked_at && self.search.is_relevant(text, &escape) {
                return Some(escape.range);
            }
            at = escape.range.end;
        }
    }

    /// Charges work; returns `false` if the limit is reached.
    fn pay(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

impl Depth {
    fn within_encoding(self) -> Self {
        Self {
            encodings: self.encodings + 1,
            ..self
        }
    }

    fn within_string(self) -> Self {
        Self {
            strings: self.strings + 1,
            ..self
        }
    }
}

/// Returns a position at or before this one that does not follow a backslash, which would change its meaning.
fn start_before(text: &[u8], mut at: usize) -> usize {
    while at > 0 && text[at - 1] == b'\\' {
        at -= 1;
    }
    at
}

/// Sorts the ranges and merges overlapping ones.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, last| {
        let overlaps = next.start < last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
    ranges
}
