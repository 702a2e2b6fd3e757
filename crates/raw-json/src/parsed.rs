use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;

use crate::{
    Error, ErrorKind, Limits, Part, Parts, RawJson,
    marks::Marking,
    members::part,
    scan::{Notes, Span, check_noting},
};

/// A text that was checked, and where its members stand if it is an object, found in the same pass: for messages, which
/// are taken apart as soon as they are checked.
///
/// ```
/// use raw_json::{Limits, Parsed};
///
/// let message = Parsed::parse(r#"{"id": 7, "result": {"ok": true}}"#, Limits::STRICT)?;
/// let (key, value) = message.parts().nth(1).unwrap();
/// assert_eq!((&*key, value.as_str()), ("result", r#"{"ok": true}"#));
/// # Ok::<(), raw_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Parsed {
    raw: RawJson,
    seen: Seen,
}

/// How many members are noted.
const FEW: usize = 8;

/// The members of an object, in the order they were written, as long as they are few.
#[derive(Debug, Default)]
struct Seen {
    first: [Span; FEW],
    count: usize,
}

/// What is noted while a text is checked.
struct Noting {
    seen: Seen,
    marking: Marking,
}

impl Notes for Noting {
    fn member(&mut self, span: Span) {
        self.seen.member(span);
    }

    fn least(&self) -> usize {
        self.marking.least()
    }

    fn large(&mut self, start: usize, end: usize) {
        self.marking.note(start, end);
    }
}

impl Seen {
    fn member(&mut self, span: Span) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = span;
        }
        self.count += 1;
    }
}

impl Parsed {
    /// Takes a text that must be one JSON value within `limits`.
    ///
    /// # Errors
    /// When the bytes are not UTF-8, not JSON, or not within the limits.
    pub fn parse(text: impl Into<Bytes>, limits: Limits) -> Result<Self, Error> {
        let text = ByteString::try_from(text.into())
            .map_err(|error| Error::new(ErrorKind::Utf8, error.valid_up_to()))?;
        let mut noting = Noting {
            seen: Seen::default(),
            marking: Marking::of(text.len()),
        };
        check_noting(&text, limits, &mut noting)?;
        let Noting { mut seen, marking } = noting;
        let (raw, before) = RawJson::trimmed(text, marking);
        if before > 0 {
            for span in &mut seen.first {
                span.shift(before);
            }
        }
        Ok(Self { raw, seen })
    }

    /// The text.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The members, if this is an object, as [`RawJson::parts`] gives them.
    pub fn parts(&self) -> impl Iterator<Item = (Cow<'_, str>, Part<'_>)> {
        let Seen { first, count } = &self.seen;
        let is_whole = *count <= FEW;
        let noted = if is_whole { &first[..*count] } else { &[] };
        let noted = noted.iter().map(|span| part(&self.raw, self.raw.as_str(), *span));
        let looked_for = (!is_whole).then(|| Parts::new(&self.raw));
        noted.chain(looked_for.into_iter().flatten())
    }
}
