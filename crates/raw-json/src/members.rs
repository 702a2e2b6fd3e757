use std::{borrow::Cow, ops::Range};

use crate::{
    RawJson,
    scan::{Scanner, unescape},
};

/// The members of an object in the order they were written: keys decoded, values as raw text.
///
/// Empty for a value that is no object. Made by [`RawJson::members`].
#[derive(Debug)]
pub struct Members<'a> {
    object: &'a RawJson,
    spans: Spans<'a>,
}

impl<'a> Members<'a> {
    pub(crate) fn new(object: &'a RawJson) -> Self {
        Self {
            object,
            spans: Spans::new(object.as_str()),
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, RawJson);

    fn next(&mut self) -> Option<Self::Item> {
        let span = self.spans.next()?;
        Some((span.key, self.object.slice(span.value)))
    }
}

/// Where the members of an object stand in its text.
#[derive(Debug)]
pub(crate) struct Spans<'a> {
    text: &'a str,
    at: usize,
}

/// Where one member stands.
pub(crate) struct Span<'a> {
    /// The key, decoded.
    pub(crate) key: Cow<'a, str>,
    /// From the key's first quote to the value's last byte.
    pub(crate) member: Range<usize>,
    pub(crate) value: Range<usize>,
}

impl<'a> Spans<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let at = if text.starts_with('{') { 1 } else { text.len() };
        Self { text, at }
    }
}

impl<'a> Iterator for Spans<'a> {
    type Item = Span<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut scanner = Scanner::new(self.text);
        scanner.at = self.at;
        scanner.space();
        if scanner.peek() == Some(b',') {
            scanner.at += 1;
            scanner.space();
        }
        if scanner.peek() != Some(b'"') {
            return None;
        }
        let first = scanner.at;
        // The text was checked when it became a `RawJson`, so no step here can fail.
        let raw_key = scanner.string().ok()?;
        scanner.space();
        scanner.at += 1;
        scanner.space();
        let start = scanner.at;
        scanner.skip();
        self.at = scanner.at;
        Some(Span {
            // A lone surrogate has no decoded form; the escaped text still tells keys apart.
            key: unescape(raw_key).unwrap_or(Cow::Borrowed(raw_key)),
            member: first..scanner.at,
            value: start..scanner.at,
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
        let mut scanner = Scanner::new(self.array.as_str());
        scanner.at = self.at;
        scanner.space();
        if scanner.peek() == Some(b',') {
            scanner.at += 1;
            scanner.space();
        }
        if matches!(scanner.peek(), None | Some(b']')) {
            return None;
        }
        let start = scanner.at;
        scanner.skip();
        self.at = scanner.at;
        Some(self.array.slice(start..self.at))
    }
}
