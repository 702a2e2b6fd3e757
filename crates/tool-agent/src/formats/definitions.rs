use std::{collections::HashMap, fmt, sync::Arc};

use raw_json::RawJson;
use serde_json::Value;
use tool_core::Tool;

use super::{FormatError, ProviderFormat, ProviderNames, dialect, member, object, strict, string, text};

/// Definition of a tool, before it has a format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Name.
    pub name: Arc<str>,
    /// Purpose, by which a model chooses.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: RawJson,
}

impl ToolSpec {
    /// Creates a definition.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>, input_schema: RawJson) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
        }
    }
}

impl From<&Tool> for ToolSpec {
    fn from(tool: &Tool) -> Self {
        let descriptor = tool.descriptor();
        Self::new(
            tool.name().clone(),
            descriptor.description.clone(),
            descriptor.input_schema.clone(),
        )
    }
}

/// Options of definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefinitionOptions {
    /// `true` to ask for arguments that satisfy their schema ("strict mode"), where the provider has it and the schema allows it.
    pub strict: bool,
}

impl DefinitionOptions {
    /// Sets whether strict mode is asked for.
    #[must_use]
    pub const fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }
}

/// Note about something that a format cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatNote {
    /// Tool that it concerns.
    pub tool: Arc<str>,
    /// JSON Pointer into its input schema; empty for the tool as a whole.
    pub pointer: String,
    /// Consequence.
    pub kind: NoteKind,
    /// Description: a fragment.
    pub message: String,
}

/// Consequence of something that a format cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// It was left out. The arguments are still checked against it when the tool is called.
    Removed,
    /// It was written in another way.
    Changed,
    /// It is there, and the provider ignores it.
    Ignored,
    /// Strict mode is off for the tool.
    NotStrict,
}

/// Definitions of tools in the format of a provider.
///
/// # Examples
/// ```
/// use tool_agent::{DefinitionOptions, ProviderFormat, RawJson, ToolDefinitions, ToolSpec, serde_json::json};
///
/// let schema = RawJson::from(json!({"type": "object", "properties": {"city": {"type": "string"}}}));
/// let tools = [ToolSpec::new("weather.now", "The weather in a city.", schema)];
/// let definitions = ToolDefinitions::new(ProviderFormat::Anthropic, &tools, DefinitionOptions::default());
/// assert!(definitions.tools().as_str().contains(r#""name":"weather_now""#));
/// assert_eq!(definitions.names().tool("weather_now").map(|name| &**name), Some("weather.now"));
/// ```
#[derive(Debug, Clone)]
pub struct ToolDefinitions {
    format: ProviderFormat,
    tools: RawJson,
    names: ProviderNames,
    notes: Vec<FormatNote>,
    /// Schemas of the tools in strict mode, whose optional arguments come back as null.
    strict: HashMap<Arc<str>, RawJson>,
}

impl ToolDefinitions {
    /// Writes definitions in this format.
    #[must_use]
    pub fn new(format: ProviderFormat, tools: &[ToolSpec], options: DefinitionOptions) -> Self {
        let names = ProviderNames::new(format, tools.iter().map(|tool| &tool.name));
        let mut made = Self {
            format,
            tools: RawJson::null(),
            names,
            notes: Vec::new(),
            strict: HashMap::new(),
        };
        let definitions: Vec<_> = tools.iter().map(|tool| made.definition(tool, options)).collect();
        made.tools = match format {
            ProviderFormat::Gemini if definitions.is_empty() => RawJson::from_items(&[]),
            ProviderFormat::Gemini => {
                let declarations = RawJson::from_items(&definitions);
                RawJson::from_items(&[object(&[("functionDeclarations", declarations)])])
            }
            _ => RawJson::from_items(&definitions),
        };
        made
    }

    fn definition(&mut self, tool: &ToolSpec, options: DefinitionOptions) -> RawJson {
        let provided = self.names.of_tool(&tool.name).cloned();
        let name = text(provided.as_deref().unwrap_or(&tool.name));
        let description = text(&tool.description);
        let mut notes = Vec::new();
        let has_strict = matches!(
            self.format,
            ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses
        );
        let mut strict = None;
        if options.strict && !has_strict {
            let reason = match self.format {
                // It refuses a request whose strict tools are too large together, and does not say where the limit is.
                ProviderFormat::Anthropic => "strict mode of this provider is not used",
                _ => "the provider has no strict mode",
            };
            notes.push((String::new(), NoteKind::NotStrict, reason.to_owned()));
        }
        if options.strict && has_strict {
            match strict::strict(&tool.input_schema, &mut notes) {
                Ok(schema) => {
                    self.strict.insert(tool.name.clone(), tool.input_schema.clone());
                    strict = Some(schema);
                }
                Err((pointer, reason)) => {
                    notes.clear();
                    notes.push((pointer, NoteKind::NotStrict, reason));
                }
            }
        }
        let is_strict = strict.is_some();
        let schema = strict.unwrap_or_else(|| dialect::adapt(self.format, &tool.input_schema, &mut notes));
        let notes = notes.into_iter();
        self.notes
            .extend(notes.map(|(pointer, kind, message)| FormatNote {
                tool: tool.name.clone(),
                pointer,
                kind,
                message,
            }));
        match self.format {
            ProviderFormat::OpenAiChat | ProviderFormat::Ollama => {
                let mut function = vec![
                    ("name", name),
                    ("description", description),
                    ("parameters", schema),
                ];
                if is_strict {
                    function.push(("strict", RawJson::from(true)));
                }
                object(&[("type", text("function")), ("function", object(&function))])
            }
            ProviderFormat::OpenAiResponses => object(&[
                ("type", text("function")),
                ("name", name),
                ("description", description),
                ("parameters", schema),
                // Its default is strict mode.
                ("strict", RawJson::from(is_strict)),
            ]),
            ProviderFormat::Anthropic => object(&[
                ("name", name),
                ("description", description),
                ("input_schema", schema),
            ]),
            ProviderFormat::Gemini => object(&[
                ("name", name),
                ("description", description),
                ("parametersJsonSchema", schema),
            ]),
        }
    }

    /// Reads definitions in the format of a provider, as a program has them that was written for its SDK. Tools that the provider
    /// runs itself are passed over.
    ///
    /// # Errors
    /// If `tools` is not a list of definitions.
    pub fn read(format: ProviderFormat, tools: &RawJson) -> Result<Vec<ToolSpec>, FormatError> {
        let mut specs = Vec::new();
        let mut take = |definition: &RawJson, schema: &[&str]| {
            let name =
                string(definition, "name").ok_or_else(|| FormatError::new("a definition has no `name`"))?;
            let schema = schema.iter().find_map(|key| member(definition, key));
            let any = || object(&[("type", text("object"))]);
            let description = string(definition, "description").unwrap_or_default();
            specs.push(ToolSpec::new(name, description, schema.unwrap_or_else(any)));
            Ok(())
        };
        for tool in tools.items() {
            match format {
                ProviderFormat::OpenAiChat | ProviderFormat::Ollama => {
                    if let Some(function) = tool.get("function") {
                        take(&function, &["parameters"])?;
                    }
                }
                ProviderFormat::OpenAiResponses => {
                    if string(&tool, "type").as_deref() == Some("function") {
                        take(&tool, &["parameters"])?;
                    }
                }
                ProviderFormat::Anthropic => {
                    if tool.get("input_schema").is_some() {
                        take(&tool, &["input_schema"])?;
                    }
                }
                ProviderFormat::Gemini => {
                    let declarations = tool
                        .get("functionDeclarations")
                        .or_else(|| tool.get("function_declarations"));
                    for declaration in declarations.iter().flat_map(RawJson::items) {
                        let keys = ["parametersJsonSchema", "parameters_json_schema", "parameters"];
                        take(&declaration, &keys)?;
                    }
                }
            }
        }
        Ok(specs)
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> ProviderFormat {
        self.format
    }

    /// Returns the value of the member `tools` of a request.
    #[must_use]
    pub fn tools(&self) -> &RawJson {
        &self.tools
    }

    /// Returns the names of the tools at the provider.
    #[must_use]
    pub fn names(&self) -> &ProviderNames {
        &self.names
    }

    /// Returns what the format cannot express.
    #[must_use]
    pub fn notes(&self) -> &[FormatNote] {
        &self.notes
    }

    /// Returns arguments as the tool expects them: without the nulls by which strict mode writes that an argument is absent.
    pub(crate) fn arguments(&self, tool: &str, arguments: RawJson) -> RawJson {
        let schema = self.strict.get(tool);
        let schema = schema.filter(|_| arguments.as_str().contains("null"));
        let Some(schema) = schema.and_then(|schema| schema.to::<Value>().ok()) else {
            return arguments;
        };
        strict::without_nulls(&schema, &schema, &arguments).unwrap_or(arguments)
    }
}

impl fmt::Display for FormatNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.tool)?;
        if !self.pointer.is_empty() {
            write!(f, " at `{}`", self.pointer)?;
        }
        let kind = match self.kind {
            NoteKind::Removed => "removed",
            NoteKind::Changed => "changed",
            NoteKind::Ignored => "ignored by the provider",
            NoteKind::NotStrict => "not strict",
        };
        write!(f, ": {kind}: {}", self.message)
    }
}
