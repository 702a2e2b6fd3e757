use raw_json::{JsonKind, RawJson};
use serde::de::DeserializeOwned;

use crate::{ClientError, ClientErrorKind};

/// Result of a tool, with the text that the server sent.
///
/// A tool that fails reports so in its result, for the model to read: see [`is_error`](Self::is_error).
///
/// # Examples
///
/// ```
/// use mcp_client::{RawJson, ToolResult};
///
/// let raw = RawJson::parse(r#"{"content":[{"type":"text","text":"21.50"}],"structuredContent":{"celsius":21.50}}"#)?;
/// let result = ToolResult::from(raw);
/// assert!(!result.is_error());
/// assert_eq!(result.text(), "21.50");
///
/// #[derive(serde::Deserialize)]
/// struct Weather {
///     celsius: f64,
/// }
/// assert_eq!(result.structured::<Weather>()?.celsius, 21.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    raw: RawJson,
}

/// Maximum length of a tool's text in an error, in characters.
const MAX_EXCERPT: usize = 1000;

impl From<RawJson> for ToolResult {
    /// Reads the result of `tools/call`.
    fn from(raw: RawJson) -> Self {
        Self { raw }
    }
}

impl ToolResult {
    /// `true` if the tool reports that it failed (`isError`). The description of the failure is in the content.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.raw
            .get("isError")
            .is_some_and(|flag| flag.as_str() == "true")
    }

    /// Content blocks as the server wrote them: texts, images, resources.
    #[must_use]
    pub fn content(&self) -> Vec<RawJson> {
        let content = self.raw.get("content").unwrap_or_default();
        content.items().collect()
    }

    /// Texts of all text blocks, each on lines of its own. Empty if there are none.
    #[must_use]
    pub fn text(&self) -> String {
        let content = self.content();
        let is_text = |block: &&RawJson| block.get("type").is_some_and(|kind| kind.as_str() == r#""text""#);
        let texts = content.iter().filter(is_text);
        let texts: Vec<String> = texts.filter_map(|block| block.get("text")?.string()).collect();
        texts.join("\n")
    }

    /// Deserializes the structured content (`structuredContent`). A tool without an output schema usually has none, and
    /// returns [`text`](Self::text) only.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::ToolFailed`] if the tool reports that it failed, and [`ClientErrorKind::Protocol`] if
    /// the result has no structured content or the content does not fit the type.
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        if self.is_error() {
            let text = self.text().trim().chars().take(MAX_EXCERPT).collect();
            return Err(ClientError::new(ClientErrorKind::ToolFailed(text)).with_sent(true));
        }
        let unusable = |detail: &str| ClientError::protocol(detail).with_sent(true);
        let content = self.raw.get("structuredContent");
        let content = content.ok_or_else(|| unusable("the result of the tool has no structured content"))?;
        content.to().map_err(|error| {
            unusable("the structured content of the tool does not fit its type").with_source(error)
        })
    }

    /// The whole result as the server wrote it.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Returns the whole result as the server wrote it.
    #[must_use]
    pub fn into_raw(self) -> RawJson {
        self.raw
    }

    /// `true` if the server has made the call a task: in the modern era it says so, in the legacy era the result
    /// describes the task in place of content.
    pub(crate) fn is_task(&self) -> bool {
        let of_kind = |kind: RawJson| kind.as_str() == r#""task""#;
        let is_object = |task: RawJson| task.kind() == JsonKind::Object;
        self.raw.get("resultType").is_some_and(of_kind)
            || self.raw.get("content").is_none() && self.raw.get("task").is_some_and(is_object)
    }
}
