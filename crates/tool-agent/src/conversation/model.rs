use raw_json::RawJson;
use tool_core::BoxFuture;

use crate::{AssistantTurn, ModelToolChoice, ProviderFormat, ToolDefinitions};

/// A language model, behind whichever provider.
pub trait Model: Send + Sync {
    /// Returns the format of its provider.
    fn format(&self) -> ProviderFormat;

    /// Asks for the next turn.
    ///
    /// # Cancellation
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    /// If the provider does not answer, refuses, or answers with something else.
    fn turn<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<AssistantTurn, ModelError>>;
}

/// Request for the next turn of a model.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// Instructions for the whole conversation.
    pub system: Option<&'a str>,
    /// History, in the format of the provider.
    pub messages: &'a [RawJson],
    /// Tools that the model may call.
    pub definitions: &'a ToolDefinitions,
    /// Rule for whether it calls them.
    pub choice: &'a ModelToolChoice,
    /// Receiver of the text, piece by piece as it arrives.
    pub on_text: &'a (dyn Fn(&str) + Send + Sync),
}

/// Error of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model does not answer: {message}")]
#[non_exhaustive]
pub struct ModelError {
    /// Problem: a fragment without secrets.
    pub message: String,
}

impl ModelError {
    /// Creates an error.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl std::fmt::Debug for ModelRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelRequest")
            .field("n_messages", &self.messages.len())
            .field("choice", &self.choice)
            .finish_non_exhaustive()
    }
}
