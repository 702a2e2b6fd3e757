//! The agent's side of tools: definitions, calls and results in the formats of providers of language models.
//!
//! | format | provider |
//! |---|---|
//! | [`ProviderFormat::OpenAiChat`] | OpenAI, Chat Completions, and the many services that copy it |
//! | [`ProviderFormat::OpenAiResponses`] | OpenAI, Responses |
//! | [`ProviderFormat::Anthropic`] | Anthropic, Messages |
//! | [`ProviderFormat::Gemini`] | Google, Gemini API (`generateContent`) |
//! | [`ProviderFormat::Ollama`] | Ollama, `/api/chat` |
//!
//! A conversation with tools has four parts, each in the format of its provider: [`ToolDefinitions`] and a [`ModelToolChoice`] go out,
//! an [`AssistantTurn`] with [`ModelCall`]s comes back, whole or by a [`TurnStream`], and [`CallOutput`]s go out again. What a
//! format cannot express is told in [`FormatNote`]s, never dropped silently.
//!
//! An [`Agent`] does all of this in a loop, with whatever [`Model`] and [`AgentTools`], until the model has an answer or a call waits
//! for a decision. Its [`Conversation`] can be stored and go on in another process. A [`RecordLayer`] keeps calls as files, and a
//! [`ReplayLayer`] answers from them.

mod conversation;
mod formats;
mod recording;

pub use raw_json::{self, RawJson};
pub use serde_json;
pub use tool_core;

pub use self::conversation::{
    Agent, AgentEnd, AgentError, AgentLimits, AgentTools, AgentWatch, Conversation, Model, ModelError,
    ModelRequest, ScriptedModel, StateError, WaitingCall,
};
pub use self::formats::{
    AssistantTurn, CallOutput, ContentPart, DefinitionOptions, FormatError, FormatNote, ModelCall,
    ModelToolChoice, NoteKind, ProviderFormat, ProviderNames, ResultMessages, StopReason, TokenUsage,
    ToolDefinitions, ToolSpec, TurnStream,
};
pub use self::recording::{RecordLayer, RecordingError, Replay, ReplayExecutor, ReplayLayer, ReplayMode};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
