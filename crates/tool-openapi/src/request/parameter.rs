use serde_json::{Value, json};

use super::place::ParameterPlace;
use crate::document::Document;

/// Parameter of an operation.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: ParameterPlace,
    pub(super) is_required: bool,
    pub(super) description: Option<String>,
    pub(super) is_deprecated: bool,
    /// Schema as the document writes it.
    pub(super) schema: Value,
    pub(super) style: Option<String>,
    pub(super) explode: Option<bool>,
    /// Media type of the value, if it is not serialized by a style.
    pub(super) media: Option<String>,
    /// `true` if reserved characters are to be sent as they are.
    pub(super) keeps_reserved: bool,
}

impl Parameter {
    /// Reads a parameter object.
    pub(super) fn read(document: &Document, value: &Value) -> Result<Self, String> {
        let value = document.resolve(value)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let name = text("name")
            .filter(|name| !name.is_empty())
            .ok_or("a parameter has no `name`")?;
        let shown = name.escape_debug();
        let stated = text("in").ok_or_else(|| format!("the parameter `{shown}` has no `in`"))?;
        let place = ParameterPlace::from_name(stated).ok_or_else(|| {
            format!(
                "the parameter `{shown}` is in `{}`, which is not supported",
                stated.escape_debug()
            )
        })?;
        let is = |key: &str| value.get(key) == Some(&Value::Bool(true));
        let content = value.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.iter().next());
        let schema = content.map_or_else(|| value.get("schema"), |(_, media)| media.get("schema"));
        let mut parameter = Self {
            name: name.to_owned(),
            place,
            is_required: is("required") || place == ParameterPlace::Path,
            description: text("description").map(|text| text.trim().to_owned()),
            is_deprecated: is("deprecated"),
            schema: schema.cloned().unwrap_or_else(|| json!({})),
            style: text("style").map(str::to_owned),
            explode: value.get("explode").and_then(Value::as_bool),
            media: content.map(|(media, _)| media.to_ascii_lowercase()),
            keeps_reserved: is("allowReserved"),
        };
        if let (Some(example), Value::Object(schema)) = (value.get("example"), &mut parameter.schema)
            && !schema.contains_key("$ref")
            && !schema.contains_key("example")
            && !schema.contains_key("examples")
        {
            schema.insert("example".to_owned(), example.clone());
        }
        Ok(parameter)
    }

    /// Returns the style, or the default style of the place.
    pub(super) fn style(&self) -> &str {
        let default = match self.place {
            ParameterPlace::Path | ParameterPlace::Header => "simple",
            ParameterPlace::Query | ParameterPlace::Cookie => "form",
        };
        self.style.as_deref().unwrap_or(default)
    }

    /// Returns `true` if each element of a list is a parameter of its own.
    pub(super) fn explodes(&self) -> bool {
        self.explode
            .unwrap_or(matches!(self.style(), "form" | "deepObject"))
    }

    /// Adds the description of the parameter to its schema.
    pub(super) fn annotate(&self, schema: Value) -> Value {
        let mut schema = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(true) => serde_json::Map::new(),
            other => return other,
        };
        if let Some(description) = self.description.as_deref().filter(|text| !text.is_empty()) {
            schema.entry("description").or_insert_with(|| json!(description));
        }
        if self.is_deprecated {
            schema.insert("deprecated".to_owned(), json!(true));
        }
        Value::Object(schema)
    }
}
