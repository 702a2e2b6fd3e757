use std::sync::Arc;

use raw_json::RawJson;

use super::{FormatError, ProviderFormat, ProviderNames, object, string, text};

/// Rule for whether a model calls tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It calls none.
    None,
    /// It calls at least one.
    Required,
    /// It calls this tool.
    Tool(Arc<str>),
}

impl ModelToolChoice {
    /// Returns the member of a request that states the choice, with its key. `None` if the format has no such member, as that of
    /// Ollama, or if the tool has no name there.
    #[must_use]
    pub fn to_provider(
        &self,
        format: ProviderFormat,
        names: &ProviderNames,
    ) -> Option<(&'static str, RawJson)> {
        let name = match self {
            Self::Tool(tool) => Some(text(names.of_tool(tool)?)),
            _ => None,
        };
        match format {
            ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses => {
                let choice = match (self, name) {
                    (Self::None, _) => text("none"),
                    (Self::Required, _) => text("required"),
                    (Self::Tool(_), Some(name)) if format == ProviderFormat::OpenAiChat => object(&[
                        ("type", text("function")),
                        ("function", object(&[("name", name)])),
                    ]),
                    (Self::Tool(_), Some(name)) => object(&[("type", text("function")), ("name", name)]),
                    _ => text("auto"),
                };
                Some(("tool_choice", choice))
            }
            ProviderFormat::Anthropic => {
                let choice = match (self, name) {
                    (Self::None, _) => object(&[("type", text("none"))]),
                    (Self::Required, _) => object(&[("type", text("any"))]),
                    (Self::Tool(_), Some(name)) => object(&[("type", text("tool")), ("name", name)]),
                    _ => object(&[("type", text("auto"))]),
                };
                Some(("tool_choice", choice))
            }
            ProviderFormat::Gemini => {
                let mode = |mode: &str| ("mode", text(mode));
                let config = match (self, name) {
                    (Self::None, _) => object(&[mode("NONE")]),
                    (Self::Required, _) => object(&[mode("ANY")]),
                    (Self::Tool(_), Some(name)) => object(&[
                        mode("ANY"),
                        ("allowedFunctionNames", RawJson::from_items(&[name])),
                    ]),
                    _ => object(&[mode("AUTO")]),
                };
                Some(("toolConfig", object(&[("functionCallingConfig", config)])))
            }
            ProviderFormat::Ollama => None,
        }
    }

    /// Reads the choice of a request in the format of a provider: the value of the member that [`ModelToolChoice::to_provider`] makes.
    ///
    /// # Errors
    /// If it is none, or names a tool that is not there.
    pub fn from_provider(
        format: ProviderFormat,
        choice: &RawJson,
        names: &ProviderNames,
    ) -> Result<Self, FormatError> {
        let tool = |name: Option<String>| {
            let known = name.as_deref().and_then(|name| names.tool(name));
            known
                .map(|tool| Self::Tool(tool.clone()))
                .ok_or_else(|| FormatError::new("the tool choice names no known tool"))
        };
        let unknown = || FormatError::new("the tool choice is unknown");
        match format {
            ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses => {
                match choice.string().as_deref() {
                    Some("auto") => Ok(Self::Auto),
                    Some("none") => Ok(Self::None),
                    Some("required") => Ok(Self::Required),
                    Some(_) => Err(unknown()),
                    None => {
                        let function = choice.get("function");
                        tool(string(function.as_ref().unwrap_or(choice), "name"))
                    }
                }
            }
            ProviderFormat::Anthropic => match string(choice, "type").as_deref() {
                Some("auto") => Ok(Self::Auto),
                Some("none") => Ok(Self::None),
                Some("any") => Ok(Self::Required),
                Some("tool") => tool(string(choice, "name")),
                _ => Err(unknown()),
            },
            ProviderFormat::Gemini => {
                let config = choice.get("functionCallingConfig").ok_or_else(unknown)?;
                let allowed: Vec<_> = config
                    .get("allowedFunctionNames")
                    .map(|names| names.items().filter_map(|name| name.string()).collect())
                    .unwrap_or_default();
                match (string(&config, "mode").as_deref(), allowed.as_slice()) {
                    (Some("AUTO"), _) => Ok(Self::Auto),
                    (Some("NONE"), _) => Ok(Self::None),
                    (Some("ANY"), []) => Ok(Self::Required),
                    (Some("ANY"), [name]) => tool(Some(name.clone())),
                    _ => Err(unknown()),
                }
            }
            ProviderFormat::Ollama => Err(FormatError::new("Ollama has no tool choice")),
        }
    }
}
