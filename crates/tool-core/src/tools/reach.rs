//! Reach of a tool: the secrets, hosts and other things that its settings name.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Template;

/// Reach of a tool as its settings tell it: an operator grants and approves by it, and a tool that an agent made is limited by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reach {
    /// Secrets that the settings refer to, each with its place and its destination.
    pub secrets: Vec<SecretUse>,
    /// Hosts that the tool may connect to, as written: names, maybe with a wildcard or a port.
    pub hosts: BTreeSet<String>,
    /// `true` if arguments of a call choose the host.
    pub is_any_host: bool,
    /// Other things that the tool uses, one sentence fragment each: an image, a tool of a server.
    pub others: Vec<String>,
}

/// Use of a secret by a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SecretUse {
    /// Reference as written, such as `${API_KEY}`, without its default.
    pub secret: String,
    /// Field of the executor's settings, as a JSON pointer (RFC 6901).
    pub field: String,
    /// Place that receives the secret: an origin such as `https://api.example.com`, or the code of the tool.
    pub destination: String,
}

impl Reach {
    /// Creates the reach of a tool with these secrets and no hosts.
    #[must_use]
    pub fn new(secrets: Vec<SecretUse>) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    /// Sets the hosts.
    #[must_use]
    pub fn with_hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts = hosts.into_iter().collect();
        self
    }

    /// Sets whether arguments of a call choose the host.
    #[must_use]
    pub fn with_any_host(mut self, is_any_host: bool) -> Self {
        self.is_any_host = is_any_host;
        self
    }

    /// Adds something else that the tool uses, as a sentence fragment.
    #[must_use]
    pub fn with_other(mut self, other: impl Into<String>) -> Self {
        self.others.push(other.into());
        self
    }
}

impl SecretUse {
    /// Creates the use of a secret in a field, for a destination.
    #[must_use]
    pub fn new(secret: impl Into<String>, field: impl Into<String>, destination: impl Into<String>) -> Self {
        Self {
            secret: secret.into(),
            field: field.into(),
            destination: destination.into(),
        }
    }

    /// Finds the `${…}` references in all texts of these settings, at any depth. `at` is the pointer of the settings.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{SecretUse, serde_json::json};
    ///
    /// let settings = json!({"headers": {"Authorization": "Bearer ${API_KEY}"}});
    /// let found = SecretUse::find(&settings, "", "https://api.example.com");
    /// assert_eq!(found[0].field, "/headers/Authorization");
    /// assert_eq!(found[0].secret, "${API_KEY}");
    /// ```
    #[must_use]
    pub fn find(settings: &Value, at: &str, destination: &str) -> Vec<Self> {
        let mut found = Vec::new();
        walk(settings, &mut at.to_owned(), &mut |text, pointer| {
            // A text that is no template is refused by its executor.
            let template = Template::parse(text).ok();
            let references = template.iter().flat_map(Template::references);
            found.extend(references.map(|reference| Self::new(reference.to_string(), pointer, destination)));
        });
        found.sort();
        found.dedup();
        found
    }
}

fn walk(value: &Value, pointer: &mut String, visit: &mut impl FnMut(&str, &str)) {
    let length = pointer.len();
    let mut step = |pointer: &mut String, segment: &str, value: &Value| {
        pointer.push('/');
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        walk(value, pointer, visit);
        pointer.truncate(length);
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                step(pointer, &index.to_string(), item);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                step(pointer, key, member);
            }
        }
        Value::String(text) if text.contains("${") => visit(text, pointer),
        _ => {}
    }
}
