//! Detection of duplicate keys in the objects that a scanner is in.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use super::special_bytes::word;

/// Keys of all open objects.
pub(crate) struct OpenKeys<'a> {
    bytes: &'a [u8],
    /// Keys of the open objects, those of the innermost object last. Each object's keys are preceded by an entry that
    /// holds the start of the enclosing object's keys.
    seen: Vec<SeenKey>,
    /// Start of the innermost object's keys.
    first: usize,
    /// Hash sets of objects with many keys or with escaped keys, the innermost object's last.
    sets: Vec<KeySet<'a>>,
}

/// Key that was seen, by its range in the text.
struct SeenKey {
    fingerprint: u64,
    start: usize,
    end: usize,
}

struct KeySet<'a> {
    /// Start of the object's keys in [`OpenKeys::seen`].
    first: usize,
    keys: HashSet<Cow<'a, [u8]>>,
}

impl<'a> OpenKeys<'a> {
    /// Maximum number of keys of an object that are compared one by one.
    const MAX_LINEAR: usize = 32;

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            seen: Vec::new(),
            first: 0,
            sets: Vec::new(),
        }
    }

    /// Opens an object.
    pub(crate) fn open(&mut self) {
        if self.seen.capacity() == 0 {
            // Growing step by step takes several times as long.
            self.seen = Vec::with_capacity(Self::MAX_LINEAR);
        }
        self.seen.push(SeenKey {
            fingerprint: 0,
            start: self.first,
            end: 0,
        });
        self.first = self.seen.len();
    }

    /// Closes the innermost object.
    pub(crate) fn close(&mut self) {
        if self.has_set() {
            self.sets.pop();
        }
        let before = self.first - 1;
        self.first = self.seen[before].start;
        self.seen.truncate(before);
    }

    /// Inserts a key of the innermost object by its range in the text. Returns `false` if it is a duplicate.
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

    /// Inserts an escaped key, decoded here, or a key of an object that has many. Returns `false` if it is a duplicate.
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

    /// `true` if the innermost object uses a hash set.
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

/// Fingerprint of a key, equal for equal keys and rarely for others. Combines the first eight bytes and the last eight,
/// including the closing quote.
fn fingerprint(bytes: &[u8], key: &Range<usize>) -> u64 {
    let first = word(bytes, key.start);
    match key.len() {
        length @ ..8 => first << (56 - 8 * length),
        length => first.rotate_left(32) ^ word(bytes, key.end - 7) ^ length as u64,
    }
}
