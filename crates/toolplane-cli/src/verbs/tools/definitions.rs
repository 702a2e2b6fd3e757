//! `toolplane tools definitions`: definitions of tools in the format of a provider.

use std::sync::Arc;

use toolplane::{
    Toolplane,
    agent::{DefinitionOptions, ProviderFormat, ToolDefinitions, ToolSpec},
    core::Tool,
};

use crate::{
    command::{Definitions, Provider},
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Returns the format of a provider.
pub(in crate::verbs) fn format_of(provider: Provider) -> ProviderFormat {
    match provider {
        Provider::Openai => ProviderFormat::OpenAiChat,
        Provider::OpenaiResponses => ProviderFormat::OpenAiResponses,
        Provider::Anthropic => ProviderFormat::Anthropic,
        Provider::Gemini => ProviderFormat::Gemini,
        Provider::Ollama => ProviderFormat::Ollama,
    }
}

/// Prints definitions, and on stderr what the format cannot express.
pub(super) async fn print(
    plane: &Toolplane,
    wanted: &Definitions,
    console: Console,
) -> Result<Exit, CliError> {
    let caller = plane.local_caller();
    let mut tools: Vec<Arc<Tool>> = Vec::new();
    for name in &wanted.tools {
        tools.push(plane.tool(name, &caller).await?);
    }
    if wanted.tools.is_empty() {
        tools = plane.view(&caller).await.tools().to_vec();
    }
    let specs: Vec<_> = tools.iter().map(|tool| ToolSpec::from(&**tool)).collect();
    let options = DefinitionOptions::default().with_strict(wanted.strict);
    let definitions = ToolDefinitions::new(format_of(wanted.provider), &specs, options);
    for note in definitions.notes() {
        console.warn(&text::line(&note.to_string()));
    }
    console.value(definitions.tools(), || definitions.tools().indented())?;
    Ok(Exit::Done)
}
