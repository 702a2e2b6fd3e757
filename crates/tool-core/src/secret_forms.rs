use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use raw_json::RawJson;

use crate::{Provider, Reference};

/// What stands in the place of something hidden.
pub const HIDDEN: &str = "[redacted]";

/// Everything but RFC 3986's unreserved characters.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same, but with the slashes of a path.
const PATH: &AsciiSet = &VALUE.remove(b'/');

/// How long a piece of base64 must be to count: a shorter one is found by chance.
const MIN_ENCODED: usize = 4;

/// The forms in which an upstream may give a secret back: as it is, percent-encoded, in base64 wherever it may begin, and
/// as a JSON string, also within another.
#[must_use]
pub fn secret_forms(value: &str) -> Vec<String> {
    let encoded = utf8_percent_encode(value, VALUE).to_string();
    // As a JSON string, and as one within another: upstreams like to say back a body as text.
    let once = json_inside(value);
    let mut forms = vec![
        value.to_owned(),
        lower_hex(&encoded),
        utf8_percent_encode(value, PATH).to_string(),
        encoded.replace("%20", "+"),
        encoded,
        json_inside(&once),
        once.replace('/', "\\/"),
        once,
    ];
    // In the middle of something encoded, a value begins at one of three offsets within a group of four characters.
    for offset in 0..3 {
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(value.as_bytes());
        let whole = bytes.len() / 3 * 4;
        let start = [0, 2, 3][offset];
        for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            if whole > start + MIN_ENCODED {
                forms.push(text[start..whole].to_owned());
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// A text as it stands between the quotes of a JSON string.
fn json_inside(text: &str) -> String {
    let json = RawJson::from(text);
    json.as_str()[1..json.len() - 1].to_owned()
}

/// Percent-encoded text with small hexadecimal digits.
fn lower_hex(encoded: &str) -> String {
    let mut left = 0;
    let lowered = encoded.chars().map(|next| {
        let digit = left > 0;
        left = if next == '%' { 2 } else { left.max(1) - 1 };
        if digit { next.to_ascii_lowercase() } else { next }
    });
    lowered.collect()
}

impl Reference {
    /// Whether its value is a secret: it comes from a secret store or a file, or its name says so. A region or a base
    /// address is none.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.provider != Provider::Environment || names_secret(&self.name)
    }
}

/// Whether the name of a variable or a header says that its value is a secret.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "key",
        "token",
        "secret",
        "passw",
        "auth",
        "credential",
        "cookie",
        "webhook",
        "signature",
    ]
    .iter()
    .any(|word| name.contains(word))
}
