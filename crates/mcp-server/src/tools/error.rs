use std::error::Error;

use super::toolset::BoxError;

/// Reason why a tool cannot be added to [`Tools`](crate::Tools).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddToolError {
    /// Another tool has the same name.
    #[error("there is a tool `{0}` already: each needs a name of its own")]
    DuplicateName(String),
    /// The name is empty.
    #[error("a tool needs a name")]
    NoName,
    /// A part of the definition is not what MCP requires of it.
    #[error("`{part}` of the tool `{tool}` {problem}")]
    InvalidDefinition {
        /// Name of the tool.
        tool: String,
        /// Member of the definition, such as `inputSchema`.
        part: String,
        /// Description of the problem.
        problem: String,
    },
    /// The validator refuses the input schema.
    #[error("the input schema of the tool `{tool}` cannot be used")]
    InvalidSchema {
        /// Name of the tool.
        tool: String,
        /// Reason of the validator.
        #[source]
        source: BoxError,
    },
}

/// Writes an error and its sources in one line.
pub(super) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors have the text of their source in their own.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
