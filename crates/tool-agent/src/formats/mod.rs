//! Formats of providers, both ways.

mod choice;
mod definitions;
mod dialect;
mod names;
mod results;
mod stream;
mod strict;
mod turn;

use raw_json::RawJson;

pub use self::{
    choice::ModelToolChoice,
    definitions::{DefinitionOptions, FormatNote, NoteKind, ToolDefinitions, ToolSpec},
    names::ProviderNames,
    results::{CallOutput, ContentPart, ResultMessages},
    stream::TurnStream,
    turn::{AssistantTurn, ModelCall, StopReason, TokenUsage},
};

/// Format of a provider of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderFormat {
    /// Chat Completions of OpenAI: `POST /v1/chat/completions`.
    OpenAiChat,
    /// Responses of OpenAI: `POST /v1/responses`.
    OpenAiResponses,
    /// Messages of Anthropic: `POST /v1/messages`.
    Anthropic,
    /// Gemini API of Google: `POST /v1beta/models/{model}:generateContent`.
    Gemini,
    /// Chat of Ollama: `POST /api/chat`.
    Ollama,
}

impl ProviderFormat {
    /// All formats.
    pub const ALL: &'static [Self] = &[
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
    ];

    /// Returns the name in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the format of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.as_str() == name)
    }
}

/// Error of a message that is not in the format of its provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message of the provider cannot be read: {problem}")]
#[non_exhaustive]
pub struct FormatError {
    /// Problem: a fragment without content of the message.
    pub problem: String,
}

impl FormatError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
        }
    }
}

/// Makes an object.
fn object(members: &[(&str, RawJson)]) -> RawJson {
    RawJson::from_members(members)
}

/// Makes a text.
fn text(value: &str) -> RawJson {
    RawJson::from(value)
}

/// Returns a member that is not null.
fn member(value: &RawJson, key: &str) -> Option<RawJson> {
    value
        .get(key)
        .filter(|member| member.kind() != raw_json::JsonKind::Null)
}

/// Returns a member that is a text.
fn string(value: &RawJson, key: &str) -> Option<String> {
    value.get(key)?.string()
}
