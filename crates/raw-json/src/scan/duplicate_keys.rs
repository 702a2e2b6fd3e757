//! The keys of the objects that a scanner is in, to find one that stands there twice.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use super::special_bytes::word;

/// The keys of the objects that are open.
pub(crate) struct OpenKeys<'a> {
    bytes: &'a [u8],
    /// Those of the innermost object last. Before the keys of each object stands where those of the one around it begin.
    seen: Vec<SeenKey>,
    /// Where those of the innermost object begin.
    first: usize,
    /// Those of the objects that have many or such as are written with escapes, the innermost object's last.
    sets: Vec<KeySet<'a>>,
}

/// A key that was seen.
struct SeenKey {
    fingerprint: u64,
    start: usize,
    end: usize,
}

struct KeySet<'a> {
    /// Where the keys of its object would begin among those that were seen.
    first: usize,
    keys: HashSet<Cow<'a, [u8]>>,
}

impl<'a> OpenKeys<'a> {
    /// How many keys of an object are compared one by one.
    const MAX_LINEAR: usize = 32;

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            seen: Vec::new(),
            first: 0,
            sets: Vec::new(),
        }
    }

    /// An object begins.
    pub(crate) fn open(&mut self) {
        if self.seen.capacity() == 0 {
            // Growing takes several times as long.
            self.seen = Vec::with_capacity(Self::MAX_LINEAR);
        }
        self.seen.push(SeenKey {
            fingerprint: 0,
            start: self.first,
            end: 0,
        });
        self.first = self.seen.len();
    }

    /// The innermost object ends.
    pub(crate) fn close(&mut self) {
        if self.has_set() {
            self.sets.pop();
        }
        let before = self.first - 1;
        self.first = self.seen[before].start;
        self.seen.truncate(before);
    }

    /// Notes a key of the innermost object by its place in the text, and tells whether it is new.
    pub(crate) fn insert(&mut self, key: Range<usize>) -> bool {
        let few = &self.seen[self.first..];
        if few.len() == Self::MAX_LINEAR || self.has_set() {
            return self.insert_into_set(Cow::Borrowed(&self.bytes[key]));
        }
        let fingerprint = fingerprint(self.bytes, &key);
        if few.iter().any(|seen| seen.fingerprint == fingerprint) && self.is_known(&key) {
            return false;
        }
        self.seen.push(SeenKey {
            fingerprint,
            start: key.start,
            end: key.end,
        });
        true
    }

    /// The same for a key that was written with escapes, which are decoded here, or any of an object that has many.
    #[cold]
    #[inline(never)]
    pub(crate) fn insert_into_set(&mut self, key: Cow<'a, [u8]>) -> bool {
        if !self.has_set() {
            let bytes = self.bytes;
            let few = self.seen[self.first..].iter();
            let keys = few
                .map(|seen| Cow::Borrowed(&bytes[seen.start..seen.end]))
                .collect();
            self.sets.push(KeySet {
                first: self.first,
                keys,
            });
        }
        let set = self.sets.last_mut();
        set.is_none_or(|set| set.keys.insert(key))
    }

    /// Whether the innermost object's keys are in a set.
    fn has_set(&self) -> bool {
        self.sets.last().is_some_and(|set| set.first == self.first)
    }

    #[cold]
    #[inline(never)]
    fn is_known(&self, key: &Range<usize>) -> bool {
        let few = &self.seen[self.first..];
        few.iter()
            .any(|seen| self.bytes[seen.start..seen.end] == self.bytes[key.clone()])
    }
}

/// A number that is the same for equal keys, and seldom for others: made of the first eight bytes and the last eight,
/// among them the quote behind the key.
fn fingerprint(bytes: &[u8], key: &Range<usize>) -> u64 {
    let first = word(bytes, key.start);
    match key.len() {
        length @ ..8 => first << (56 - 8 * length),
        length => first.rotate_left(32) ^ word(bytes, key.end - 7) ^ length as u64,
    }
}
