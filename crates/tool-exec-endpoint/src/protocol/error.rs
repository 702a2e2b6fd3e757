use raw_json::RawJson;
use tool_core::ErrorKind;

use super::ErrorCategory;

/// Error that an endpoint reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointFailure {
    /// Component that reports it.
    pub name: String,
    /// Category: a word of [`ErrorCategory`], or another one.
    pub category: String,
    /// Text for people.
    pub message: String,
    /// Kind of the error, which toolplane adds to those that it reports. It is only read where it fits the category.
    pub kind: Option<ErrorKind>,
}

/// Text that is no message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ProtocolError {
    reason: String,
}

impl ProtocolError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl EndpointFailure {
    /// Creates an error of a component, with the category of this kind.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            category: ErrorCategory::for_kind(kind).as_str().to_owned(),
            message: message.into(),
            kind: Some(kind),
        }
    }

    /// Returns the member `error` of a reply.
    pub(super) fn to_json(&self) -> RawJson {
        let mut members = vec![
            ("name", RawJson::from(self.name.as_str())),
            ("category", RawJson::from(self.category.as_str())),
            ("message", RawJson::from(self.message.as_str())),
        ];
        members.extend(self.kind.map(|kind| ("kind", RawJson::from(kind.as_str()))));
        RawJson::from_members(&members)
    }

    /// Reads the member `error` of a reply.
    pub(super) fn read(error: &RawJson) -> Result<Self, ProtocolError> {
        let text = |key: &str| {
            let text = error.get(key).and_then(|value| value.string());
            text.ok_or_else(|| ProtocolError::new(format!("its `error` has no text `{key}`")))
        };
        let (name, category, message) = (text("name")?, text("category")?, text("message")?);
        let kind = error.get("kind").and_then(|kind| kind.string());
        let kind = kind.and_then(|kind| ErrorKind::named(&kind));
        let kind = kind.filter(|kind| ErrorCategory::for_kind(*kind).as_str() == category);
        Ok(Self {
            name,
            category,
            message,
            kind,
        })
    }
}
