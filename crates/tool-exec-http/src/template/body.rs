use raw_json::RawJson;
use serde_json::Value;

use super::text::{Scope, TemplateError, TextTemplate};

/// Template of a JSON body.
#[derive(Debug, Clone)]
pub(crate) enum BodyTemplate {
    /// Constant JSON.
    Literal(RawJson),
    /// Text. If it consists of one argument alone, it becomes the argument with its original bytes.
    Text(TextTemplate),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl BodyTemplate {
    /// Parses a body of the settings. Errors have a JSON Pointer relative to the body.
    pub(crate) fn parse(value: &Value) -> Result<Self, (String, String)> {
        if let Value::String(text) = value
            && text.trim_start().starts_with(['{', '['])
            && TextTemplate::parse(text).is_ok_and(|text| text.sole_argument().is_none())
        {
            let inner: Value = serde_json::from_str(text).map_err(|error| {
                let message =
                    format!("is not JSON: {error}; write arguments in quotes, as in {{\"n\": \"{{n}}\"}}");
                (String::new(), message)
            })?;
            return Self::parse_at(&inner, "");
        }
        Self::parse_at(value, "")
    }

    fn parse_at(value: &Value, place: &str) -> Result<Self, (String, String)> {
        match value {
            Value::String(text) => {
                let text = TextTemplate::parse(text).map_err(|message| (place.to_owned(), message))?;
                Ok(match text.literal() {
                    Some(literal) => Self::Literal(RawJson::from(literal)),
                    None => Self::Text(text),
                })
            }
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(index, item)| Self::parse_at(item, &format!("{place}/{index}")))
                .collect::<Result<_, _>>()
                .map(Self::Array),
            Value::Object(members) => members
                .iter()
                .map(|(key, item)| {
                    let place = tool_settings::pointer(place, key);
                    Ok((key.clone(), Self::parse_at(item, &place)?))
                })
                .collect::<Result<_, _>>()
                .map(Self::Object),
            other => Ok(Self::Literal(RawJson::from(other))),
        }
    }

    pub(crate) fn texts<'a>(&'a self, out: &mut Vec<&'a TextTemplate>) {
        match self {
            Self::Literal(_) => {}
            Self::Text(text) => out.push(text),
            Self::Array(list) => list.iter().for_each(|item| item.texts(out)),
            Self::Object(members) => members.iter().for_each(|(_, item)| item.texts(out)),
        }
    }

    /// Writes the JSON of one call. Writes nothing and returns `false` if an argument is absent.
    pub(crate) fn write(&self, out: &mut String, scope: &Scope<'_>) -> Result<bool, TemplateError> {
        match self {
            Self::Literal(raw) => out.push_str(raw.as_str()),
            Self::Text(text) => return write_text(text, out, scope),
            Self::Array(list) => {
                out.push('[');
                for item in list {
                    let start = out.len();
                    separate(out, '[');
                    if !item.write(out, scope)? {
                        out.truncate(start);
                    }
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (key, item) in members {
                    let start = out.len();
                    separate(out, '{');
                    out.push_str(RawJson::from(key.as_str()).as_str());
                    out.push(':');
                    if !item.write(out, scope)? {
                        out.truncate(start);
                    }
                }
                out.push('}');
            }
        }
        Ok(true)
    }
}

/// Writes a comma unless the container has just been opened.
fn separate(out: &mut String, open: char) {
    if !out.ends_with(open) {
        out.push(',');
    }
}

fn write_text(text: &TextTemplate, out: &mut String, scope: &Scope<'_>) -> Result<bool, TemplateError> {
    if let Some(name) = text.sole_argument() {
        let argument = scope.argument(name);
        out.push_str(argument.map_or("", RawJson::as_str));
        return Ok(argument.is_some());
    }
    match text.plain(scope) {
        Ok(text) => out.push_str(RawJson::from(text.as_str()).as_str()),
        Err(TemplateError::Absent(_)) => return Ok(false),
        Err(unusable) => return Err(unusable),
    }
    Ok(true)
}
