//! Conversions from and to other types.

use std::sync::LazyLock;

use bytestring::ByteString;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

use crate::{RawJson, raw_json::push_string};

impl From<bool> for RawJson {
    fn from(value: bool) -> Self {
        Self::plain(ByteString::from_static(if value { "true" } else { "false" }))
    }
}

impl From<u64> for RawJson {
    fn from(value: u64) -> Self {
        Self::plain(value.to_string().into())
    }
}

impl From<&str> for RawJson {
    fn from(value: &str) -> Self {
        let mut text = String::with_capacity(value.len() + 2);
        push_string(&mut text, value);
        Self::plain(text.into())
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        Self::plain(value.to_string().into())
    }
}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

impl Default for RawJson {
    fn default() -> Self {
        static NULL: LazyLock<RawJson> = LazyLock::new(RawJson::null);
        NULL.clone()
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.as_str())
            .map_err(ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(String::from(Box::<str>::from(text))).map_err(de::Error::custom)
    }
}
