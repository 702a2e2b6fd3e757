use mcp_wire::Era;
use raw_json::{JsonKind, RawJson};
use serde::Serialize;

use super::toolset::BoxError;
use crate::Answer;

/// Result of a tool: a text, a value, or a whole result in MCP's own shape.
///
/// Everything that converts into one is a result of a closure: texts, [`serde_json::Value`] and [`Answer`].
///
/// # Examples
///
/// ```
/// use mcp_server::{Answer, ToolOutput, serde_json::json};
/// use raw_json::RawJson;
///
/// // For the model.
/// let text = ToolOutput::from("sunny");
/// // For the model as text, and for programs as structured content.
/// let value = ToolOutput::from(json!({"sky": "sunny", "degrees": 21}));
/// // Anything else that MCP has, such as images.
/// let image = RawJson::parse(r#"{"content":[{"type":"image","data":"R0lGODlh","mimeType":"image/gif"}]}"#)?;
/// let whole = ToolOutput::from(Answer::untyped(image));
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text(String),
    Value(RawJson),
    Whole(Answer),
}

/// Text block of content.
#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl ToolOutput {
    /// Creates a result with a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self(Kind::Text(text.into()))
    }

    /// Creates a result with a value: as text for the model, and as structured content for programs. Up to 2025-11-25
    /// structured content is an object, so other values reach such clients as text only.
    ///
    /// # Errors
    /// Fails if the value cannot be written as JSON, for example a map whose keys are no strings.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, BoxError> {
        Ok(Self(Kind::Value(RawJson::from_serialize(value)?)))
    }

    /// Renders the result for a client of this era.
    pub(super) fn into_answer(self, era: Era) -> Answer {
        match self.0 {
            Kind::Text(text) => answer(&text, &[]),
            Kind::Value(value) => {
                let string = value.string();
                let text = string.as_deref().unwrap_or(value.as_str());
                if value.kind() == JsonKind::Object || (era == Era::Modern && string.is_none()) {
                    return answer(text, &[("structuredContent", value.clone())]);
                }
                answer(text, &[])
            }
            Kind::Whole(answer) => answer,
        }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<serde_json::Value> for ToolOutput {
    fn from(value: serde_json::Value) -> Self {
        Self(Kind::Value(value.into()))
    }
}

impl From<Answer> for ToolOutput {
    fn from(whole: Answer) -> Self {
        Self(Kind::Whole(whole))
    }
}

/// Renders the failure of a tool, which the model reads.
pub(super) fn failure(text: &str) -> Answer {
    answer(text, &[("isError", RawJson::from(true))])
}

fn answer(text: &str, more: &[(&str, RawJson)]) -> Answer {
    let content = RawJson::from_serialize(&[Text { r#type: "text", text }]).expect("text can be written");
    let mut members = vec![("content", content)];
    members.extend_from_slice(more);
    Answer::untyped(RawJson::from_members(&members))
}
