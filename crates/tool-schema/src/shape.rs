//! What most schemas ask for, checked on the text itself.

use memchr::memmem;
use raw_json::{JsonKind, Parts, RawJson, TextPart};
use serde_json::{Map, Value};

/// The part of a schema that can be checked without making a tree of the value: kinds, properties, and lists of words.
///
/// It never refuses. What it takes fits; of anything else it knows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    /// Those that are taken: see [`bit`].
    kinds: u8,
    /// The words that a string must be one of.
    words: Option<Vec<String>>,
    members: Option<Members>,
}

/// What an object must have in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Members {
    /// Each with its shape, if it has one. Their number bounds what a check can cost.
    known: Vec<(String, Option<Shape>)>,
    /// A bit for each of those that must be there.
    required: u64,
}

/// How many properties a schema may have here: one bit for each.
const MOST: usize = 64;
/// Keywords that never refuse a value: `format` is a remark here, see [`crate`].
const REMARKS: [&str; 11] = [
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
];
/// A whole number: every draft takes one for an integer that is written with digits alone.
const INTEGER: u8 = 1 << 7;

fn bit(kind: JsonKind) -> u8 {
    match kind {
        JsonKind::Null => 1,
        JsonKind::Bool => 1 << 1,
        JsonKind::Number => 1 << 2 | INTEGER,
        JsonKind::String => 1 << 3,
        JsonKind::Array => 1 << 4,
        JsonKind::Object => 1 << 5,
    }
}

impl Shape {
    /// The shape of a schema that asks for nothing else.
    pub(crate) fn of(schema: &Value) -> Option<Self> {
        let schema = schema.as_object()?;
        let mut shape = Self {
            kinds: kinds(schema.get("type")?)?,
            ..Self::default()
        };
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => {}
                "enum" => shape.words = Some(words(value)?),
                "properties" | "required" | "additionalProperties" => {
                    shape.members = Some(Members::of(schema)?);
                }
                // Those that begin so are nobody's but the author's.
                remark if remark.starts_with("x-") || REMARKS.contains(&remark) => {}
                _ => return None,
            }
        }
        // What else the list holds is not known here.
        let is_of_words = shape.words.is_none() || shape.kinds == bit(JsonKind::String);
        is_of_words.then_some(shape)
    }

    /// Whether a value fits for sure. Its text has no key twice.
    pub(crate) fn surely_fits(&self, value: &RawJson) -> bool {
        self.takes(value.kind(), value.as_str(), || value.parts())
    }

    fn takes_part(&self, value: &TextPart<'_>) -> bool {
        self.takes(value.kind(), value.as_str(), || value.parts())
    }

    fn takes<'a>(&self, kind: JsonKind, text: &str, parts: impl FnOnce() -> Parts<'a>) -> bool {
        match kind {
            JsonKind::Null | JsonKind::Bool => self.kinds & bit(kind) != 0,
            JsonKind::Number => self.kinds & number(text) != 0,
            JsonKind::String => self.kinds & bit(kind) != 0 && self.takes_string(text),
            JsonKind::Array => false,
            JsonKind::Object => match &self.members {
                Some(members) if self.kinds & bit(kind) != 0 => members.take(parts()),
                _ => false,
            },
        }
    }

    fn takes_string(&self, text: &str) -> bool {
        let inner = text.get(1..text.len() - 1).unwrap_or_default();
        let is_escaped = inner.contains('\\');
        match &self.words {
            Some(words) => !is_escaped && words.iter().any(|word| word == inner),
            // A surrogate may stand alone, and then there is no text.
            None => !is_escaped || memmem::find(inner.as_bytes(), b"\\u").is_none(),
        }
    }
}

/// What a number is for sure; nothing for one that may be too large to be read.
fn number(text: &str) -> u8 {
    const LONGEST: usize = 32;
    if text.len() > LONGEST || text.contains(['e', 'E']) {
        0
    } else if text.contains('.') {
        bit(JsonKind::Number) & !INTEGER
    } else {
        bit(JsonKind::Number)
    }
}

impl Members {
    fn of(schema: &Map<String, Value>) -> Option<Self> {
        let mut members = Self::default();
        match schema.get("additionalProperties") {
            // Others may be there, or must not: one that is there is looked at by the schema itself.
            None | Some(Value::Bool(_)) => {}
            Some(_) => return None,
        }
        if let Some(properties) = schema.get("properties") {
            let properties = properties.as_object().filter(|known| known.len() <= MOST)?;
            let known = properties
                .iter()
                .map(|(name, schema)| (name.clone(), Shape::of(schema)));
            members.known = known.collect();
        }
        if let Some(required) = schema.get("required") {
            for name in required.as_array()? {
                let name = name.as_str()?;
                let place = members.known.iter().position(|(known, _)| known == name)?;
                members.required |= 1 << place;
            }
        }
        Some(members)
    }

    fn take(&self, parts: Parts<'_>) -> bool {
        let mut missing = self.required;
        for (key, value) in parts {
            let place = self.known.iter().position(|(known, _)| *known == key);
            let Some((place, shape)) = place.and_then(|place| Some((place, self.known[place].1.as_ref()?)))
            else {
                return false;
            };
            if !shape.takes_part(&value) {
                return false;
            }
            missing &= !(1 << place);
        }
        missing == 0
    }
}

/// The kinds that a schema names.
fn kinds(value: &Value) -> Option<u8> {
    match value {
        Value::Array(names) => names
            .iter()
            .try_fold(0, |kinds, name| Some(kinds | kind(name.as_str()?)?)),
        name => kind(name.as_str()?),
    }
}

fn kind(name: &str) -> Option<u8> {
    Some(match name {
        "null" => bit(JsonKind::Null),
        "boolean" => bit(JsonKind::Bool),
        "number" => bit(JsonKind::Number),
        "integer" => INTEGER,
        "string" => bit(JsonKind::String),
        "array" => bit(JsonKind::Array),
        "object" => bit(JsonKind::Object),
        _ => return None,
    })
}

/// A list of words alone.
fn words(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array().filter(|words| words.len() <= MOST)?;
    words.iter().map(|word| Some(word.as_str()?.to_owned())).collect()
}
