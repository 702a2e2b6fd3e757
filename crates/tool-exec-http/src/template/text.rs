use std::{borrow::Cow, collections::HashMap};

use raw_json::{JsonKind, RawJson};
use tool_core::{Reference, Secret, Template};

/// Text with `${…}` references and `{argument}` placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextTemplate(pub Vec<Piece>);

/// Part of a [`TextTemplate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    Reference(Reference),
    Argument(String),
}

/// Arguments and values of references in one call.
pub(crate) struct Scope<'a> {
    pub arguments: &'a [(Cow<'a, str>, RawJson)],
    pub values: &'a HashMap<Reference, Secret>,
}

/// Error of rendering a template with the arguments of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// Absent or null argument, with its name.
    Absent(String),
    /// Argument that is not allowed here, with its name and the reason.
    Argument(String, String),
}

impl TextTemplate {
    /// Parses a text with references and arguments.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, true)
    }

    /// Parses a text with references only; braces are plain text.
    pub(crate) fn fixed(text: &str) -> Result<Self, String> {
        Self::read(text, false)
    }

    fn read(text: &str, arguments: bool) -> Result<Self, String> {
        let template = Template::parse(text).map_err(|error| error.to_string())?;
        let mut pieces = Vec::new();
        for part in template.parts() {
            match part {
                Ok(literal) if arguments => split_arguments(literal, &mut pieces),
                Ok(literal) => push_literal(&mut pieces, literal),
                Err(reference) => pieces.push(Piece::Reference(reference.clone())),
            }
        }
        Ok(Self(pieces))
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            _ => None,
        })
    }

    /// Returns the argument's name if the text consists of one argument alone.
    pub(crate) fn sole_argument(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// Returns the text if it has no references and no arguments.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Renders the text of one call, and passes every inserted part through `encode`.
    pub(crate) fn render(
        &self,
        scope: &Scope<'_>,
        mut encode: impl FnMut(&mut String, Inserted<'_>) -> Result<(), TemplateError>,
    ) -> Result<String, TemplateError> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Reference(reference) => {
                    encode(&mut out, Inserted::Value(scope.value(reference)))?;
                }
                Piece::Argument(name) => {
                    let text = scope.text(name)?;
                    encode(&mut out, Inserted::Argument(name, &text))?;
                }
            }
        }
        Ok(out)
    }

    /// Renders the text of one call without encoding.
    pub(crate) fn plain(&self, scope: &Scope<'_>) -> Result<String, TemplateError> {
        self.render(scope, |out, inserted| {
            out.push_str(inserted.text());
            Ok(())
        })
    }
}

/// Inserted part of a text.
pub(crate) enum Inserted<'a> {
    /// Value of a reference.
    Value(&'a str),
    /// Name and text of an argument.
    Argument(&'a str, &'a str),
}

impl<'a> Inserted<'a> {
    pub(crate) fn text(&self) -> &'a str {
        match self {
            Self::Value(text) | Self::Argument(_, text) => text,
        }
    }
}

impl Scope<'_> {
    /// Returns a reference's value. All references of a tool are resolved before anything is rendered.
    pub(crate) fn value(&self, reference: &Reference) -> &str {
        self.values.get(reference).map_or("", Secret::expose)
    }

    /// Returns an argument with its original bytes, or `None` if it is absent or null.
    pub(crate) fn argument(&self, name: &str) -> Option<&RawJson> {
        self.arguments
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
            .filter(|value| value.kind() != JsonKind::Null)
    }

    /// Returns an argument as text.
    pub(crate) fn text(&self, name: &str) -> Result<String, TemplateError> {
        let value = self
            .argument(name)
            .ok_or_else(|| TemplateError::Absent(name.to_owned()))?;
        text_of(value)
            .ok_or_else(|| TemplateError::Argument(name.to_owned(), "is not valid Unicode".to_owned()))
    }
}

/// Returns a value as text: the characters of a string, the JSON text of any other value.
pub(crate) fn text_of(value: &RawJson) -> Option<String> {
    if value.kind() == JsonKind::String {
        value.string()
    } else {
        Some(value.as_str().to_owned())
    }
}

/// Finds `{name}`, `{{.name}}` and `{{name}}` in a text without references. Any other brace is plain text, so that JSON and
/// query languages need no escapes.
fn split_arguments(text: &str, pieces: &mut Vec<Piece>) {
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        push_literal(pieces, &rest[..open]);
        let tail = &rest[open..];
        if let Some((name, length)) = go_argument(tail).or_else(|| argument(tail)) {
            pieces.push(Piece::Argument(name.to_owned()));
            rest = &tail[length..];
        } else if let Some((name, length)) = tail.strip_prefix('{').and_then(argument)
            && tail[1 + length..].starts_with('}')
        {
            push_literal(pieces, &format!("{{{name}}}"));
            rest = &tail[length + 2..];
        } else {
            push_literal(pieces, "{");
            rest = &tail[1..];
        }
    }
    push_literal(pieces, rest);
}

/// Parses `{name}` at the start of a text. Returns the name and the total length.
fn argument(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix('{')?;
    let name = &inside[..inside.find('}')?];
    is_name(name).then_some((name, name.len() + 2))
}

/// Parses `{{ .name }}` at the start of a text, as in Go templates. Returns the name and the total length.
fn go_argument(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix("{{")?;
    let end = inside.find("}}")?;
    let name = inside[..end].trim().strip_prefix('.')?;
    is_name(name).then_some((name, end + 4))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn push_literal(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Literal(last)) => last.push_str(text),
        _ => pieces.push(Piece::Literal(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, TextTemplate};

    fn shape(text: &str) -> String {
        let pieces = TextTemplate::parse(text).unwrap().0;
        let shown = pieces.iter().map(|piece| match piece {
            Piece::Literal(text) => format!("'{text}'"),
            Piece::Reference(reference) => reference.to_string(),
            Piece::Argument(name) => format!("<{name}>"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn braces() {
        for (text, expected) in [
            ("", ""),
            ("plain", "'plain'"),
            ("{a}", "<a>"),
            ("x{a}y{b-c}", "'x' <a> 'y' <b-c>"),
            ("{{.a}}/{{ .b }}", "<a> '/' <b>"),
            ("{{a}}", "'{a}'"),
            ("{user{name}}", "'{user' <name> '}'"),
            ("{ a }", "'{ a }'"),
            (
                "query { user(id: 1) { name } }",
                "'query { user(id: 1) { name } }'",
            ),
            ("{\"a\": \"{b}\"}", "'{\"a\": \"' <b> '\"}'"),
            ("{1}{}{", "'{1}{}{'"),
            ("{{{a}}}", "'{' '{a}' '}'"),
            ("${A}{a}$${a}", "${A} <a> '$' <a>"),
            ("Bearer ${secret:k:-{x}}", "'Bearer ' ${secret:k} '}'"),
            ("äö{ä}", "'äö{ä}'"),
        ] {
            let got = shape(text).replace("' '", "");
            assert_eq!(got, expected.replace("' '", ""), "{text}");
        }
    }
}
