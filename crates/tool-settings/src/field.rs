//! Building blocks of file types: values that know their place. An invalid value does not prevent the rest of the
//! file from being read.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

use crate::NodeId;

// Names by which these types identify themselves to our deserializer. No other deserializer can read them.
pub(crate) const FIELD: &str = "$field";
pub(crate) const NODE: &str = "$node";
pub(crate) const TEXT: &str = "$text";
pub(crate) const WORD_OR_MAP: &str = "$word-or-map";

/// A value of a file with its place: absent, valid or invalid. `null` counts as absent.
///
/// An invalid value is reported when it is read, so that one run shows the problems of all fields.
#[derive(Debug)]
pub struct Field<T> {
    at: Option<NodeId>,
    value: Option<T>,
    wrong: bool,
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self {
            at: None,
            value: None,
            wrong: false,
        }
    }
}

impl<T> Field<T> {
    /// A field that is not given.
    pub const ABSENT: Self = Self {
        at: None,
        value: None,
        wrong: false,
    };

    /// Returns the value, if it is given and valid.
    #[must_use]
    pub fn get(self) -> Option<T> {
        self.value
    }

    /// Returns the value with its place, if it is given and valid.
    #[must_use]
    pub fn located(self) -> Option<(NodeId, T)> {
        Some((self.at?, self.value?))
    }

    /// Returns the place, if the value is given and valid.
    #[must_use]
    pub fn given(&self) -> Option<NodeId> {
        self.at.filter(|_| self.value.is_some())
    }

    /// Converts the value and keeps the place.
    #[must_use]
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Field<U> {
        Field {
            at: self.at,
            value: self.value.map(with),
            wrong: self.wrong,
        }
    }

    /// Returns the place, also of `null` and invalid values.
    #[must_use]
    pub fn place(&self) -> Option<NodeId> {
        self.at
    }

    /// Borrows the value, if it is given and valid.
    #[must_use]
    pub fn as_ref(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Returns `true` if the value is invalid, which was reported.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.wrong
    }

    /// Returns `true` if the value is neither given nor invalid.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.value.is_none() && !self.wrong
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FIELD, FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field")
    }

    /// Reads the place, `true` if the value is null, and the value unless it is invalid.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let at = seq.next_element::<u32>()?.map(NodeId::new);
        let is_null = seq.next_element::<bool>()?.unwrap_or_default();
        let value = if is_null { None } else { seq.next_element()? };
        let wrong = !is_null && value.is_none();
        Ok(Field { at, value, wrong })
    }
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A map from names that the user chooses, in the order of the file.
#[derive(Debug)]
pub struct Entries<T>(Vec<(String, Field<T>)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Entries<T> {
    /// Iterates over names and values.
    pub fn iter(&self) -> std::slice::Iter<'_, (String, Field<T>)> {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a Entries<T> {
    type Item = &'a (String, Field<T>);
    type IntoIter = std::slice::Iter<'a, (String, Field<T>)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> IntoIterator for Entries<T> {
    type Item = (String, Field<T>);
    type IntoIter = std::vec::IntoIter<(String, Field<T>)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<T>()})
    }
}

/// Any value, left as it is in its document. Here `null` is a value.
#[derive(Debug, Default, Clone, Copy)]
pub struct Raw(pub Option<NodeId>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(NODE, RawVisitor)
    }
}

struct RawVisitor;

impl Visitor<'_> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u32<E: Error>(self, id: u32) -> Result<Raw, E> {
        Ok(Raw(Some(NodeId::new(id))))
    }
}

impl JsonSchema for Raw {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Any".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// A string that may also be written as a number or boolean, taken verbatim: `PORT: 8080`, `version: 1.10`.
#[derive(Debug, Clone)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TEXT, TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    // Of a format that is not a configuration, such as JSON.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}

/// A map, or a single word for the common case.
#[derive(Debug, Clone)]
pub enum WordOrMap<W, M> {
    /// A word, or any other value that is no map.
    Word(W),
    /// A map.
    Map(M),
}

impl<'de, W: Deserialize<'de>, M: Deserialize<'de>> Deserialize<'de> for WordOrMap<W, M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(WORD_OR_MAP, WordOrMapVisitor(PhantomData))
    }
}

struct WordOrMapVisitor<W, M>(PhantomData<(W, M)>);

impl<'de, W: Deserialize<'de>, M: Deserialize<'de>> Visitor<'de> for WordOrMapVisitor<W, M> {
    type Value = WordOrMap<W, M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word or a map")
    }

    /// Reads `true` for a map, then the value.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let missing = || A::Error::custom("a value is missing");
        Ok(if seq.next_element::<bool>()?.unwrap_or_default() {
            WordOrMap::Map(seq.next_element()?.ok_or_else(missing)?)
        } else {
            WordOrMap::Word(seq.next_element()?.ok_or_else(missing)?)
        })
    }
}

impl<W: JsonSchema, M: JsonSchema> JsonSchema for WordOrMap<W, M> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_{}", W::schema_name(), M::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<W>();
        let map = generator.subschema_for::<M>();
        json_schema!({"anyOf": [word, map]})
    }
}
