//! Percent-encoding (RFC 3986): an inserted value can never change the structure of a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters but the unreserved ones (RFC 3986, section 2.3).
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Encode set of an operator's value, which may contain several path segments.
const PATH: &AsciiSet = &VALUE.remove(b'/');

/// Appends text as one path segment or one query value.
pub(crate) fn push_value(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, VALUE));
}

/// Appends text as one or more path segments.
pub(crate) fn push_path(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, PATH));
}
