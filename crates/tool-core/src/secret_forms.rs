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

/// Whether the name of a variable or a header says that its value is a secret.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "key",
        "token",
        "secret",
        "passw",
        "auth",
        "credential",
        "cookie",
        "webhook",
        "signature",
    ]
    .iter()
    .any(|word| name.contains(word))
}
