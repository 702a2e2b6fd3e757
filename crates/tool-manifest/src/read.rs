use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor, value::StrDeserializer},
    forward_to_deserialize_any,
};

use crate::{
    Diagnostic,
    field::{FIELD, NODE, TEXT},
    node::{Document, Kind, NodeId},
    report::Report,
    suggest,
};

/// How a document is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) document: &'a Document,
    pub(crate) report: &'a Report,
    /// Whether unknown keys are only warned of: in files that are written for other programs.
    pub(crate) lenient: bool,
}

impl Reading<'_> {
    /// Reads a value as a file type. What is wrong is reported; nothing comes back only if the value as a whole is
    /// not what is expected.
    pub(crate) fn read<'de, T: Deserialize<'de>>(self, at: NodeId) -> Option<T> {
        let value = Value { reading: self, at };
        match T::deserialize(value) {
            Ok(read) => Some(read),
            Err(failure) => {
                self.fail(failure, at);
                None
            }
        }
    }

    fn fail(self, failure: Failure, at: NodeId) {
        if !self.report.is_full() {
            self.report.push(failure.into_diagnostic(self.document, at));
        }
    }
}

/// Words that switch approvals off in the files of MCP clients.
const APPROVALS: [&str; 4] = ["autoApprove", "alwaysAllow", "autoApproved", "trust"];

/// What VS Code asks its user for. Only a reference to it matters, which is an error of its own.
const INPUTS: &str = "inputs";

const WHOLE: &str = "a whole number from 0 on";

/// A value of a document, as serde wants it.
#[derive(Clone, Copy)]
struct Value<'a> {
    reading: Reading<'a>,
    at: NodeId,
}

/// Why a value cannot be read. The place is that of the innermost value unless it is given.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    at: Option<NodeId>,
}

impl Failure {
    fn new(message: String) -> Self {
        Self {
            message,
            hint: None,
            at: None,
        }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn into_diagnostic(self, document: &Document, at: NodeId) -> Diagnostic {
        let location = document.location(self.at.unwrap_or(at));
        let problem = Diagnostic::error(self.message).with_location(Some(location));
        match self.hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    /// A second line of the message is the hint.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.split_once('\n') {
            Some((message, hint)) => Self::new(message.to_owned()).with_hint(hint),
            None => Self::new(message),
        }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is given twice, in two spellings"))
    }
}

impl<'a> Value<'a> {
    fn document(self) -> &'a Document {
        self.reading.document
    }

    fn kind(self) -> &'a Kind {
        self.document().kind(self.at)
    }

    fn expected(self, what: &str) -> Failure {
        let found = self.document().describe(self.at);
        let failure = Failure {
            at: Some(self.at),
            ..Failure::new(format!("expected {what}, found {found}"))
        };
        match (self.kind(), what) {
            (Kind::String(text), "true or false") => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" => failure.with_hint("in YAML 1.2 this is a text; write `true`"),
                "no" | "off" | "n" => failure.with_hint("in YAML 1.2 this is a text; write `false`"),
                _ => failure,
            },
            (Kind::Number(_) | Kind::Bool(_), "a text") => {
                let written = self.document().verbatim(self.at).unwrap_or_default();
                failure.with_hint(format!("put it in quotation marks: `\"{written}\"`"))
            }
            (Kind::String(text), "a list") if !text.contains('\n') => {
                failure.with_hint("put it in brackets: `[..]`")
            }
            (Kind::String(text), WHOLE | "a number") if text.parse::<f64>().is_ok() => {
                failure.with_hint("remove the quotation marks")
            }
            _ => failure,
        }
    }

    fn number<T: std::str::FromStr>(self, what: &str) -> Result<T, Failure> {
        match self.kind() {
            Kind::Number(text) => text.parse().map_err(|_| self.expected(what)),
            _ => Err(self.expected(what)),
        }
    }

    fn has(self, key: &str) -> bool {
        self.document().get(self.at, key).is_some()
    }

    fn map_access(self, fields: Option<&[&'static str]>) -> Entries<'a> {
        let entries = self.document().entries(self.at);
        let mut known = Vec::with_capacity(entries.len());
        if let (Some(fields), true) = (fields, self.reading.lenient) {
            self.ignore(entries, fields);
        }
        for (key, value) in entries {
            match fields {
                Some(fields) if !fields.contains(&key.as_str()) => {
                    self.unknown(key, *value, fields);
                    // Read as what was meant, so that what is wrong in it shows in the same run, and nobody is told
                    // that what was meant is missing.
                    if !self.reading.lenient
                        && !self.reading.report.is_full()
                        && let Some(meant) = suggest::meant(key, fields)
                        && !self.has(meant)
                    {
                        known.push((meant, *value));
                    }
                }
                _ => known.push((key.as_str(), *value)),
            }
        }
        Entries {
            reading: self.reading,
            left: known.into_iter(),
            value: None,
        }
    }

    fn unknown(self, key: &str, value: NodeId, fields: &[&str]) {
        if self.reading.lenient || self.reading.report.is_full() {
            return;
        }
        let location = Some(self.document().key_location(value));
        let message = format!("unknown key `{}`", suggest::shown(key));
        let problem = Diagnostic::error(message).with_hint(suggest::key(key, fields));
        self.reading.report.push(problem.with_location(location));
    }

    /// Says which keys of another program's file are ignored: in one warning, for there may be many.
    fn ignore(self, entries: &[(String, NodeId)], fields: &[&str]) {
        let unknown = || {
            let entries = entries.iter().map(|(key, value)| (key.as_str(), *value));
            entries.filter(|(key, _)| !fields.contains(key) && *key != INPUTS)
        };
        let warn = |message: String, at: NodeId, hint: &str| {
            let problem = Diagnostic::warning(message).with_location(Some(self.document().key_location(at)));
            self.reading.report.push(if hint.is_empty() {
                problem
            } else {
                problem.with_hint(hint)
            });
        };
        for (key, at) in unknown().filter(|(key, _)| APPROVALS.contains(key)) {
            warn(
                format!("`{key}` is ignored: it would approve calls without asking"),
                at,
                "what may be called is decided by the policy of this gateway",
            );
        }
        let others: Vec<(&str, NodeId)> = unknown().filter(|(key, _)| !APPROVALS.contains(key)).collect();
        let names: Vec<&str> = others.iter().map(|(key, _)| *key).collect();
        match others.as_slice() {
            [] => {}
            [(key, at)] => warn(format!("the key `{}` is ignored", suggest::shown(key)), *at, ""),
            [(_, at), ..] => warn(format!("the keys {} are ignored", suggest::list(&names)), *at, ""),
        }
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Number(text) => match text.parse() {
                Ok(value) => visitor.visit_i64(value),
                Err(_) => visitor.visit_f64(self.number("a number")?),
            },
            Kind::String(text) => visitor.visit_str(text),
            Kind::List(_) => self.deserialize_seq(visitor),
            Kind::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.kind() {
            Kind::Bool(value) => visitor.visit_bool(*value),
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
        match self.kind() {
            Kind::String(text) => visitor.visit_str(text),
            _ => Err(self.expected("a text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.kind() {
            Kind::List(items) => visitor.visit_seq(Items {
                reading: self.reading,
                left: items.iter(),
            }),
            _ => Err(self.expected("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.kind() {
            Kind::Map(_) => visitor.visit_map(self.map_access(None)),
            _ => Err(self.expected("a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.kind() {
            Kind::Map(_) => visitor.visit_map(self.map_access(Some(fields))),
            _ => Err(self.expected("a map")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let Kind::String(text) = self.kind() else {
            return Err(self.expected(&format!("one of {}", suggest::list(variants))));
        };
        if !variants.contains(&text.as_str()) {
            return Err(Failure {
                at: Some(self.at),
                ..Failure::new(format!("unknown value `{}`", suggest::shown(text)))
                    .with_hint(suggest::value(text, variants))
            });
        }
        let variant: StrDeserializer<'_, Failure> = text.as_str().into_deserializer();
        visitor.visit_enum(variant)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match name {
            FIELD => visitor.visit_seq(FieldParts { value: self, step: 0 }),
            NODE => visitor.visit_u32(self.at.0),
            TEXT => match self.document().verbatim(self.at) {
                Some(text) => visitor.visit_str(text),
                None => Err(self.expected("a text")),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf option unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

/// The parts of a [`Field`](crate::field::Field): its place, whether it is null, and its value. A value that cannot
/// be read is reported here and then is no part, so that reading goes on.
struct FieldParts<'a> {
    value: Value<'a>,
    step: u8,
}

impl<'de> SeqAccess<'de> for FieldParts<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        self.step += 1;
        match self.step {
            1 => seed.deserialize(self.value.at.0.into_deserializer()).map(Some),
            2 => {
                let is_null = matches!(self.value.kind(), Kind::Null);
                seed.deserialize(is_null.into_deserializer()).map(Some)
            }
            _ => Ok(seed.deserialize(self.value).map_or_else(
                |failure| {
                    self.value.reading.fail(failure, self.value.at);
                    None
                },
                Some,
            )),
        }
    }
}

struct Items<'a> {
    reading: Reading<'a>,
    left: std::slice::Iter<'a, NodeId>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(at) = self.left.next().copied() else {
            return Ok(None);
        };
        let reading = self.reading;
        seed.deserialize(Value { reading, at }).map(Some)
    }
}

struct Entries<'a> {
    reading: Reading<'a>,
    left: std::vec::IntoIter<(&'a str, NodeId)>,
    value: Option<NodeId>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, value)) = self.left.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let key: StrDeserializer<'_, Failure> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        let at = self
            .value
            .take()
            .ok_or_else(|| Failure::new("a value was asked for before its key".to_owned()))?;
        let reading = self.reading;
        seed.deserialize(Value { reading, at })
    }
}
