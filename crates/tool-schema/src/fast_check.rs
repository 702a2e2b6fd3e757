//! Fast check of the common keywords on the text of a value.

use memchr::memmem;
use raw_json::{JsonKind, Parts, RawJson, TextPart};
use serde_json::{Map, Value};

/// Part of a schema that can be checked without parsing the value into a tree: types, properties, and lists of words.
///
/// It never refuses: a value that it accepts fits, and for any other value the result is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FastCheck {
    /// Set of accepted kinds: see [`bit`].
    kinds: u8,
    /// Allowed strings.
    words: Option<Vec<String>>,
    members: Option<Members>,
}

/// Members of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Members {
    /// Known members, each with its check, if there is one. Their number bounds the cost of a check.
    known: Vec<(String, Option<FastCheck>)>,
    /// Bit set of the required ones among them.
    required: u64,
}

/// Maximum number of properties, one bit for each.
const MOST: usize = 64;
/// Annotation keywords, which never refuse a value: `format` is one, see [`crate`].
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
/// Bit of whole numbers. A number that is written with digits alone is an integer in every draft.
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

impl FastCheck {
    /// Returns the check of a schema, or `None` if the schema uses other keywords.
    pub(crate) fn from_schema(schema: &Value) -> Option<Self> {
        let schema = schema.as_object()?;
        let mut check = Self {
            kinds: kinds(schema.get("type")?)?,
            ..Self::default()
        };
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => {}
                "enum" => check.words = Some(words(value)?),
                "properties" | "required" | "additionalProperties" => {
                    check.members = Some(Members::from_schema(schema)?);
                }
                // Keywords with this prefix are extensions without a meaning for validation.
                remark if remark.starts_with("x-") || REMARKS.contains(&remark) => {}
                _ => return None,
            }
        }
        // Other values of the list are not recorded here.
        let is_of_words = check.words.is_none() || check.kinds == bit(JsonKind::String);
        is_of_words.then_some(check)
    }

    /// Returns `true` if a value certainly fits. Its text must not have duplicate keys.
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
            // A lone surrogate is not valid text.
            None => !is_escaped || memmem::find(inner.as_bytes(), b"\\u").is_none(),
        }
    }
}

/// Returns the certain kinds of a number, or no kind for one that may be too large to parse.
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
    fn from_schema(schema: &Map<String, Value>) -> Option<Self> {
        let mut members = Self::default();
        match schema.get("additionalProperties") {
            // Other members may be allowed or not: a value with one is left to the schema itself.
            None | Some(Value::Bool(_)) => {}
            Some(_) => return None,
        }
        if let Some(properties) = schema.get("properties") {
            let properties = properties.as_object().filter(|known| known.len() <= MOST)?;
            let known = properties
                .iter()
                .map(|(name, schema)| (name.clone(), FastCheck::from_schema(schema)));
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
            let Some((place, check)) = place.and_then(|place| Some((place, self.known[place].1.as_ref()?)))
            else {
                return false;
            };
            if !check.takes_part(&value) {
                return false;
            }
            missing &= !(1 << place);
        }
        missing == 0
    }
}

/// Returns the set of kinds that a schema names.
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

/// Returns the elements of a list that consists of strings only.
fn words(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array().filter(|words| words.len() <= MOST)?;
    words.iter().map(|word| Some(word.as_str()?.to_owned())).collect()
}
