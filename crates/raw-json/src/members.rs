use std::borrow::Cow;

use crate::{
    Kind, RawJson,
    marks::Marks,
    raw::kind_of,
    scan::{Scanner, Span, unescape},
};

/// The members of an object in the order they were written: keys decoded, values as raw text.
///
/// Empty for a value that is no object. Made by [`RawJson::members`].
#[derive(Debug)]
pub struct Members<'a>(pub(crate) Parts<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, RawJson);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, part) = self.0.next()?;
        Some((key, part.to_raw()))
    }
}

/// A value inside of another one, which it belongs to: to be looked at, and taken out if it is what was looked for.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    whole: &'a RawJson,
    text: &'a str,
}

impl<'a> Part<'a> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// What kind of value this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        kind_of(self.text)
    }

    /// The text that this value stands for, if it is a string: borrowed, unless something in it is escaped.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        unescape(self.text.strip_prefix('"')?.strip_suffix('"')?)
    }

    /// The members, if this is an object: see [`RawJson::parts`].
    #[must_use]
    pub fn parts(&self) -> Parts<'a> {
        Parts {
            whole: self.whole,
            spans: Spans::new(self.text, self.whole.marks.as_deref()),
        }
    }

    /// The value by itself. It shares the bytes of the whole.
    #[must_use]
    pub fn to_raw(&self) -> RawJson {
        self.whole.part(self.text)
    }
}

/// The members of an object in the order they were written: keys decoded, values as they stand in it.
///
/// Empty for a value that is no object. Made by [`RawJson::parts`].
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
    type Item = (Cow<'a, str>, Part<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let span = self.spans.next()?;
        Some(part(self.whole, self.spans.text, span))
    }
}

/// The member that stands there in a text, which is that of the whole or of a part of it.
pub(crate) fn part<'a>(whole: &'a RawJson, text: &'a str, span: Span) -> (Cow<'a, str>, Part<'a>) {
    let value = &text[span.value..span.end];
    (span.key(text), Part { whole, text: value })
}

/// Where the members of an object stand in its text.
#[derive(Debug)]
pub(crate) struct Spans<'a> {
    pub(crate) text: &'a str,
    at: usize,
    /// Of the text that this one is a part of.
    pub(crate) marks: Option<&'a Marks>,
}

impl RawJson {
    /// Where the members stand in the text, if this is an object.
    pub(crate) fn spans(&self) -> Spans<'_> {
        Spans::new(self.as_str(), self.marks.as_deref())
    }
}

impl<'a> Spans<'a> {
    /// Of a text, and the marks of the one that it is a part of.
    fn new(text: &'a str, marks: Option<&'a Marks>) -> Self {
        let at = if text.starts_with('{') { 1 } else { text.len() };
        Self { text, at, marks }
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let mut scanner = Scanner::at(self.text, self.at);
        scanner.space();
        if scanner.peek() == Some(b',') {
            scanner.at += 1;
            scanner.space();
        }
        if scanner.peek() != Some(b'"') {
            return None;
        }
        let key = scanner.at;
        let is_escaped = scanner.skip_string();
        let key_end = scanner.at;
        scanner.space();
        scanner.at += 1;
        scanner.space();
        let value = scanner.at;
        scanner.skip_marked(self.marks);
        self.at = scanner.at;
        Some(Span {
            key,
            key_end,
            is_escaped,
            value,
            end: scanner.at,
        })
    }
}

/// The items of an array in their order, as raw text.
///
/// Empty for a value that is no array. Made by [`RawJson::items`].
#[derive(Debug)]
pub struct Items<'a> {
    array: &'a RawJson,
    at: usize,
}

impl<'a> Items<'a> {
    pub(crate) fn new(array: &'a RawJson) -> Self {
        let at = if array.as_str().starts_with('[') {
            1
        } else {
            array.len()
        };
        Self { array, at }
    }
}

impl Iterator for Items<'_> {
    type Item = RawJson;

    fn next(&mut self) -> Option<RawJson> {
        let text = self.array.as_str();
        let mut scanner = Scanner::at(text, self.at);
        scanner.space();
        if scanner.peek() == Some(b',') {
            scanner.at += 1;
            scanner.space();
        }
        if matches!(scanner.peek(), None | Some(b']')) {
            return None;
        }
        let start = scanner.at;
        scanner.skip_marked(self.array.marks.as_deref());
        self.at = scanner.at;
        Some(self.array.part(&text[start..self.at]))
    }
}
