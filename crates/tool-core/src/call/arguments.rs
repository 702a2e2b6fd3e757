use std::sync::OnceLock;

use bytes::Bytes;
use raw_json::{JsonKind, JsonLimits, RawJson};
use serde_json::Value;

use crate::{ErrorKind, ToolError};

/// The arguments of a call: an object as the caller wrote it, parsed at most once and digested at most once.
///
/// An object with a duplicate key at any depth is refused, since a policy and an upstream could read different
/// values from it.
#[derive(Debug)]
pub struct Arguments {
    raw: RawJson,
    given: bool,
    parsed: OnceLock<Value>,
    digest: OnceLock<[u8; 32]>,
}

impl Arguments {
    /// Takes the arguments as text.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] when the text is no JSON object, is nested deeper than 128 levels or has a
    /// duplicate key.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, ToolError> {
        Self::checked(RawJson::parse_within(text, JsonLimits::STRICT))
    }

    /// Takes arguments that were cut out of a message.
    ///
    /// # Errors
    /// As [`Arguments::parse`].
    pub fn from_raw(raw: RawJson) -> Result<Self, ToolError> {
        Self::checked(raw_json::validate(raw.as_str(), JsonLimits::STRICT).map(|()| raw))
    }

    /// Takes arguments cut out of a message that was checked as a whole within [`JsonLimits::STRICT`], so that they are
    /// not checked again.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] when the value is no object.
    pub fn from_checked(raw: RawJson) -> Result<Self, ToolError> {
        Self::checked(Ok(raw))
    }

    /// No arguments at all: the empty object.
    #[must_use]
    pub fn none() -> Self {
        Self {
            given: false,
            ..Self::unchecked(RawJson::object())
        }
    }

    /// Takes arguments that were built here and so need no check.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] when the value is no object.
    pub fn from_value(value: Value) -> Result<Self, ToolError> {
        let arguments = Self::checked(Ok(RawJson::from(&value)))?;
        let _ = arguments.parsed.set(value);
        Ok(arguments)
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

    /// Whether the caller gave any, if only the empty object: protocols may tell that from nothing.
    #[must_use]
    pub fn are_given(&self) -> bool {
        self.given
    }

    /// The text as the caller wrote it.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The arguments as a tree, parsed when first asked for. For judging, not for relaying: numbers beyond a double
    /// are rounded in it.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.parsed.get_or_init(|| {
            self.raw
                .to()
                .unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
        })
    }

    /// The SHA-256 of the canonical form, computed when first asked for: equal for arguments that mean the same.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| raw_json::digest(&self.raw))
    }
}
