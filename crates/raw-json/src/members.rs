use std::borrow::Cow;

use crate::{
    RawJson,
    scan::{Limits, Scanner, unescape},
};

/// The members of an object in the order they were written: keys decoded, values as raw text.
///
/// Empty for a value that is no object. Made by [`RawJson::members`].
#[derive(Debug)]
pub struct Members<'a> {
    object: &'a RawJson,
    at: usize,
}

impl<'a> Members<'a> {
    pub(crate) fn new(object: &'a RawJson) -> Self {
        let at = if object.as_str().starts_with('{') {
            1
        } else {
            object.as_str().len()
        };
        Self { object, at }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, RawJson);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.object.as_str();
        let mut scanner = Scanner::new(text);
        scanner.at = self.at;
        scanner.space();
        if scanner.peek() == Some(b',') {
            scanner.at += 1;
            scanner.space();
        }
        if scanner.peek() != Some(b'"') {
            return None;
        }
        // The text was checked when it became a `RawJson`, so no step here can fail.
        let raw_key = scanner.string().ok()?;
        scanner.space();
        scanner.at += 1;
        scanner.space();
        let start = scanner.at;
        scanner
            .value(Limits {
                depth: usize::MAX,
                ..Limits::RELAY
            })
            .ok()?;
        self.at = scanner.at;
        // A lone surrogate has no decoded form; the escaped text still tells keys apart.
        let key = unescape(raw_key).unwrap_or(Cow::Borrowed(raw_key));
        Some((key, self.object.slice(start..scanner.at)))
    }
}
