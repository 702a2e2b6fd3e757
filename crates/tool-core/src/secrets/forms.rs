use crate::{Provider, Reference};

/// Replacement of a hidden value.
pub const HIDDEN: &str = "[redacted]";

impl Reference {
    /// Returns `true` if its value is a secret: it comes from a secret store or a file, or its name says so. A region
    /// or a base address is not one.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.provider != Provider::Environment || names_secret(&self.name)
    }
}

/// Returns `true` if the name of a variable or header denotes a secret: `API_TOKEN`, `x-api-key` and `PGPASSWORD` do,
/// `GIT_AUTHOR_NAME` and `KEYBOARD` do not.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    const PARTS: [&str; 7] = [
        "token",
        "secret",
        "passw",
        "credential",
        "cookie",
        "webhook",
        "signature",
    ];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || has_auth(&name) || has_key(&name)
}

/// Returns `true` if a name contains `auth`, but not as the start of `author` or `authority`.
fn has_auth(name: &str) -> bool {
    name.match_indices("auth").any(|(at, _)| {
        let rest = &name[at..];
        !rest.starts_with("author") || rest.starts_with("authori") && !rest.starts_with("authority")
    })
}

/// Returns `true` if a name contains `key`, but not as part of one of these words.
fn has_key(name: &str) -> bool {
    const OTHERS: [&str; 5] = ["keyboard", "keycloak", "keymap", "keyspace", "keyword"];
    let others = OTHERS.iter().map(|other| name.matches(other).count());
    name.matches("key").count() > others.sum()
}
