//! The document: its text, its version, and the references in it.

mod read;
mod swagger;
mod version;

pub(crate) use self::{swagger::swagger_parts, version::Version};

use std::borrow::Cow;

use serde_json::Value;

use crate::OpenApiError;

/// Maximum number of references that lead to one object.
const MAX_HOPS: usize = 32;

/// OpenAPI document.
#[derive(Debug)]
pub(crate) struct Document {
    root: Value,
    pub(crate) version: Version,
}

impl Document {
    /// Reads a document from its text, which may be compressed with gzip.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, OpenApiError> {
        let root = read::read(bytes)?;
        let version = Version::from_root(&root)?;
        Ok(Self { root, version })
    }

    /// Returns a member of the document.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.root.get(key)
    }

    /// Returns a text of `info`.
    pub(crate) fn info(&self, key: &str) -> String {
        let text = self.root.get("info").and_then(|info| info.get(key));
        text.map(text_of).unwrap_or_default()
    }

    /// Returns the object that a value is or refers to.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> Result<&'a Value, String> {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            value = self.target(reference)?;
        }
        Err("its references lead in a circle".to_owned())
    }

    /// Returns the target of a reference within the document.
    pub(crate) fn target(&self, reference: &str) -> Result<&Value, String> {
        let shown = reference.chars().take(100).collect::<String>();
        let shown = shown.escape_debug();
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!(
                "`{shown}` leads out of the document, and nothing is fetched"
            ));
        };
        if !fragment.starts_with('/') {
            return Err(format!("`{shown}` is no JSON Pointer into the document"));
        }
        self.root
            .pointer(&percent_decode(fragment))
            .ok_or_else(|| format!("`{shown}` leads nowhere"))
    }
}

/// Returns a value as text: a version in YAML may be a number.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Decodes the escapes of a URI fragment (RFC 3986). Returns the text as it is if that is not UTF-8.
fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    // The parser of forms decodes `+` as well, which has no such meaning in a fragment.
    let kept = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let decoded = url::form_urlencoded::parse(kept.as_bytes()).next();
    decoded.map_or(Cow::Borrowed(text), |(name, _)| Cow::Owned(name.into_owned()))
}
