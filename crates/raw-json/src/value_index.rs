//! Where the large values of a text stand, so that whoever looks for its members need not pass over them again.

use std::sync::Arc;

use crate::scan::{Notes, Span};

/// Where the large values of a text stand: those of which whoever looks at members behind them must know the end.
#[derive(Debug)]
pub(crate) struct Marks {
    /// The address of the text, to tell where in it a part of it begins. Only parts of the text have its marks, and they
    /// keep it where it is.
    base: usize,
    /// The beginning and the end of each, in the order of their beginnings.
    values: Box<[Mark]>,
}

pub(crate) type Mark = (u32, u32);

/// How long a text must be for values in it to be marked: what is shorter is passed over as fast.
const LONG: usize = 2 * 1024;
/// How long a value must be, in bytes, and how long as a part of the text. The latter bounds the marks of a text: 64 for
/// each level of nesting.
const LEAST: usize = 512;
const PARTS: usize = 64;

/// The marks of a text that is being checked or written.
#[derive(Debug)]
pub(crate) struct Marking {
    least: usize,
    values: Vec<Mark>,
}

impl Marking {
    /// For a text that is so long, or will be at most.
    pub(crate) fn of(length: usize) -> Self {
        let is_marked = length >= LONG && u32::try_from(length).is_ok();
        Self {
            least: if is_marked {
                LEAST.max(length / PARTS)
            } else {
                usize::MAX
            },
            values: Vec::new(),
        }
    }

    /// Marks a value if it is large.
    pub(crate) fn note(&mut self, start: usize, end: usize) {
        if end - start >= self.least
            && let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end))
        {
            self.values.push((start, end));
        }
    }

    /// Marks what is marked in `text`, a part of another text, which was copied to the place `to` of this one.
    pub(crate) fn copy(&mut self, marks: Option<&Marks>, text: &str, to: usize) {
        let Some(marks) = marks else { return };
        let start = text.as_ptr().addr().wrapping_sub(marks.base);
        let first = marks
            .values
            .partition_point(|(value, _)| (*value as usize) < start);
        for (value, end) in &marks.values[first..] {
            let (value, end) = (*value as usize, *end as usize);
            if value >= start + text.len() {
                break;
            }
            // What holds the part itself is not in it.
            if end <= start + text.len() {
                self.note(value - start + to, end - start + to);
            }
        }
    }

    /// The marks, if there are any, of the text that stands there now.
    pub(crate) fn end(mut self, text: &str) -> Option<Arc<Marks>> {
        if self.values.is_empty() {
            return None;
        }
        self.values.sort_unstable();
        self.values.dedup();
        Some(Arc::new(Marks {
            base: text.as_ptr().addr(),
            values: self.values.into(),
        }))
    }
}

impl Notes for Marking {
    fn member(&mut self, _: Span) {}

    fn least(&self) -> usize {
        self.least
    }

    fn large(&mut self, start: usize, end: usize) {
        self.note(start, end);
    }
}

impl Marks {
    /// Where the value ends that begins there in a part of the text, if it is a large one.
    pub(crate) fn end_of(&self, part: &str, at: usize) -> Option<usize> {
        if part.len() - at < LEAST {
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
    pub(crate) fn matter_to(part: &str) -> bool {
        part.len() > LEAST
    }
}

#[cfg(test)]
mod tests {
    use crate::{JsonLimits, Parsed, RawJson};

    fn is_marked(raw: &RawJson, key: &str) -> bool {
        let (mut at, text) = (None, raw.as_str());
        for span in raw.spans() {
            if span.key(text) == key {
                at = Some(span.value);
            }
        }
        let at = at.expect("it is there");
        raw.marks
            .as_ref()
            .is_some_and(|marks| marks.end_of(text, at).is_some())
    }

    #[test]
    fn the_large_values_of_a_message_are_marked_and_stay_so() {
        let long = "\\\"x".repeat(1_000);
        let text =
            format!(r#"{{"id":1,"params":{{"name":"a","arguments":{{"text":"{long}","n":1}},"b":[1]}}}}"#);
        let parsed = Parsed::parse(text, JsonLimits::STRICT).expect("it is JSON");
        let params = parsed.raw().get("params").expect("it is there");
        let arguments = params.get("arguments").expect("it is there");
        assert!(is_marked(parsed.raw(), "params") && !is_marked(parsed.raw(), "id"));
        assert!(is_marked(&params, "arguments") && !is_marked(&params, "name") && !is_marked(&params, "b"));
        assert!(is_marked(&arguments, "text") && !is_marked(&arguments, "n"));

        // What is put together of them knows them, too.
        let small = [("name", RawJson::from("b"))];
        let made = RawJson::object().with_members(&[("name", "a".into()), ("arguments", arguments.clone())]);
        let made = made
            .and_then(|made| made.with_members(&small))
            .expect("it is an object");
        assert!(is_marked(&made, "arguments"));
        assert!(is_marked(&made.get("arguments").expect("it is there"), "text"));
        let more = made
            .with_new_member("_meta", &arguments)
            .expect("it is an object");
        assert!(is_marked(&more, "arguments") && is_marked(&more, "_meta") && !is_marked(&more, "name"));

        // Nothing is kept for what is small.
        assert!(params.get("b").is_some_and(|b| b.marks.is_none()));
        assert!(RawJson::from("x").marks.is_none() && params.detached().marks.is_none());
    }

    #[test]
    fn how_many_values_are_marked_is_bounded() {
        let items = vec![format!("\"{}\"", "x".repeat(600)); 2_000].join(",");
        let raw = RawJson::parse(format!("[[[[{items}]]]]")).expect("it is JSON");
        assert_eq!(raw.marks.as_ref().map(|marks| marks.values.len()), Some(4));
        let items = vec![format!("\"{}\"", "x".repeat(600)); 8].join(",");
        let raw = RawJson::parse(format!("[{items}]")).expect("it is JSON");
        assert_eq!(raw.marks.as_ref().map(|marks| marks.values.len()), Some(9));
    }
}
