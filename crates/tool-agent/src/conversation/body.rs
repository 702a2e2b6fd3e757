//! Bodies of requests to providers.

use raw_json::{JsonKind, RawJson};

use super::ModelRequest;
use crate::{ModelToolChoice, ProviderFormat};

impl ModelRequest<'_> {
    /// Writes the body of the request. `max_tokens` bounds the turn; Anthropic needs a bound.
    #[must_use]
    pub fn body(&self, model: &str, max_tokens: Option<u32>, is_stream: bool) -> RawJson {
        let format = self.definitions.format();
        let text = RawJson::from;
        let messages = RawJson::from_items(self.messages);
        let tokens = max_tokens.map(|tokens| RawJson::from(u64::from(tokens)));
        let mut body = match format {
            ProviderFormat::Gemini => Vec::new(),
            _ => vec![("model", text(model)), ("stream", RawJson::from(is_stream))],
        };
        match format {
            ProviderFormat::OpenAiChat | ProviderFormat::Ollama => {
                let system = self.system.map(|system| {
                    RawJson::from_members(&[("role", text("system")), ("content", text(system))])
                });
                let messages: Vec<_> = system.into_iter().chain(self.messages.iter().cloned()).collect();
                body.push(("messages", RawJson::from_items(&messages)));
                if format == ProviderFormat::OpenAiChat {
                    body.extend(tokens.map(|tokens| ("max_completion_tokens", tokens)));
                    if is_stream {
                        let usage = RawJson::from_members(&[("include_usage", RawJson::from(true))]);
                        body.push(("stream_options", usage));
                    }
                } else {
                    body.extend(
                        tokens.map(|tokens| ("options", RawJson::from_members(&[("num_predict", tokens)]))),
                    );
                }
            }
            ProviderFormat::OpenAiResponses => {
                body.push(("input", messages));
                body.extend(self.system.map(|system| ("instructions", text(system))));
                body.extend(tokens.map(|tokens| ("max_output_tokens", tokens)));
                // The history is here, so that the provider need not keep it; its reasoning comes along, encrypted.
                body.push(("store", RawJson::from(false)));
                let encrypted = text("reasoning.encrypted_content");
                body.push(("include", RawJson::from_items(&[encrypted])));
            }
            ProviderFormat::Anthropic => {
                body.push(("messages", messages));
                body.extend(self.system.map(|system| ("system", text(system))));
                let usual = || RawJson::from(u64::from(Self::DEFAULT_MAX_TOKENS));
                body.push(("max_tokens", tokens.unwrap_or_else(usual)));
            }
            ProviderFormat::Gemini => {
                body.push(("contents", messages));
                body.extend(self.system.map(|system| {
                    let part = RawJson::from_members(&[("text", text(system))]);
                    let parts = RawJson::from_items(&[part]);
                    ("systemInstruction", RawJson::from_members(&[("parts", parts)]))
                }));
                body.extend(tokens.map(|tokens| {
                    let config = RawJson::from_members(&[("maxOutputTokens", tokens)]);
                    ("generationConfig", config)
                }));
            }
        }
        let tools = self.definitions.tools();
        let has_tools = tools.kind() == JsonKind::Array && tools.items().next().is_some();
        let choice = self.choice.to_provider(format, self.definitions.names());
        // A format without a choice has no way to say that no tool may be called but to offer none.
        let is_offered = choice.is_some() || *self.choice != ModelToolChoice::None;
        if has_tools && is_offered {
            body.push(("tools", tools.clone()));
            body.extend(choice.filter(|_| *self.choice != ModelToolChoice::Auto));
        }
        RawJson::from_members(&body)
    }

    /// Maximum number of tokens of a turn of Anthropic without a bound of its own.
    pub const DEFAULT_MAX_TOKENS: u32 = 8192;

    /// Returns the path of the request below the address of the provider.
    #[must_use]
    pub fn path(&self, model: &str, is_stream: bool) -> String {
        match (self.definitions.format(), is_stream) {
            (ProviderFormat::OpenAiChat, _) => "/v1/chat/completions".to_owned(),
            (ProviderFormat::OpenAiResponses, _) => "/v1/responses".to_owned(),
            (ProviderFormat::Anthropic, _) => "/v1/messages".to_owned(),
            (ProviderFormat::Gemini, false) => format!("/v1beta/models/{model}:generateContent"),
            (ProviderFormat::Gemini, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
            (ProviderFormat::Ollama, _) => "/api/chat".to_owned(),
        }
    }
}
