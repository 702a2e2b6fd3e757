use raw_json::{JsonKind, RawJson};
use serde::Serialize;

use super::AddToolError;

/// Definition of a tool, as `tools/list` shows it.
///
/// # Examples
///
/// ```
/// use mcp_server::{ToolDefinition, serde_json::json};
///
/// let definition = ToolDefinition::new("forecast")
///     .title("Weather forecast")
///     .description("Returns the weather of the next days.")
///     .input_schema(json!({
///         "type": "object",
///         "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
///         "required": ["city"],
///     }))
///     .annotations(json!({"readOnlyHint": true}));
/// ```
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    name: String,
    members: Vec<(String, Part)>,
}

/// Value of a member, or the reason why it cannot be written as JSON.
type Part = Result<RawJson, String>;

const INPUT_SCHEMA: &str = "inputSchema";

impl ToolDefinition {
    /// Creates the definition of a tool that takes any object as its arguments.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            members: vec![(
                INPUT_SCHEMA.to_owned(),
                Ok(RawJson::from_members(&[("type", RawJson::from("object"))])),
            )],
        }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        self.member("title", title)
    }

    /// Sets the description, by which models choose the tool.
    #[must_use]
    pub fn description(self, description: &str) -> Self {
        self.member("description", description)
    }

    /// Sets the JSON Schema of the arguments: a `serde_json::Value`, a [`RawJson`], the text of a schema, or the schema that a
    /// crate such as `schemars` derives from a type. Its `type` must be `object`.
    #[must_use]
    pub fn input_schema(self, schema: impl Serialize) -> Self {
        self.part(INPUT_SCHEMA, parse_schema(&schema))
    }

    /// Sets the JSON Schema of the structured content, in the same forms. Results are not checked against it.
    #[must_use]
    pub fn output_schema(self, schema: impl Serialize) -> Self {
        self.part("outputSchema", parse_schema(&schema))
    }

    /// Sets the hints about the behavior of the tool, such as `readOnlyHint`.
    #[must_use]
    pub fn annotations(self, annotations: impl Serialize) -> Self {
        self.member("annotations", annotations)
    }

    /// Sets any other member of the definition, such as `icons` or `_meta`.
    #[must_use]
    pub fn member(self, name: &str, value: impl Serialize) -> Self {
        let value = RawJson::from_serialize(&value).map_err(|error| error.to_string());
        self.part(name, value)
    }

    fn part(mut self, name: &str, value: Part) -> Self {
        self.members.retain(|(known, _)| known != name);
        self.members.push((name.to_owned(), value));
        self
    }

    /// Checks the definition, and writes it.
    pub(super) fn build(self) -> Result<ListedTool, AddToolError> {
        if self.name.is_empty() {
            return Err(AddToolError::NoName);
        }
        let mut members = vec![("name", RawJson::from(self.name.as_str()))];
        for (part, value) in &self.members {
            let value = value.clone().map_err(|problem| self.invalid(part, &problem))?;
            if part == INPUT_SCHEMA && !is_object_schema(&value) {
                return Err(self.invalid(part, "must be an object whose `type` is `object`"));
            }
            members.push((part.as_str(), value));
        }
        let definition = RawJson::from_members(&members);
        let input_schema = definition.get(INPUT_SCHEMA).unwrap_or(RawJson::object());
        Ok(ListedTool {
            name: self.name,
            definition,
            input_schema,
        })
    }

    fn invalid(&self, part: &str, problem: &str) -> AddToolError {
        AddToolError::InvalidDefinition {
            tool: self.name.clone(),
            part: part.to_owned(),
            problem: problem.to_owned(),
        }
    }
}

/// Definition that has passed its checks.
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) definition: RawJson,
    pub(super) input_schema: RawJson,
}

/// Reads a schema, which may be given as its text.
fn parse_schema(schema: &impl Serialize) -> Part {
    let unusable = |problem: &dyn std::fmt::Display| format!("cannot be used: {problem}");
    let schema = RawJson::from_serialize(schema).map_err(|error| unusable(&error))?;
    match schema.string() {
        Some(text) => RawJson::parse(text).map_err(|error| unusable(&error)),
        None => Ok(schema),
    }
}

fn is_object_schema(schema: &RawJson) -> bool {
    let kind = schema.get("type");
    schema.kind() == JsonKind::Object && kind.and_then(|kind| kind.string()).as_deref() == Some("object")
}
