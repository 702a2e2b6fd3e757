use std::borrow::Cow;

use crate::{
    JsonKind, RawJson,
    raw_json::{between_quotes, kind_of},
    scan::{self, Span, unescape},
    value_index::ValueIndex,
};

/// Iterator over the members of an object in the order they were written: keys decoded, values as raw JSON.
///
/// Empty for a value that is not an object. Created by [`RawJson::members`].
#[derive(Debug)]
pub struct Members<'a>(pub(crate) Parts<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, RawJson);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, part) = self.0.next()?;
        Some((key, part.to_raw()))
    }
}

/// Borrowed value inside a [`RawJson`]. Can be inspected without a reference count, and turned into a [`RawJson`] of
/// its own.
#[derive(Debug, Clone, Copy)]
pub struct TextPart<'a> {
    whole: &'a RawJson,
    text: &'a str,
}

impl<'a> TextPart<'a> {
    /// Text of the value.
    #[must_use]
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Kind of the value.
    #[must_use]
    pub fn kind(&self) -> JsonKind {
        kind_of(self.text)
    }

    /// Decoded text of a string, or `None` for other values. Borrowed unless the string contains escapes.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        unescape(between_quotes(self.text)?)
    }

    /// Members of an object, like [`RawJson::parts`]. Empty for other values.
    #[must_use]
    pub fn parts(&self) -> Parts<'a> {
        Parts {
            whole: self.whole,
            spans: Spans::new(self.text, self.whole.value_index.as_deref()),
        }
    }

    /// Value of the first member with this key, like [`RawJson::get`].
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Self> {
        self.parts().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Items of an array. Empty for other values.
    #[must_use]
    pub fn items(&self) -> PartItems<'a> {
        PartItems {
            whole: self.whole,
            text: self.text,
            at: start_of_items(self.text),
        }
    }

    /// Converts the value into a [`RawJson`] that shares the bytes of the whole.
    #[must_use]
    pub fn to_raw(&self) -> RawJson {
        self.whole.part(self.text)
    }
}

impl RawJson {
    /// The whole value as a borrowed one.
    ///
    /// # Examples
    ///
    /// ```
    /// use raw_json::RawJson;
    ///
    /// let list = RawJson::parse(r#"["a", ["b"]]"#)?;
    /// let texts: Vec<_> = list.as_part().items().filter_map(|item| item.text()).collect();
    /// assert_eq!(texts, ["a"]);
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    #[must_use]
    pub fn as_part(&self) -> TextPart<'_> {
        TextPart {
            whole: self,
            text: self.as_str(),
        }
    }
}

/// Iterator over the members of an object in the order they were written: keys decoded, values borrowed.
///
/// Empty for a value that is not an object. Created by [`RawJson::parts`].
#[derive(Debug)]
pub struct Parts<'a> {
    whole: &'a RawJson,
    spans: Spans<'a>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(whole: &'a RawJson) -> Self {
        Self {
            whole,
            spans: whole.spans(),
        }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = (Cow<'a, str>, TextPart<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let span = self.spans.next()?;
        Some(part(self.whole, self.spans.text, span))
    }
}

/// Returns the member at `span` of `text`, which is the text of `whole` or a part of it.
#[inline(always)]
pub(crate) fn part<'a>(whole: &'a RawJson, text: &'a str, span: Span) -> (Cow<'a, str>, TextPart<'a>) {
    let value = &text[span.value..span.end];
    (span.key(text), TextPart { whole, text: value })
}

/// Iterator over the offsets of an object's members.
#[derive(Debug)]
pub(crate) struct Spans<'a> {
    pub(crate) text: &'a str,
    at: usize,
    /// Index of the text that contains this one.
    pub(crate) value_index: Option<&'a ValueIndex>,
}

impl RawJson {
    /// Offsets of the members of an object. Empty for other values.
    pub(crate) fn spans(&self) -> Spans<'_> {
        Spans::new(self.as_str(), self.value_index.as_deref())
    }
}

impl<'a> Spans<'a> {
    /// Creates the iterator for a text. `value_index` may belong to a text that contains it.
    fn new(text: &'a str, value_index: Option<&'a ValueIndex>) -> Self {
        let is_object = text.as_bytes().first() == Some(&b'{');
        let at = if is_object { 1 } else { text.len() };
        Self {
            text,
            at,
            value_index,
        }
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        let bytes = self.text.as_bytes();
        let key = next_in(bytes, self.at);
        if bytes.get(key) != Some(&b'"') {
            return None;
        }
        // The text was validated when it became a `RawJson`: the string ends, and a colon and a value follow it.
        let (key_end, is_escaped) = scan::skip::string_end(bytes, key);
        let value = scan::skip_space(bytes, scan::skip_space(bytes, key_end) + 1);
        let end = scan::skip::value_end(self.text, value, self.value_index);
        self.at = end;
        Some(Span {
            key,
            key_end,
            is_escaped,
            value,
            end,
        })
    }
}

/// Skips white space, and one comma with the white space after it.
#[inline]
fn next_in(bytes: &[u8], at: usize) -> usize {
    let at = scan::skip_space(bytes, at);
    if bytes.get(at) == Some(&b',') {
        scan::skip_space(bytes, at + 1)
    } else {
        at
    }
}

/// Returns the offset of the first item of an array; the end of any other value.
fn start_of_items(text: &str) -> usize {
    match text.as_bytes().first() {
        Some(b'[') => 1,
        _ => text.len(),
    }
}

/// Returns the item of an array at or after `at`, and moves `at` behind it.
fn next_item<'a>(text: &'a str, at: &mut usize, value_index: Option<&ValueIndex>) -> Option<&'a str> {
    let start = next_in(text.as_bytes(), *at);
    if matches!(text.as_bytes().get(start), None | Some(b']')) {
        return None;
    }
    *at = scan::skip::value_end(text, start, value_index);
    Some(&text[start..*at])
}

/// Iterator over the items of an array in their order, as raw JSON.
///
/// Empty for a value that is not an array. Created by [`RawJson::items`].
#[derive(Debug)]
pub struct Items<'a> {
    array: &'a RawJson,
    at: usize,
}

impl<'a> Items<'a> {
    pub(crate) fn new(array: &'a RawJson) -> Self {
        let at = start_of_items(array.as_str());
        Self { array, at }
    }
}

impl Iterator for Items<'_> {
    type Item = RawJson;

    fn next(&mut self) -> Option<RawJson> {
        let index = self.array.value_index.as_deref();
        let item = next_item(self.array.as_str(), &mut self.at, index)?;
        Some(self.array.part(item))
    }
}

/// Iterator over the items of an array in their order, borrowed.
///
/// Empty for a value that is not an array. Created by [`TextPart::items`].
#[derive(Debug)]
pub struct PartItems<'a> {
    whole: &'a RawJson,
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for PartItems<'a> {
    type Item = TextPart<'a>;

    fn next(&mut self) -> Option<TextPart<'a>> {
        let text = next_item(self.text, &mut self.at, self.whole.value_index.as_deref())?;
        Some(TextPart {
            whole: self.whole,
            text,
        })
    }
}
