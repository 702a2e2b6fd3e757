//! Index of the large values of a text, so that a search for members can jump over them.

use std::sync::Arc;

use crate::scan::{ScanVisitor, Span};

/// Offsets of the large values of a text, so that their ends are found in O(log n) instead of O(length).
#[derive(Debug)]
pub(crate) struct ValueIndex {
    /// Address of the text. The offset of a part of the text is computed from it. Only parts of the text share the
    /// index, and they keep the text at its address.
    base: usize,
    /// Start and end offset of each value, sorted by start.
    values: Box<[IndexEntry]>,
}

pub(crate) type IndexEntry = (u32, u32);

/// Minimum length of a text to be indexed, in bytes. A shorter one is scanned as fast as its index would be searched.
const MIN_TEXT: usize = 2 * 1024;
/// Minimum length of an indexed value, in bytes.
const MIN_VALUE: usize = 512;
/// Maximum number of entries for each level of nesting: an indexed value takes at least 1/64 of the text. Bounds the
/// index.
const MAX_PER_LEVEL: usize = 64;

/// Builds the index of a text while it is validated or written.
#[derive(Debug)]
pub(crate) struct ValueIndexBuilder {
    least: usize,
    values: Vec<IndexEntry>,
}

impl ValueIndexBuilder {
    /// Creates the builder for a text of at most this length, in bytes.
    pub(crate) fn for_length(length: usize) -> Self {
        let is_indexed = length >= MIN_TEXT && u32::try_from(length).is_ok();
        Self {
            least: if is_indexed {
                MIN_VALUE.max(length / MAX_PER_LEVEL)
            } else {
                usize::MAX
            },
            values: Vec::new(),
        }
    }

    /// Adds a value if it is large.
    pub(crate) fn add(&mut self, start: usize, end: usize) {
        if end - start >= self.least
            && let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end))
        {
            self.values.push((start, end));
        }
    }

    /// Copies the entries of `text`, a part of another text that was copied to offset `to` of this one.
    pub(crate) fn copy_from(&mut self, value_index: Option<&ValueIndex>, text: &str, to: usize) {
        let Some(value_index) = value_index else { return };
        let start = text.as_ptr().addr().wrapping_sub(value_index.base);
        let first = value_index
            .values
            .partition_point(|(value, _)| (*value as usize) < start);
        for (value, end) in &value_index.values[first..] {
            let (value, end) = (*value as usize, *end as usize);
            if value >= start + text.len() {
                break;
            }
            // A value that contains the part lies outside of it.
            if end <= start + text.len() {
                self.add(value - start + to, end - start + to);
            }
        }
    }

    /// Returns the index for the finished text, or `None` if it has no large value.
    pub(crate) fn build(mut self, text: &str) -> Option<Arc<ValueIndex>> {
        if self.values.is_empty() {
            return None;
        }
        self.values.sort_unstable();
        self.values.dedup();
        Some(Arc::new(ValueIndex {
            base: text.as_ptr().addr(),
            values: self.values.into(),
        }))
    }
}

impl ScanVisitor for ValueIndexBuilder {
    fn visit_member(&mut self, _: Span) {}

    fn min_large(&self) -> usize {
        self.least
    }

    fn visit_large(&mut self, start: usize, end: usize) {
        self.add(start, end);
    }
}

impl ValueIndex {
    /// Returns the end of the value that starts at `at` of a part of the text, or `None` if it is not indexed.
    pub(crate) fn end_of(&self, part: &str, at: usize) -> Option<usize> {
        if part.len() - at < MIN_VALUE {
            return None;
        }
        let part = part.as_ptr().addr().checked_sub(self.base)?;
        let start = u32::try_from(part + at).ok()?;
        let place = self
            .values
            .binary_search_by_key(&start, |(start, _)| *start)
            .ok()?;
        let (_, end) = self.values[place];
        Some(end as usize - part)
    }

    /// `true` if a part of the text is long enough to contain an indexed value.
    pub(crate) fn is_large_enough(part: &str) -> bool {
        part.len() > MIN_VALUE
    }
}

#[cfg(test)]
mod tests {
    use crate::{IndexedJson, JsonLimits, RawJson};

    fn is_indexed(raw: &RawJson, key: &str) -> bool {
        let (mut at, text) = (None, raw.as_str());
        for span in raw.spans() {
            if span.key(text) == key {
                at = Some(span.value);
            }
        }
        let at = at.expect("it is there");
        raw.value_index
            .as_ref()
            .is_some_and(|value_index| value_index.end_of(text, at).is_some())
    }

    #[test]
    fn the_large_values_of_a_message_are_marked_and_stay_so() {
        let long = "\\\"x".repeat(1_000);
        let text =
            format!(r#"{{"id":1,"params":{{"name":"a","arguments":{{"text":"{long}","n":1}},"b":[1]}}}}"#);
        let parsed = IndexedJson::parse(text, JsonLimits::STRICT).expect("it is JSON");
        let params = parsed.raw().get("params").expect("it is there");
        let arguments = params.get("arguments").expect("it is there");
        assert!(is_indexed(parsed.raw(), "params") && !is_indexed(parsed.raw(), "id"));
        assert!(
            is_indexed(&params, "arguments") && !is_indexed(&params, "name") && !is_indexed(&params, "b")
        );
        assert!(is_indexed(&arguments, "text") && !is_indexed(&arguments, "n"));

        // A text that is built of indexed parts is indexed, too.
        let small = [("name", RawJson::from("b"))];
        let made = RawJson::from_members(&[("name", "a".into()), ("arguments", arguments.clone())]);
        let made = made.with_members(&small).expect("it is an object");
        assert!(is_indexed(&made, "arguments"));
        assert!(is_indexed(&made.get("arguments").expect("it is there"), "text"));
        let more = made
            .with_new_member("_meta", &arguments)
            .expect("it is an object");
        assert!(is_indexed(&more, "arguments") && is_indexed(&more, "_meta") && !is_indexed(&more, "name"));

        // Small values keep no index.
        assert!(params.get("b").is_some_and(|b| b.value_index.is_none()));
        assert!(RawJson::from("x").value_index.is_none() && params.detached().value_index.is_none());
    }

    #[test]
    fn how_many_values_are_marked_is_bounded() {
        let items = vec![format!("\"{}\"", "x".repeat(600)); 2_000].join(",");
        let raw = RawJson::parse(format!("[[[[{items}]]]]")).expect("it is JSON");
        assert_eq!(
            raw.value_index
                .as_ref()
                .map(|value_index| value_index.values.len()),
            Some(4)
        );
        let items = vec![format!("\"{}\"", "x".repeat(600)); 8].join(",");
        let raw = RawJson::parse(format!("[{items}]")).expect("it is JSON");
        assert_eq!(
            raw.value_index
                .as_ref()
                .map(|value_index| value_index.values.len()),
            Some(9)
        );
    }
}
