use std::fmt;

use raw_json::{JsonKind, RawJson};

/// Id of a request as the caller wrote it: an integer, or a string of at most 1 KiB.
///
/// Two ids are equal if their texts are. A response carries the very bytes that the caller sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(RawJson);

/// Maximum length of a string that is accepted as an id, in bytes, with its quotes.
const MAX_STRING: usize = 1026;
/// Maximum length of an integer that is accepted as an id, in bytes: that of a 64-bit integer.
const MAX_INTEGER: usize = 20;

impl Id {
    /// Accepts a value as an id. Returns `None` if it is null, a boolean, a fraction, a container, or too long.
    #[must_use]
    pub fn new(value: &RawJson) -> Option<Self> {
        let text = value.as_str();
        let fits = match value.kind() {
            JsonKind::String => text.len() <= MAX_STRING,
            JsonKind::Number => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                text.len() <= MAX_INTEGER && digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Array | JsonKind::Object => false,
        };
        fits.then(|| Self(value.clone()))
    }

    /// Returns the id as JSON text.
    #[must_use]
    pub fn as_raw(&self) -> &RawJson {
        &self.0
    }
}

impl From<u64> for Id {
    fn from(value: u64) -> Self {
        Self(RawJson::from(value))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Reads an integer id that a peer may have echoed in another form: `7`, `"7"`, `7.0`, `"7.0"` and `7e0` are all 7.
#[must_use]
pub fn integer_id(value: &RawJson) -> Option<u64> {
    let text = match value.kind() {
        JsonKind::Number => value.as_str(),
        JsonKind::String => value.as_str().trim_matches('"'),
        JsonKind::Null | JsonKind::Bool | JsonKind::Array | JsonKind::Object => return None,
    };
    if let Ok(integer) = text.parse() {
        return Some(integer);
    }
    // Integers up to 2^53 are exact as doubles; our own ids never reach it.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let double: f64 = text.parse().ok()?;
    ((0.0..=EXACT).contains(&double) && double.fract() == 0.0).then_some(double as u64)
}
