use std::{fmt::Write, sync::Arc, time::Duration};

use raw_json::{JsonKind, RawJson};

/// Maximum size of the text for a language model, in bytes. Models read a few hundred words.
const MAX_TEXT: usize = 4 * 1024;
/// Maximum depth of nested schemas whose parameters are read.
const MAX_DEPTH: usize = 6;
/// Maximum number of parameters of a tool that are read.
const MAX_PARAMETERS: usize = 256;

/// Tool as the index reads it.
///
/// # Examples
/// ```
/// use tool_search::{ToolDocument, raw_json::RawJson};
///
/// let mut tool = ToolDocument::new("get_weather");
/// tool.description = "The weather at a place.".to_owned();
/// let schema = r#"{"type":"object","properties":{"city":{"type":"string","description":"Name of the city"}}}"#;
/// tool.add_schema(&RawJson::parse(schema)?);
/// assert_eq!(tool.parameters[0].name, "city");
/// # Ok::<(), tool_search::raw_json::JsonError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolDocument {
    /// Name by which the tool is called.
    pub name: Arc<str>,
    /// Name for people.
    pub title: String,
    /// Description.
    pub description: String,
    /// Parameters, those of nested objects included.
    pub parameters: Vec<ToolParameter>,
    /// Name of the server or source.
    pub server: Option<Arc<str>>,
    /// Description of the server or source.
    pub server_description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Capabilities.
    pub capabilities: Vec<String>,
    /// Other names by which people know the tool.
    pub aliases: Vec<String>,
    /// Sentences for which the tool is the answer.
    pub examples: Vec<String>,
    /// Permissions that a caller needs.
    pub required_permissions: Vec<String>,
    /// Agreed share of successful calls, in percent.
    pub sla: Option<f64>,
    /// Declared latency.
    pub latency: Option<Duration>,
}

/// Parameter of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolParameter {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
}

impl ToolDocument {
    /// Creates a document with nothing but a name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the text that represents the tool for a language model: the server, the words of the name, the description and
    /// the names of the parameters.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(server) = &self.server {
            let _ = write!(text, "{server}: ");
        }
        let name = self.name.replace(['_', '-', '.', '/'], " ");
        let _ = write!(text, "{} {}", name.trim(), self.title);
        let _ = write!(text, ". {}", self.description);
        let names: Vec<&str> = self.parameters.iter().map(|parameter| &*parameter.name).collect();
        if !names.is_empty() {
            let _ = write!(text, " Parameters: {}.", names.join(", "));
        }
        for sentence in self.aliases.iter().chain(&self.examples) {
            let _ = write!(text, " {sentence}");
        }
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text
    }

    /// Adds the parameters that a JSON Schema of arguments declares. References are not followed.
    pub fn add_schema(&mut self, schema: &RawJson) {
        self.read_schema(schema, 0);
    }

    fn read_schema(&mut self, schema: &RawJson, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for (key, value) in schema.parts() {
            match &*key {
                "properties" => {
                    for (name, property) in value.parts() {
                        if self.parameters.len() >= MAX_PARAMETERS {
                            return;
                        }
                        let mut members = property.parts();
                        let description = members.find(|(key, _)| key == "description");
                        let description = description.and_then(|(_, text)| text.text());
                        self.parameters.push(ToolParameter {
                            name: name.into_owned(),
                            description: description.unwrap_or_default().into_owned(),
                        });
                        self.read_schema(&property.to_raw(), depth + 1);
                    }
                }
                "items" if value.kind() == JsonKind::Object => self.read_schema(&value.to_raw(), depth + 1),
                "anyOf" | "oneOf" | "allOf" => {
                    for branch in value.to_raw().items() {
                        self.read_schema(&branch, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }
}
