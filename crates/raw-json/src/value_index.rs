//! Where the large values of a text stand, so that whoever looks for its members need not pass over them again.

use std::sync::Arc;

use crate::scan::{ScanVisitor, Span};

/// Where the large values of a text stand: those of which whoever looks at members behind them must know the end.
#[derive(Debug)]
pub(crate) struct ValueIndex {
    /// The address of the text, to tell where in it a part of it begins. Only parts of the text have its marks, and they
    /// keep it where it is.
    base: usize,
    /// The beginning and the end of each, in the order of their beginnings.
    values: Box<[IndexEntry]>,
}

pub(crate) type IndexEntry = (u32, u32);

/// How long a text must be for values in it to be marked: what is shorter is passed over as fast.
const MIN_TEXT: usize = 2 * 1024;
/// How long a value must be, in bytes, and how long as a part of the text. The latter bounds the marks of a text: 64 for
/// each level of nesting.
const MIN_VALUE: usize = 512;
const MAX_PER_LEVEL: usize = 64;

/// The marks of a text that is being checked or written.
#[derive(Debug)]
pub(crate) struct ValueIndexBuilder {
    least: usize,
    values: Vec<IndexEntry>,
}

impl ValueIndexBuilder {
    /// For a text that is so long, or will be at most.
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

    /// Marks a value if it is large.
    pub(crate) fn add(&mut self, start: usize, end: usize) {
        if end - start >= self.least
            && let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end))
        {
            self.values.push((start, end));
        }
    }

    /// Marks what is marked in `text`, a part of another text, which was copied to the place `to` of this one.
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
            // What holds the part itself is not in it.
            if end <= start + text.len() {
                self.add(value - start + to, end - start + to);
            }
        }
    }

    /// The marks, if there are any, of the text that stands there now.
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
    /// Where the value ends that begins there in a part of the text, if it is a large one.
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

    /// Whether a part of the text can have large values in it.
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

        // What is put together of them knows them, too.
        let small = [("name", RawJson::from("b"))];
        let made = RawJson::object().with_members(&[("name", "a".into()), ("arguments", arguments.clone())]);
        let made = made
            .and_then(|made| made.with_members(&small))
            .expect("it is an object");
        assert!(is_indexed(&made, "arguments"));
        assert!(is_indexed(&made.get("arguments").expect("it is there"), "text"));
        let more = made
            .with_new_member("_meta", &arguments)
            .expect("it is an object");
        assert!(is_indexed(&more, "arguments") && is_indexed(&more, "_meta") && !is_indexed(&more, "name"));

        // Nothing is kept for what is small.
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
