use crate::{Provider, Reference};

/// What stands in the place of something hidden.
pub const HIDDEN: &str = "[redacted]";

impl Reference {
    /// Whether its value is a secret: it comes from a secret store or a file, or its name says so. A region or a base
    /// address is none.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.provider != Provider::Environment || names_secret(&self.name)
    }
}

/// Whether the name of a variable or a header says that its value is a secret: `API_TOKEN`, `x-api-key` and `PGPASSWORD` do,
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

/// Whether `auth` is in a name, and not as the beginning of an author or an authority.
fn has_auth(name: &str) -> bool {
    name.match_indices("auth").any(|(at, _)| {
        let rest = &name[at..];
        !rest.starts_with("author") || rest.starts_with("authori") && !rest.starts_with("authority")
    })
}

/// Whether `key` is in a name, and not as a part of one of these.
fn has_key(name: &str) -> bool {
    const OTHERS: [&str; 5] = ["keyboard", "keycloak", "keymap", "keyspace", "keyword"];
    let others = OTHERS.iter().map(|other| name.matches(other).count());
    name.matches("key").count() > others.sum()
}
