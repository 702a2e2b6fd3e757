use raw_json::RawJson;
use serde::Serialize;
use serde_json::Value;

use crate::{ErrorKind, ToolError};

/// Result of a tool: its text as received, and the members that layers add.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Result as the tool sent it.
    pub body: Body,
    /// `true` if the tool itself reports a failure.
    pub is_error: bool,
    is_partial: bool,
    meta: Vec<(&'static str, RawJson)>,
}

/// Shape of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Plain value, such as the JSON of an HTTP API.
    Value(RawJson),
    /// Result in MCP's shape, with `content`, `structuredContent` and others: relayed byte for byte.
    Result(RawJson),
}

impl Reply {
    /// Key in `_meta` of the sandbox in which the code of a tool ran: an object with `level` and `network`.
    pub const SANDBOX_KEY: &'static str = "dev.toolplane/sandbox";

    /// Returns the level of the sandbox in which the code of the tool ran, if it is code that ran.
    #[must_use]
    pub fn sandbox_level(&self) -> Option<String> {
        let (_, sandbox) = self.meta.iter().find(|(key, _)| *key == Self::SANDBOX_KEY)?;
        sandbox.get("level")?.string()
    }

    /// Creates a reply with a plain value.
    #[must_use]
    pub fn value(value: RawJson) -> Self {
        Self {
            body: Body::Value(value),
            is_error: false,
            is_partial: false,
            meta: Vec::new(),
        }
    }

    /// Creates a reply with a plain value that serde serializes.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the value cannot be serialized, for example a map whose keys are no strings.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, ToolError> {
        let value = RawJson::from_serialize(value).map_err(|error| {
            ToolError::new(ErrorKind::Internal, "the result is not serializable").with_source(error)
        })?;
        Ok(Self::value(value))
    }

    /// Creates a reply with a result in MCP's shape.
    #[must_use]
    pub fn result(result: RawJson, is_error: bool) -> Self {
        Self {
            body: Body::Result(result),
            is_error,
            is_partial: false,
            meta: Vec::new(),
        }
    }

    /// Returns the text, whatever its shape.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        match &self.body {
            Body::Value(raw) | Body::Result(raw) => raw,
        }
    }

    /// Returns the part that an output schema describes: the plain value, or the structured content of an MCP result.
    #[must_use]
    pub fn structured(&self) -> Option<RawJson> {
        match &self.body {
            Body::Value(value) => Some(value.clone()),
            Body::Result(result) => result.get("structuredContent"),
        }
    }

    /// Copies the result out of the message that it is a slice of. Call this before storing a reply.
    pub fn detach(&mut self) {
        let (Body::Value(raw) | Body::Result(raw)) = &mut self.body;
        *raw = raw.detached();
    }

    /// Marks the result as partial.
    pub fn mark_partial(&mut self) {
        self.is_partial = true;
    }

    /// Returns `true` if the result is known to be partial.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Adds a member to the reply's `_meta`, which is written at the wire.
    pub fn add_meta(&mut self, key: &'static str, value: RawJson) {
        self.meta.push((key, value));
    }

    /// Removes and returns the members that layers added to `_meta`.
    pub fn take_meta(&mut self) -> Vec<(&'static str, RawJson)> {
        std::mem::take(&mut self.meta)
    }

    /// Returns the members that layers added to `_meta`.
    #[must_use]
    pub fn meta(&self) -> &[(&'static str, RawJson)] {
        &self.meta
    }
}

impl From<RawJson> for Reply {
    fn from(value: RawJson) -> Self {
        Self::value(value)
    }
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self::value(RawJson::from(value))
    }
}
