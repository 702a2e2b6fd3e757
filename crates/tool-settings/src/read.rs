use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{MapDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    ConfigDocument, ConfigValue, NodeId,
    anchor::{Anchor, names},
    failure::Failure,
    field::{FIELD, NODE, TEXT, WORD_OR_MAP},
    suggest,
};

/// Reads a value as a file type. Invalid values are reported. Returns `None` only if the value as a whole has the
/// wrong type.
pub fn read<'de, T: Deserialize<'de>>(document: &dyn ConfigDocument, at: NodeId) -> Option<T> {
    match T::deserialize(Value { document, at }) {
        Ok(read) => Some(read),
        Err(failure) => {
            failure.report(document, at);
            None
        }
    }
}

/// Reads a file type from some of the values of a map.
pub(crate) fn read_entries<'de, T: Deserialize<'de>>(
    document: &dyn ConfigDocument,
    entries: Vec<(&'static str, NodeId)>,
) -> Option<T> {
    let first = entries.first().map(|(_, at)| *at);
    let entries = Entries {
        document,
        left: entries.into_iter(),
        value: None,
        anchors: Vec::new(),
    };
    match T::deserialize(entries) {
        Ok(read) => Some(read),
        Err(failure) => {
            if let Some(at) = first {
                failure.report(document, at);
            }
            None
        }
    }
}

const WHOLE: &str = "a whole number from 0 on";

/// Deserializer of a value of a document.
#[derive(Clone, Copy)]
struct Value<'a> {
    document: &'a dyn ConfigDocument,
    at: NodeId,
}

impl<'a> Value<'a> {
    fn value(self) -> ConfigValue<'a> {
        self.document.value(self.at)
    }

    fn expected(self, what: &str) -> Failure {
        let found = self.document.describe(self.at);
        let failure = Failure::new(format!("expected {what}, found {found}")).at(self.at);
        match (self.value(), what) {
            (ConfigValue::String(text), "true or false") => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" => failure.with_hint("in YAML 1.2 this is a text; write `true`"),
                "no" | "off" | "n" => failure.with_hint("in YAML 1.2 this is a text; write `false`"),
                _ => failure,
            },
            (ConfigValue::Number(_) | ConfigValue::Bool(_), "a text") => {
                let written = self.document.verbatim(self.at).unwrap_or_default();
                failure.with_hint(format!("put it in quotation marks: `\"{written}\"`"))
            }
            (ConfigValue::String(text), "a list") if !text.contains('\n') => {
                failure.with_hint("put it in brackets: `[..]`")
            }
            (ConfigValue::String(text), WHOLE | "a number") if text.parse::<f64>().is_ok() => {
                failure.with_hint("remove the quotation marks")
            }
            _ => failure,
        }
    }

    fn number<T: std::str::FromStr>(self, what: &str) -> Result<T, Failure> {
        match self.value() {
            ConfigValue::Number(text) => text.parse().map_err(|_| self.expected(what)),
            _ => Err(self.expected(what)),
        }
    }

    /// Returns the entries of a map with arbitrary keys.
    fn all_entries(self) -> Entries<'a> {
        let known = self.entries().iter().map(|(key, at)| (key.as_str(), *at));
        Entries {
            document: self.document,
            left: known.collect::<Vec<_>>().into_iter(),
            value: None,
            anchors: Vec::new(),
        }
    }

    /// Returns the entries of a map with these keys, and those of sections at its anchors.
    fn known_entries(self, fields: &'static [&'static str]) -> Result<Entries<'a>, Failure> {
        let anchors = fields
            .iter()
            .filter_map(|name| Some((*name, self.document.section_keys(name)?)));
        let mut anchors: Vec<Anchor<'a>> = anchors
            .map(|(name, keys)| Anchor {
                name,
                keys,
                given: Vec::new(),
            })
            .collect();
        let known = names(fields, &anchors);
        let mut read = Vec::new();
        let mut place = |key: &'a str, at| match anchors.iter_mut().find_map(|anchor| anchor.key(key)) {
            Some((anchor, key)) => anchor.give(key, at),
            None => {
                read.push((key, at));
                Ok(())
            }
        };
        let is_unknown = |(key, _): &&(String, NodeId)| !known.contains(&key.as_str());
        let meant = if self.entries().iter().any(|entry| is_unknown(&entry)) {
            self.document.unknown_keys(self.at, &known)
        } else {
            Vec::new()
        };
        for (key, at) in self.entries() {
            if known.contains(&key.as_str()) {
                place(key, *at)?;
            } else if let Some((key, at)) = meant.iter().find(|(_, of)| of == at) {
                place(key, *at)?;
            }
        }
        Ok(Entries {
            document: self.document,
            left: read.into_iter(),
            value: None,
            anchors,
        })
    }

    fn entries(self) -> &'a [(String, NodeId)] {
        match self.value() {
            ConfigValue::Map(entries) => entries,
            _ => &[],
        }
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value() {
            ConfigValue::Null => visitor.visit_unit(),
            ConfigValue::Bool(value) => visitor.visit_bool(value),
            ConfigValue::Number(text) => match text.parse() {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => visitor.visit_f64(self.number("a number")?),
            },
            ConfigValue::String(text) => visitor.visit_str(text),
            ConfigValue::List(_) => self.deserialize_seq(visitor),
            ConfigValue::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value() {
            ConfigValue::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.expected("true or false")),
        }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u32(self.number(WHOLE)?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u64(self.number(WHOLE)?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_f64(self.number("a number")?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value() {
            ConfigValue::String(text) => visitor.visit_str(text),
            _ => Err(self.expected("a text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value() {
            ConfigValue::List(items) => visitor.visit_seq(Items {
                document: self.document,
                left: items.iter(),
            }),
            _ => Err(self.expected("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value() {
            ConfigValue::Map(_) => visitor.visit_map(self.all_entries()),
            _ => Err(self.expected("a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.value() {
            ConfigValue::Map(_) => visitor.visit_map(self.known_entries(fields)?),
            _ => Err(self.expected("a map")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let ConfigValue::String(text) = self.value() else {
            return Err(self.expected(&format!("one of {}", suggest::list(variants))));
        };
        if !variants.contains(&text) {
            let failure = Failure::new(format!("unknown value `{}`", suggest::shown(text))).at(self.at);
            return Err(failure.with_hint(suggest::value(text, variants)));
        }
        let variant: StrDeserializer<'_, Failure> = text.into_deserializer();
        visitor.visit_enum(variant)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match name {
            FIELD => visitor.visit_seq(FieldParts { value: self, step: 0 }),
            NODE => visitor.visit_u32(self.at.index()),
            TEXT => match self.document.verbatim(self.at) {
                Some(text) => visitor.visit_str(text),
                None => Err(self.expected("a text")),
            },
            WORD_OR_MAP => visitor.visit_seq(WordOrMapParts {
                value: self,
                is_first: true,
            }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf option unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

/// Parts of a [`Field`](crate::Field): its place, `true` if it is null, and its value. A value that cannot be read is
/// reported here and then omitted, so that reading continues.
struct FieldParts<'a> {
    value: Value<'a>,
    step: u8,
}

impl<'de> SeqAccess<'de> for FieldParts<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        self.step += 1;
        match self.step {
            1 => seed
                .deserialize(self.value.at.index().into_deserializer())
                .map(Some),
            2 => {
                let is_null = matches!(self.value.value(), ConfigValue::Null);
                seed.deserialize(is_null.into_deserializer()).map(Some)
            }
            _ => Ok(seed.deserialize(self.value).map_or_else(
                |failure| {
                    failure.report(self.value.document, self.value.at);
                    None
                },
                Some,
            )),
        }
    }
}

/// Parts of a [`WordOrMap`](crate::WordOrMap): `true` if it is a map, and the value.
struct WordOrMapParts<'a> {
    value: Value<'a>,
    is_first: bool,
}

impl<'de> SeqAccess<'de> for WordOrMapParts<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        if std::mem::take(&mut self.is_first) {
            let is_map = matches!(self.value.value(), ConfigValue::Map(_));
            return seed.deserialize(is_map.into_deserializer()).map(Some);
        }
        seed.deserialize(self.value).map(Some)
    }
}

struct Items<'a> {
    document: &'a dyn ConfigDocument,
    left: std::slice::Iter<'a, NodeId>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(at) = self.left.next().copied() else {
            return Ok(None);
        };
        let document = self.document;
        seed.deserialize(Value { document, at }).map(Some)
    }
}

struct Entries<'a> {
    document: &'a dyn ConfigDocument,
    left: std::vec::IntoIter<(&'a str, NodeId)>,
    value: Option<NodeId>,
    anchors: Vec<Anchor<'a>>,
}

impl<'de> Deserializer<'de> for Entries<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let key = match self.left.next() {
            Some((key, value)) => {
                self.value = Some(value);
                key
            }
            // The anchors come after all other entries; each is still in the list when its value is requested.
            None => match self.anchors.last() {
                Some(anchor) => anchor.name,
                None => return Ok(None),
            },
        };
        let key: StrDeserializer<'_, Failure> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        if let Some(at) = self.value.take() {
            let document = self.document;
            return seed.deserialize(Value { document, at });
        }
        let anchor = self.anchors.pop();
        let anchor = anchor.ok_or_else(|| Failure::new("a value was asked for before its key".to_owned()))?;
        seed.deserialize(MapDeserializer::new(anchor.given.into_iter()))
    }
}
