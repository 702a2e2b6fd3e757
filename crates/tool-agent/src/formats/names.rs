use std::{collections::HashMap, sync::Arc};

use raw_json::hex;
use sha2::{Digest, Sha256};

use super::ProviderFormat;

/// Names of tools in the alphabet of a provider, and back.
///
/// A name that fits stays as it is. In another one, each character that is not allowed becomes `_`; if it is too long, or another tool
/// would have the same one, it ends with eight hexadecimal digits of its SHA-256. So a name does not depend on the other tools, unless
/// two of them would have the same one.
#[derive(Debug, Clone, Default)]
pub struct ProviderNames {
    by_tool: HashMap<Arc<str>, Arc<str>>,
    by_provider: HashMap<Arc<str>, Arc<str>>,
}

/// Number of digits of a hash at the end of a name.
const N_DIGITS: usize = 8;

impl ProviderNames {
    /// Maps these names of tools.
    #[must_use]
    pub fn new<'a>(format: ProviderFormat, tools: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let mut names = Self::default();
        let tools: Vec<&Arc<str>> = tools.into_iter().collect();
        let short = |tool: &str| shortened(format, tool, "");
        let mut wanted: HashMap<String, usize> = HashMap::new();
        for tool in &tools {
            *wanted.entry(short(tool)).or_default() += 1;
        }
        for tool in tools {
            let name = short(tool);
            let is_own = *name == **tool;
            let is_whole = name.len() == allowed(format, tool).len();
            let is_alone = wanted.get(&name) == Some(&1);
            let name = match is_own || is_whole && is_alone {
                true => name,
                false => shortened(format, tool, &digest(tool)),
            };
            names.put(tool, name.into());
        }
        names
    }

    fn put(&mut self, tool: &Arc<str>, name: Arc<str>) {
        self.by_provider.insert(name.clone(), tool.clone());
        self.by_tool.insert(tool.clone(), name);
    }

    /// Returns the name that the provider gets.
    #[must_use]
    pub fn of_tool(&self, tool: &str) -> Option<&Arc<str>> {
        self.by_tool.get(tool)
    }

    /// Returns the name of the tool that a provider calls by this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<str>> {
        self.by_provider.get(name)
    }
}

fn max_length(format: ProviderFormat) -> usize {
    match format {
        ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses | ProviderFormat::Gemini => 64,
        ProviderFormat::Anthropic => 128,
        // None is stated.
        ProviderFormat::Ollama => usize::MAX,
    }
}

fn is_allowed(format: ProviderFormat, c: char) -> bool {
    match format {
        ProviderFormat::Gemini => c.is_ascii_alphanumeric() || "_-.:".contains(c),
        ProviderFormat::Ollama => true,
        _ => c.is_ascii_alphanumeric() || "_-".contains(c),
    }
}

/// Returns a name with allowed characters alone.
fn allowed(format: ProviderFormat, name: &str) -> String {
    let mut allowed: String = name
        .chars()
        .map(|c| if is_allowed(format, c) { c } else { '_' })
        .collect();
    if format == ProviderFormat::Gemini && !allowed.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    {
        allowed.insert(0, '_');
    }
    allowed
}

/// Returns a name that is short enough, with this end.
fn shortened(format: ProviderFormat, name: &str, end: &str) -> String {
    let mut short = allowed(format, name);
    let separator = if end.is_empty() { "" } else { "_" };
    // The name is in ASCII.
    short.truncate(max_length(format).saturating_sub(end.len() + separator.len()));
    short + separator + end
}

fn digest(name: &str) -> String {
    let mut digest = hex(&Sha256::digest(name));
    digest.truncate(N_DIGITS);
    digest
}
