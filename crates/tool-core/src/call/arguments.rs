use std::sync::OnceLock;

use bytes::Bytes;
use raw_json::{JsonKind, JsonLimits, RawJson};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ErrorKind, ToolError};

/// Arguments of a call: an object as the caller wrote it, parsed at most once and digested at most once.
///
/// An object with a duplicate key at any depth is refused, since a policy and an upstream could read different values
/// from it.
#[derive(Debug)]
pub struct Arguments {
    raw: RawJson,
    given: bool,
    parsed: OnceLock<Value>,
    digest: OnceLock<[u8; 32]>,
}

impl Arguments {
    /// Parses arguments from text.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if the text is not a JSON object, is nested deeper than 128 levels or has a
    /// duplicate key.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, ToolError> {
        Self::checked(RawJson::parse_within(text, JsonLimits::STRICT))
    }

    /// Checks arguments that were cut out of a message.
    ///
    /// # Errors
    /// The errors of [`Arguments::parse`].
    pub fn from_raw(raw: RawJson) -> Result<Self, ToolError> {
        Self::checked(raw_json::validate(raw.as_str(), JsonLimits::STRICT).map(|()| raw))
    }

    /// Creates arguments from a value whose message was checked as a whole within [`JsonLimits::STRICT`]. They are
    /// not checked again.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if the value is not an object.
    pub fn from_checked(raw: RawJson) -> Result<Self, ToolError> {
        Self::checked(Ok(raw))
    }

    /// Returns the arguments of a call without any: the empty object.
    #[must_use]
    pub fn none() -> Self {
        Self {
            given: false,
            ..Self::unchecked(RawJson::object())
        }
    }

    /// Creates arguments from a tree. A tree needs no check.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if the value is not an object.
    pub fn from_value(value: Value) -> Result<Self, ToolError> {
        let arguments = Self::checked(Ok(RawJson::from(&value)))?;
        let _ = arguments.parsed.set(value);
        Ok(arguments)
    }

    /// Creates arguments from a value that serde serializes as an object: a struct or a map.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if the value is not serialized as an object, or has a key twice.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{Arguments, serde_json::json};
    ///
    /// let arguments = Arguments::from_serialize(&json!({"city": "Oslo"}))?;
    /// assert_eq!(arguments.raw().as_str(), r#"{"city":"Oslo"}"#);
    /// # Ok::<(), tool_core::ToolError>(())
    /// ```
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        let raw = RawJson::from_serialize(value);
        let checked = raw.and_then(|raw| raw_json::validate(raw.as_str(), JsonLimits::STRICT).map(|()| raw));
        Self::checked(checked)
    }

    fn checked(raw: Result<RawJson, raw_json::JsonError>) -> Result<Self, ToolError> {
        let raw = raw.map_err(|error| {
            ToolError::new(
                ErrorKind::InvalidArguments,
                format!("the arguments are not usable: {error}"),
            )
            .with_source(error)
        })?;
        if raw.kind() == JsonKind::Object {
            Ok(Self::unchecked(raw))
        } else {
            Err(ToolError::new(
                ErrorKind::InvalidArguments,
                "the arguments must be a JSON object",
            ))
        }
    }

    fn unchecked(raw: RawJson) -> Self {
        Self {
            raw,
            given: true,
            parsed: OnceLock::new(),
            digest: OnceLock::new(),
        }
    }

    /// Returns `true` if the caller sent arguments, even if only the empty object. Protocols may distinguish that
    /// from no arguments.
    #[must_use]
    pub fn are_given(&self) -> bool {
        self.given
    }

    /// Returns the text as the caller wrote it.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Returns the arguments as a tree, parsed on first use. Use it for decisions, not for relaying: it rounds
    /// numbers that no double represents.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.parsed.get_or_init(|| {
            self.raw
                .to()
                .unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
        })
    }

    /// Deserializes the arguments.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if they have another shape.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let invalid = |error| format!("the arguments have another shape: {error}");
        let typed = self.raw.to();
        typed.map_err(|error| ToolError::new(ErrorKind::InvalidArguments, invalid(error)))
    }

    /// Returns the SHA-256 of the canonical form (RFC 8785), computed on first use. Arguments with equal meaning have
    /// equal digests.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| raw_json::digest(&self.raw))
    }
}
