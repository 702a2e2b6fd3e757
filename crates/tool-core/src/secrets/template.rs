//! `${…}` references in values: parsed once, resolved when the value is used.

use std::fmt;

use crate::{Secret, SecretError, Secrets};

/// Text with `${…}` references.
///
/// | written | resolves to |
/// |---|---|
/// | `${NAME}`, `${env:NAME}` | an environment variable; an error if it is not set |
/// | `${NAME:-text}` | the same, or `text` if it is not set or empty |
/// | `${NAME:?message}` | the same, with the message if it is not set or empty |
/// | `${file:PATH}` | a file's content without the line break at its end |
/// | `${secret:NAME}` | a named secret |
/// | `$$` | one `$` |
///
/// `:-` and `:?` follow any of them. A value is inserted as it is: references inside it are not resolved.
///
/// # Examples
/// ```
/// use tool_core::Template;
///
/// let template = Template::parse("Bearer ${TOKEN:?set it in your shell}")?;
/// assert_eq!(template.references().next().unwrap().name, "TOKEN");
/// assert!(Template::parse("costs 5$$").unwrap().literal() == Some("costs 5$"));
/// # Ok::<(), tool_core::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Reference(Reference),
}

/// Reference `${…}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Reference {
    /// Provider of the value.
    pub provider: Provider,
    /// Name of the value at its provider.
    pub name: String,
    /// Rule for a missing value.
    pub fallback: IfUnset,
}

impl Reference {
    /// Creates a reference whose missing value is an error.
    #[must_use]
    pub fn new(provider: Provider, name: impl Into<String>) -> Self {
        Self {
            provider,
            name: name.into(),
            fallback: IfUnset::None,
        }
    }
}

/// Provider of a reference's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Environment variable.
    Environment,
    /// File.
    File,
    /// Named secret.
    Secret,
}

/// Rule for a reference without a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IfUnset {
    /// Error.
    None,
    /// This text.
    Default(String),
    /// Error with this message.
    Message(String),
}

/// Error of an invalid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TemplateError {
    /// Offset in bytes.
    pub offset: usize,
    /// Problem: a lower-case fragment.
    pub message: String,
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// If a `${` is not closed, a name is invalid or a provider is unknown.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(dollar) = text[at..].find('$').map(|offset| at + offset) {
            literal.push_str(&text[at..dollar]);
            let rest = &text[dollar + 1..];
            if rest.starts_with('$') {
                literal.push('$');
                at = dollar + 2;
            } else if rest.starts_with('{') {
                let end = rest.find('}').ok_or_else(|| TemplateError {
                    offset: dollar,
                    message: "`${` without a closing `}`; write `$$` for a plain dollar sign".to_owned(),
                })?;
                let reference = Reference::parse(&rest[1..end]).map_err(|message| TemplateError {
                    offset: dollar,
                    message,
                })?;
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Reference(reference));
                at = dollar + 1 + end + 1;
            } else {
                literal.push('$');
                at = dollar + 1;
            }
        }
        literal.push_str(&text[at..]);
        if !literal.is_empty() || parts.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// Returns the text, if it has no references.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Reference(reference) => Some(reference),
        })
    }

    /// Returns the parts in order: literal text, or a reference.
    pub fn parts(&self) -> impl Iterator<Item = Result<&str, &Reference>> {
        self.parts.iter().map(|part| match part {
            Part::Literal(text) => Ok(text.as_str()),
            Part::Reference(reference) => Err(reference),
        })
    }

    /// Checks, without waiting, that every reference has a value.
    ///
    /// # Errors
    /// The first reference without one.
    pub fn check(&self, secrets: &dyn Secrets) -> Result<(), SecretError> {
        self.references()
            .try_for_each(|reference| reference.check(secrets))
    }

    /// Returns the text with the current values of its references.
    ///
    /// # Errors
    /// If a reference has no value.
    ///
    /// # Cancellation
    /// Dropping the future resolves nothing further; a value that was read is wiped from memory.
    pub async fn resolve(&self, secrets: &dyn Secrets) -> Result<Secret, SecretError> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Reference(reference) => text.push_str(reference.resolve(secrets).await?.expose()),
            }
        }
        Ok(Secret::new(text))
    }
}

impl Reference {
    fn parse(inside: &str) -> Result<Self, String> {
        // The mark of the rule comes first: a default may contain anything.
        let (head, fallback) = match (inside.find(":-"), inside.find(":?")) {
            (Some(at), other) if other.is_none_or(|other| at < other) => {
                (&inside[..at], IfUnset::Default(inside[at + 2..].to_owned()))
            }
            (_, Some(at)) => (&inside[..at], IfUnset::Message(inside[at + 2..].to_owned())),
            _ => (inside, IfUnset::None),
        };
        let (provider, name) = match head.split_once(':') {
            None => (Provider::Environment, head),
            Some(("env", name)) => (Provider::Environment, name),
            Some(("file", name)) => (Provider::File, name),
            Some(("secret", name)) => (Provider::Secret, name),
            Some((other, _)) => {
                return Err(format!(
                    "unknown provider `{other}`; there are `env`, `file` and `secret`"
                ));
            }
        };
        let usable = match provider {
            Provider::Environment => {
                name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            }
            Provider::File => !name.is_empty(),
            Provider::Secret => {
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
            }
        };
        if usable {
            Ok(Self {
                provider,
                name: name.to_owned(),
                fallback,
            })
        } else {
            Err(format!("`{name}` is no usable name in `${{{inside}}}`"))
        }
    }

    /// Checks, without waiting, that there is a value or a default.
    ///
    /// # Errors
    /// If there is neither.
    pub fn check(&self, secrets: &dyn Secrets) -> Result<(), SecretError> {
        if matches!(self.fallback, IfUnset::Default(_)) || secrets.has(self)? {
            Ok(())
        } else {
            Err(self.missing())
        }
    }

    /// Returns the current value, or the default.
    ///
    /// # Errors
    /// If there is neither.
    ///
    /// # Cancellation
    /// Dropping the future resolves nothing further; a value that was read is wiped from memory.
    pub async fn resolve(&self, secrets: &dyn Secrets) -> Result<Secret, SecretError> {
        let value = secrets.get(self).await?;
        match (&self.fallback, value) {
            (IfUnset::None, Some(value)) => Ok(value),
            // As in a shell, `:-` and `:?` treat an empty value as missing.
            (_, Some(value)) if !value.expose().is_empty() => Ok(value),
            (IfUnset::Default(text), _) => Ok(Secret::new(text.as_str())),
            _ => Err(self.missing()),
        }
    }

    fn missing(&self) -> SecretError {
        let reason = match (&self.fallback, self.provider) {
            (IfUnset::Message(message), _) => message.clone(),
            (_, Provider::Environment) => "is not set; export it or give a default with `:-`".to_owned(),
            (_, Provider::File) => "cannot be read".to_owned(),
            (_, Provider::Secret) => "is not among the configured secrets".to_owned(),
        };
        SecretError {
            reference: self.to_string(),
            reason,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = match self.provider {
            Provider::Environment => "",
            Provider::File => "file:",
            Provider::Secret => "secret:",
        };
        write!(f, "${{{provider}{}}}", self.name)
    }
}
