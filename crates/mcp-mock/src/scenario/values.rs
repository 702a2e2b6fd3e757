//! File format of values.

use std::{fmt, marker::PhantomData, time::Duration};

use raw_json::RawJson;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Visitor},
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

/// Any value, as JSON whose members are in the order of the file.
#[derive(Debug)]
pub(super) struct Json(RawJson);

impl From<Json> for RawJson {
    fn from(json: Json) -> Self {
        json.0
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl JsonVisitor {
    fn write<E: Error>(value: impl Serialize) -> Result<Json, E> {
        RawJson::from_serialize(&value).map(Json).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Self::write(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Self::write(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Self::write(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Self::write(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Self::write(value)
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Self::write(())
    }

    fn visit_none<E: Error>(self) -> Result<Json, E> {
        Self::write(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        Json::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            all.push(item);
        }
        Self::write(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, RawJson)> = Vec::new();
        while let Some((key, Json(value))) = map.next_entry()? {
            members.push((key, value));
        }
        let members: Vec<_> = members
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()))
            .collect();
        Ok(Json(RawJson::from_members(&members)))
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
