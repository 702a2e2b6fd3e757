use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, Visitor},
    forward_to_deserialize_any,
};

/// Returns the names of a struct's fields, as its derived `Deserialize` lists them; an empty list for any other type.
pub(crate) fn keys_of<K: DeserializeOwned>() -> &'static [&'static str] {
    match K::deserialize(KeyProbe) {
        Err(Fields(names)) => names,
        Ok(_) => &[],
    }
}

/// A deserializer that only records the names of the fields that a struct requests.
struct KeyProbe;

#[derive(Debug)]
struct Fields(&'static [&'static str]);

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Fields {}

impl de::Error for Fields {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for KeyProbe {
    type Error = Fields;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fields> {
        Err(Fields(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fields> {
        Err(Fields(fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
