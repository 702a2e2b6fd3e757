use std::{borrow::Cow, iter};

use bytes::Bytes;

use crate::{
    JsonError, JsonLimits, Parts, RawJson, TextPart,
    members::part,
    scan::{ScanVisitor, Span, text_of, validate_with},
    value_index::ValueIndexBuilder,
};

/// Validated JSON with an index of its outermost members, built in the same pass. For messages, whose members are read
/// right after validation.
///
/// # Examples
///
/// ```
/// use raw_json::{IndexedJson, JsonLimits};
///
/// let message = IndexedJson::parse(r#"{"id": 7, "result": {"ok": true}}"#, JsonLimits::STRICT)?;
/// let (key, value) = message.parts().nth(1).unwrap();
/// assert_eq!((&*key, value.as_str()), ("result", r#"{"ok": true}"#));
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Debug)]
pub struct IndexedJson {
    raw: RawJson,
    member_index: MemberIndex,
}

/// Maximum number of members in the index.
const MAX_INDEXED: usize = 8;

/// Index of the members of an object in the order they were written. Complete only for objects with at most
/// [`MAX_INDEXED`] members.
#[derive(Debug, Default)]
struct MemberIndex {
    first: [MemberSpan; MAX_INDEXED],
    /// Bit set of the members whose keys contain escapes.
    escaped: u8,
    count: usize,
}

/// Offsets of one member. Like [`Span`] in less than half the space, since a message is moved together with its index.
#[derive(Debug, Clone, Copy, Default)]
struct MemberSpan {
    key: u32,
    key_end: u32,
    value: u32,
    end: u32,
}

/// Visitor that builds both indexes during validation.
struct IndexingVisitor {
    member_index: MemberIndex,
    builder: ValueIndexBuilder,
}

impl ScanVisitor for IndexingVisitor {
    fn visit_member(&mut self, span: Span) {
        self.member_index.add(span);
    }

    fn min_large(&self) -> usize {
        self.builder.min_large()
    }

    fn visit_large(&mut self, start: usize, end: usize) {
        self.builder.add(start, end);
    }
}

impl MemberIndex {
    fn add(&mut self, span: Span) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = MemberSpan {
                key: span.key as u32,
                key_end: span.key_end as u32,
                value: span.value as u32,
                end: span.end as u32,
            };
            self.escaped |= u8::from(span.is_escaped) << self.count;
        }
        self.count += 1;
    }

    /// Indexed members of a text, or `None` if some did not fit into the index.
    fn all(&self, text: &str) -> Option<&[MemberSpan]> {
        let places = self.first.get(..self.count)?;
        u32::try_from(text.len()).is_ok().then_some(places)
    }

    fn span(&self, index: usize, place: MemberSpan) -> Span {
        Span {
            key: place.key as usize,
            key_end: place.key_end as usize,
            is_escaped: self.escaped >> index & 1 == 1,
            value: place.value as usize,
            end: place.end as usize,
        }
    }
}

impl MemberSpan {
    /// Rebases the offsets onto a text that begins `by` bytes later. An offset that overflowed before is correct
    /// afterwards if it fits then.
    fn shift(&mut self, by: usize) {
        for place in [&mut self.key, &mut self.key_end, &mut self.value, &mut self.end] {
            *place = place.wrapping_sub(by as u32);
        }
    }
}

impl IndexedJson {
    /// Parses and indexes a text that must be one JSON value within `limits`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not UTF-8, not JSON, or exceed the limits.
    pub fn parse(text: impl Into<Bytes>, limits: JsonLimits) -> Result<Self, JsonError> {
        let text = text_of(text.into())?;
        let mut visitor = IndexingVisitor {
            member_index: MemberIndex::default(),
            builder: ValueIndexBuilder::for_length(text.len()),
        };
        validate_with(&text, limits, &mut visitor)?;
        let IndexingVisitor {
            mut member_index,
            builder,
        } = visitor;
        let (raw, before) = RawJson::from_validated(text, builder);
        if before > 0 {
            for place in &mut member_index.first {
                place.shift(before);
            }
        }
        Ok(Self { raw, member_index })
    }

    /// The text without its index.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Members of an object, like [`RawJson::parts`]. Empty for other values.
    pub fn parts(&self) -> impl Iterator<Item = (Cow<'_, str>, TextPart<'_>)> {
        let text = self.raw.as_str();
        let indexed = self.member_index.all(text);
        let mut parts = indexed.is_none().then(|| Parts::new(&self.raw));
        let mut indexed = indexed.unwrap_or_default().iter().enumerate();
        iter::from_fn(move || match indexed.next() {
            Some((index, place)) => Some(part(&self.raw, text, self.member_index.span(index, *place))),
            None => parts.as_mut()?.next(),
        })
    }
}
