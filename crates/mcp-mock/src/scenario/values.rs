//! File format of values.

use std::{fmt, marker::PhantomData, time::Duration};

use raw_json::RawJson;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

/// A map that keeps its order.
#[derive(Debug)]
pub(super) struct Entries<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

/// Any value, as JSON.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Json(serde_json::Value);

impl From<Json> for RawJson {
    fn from(json: Json) -> Self {
        Self::from(&json.0)
    }
}

/// JSON in a string, kept byte for byte.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct JsonText(pub(super) RawJson);

impl TryFrom<String> for JsonText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match RawJson::parse(text) {
            Ok(json) => Ok(Self(json)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A time such as `200ms`, `5s` or `1m`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time(pub(super) Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        time(&text)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("invalid time `{text}`: write `200ms`, `5s` or `1m`")))
    }
}

fn time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}
