//! Reading of outcomes and replies by the program that made the call.

use std::borrow::Cow;

use raw_json::{JsonKind, RawJson};
use serde::de::DeserializeOwned;

use crate::{Body, ErrorKind, Outcome, Reply, ToolError};

impl Outcome {
    /// Returns the reply.
    ///
    /// # Errors
    /// If there is none yet. [`ErrorKind::MissingCapability`] if the tool needs input or has become a task, which a
    /// caller must declare to support; [`ErrorKind::Denied`] if the call waits for a decision; [`ErrorKind::Unavailable`] if the
    /// tool is still at work.
    /// [`ToolError::detail`] has the requests for input, or the details of the decision.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{Outcome, serde_json::json};
    ///
    /// let outcome = Outcome::from(json!({"sky": "clear"}));
    /// let reply = outcome.into_reply()?;
    /// assert_eq!(reply.text(), r#"{"sky":"clear"}"#);
    /// # Ok::<(), tool_core::ToolError>(())
    /// ```
    pub fn into_reply(self) -> Result<Reply, ToolError> {
        let (kind, message, detail) = match self {
            Self::Reply(reply) => return Ok(reply),
            Self::NeedsInput(input) => (
                ErrorKind::MissingCapability,
                "the tool asks for input before it can answer; repeat the call with the answers".to_owned(),
                Some(input.requests),
            ),
            Self::Pending(pending) if pending.is_at_work() => {
                (ErrorKind::Unavailable, pending.advice(), pending.detail)
            }
            Self::Pending(pending) => (
                ErrorKind::Denied,
                format!(
                    "the call waits for a decision: {}; repeat it with the handle `{}`",
                    pending.reason, pending.handle
                ),
                pending.detail,
            ),
            Self::Task(_) => (
                ErrorKind::MissingCapability,
                "the tool continues as a task; ask for the task's result".to_owned(),
                None,
            ),
        };
        let error = ToolError::new(kind, message);
        Err(match detail {
            Some(detail) => error.with_detail(detail),
            None => error,
        })
    }
}

impl Reply {
    /// Deserializes the result: the plain value, or the structured content of an MCP result. A server without
    /// structured content may have answered with one text that is JSON: then that text.
    ///
    /// # Errors
    /// [`ErrorKind::UpstreamError`] with the text of the result if the tool itself reports a failure;
    /// [`ErrorKind::ResultInvalid`] if the result has another shape.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{Reply, serde_json::json};
    ///
    /// let reply = Reply::from(json!([3, 4]));
    /// assert_eq!(reply.json::<(u8, u8)>()?, (3, 4));
    /// # Ok::<(), tool_core::ToolError>(())
    /// ```
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        if self.is_error {
            return Err(ToolError::new(ErrorKind::UpstreamError, self.text()));
        }
        let invalid = |problem: String| ToolError::new(ErrorKind::ResultInvalid, problem);
        let of_another_shape = |error| invalid(format!("the result has another shape: {error}"));
        if let Some(structured) = self.structured() {
            return structured.to().map_err(of_another_shape);
        }
        RawJson::parse(self.text())
            .map_err(|_| invalid("the result is text and no JSON; read it with `Reply::text`".to_owned()))?
            .to()
            .map_err(of_another_shape)
    }

    /// Returns the text of the result: a plain string, the texts of an MCP result joined by line breaks, or JSON in
    /// any other case. Images, audio and resources of an MCP result are left out: see [`Reply::raw`].
    #[must_use]
    pub fn text(&self) -> String {
        match &self.body {
            Body::Value(value) => value.string().unwrap_or_else(|| value.as_str().to_owned()),
            Body::Result(result) => match result.get("content") {
                Some(content) if content.kind() == JsonKind::Array => texts(&content),
                _ => result.as_str().to_owned(),
            },
        }
    }
}

/// Returns the texts among the blocks of MCP content, one in a line.
fn texts(content: &RawJson) -> String {
    let texts: Vec<String> = content
        .items()
        .filter(|block| block.get("type").as_ref().and_then(RawJson::text) == Some(Cow::Borrowed("text")))
        .filter_map(|block| block.get("text")?.string())
        .collect();
    texts.join("\n")
}
