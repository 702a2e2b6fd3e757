use std::fmt;

use raw_json::{Kind, RawJson};

/// The id of a request as the caller wrote it: an integer, or a string of at most 1 KiB.
///
/// Two ids are equal when their texts are, so an answer carries the very bytes that the caller sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(RawJson);

/// The longest string that is accepted as an id, quotes included.
const MAX_STRING: usize = 1026;
/// The longest integer that is accepted as an id: what a 64-bit integer needs.
const MAX_INTEGER: usize = 20;

impl Id {
    /// Takes a value that may be an id; nothing when it is null, a fraction, a container, or too long.
    #[must_use]
    pub fn new(value: &RawJson) -> Option<Self> {
        let text = value.as_str();
        let fits = match value.kind() {
            Kind::String => text.len() <= MAX_STRING,
            Kind::Number => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                text.len() <= MAX_INTEGER && digits.bytes().all(|byte| byte.is_ascii_digit())
            }
            Kind::Null | Kind::Bool | Kind::Array | Kind::Object => false,
        };
        fits.then(|| Self(value.clone()))
    }

    /// The id as JSON text.
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

/// Reads an integer that a peer may have echoed in another form: `7`, `"7"`, `7.0`, `"7.0"` and `7e0` are all 7.
#[must_use]
pub fn integer(value: &RawJson) -> Option<u64> {
    let text = match value.kind() {
        Kind::Number => value.as_str(),
        Kind::String => value.as_str().trim_matches('"'),
        Kind::Null | Kind::Bool | Kind::Array | Kind::Object => return None,
    };
    if let Ok(integer) = text.parse() {
        return Some(integer);
    }
    // Integers up to 2^53 are exact as doubles; ids of ours never reach it.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let double: f64 = text.parse().ok()?;
    ((0.0..=EXACT).contains(&double) && double.fract() == 0.0).then_some(double as u64)
}
