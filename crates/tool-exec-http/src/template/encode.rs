//! Percent-encoding: what is inserted into an address can never be read as part of its structure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but RFC 3986's unreserved characters.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same, but an operator's value may hold several segments.
const PATH: &AsciiSet = &VALUE.remove(b'/');

/// Appends text as one path segment or one query value.
pub(crate) fn push_value(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, VALUE));
}

/// Appends text as one or more path segments.
pub(crate) fn push_path(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, PATH));
}
