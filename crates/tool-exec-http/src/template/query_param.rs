use raw_json::{JsonKind, RawJson};
use serde_json::{Map, Value};

use super::{
    encode,
    text::{Piece, Scope, TemplateError, TextTemplate, text_of},
};

/// Template of a query parameter.
#[derive(Debug, Clone)]
pub(crate) struct QueryParam {
    /// Percent-encoded name.
    name: String,
    values: Vec<TextTemplate>,
    /// `true` if literal text is already encoded, as in a URL.
    encoded: bool,
    /// `true` if the parameter is a name without `=`.
    bare: bool,
    /// Encoded text between the elements of a list that is one parameter. Otherwise each element is a parameter.
    separator: Option<&'static str>,
}

/// Separators of a list in one parameter, and their encoded forms: the styles `form`, `spaceDelimited` and `pipeDelimited` of
/// OpenAPI, and the tab of Swagger 2.0.
const SEPARATORS: [(&str, &str); 4] = [(",", ","), (" ", "%20"), ("|", "%7C"), ("\t", "%09")];

impl QueryParam {
    /// Returns name and value if there is a single, literal value.
    pub(crate) fn written(&self) -> Option<(&str, &str)> {
        match self.values.as_slice() {
            [value] => Some((&self.name, value.literal()?)),
            _ => None,
        }
    }

    /// Parses the part of a URL template after `?`.
    pub(crate) fn parse_all(query: &TextTemplate) -> Result<Vec<Self>, String> {
        let mut pairs = vec![(String::new(), None::<Vec<Piece>>)];
        for piece in &query.0 {
            let Piece::Literal(literal) = piece else {
                match pairs.last_mut() {
                    Some((_, Some(value))) => value.push(piece.clone()),
                    _ => return Err("a query parameter's name must be plain text".to_owned()),
                }
                continue;
            };
            for (index, part) in literal.split('&').enumerate() {
                if index > 0 {
                    pairs.push((String::new(), None));
                }
                let Some((name, value)) = pairs.last_mut() else {
                    continue;
                };
                match value {
                    Some(value) if !part.is_empty() => value.push(Piece::Literal(part.to_owned())),
                    Some(_) => {}
                    None => {
                        let (head, tail) = part.split_once('=').map_or((part, None), |(h, t)| (h, Some(t)));
                        name.push_str(head);
                        *value = tail.map(|tail| {
                            let literal = Some(tail).filter(|tail| !tail.is_empty());
                            literal
                                .map(|tail| Piece::Literal(tail.to_owned()))
                                .into_iter()
                                .collect()
                        });
                    }
                }
            }
        }
        let pairs = pairs
            .into_iter()
            .filter(|(name, value)| !name.is_empty() || value.is_some());
        Ok(pairs
            .map(|(name, value)| Self {
                name,
                bare: value.is_none(),
                values: vec![TextTemplate(value.unwrap_or_default())],
                encoded: true,
                separator: None,
            })
            .collect())
    }

    /// Parses a parameter of the settings.
    pub(crate) fn from_setting(name: &str, value: &Value) -> Result<Self, String> {
        let values = match value {
            Value::Array(list) => list.iter().map(setting_text).collect::<Result<_, _>>()?,
            Value::Object(members) => return Self::joined(name, members),
            one => vec![setting_text(one)?],
        };
        Ok(Self::new(name, values))
    }

    /// Parses `{argument, join}`: a list in one parameter.
    fn joined(name: &str, members: &Map<String, Value>) -> Result<Self, String> {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        let known = members
            .keys()
            .all(|key| matches!(key.as_str(), "argument" | "join"));
        let (Some(argument), Some(join), true) = (text("argument"), text("join"), known) else {
            return Err(
                "must have an `argument` and a `join`, such as `{argument: ids, join: \",\"}`".to_owned(),
            );
        };
        let template = TextTemplate::parse(&format!("{{{argument}}}"))?;
        if template.sole_argument() != Some(argument) {
            return Err(format!("`{}` is no name of an argument", argument.escape_debug()));
        }
        let separator = SEPARATORS.iter().find(|(written, _)| *written == join);
        let (_, separator) = separator.ok_or("`join` must be a comma, a space, a tab or `|`")?;
        let mut parameter = Self::new(name, vec![template]);
        parameter.separator = Some(separator);
        Ok(parameter)
    }

    /// Creates the parameter with an argument's name and value.
    pub(crate) fn for_argument(name: &str) -> Self {
        Self::new(name, vec![TextTemplate(vec![Piece::Argument(name.to_owned())])])
    }

    pub(crate) fn new(name: &str, values: Vec<TextTemplate>) -> Self {
        let mut encoded = String::new();
        encode::push_value(&mut encoded, name);
        Self {
            name: encoded,
            values,
            encoded: false,
            bare: false,
            separator: None,
        }
    }

    /// Returns the name if no value contains an argument, so that the caller cannot change the parameter.
    pub(crate) fn fixed_name(&self) -> Option<&str> {
        let mut pieces = self.values.iter().flat_map(|text| &text.0);
        let is_fixed = !pieces.any(|piece| matches!(piece, Piece::Argument(_)));
        is_fixed.then_some(&self.name)
    }

    /// Returns the name and the argument that is its whole value.
    pub(crate) fn sole_argument(&self) -> Option<(&str, &str)> {
        let argument = self.values.iter().find_map(TextTemplate::sole_argument)?;
        Some((&self.name, argument))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &TextTemplate> {
        self.values.iter()
    }

    /// Appends the parameter to a query, once for every value that is present.
    pub(crate) fn push_to(&self, query: &mut String, scope: &Scope<'_>) -> Result<(), TemplateError> {
        for text in &self.values {
            if let Some(name) = text.sole_argument() {
                let mut encoded = Vec::new();
                for value in scope.argument(name).map(elements).unwrap_or_default() {
                    let text = text_of(&value).ok_or_else(|| {
                        TemplateError::Argument(name.to_owned(), "is not valid Unicode".to_owned())
                    })?;
                    let mut value = String::new();
                    encode::push_value(&mut value, &text);
                    encoded.push(value);
                }
                match self.separator {
                    Some(_) if encoded.is_empty() => {}
                    Some(separator) => self.push(query, |out| out.push_str(&encoded.join(separator))),
                    None => encoded
                        .iter()
                        .for_each(|value| self.push(query, |out| out.push_str(value))),
                }
                continue;
            }
            match self.render(text, scope) {
                Ok(value) => self.push(query, |out| out.push_str(&value)),
                Err(TemplateError::Absent(_)) => {}
                Err(unusable) => return Err(unusable),
            }
        }
        Ok(())
    }

    fn render(&self, text: &TextTemplate, scope: &Scope<'_>) -> Result<String, TemplateError> {
        let encode = |out: &mut String, inserted: &str| encode::push_value(out, inserted);
        if self.encoded {
            return text.render(scope, |out, inserted| {
                encode(out, inserted.text());
                Ok(())
            });
        }
        let mut value = String::new();
        encode(&mut value, &text.plain(scope)?);
        Ok(value)
    }

    fn push(&self, query: &mut String, value: impl FnOnce(&mut String)) {
        if !query.is_empty() {
            query.push('&');
        }
        query.push_str(&self.name);
        if !self.bare {
            query.push('=');
            value(query);
        }
    }
}

fn setting_text(value: &Value) -> Result<TextTemplate, String> {
    match value {
        Value::String(text) => TextTemplate::parse(text),
        Value::Number(_) | Value::Bool(_) => Ok(TextTemplate(vec![Piece::Literal(value.to_string())])),
        _ => Err("must be a text, a number, a boolean or a list of them".to_owned()),
    }
}

/// Returns the values of an argument: a list's elements without nulls, or the value itself.
fn elements(value: &RawJson) -> Vec<RawJson> {
    if value.kind() != JsonKind::Array {
        return vec![value.clone()];
    }
    let elements: Vec<RawJson> = value.to().unwrap_or_default();
    elements
        .into_iter()
        .filter(|element| element.kind() != JsonKind::Null)
        .collect()
}
