use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Items, JsonError, JsonErrorKind, JsonLimits, Members, Parts,
    scan::{self, end_of_plain, text_of, unescape},
    value_index::{ValueIndex, ValueIndexBuilder},
};

/// One JSON value as text, exactly as it was written, without surrounding white space.
///
/// Cloning shares the bytes. Two values are equal if their texts are equal.
///
/// # Examples
///
/// ```
/// use raw_json::{JsonKind, RawJson};
///
/// let call = RawJson::parse(r#"{"name": "add", "arguments": {"a": 1e2}}"#)?;
/// let arguments = call.get("arguments").unwrap();
/// assert_eq!(arguments.kind(), JsonKind::Object);
/// // The bytes are those of the message: `1e2` does not become `100.0`.
/// assert_eq!(arguments.as_str(), r#"{"a": 1e2}"#);
/// assert_eq!(call.get("name").unwrap().string().as_deref(), Some("add"));
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Clone)]
pub struct RawJson {
    text: ByteString,
    /// Index of the large values in the text that contains this one, if that text is indexed.
    pub(crate) value_index: Option<Arc<ValueIndex>>,
}

/// Kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of JSON's types")]
pub enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl RawJson {
    /// Parses a text that must be one JSON value, nested at most 128 levels deep.
    ///
    /// # Errors
    /// Returns an error if the bytes are not UTF-8, not JSON, or nested too deep.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        Self::parse_within(text, JsonLimits::RELAY)
    }

    /// Parses a text that must be one JSON value within `limits`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not UTF-8, not JSON, or exceed the limits.
    pub fn parse_within(text: impl Into<Bytes>, limits: JsonLimits) -> Result<Self, JsonError> {
        let text = text_of(text.into())?;
        let mut builder = ValueIndexBuilder::for_length(text.len());
        scan::validate_with(&text, limits, &mut builder)?;
        Ok(Self::from_validated(text, builder).0)
    }

    /// Trims validated text. Also returns the number of bytes trimmed at its beginning.
    pub(crate) fn from_validated(text: ByteString, builder: ValueIndexBuilder) -> (Self, usize) {
        let value_index = builder.build(&text);
        let is_value = |byte: Option<&u8>| byte.is_some_and(|byte| !SPACE.contains(&char::from(*byte)));
        if is_value(text.as_bytes().first()) && is_value(text.as_bytes().last()) {
            return (Self { text, value_index }, 0);
        }
        let before = text.len() - text.trim_start_matches(SPACE).len();
        let text = text.slice_ref(text.trim_matches(SPACE));
        (Self { text, value_index }, before)
    }

    /// Wraps a text without an index.
    pub(crate) const fn plain(text: ByteString) -> Self {
        Self {
            text,
            value_index: None,
        }
    }

    /// Converts a part that serde_json found in `message`. The part shares the bytes of the message.
    ///
    /// A part that does not lie in the message is copied. The depth of nesting is not checked: see
    /// [`validate`](crate::validate).
    #[must_use]
    pub fn from_raw_value(message: &ByteString, part: &RawValue) -> Self {
        let (whole, text) = (
            message.as_bytes().as_ptr_range(),
            part.get().as_bytes().as_ptr_range(),
        );
        if whole.start <= text.start && text.end <= whole.end {
            Self::plain(message.slice_ref(part.get()))
        } else {
            Self::plain(ByteString::from(part.get()))
        }
    }

    /// Copies the text into bytes of its own. For values that are kept for long: a slice would keep the whole message
    /// in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::plain(ByteString::from(self.as_str()))
    }

    /// Serializes a value as JSON.
    ///
    /// # Errors
    /// Returns an error if the value cannot be serialized, such as a map whose keys are not strings.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        match serde_json::to_string(value) {
            Ok(text) => Ok(Self::plain(text.into())),
            Err(error) => Err(JsonError::new(JsonErrorKind::Shape(error.to_string()), 0)),
        }
    }

    /// Wraps text that this crate has written.
    pub(crate) fn from_trusted(text: String) -> Self {
        Self::plain(text.into())
    }

    /// Wraps text that this crate has written, with the index built while writing it.
    pub(crate) fn from_indexed_text(text: String, builder: ValueIndexBuilder) -> Self {
        let text = ByteString::from(text);
        let value_index = builder.build(&text);
        Self { text, value_index }
    }

    /// Returns a slice of this text that is known to be one value.
    pub(crate) fn part(&self, text: &str) -> Self {
        let value_index = self
            .value_index
            .as_ref()
            .filter(|_| ValueIndex::is_large_enough(text));
        Self {
            text: self.text.slice_ref(text),
            value_index: value_index.cloned(),
        }
    }

    /// The value `null`.
    #[must_use]
    pub const fn null() -> Self {
        Self::plain(ByteString::from_static("null"))
    }

    /// An object without members.
    #[must_use]
    pub const fn object() -> Self {
        Self::plain(ByteString::from_static("{}"))
    }

    /// Creates an object with these members, in this order. Of two members with equal keys, the last one counts.
    ///
    /// # Examples
    ///
    /// ```
    /// # use raw_json::RawJson;
    /// let object = RawJson::from_members(&[("name", RawJson::from("add")), ("ok", RawJson::from(true))]);
    /// assert_eq!(object.as_str(), r#"{"name":"add","ok":true}"#);
    /// ```
    #[must_use]
    pub fn from_members(members: &[(&str, Self)]) -> Self {
        Self::object()
            .with_members(members)
            .expect("an empty object is an object")
    }

    /// Creates an array of these items.
    ///
    /// # Examples
    ///
    /// ```
    /// # use raw_json::RawJson;
    /// let array = RawJson::from_items(&[RawJson::from("add"), RawJson::from(true)]);
    /// assert_eq!(array.as_str(), r#"["add",true]"#);
    /// ```
    #[must_use]
    pub fn from_items(items: &[Self]) -> Self {
        let length: usize = items.iter().map(|item| item.len() + 1).sum();
        let mut text = String::with_capacity(length + 2);
        text.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(item.as_str());
        }
        text.push(']');
        Self::from_trusted(text)
    }

    /// Text of the value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Text of the value as shared bytes, which can be written out without a copy.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        self.text.as_bytes()
    }

    /// Length of the text in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a JSON value is never empty")]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Kind of the value.
    #[must_use]
    pub fn kind(&self) -> JsonKind {
        kind_of(&self.text)
    }

    /// Deserializes the text into a type, which may borrow from it.
    ///
    /// # Errors
    /// Returns an error if the value does not fit the type.
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> Result<T, JsonError> {
        serde_json::from_str(&self.text).map_err(|error| {
            // serde_json counts lines and columns, both from one.
            let before = error.line().saturating_sub(1);
            let lines: usize = self.text.split_inclusive('\n').take(before).map(str::len).sum();
            let offset = lines + error.column().saturating_sub(1);
            JsonError::new(JsonErrorKind::Shape(error.to_string()), offset)
        })
    }

    /// Members of an object. Empty for other values.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members(self.parts())
    }

    /// Members of an object as borrowed values, which is cheaper than [`members`](Self::members). Empty for other
    /// values.
    ///
    /// # Examples
    ///
    /// ```
    /// use raw_json::RawJson;
    ///
    /// let result = RawJson::parse(r#"{"content": [], "isError": true}"#)?;
    /// let is_error = result.parts().any(|(key, value)| key == "isError" && value.as_str() == "true");
    /// assert!(is_error);
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    #[must_use]
    pub fn parts(&self) -> Parts<'_> {
        Parts::new(self)
    }

    /// Items of an array. Empty for other values.
    ///
    /// # Examples
    ///
    /// ```
    /// use raw_json::RawJson;
    ///
    /// let list = RawJson::parse("[1e2, [2], \"three\"]")?;
    /// let items: Vec<_> = list.items().map(|item| item.to_string()).collect();
    /// assert_eq!(items, ["1e2", "[2]", "\"three\""]);
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> Items<'_> {
        Items::new(self)
    }

    /// Returns the value of the first member with this key, or `None` if there is none or this is not an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Self> {
        self.as_part().get(key).map(|value| value.to_raw())
    }

    /// Decoded text of a string, or `None` for other values.
    #[must_use]
    pub fn string(&self) -> Option<String> {
        self.text().map(Cow::into_owned)
    }

    /// Decoded text of a string, or `None` for other values. Borrowed unless the string contains escapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use raw_json::RawJson;
    ///
    /// assert_eq!(RawJson::parse(r#""tea""#)?.text().as_deref(), Some("tea"));
    /// assert_eq!(RawJson::parse(r#""\u0074ea""#)?.text().as_deref(), Some("tea"));
    /// assert_eq!(RawJson::from(true).text(), None);
    /// # Ok::<(), raw_json::JsonError>(())
    /// ```
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        unescape(between_quotes(self.as_str())?)
    }
}

/// Returns what is between the quotes of a string; `None` for other values. `strip_prefix` would compare one byte by a call.
pub(crate) fn between_quotes(text: &str) -> Option<&str> {
    match text.as_bytes() {
        [b'"', .., b'"'] => Some(&text[1..text.len() - 1]),
        _ => None,
    }
}

/// Returns the kind of a value by its first byte.
pub(crate) fn kind_of(text: &str) -> JsonKind {
    match text.as_bytes().first() {
        Some(b'{') => JsonKind::Object,
        Some(b'[') => JsonKind::Array,
        Some(b'"') => JsonKind::String,
        Some(b't' | b'f') => JsonKind::Bool,
        Some(b'n') => JsonKind::Null,
        _ => JsonKind::Number,
    }
}

/// Appends a text as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    if end_of_plain(text.as_bytes(), 0) == text.len() {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

pub(crate) const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RawJson {}

impl Hash for RawJson {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads do not belong in logs, so `Debug` shows kind and size only.
        write!(f, "RawJson({:?}, {} bytes)", self.kind(), self.len())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
