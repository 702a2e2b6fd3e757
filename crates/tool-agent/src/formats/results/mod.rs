//! Results of calls, for models.

mod part;
mod read;
mod write;

use raw_json::{JsonKind, RawJson};
use tool_core::{Body, Reply, ToolError};

pub use self::part::ContentPart;
use super::{ModelCall, object, string, text};

/// Result of a tool call, for the model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallOutput {
    /// Id of the call; `None` where the format has none, and the order of the results tells.
    pub call: Option<String>,
    /// Name of the tool, as the model wrote it.
    pub name: String,
    /// Content, in its order.
    pub content: Vec<ContentPart>,
    /// Structured result, beside or instead of the content.
    pub structured: Option<RawJson>,
    /// `true` if the call failed.
    pub is_error: bool,
}

/// Messages with the results of the calls of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ResultMessages {
    /// Messages to append to the history, in this order.
    pub messages: Vec<RawJson>,
    /// Notes about parts that the format cannot express: the name of the tool, and a fragment.
    pub notes: Vec<(String, String)>,
}

impl CallOutput {
    /// Makes the result of a call that was answered.
    #[must_use]
    pub fn of_reply(call: &ModelCall, reply: &Reply) -> Self {
        let content = reply
            .raw()
            .get("content")
            .filter(|content| content.kind() == JsonKind::Array && matches!(reply.body, Body::Result(_)));
        let parts = match &content {
            Some(content) => content.items().map(ContentPart::of_block).collect(),
            None => vec![ContentPart::Text(reply.text())],
        };
        Self {
            call: call.given_id(),
            name: call.name.clone(),
            content: parts,
            structured: reply
                .structured()
                .filter(|_| content.is_some() || is_tree(reply.raw())),
            is_error: reply.is_error,
        }
    }

    /// Makes the result of a call that failed: with the words for models, and without internals.
    #[must_use]
    pub fn of_error(call: &ModelCall, error: &ToolError) -> Self {
        let message = format!("{}: {}. {}", error.kind(), error.message(), error.advice());
        Self {
            call: call.given_id(),
            name: call.name.clone(),
            content: vec![ContentPart::Text(message)],
            structured: None,
            is_error: true,
        }
    }

    /// Cuts the texts of a result to this number of bytes together, and says so. A structured result that is longer becomes a text.
    #[must_use]
    pub fn cut(mut self, max_bytes: usize) -> Self {
        let mut left = max_bytes;
        let has_text = self
            .content
            .iter()
            .any(|part| matches!(part, ContentPart::Text(_)));
        if let Some(structured) = self.structured.take_if(|structured| structured.len() > max_bytes)
            && !has_text
        {
            self.content
                .push(ContentPart::Text(structured.as_str().to_owned()));
        }
        for part in &mut self.content {
            let ContentPart::Text(words) = part else { continue };
            if words.len() <= left {
                left -= words.len();
                continue;
            }
            let end = (0..=left)
                .rev()
                .find(|end| words.is_char_boundary(*end))
                .unwrap_or_default();
            let n_cut = words.len() - end;
            words.truncate(end);
            words.push_str(&format!("\n[cut: {n_cut} more bytes were left out]"));
            left = 0;
        }
        self
    }

    /// Writes the result for a store.
    pub(crate) fn to_json(&self) -> RawJson {
        let parts: Vec<_> = self.content.iter().map(ContentPart::to_json).collect();
        let mut members = vec![
            ("name", text(&self.name)),
            ("content", RawJson::from_items(&parts)),
            ("is_error", RawJson::from(self.is_error)),
        ];
        members.extend(self.call.as_deref().map(|call| ("call", text(call))));
        members.extend(
            self.structured
                .clone()
                .map(|structured| ("structured", structured)),
        );
        object(&members)
    }

    /// Reads a stored result.
    pub(crate) fn from_json(stored: &RawJson) -> Option<Self> {
        Some(Self {
            call: string(stored, "call"),
            name: string(stored, "name")?,
            content: stored
                .get("content")?
                .items()
                .map(ContentPart::of_block)
                .collect(),
            structured: stored.get("structured"),
            is_error: stored.get("is_error").is_some_and(|is| is.as_str() == "true"),
        })
    }
}

/// Beginning of the text of a failed call, in formats that have no mark for it.
const ERROR: &str = "Error: ";

/// Returns `true` for JSON that has a structure of its own.
fn is_tree(value: &RawJson) -> bool {
    matches!(value.kind(), JsonKind::Object | JsonKind::Array)
}
