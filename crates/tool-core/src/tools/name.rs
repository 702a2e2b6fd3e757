use sha2::{Digest, Sha256};

/// Maximum length of a tool's name, in characters.
pub const MAX_NAME: usize = 64;

/// Error of an invalid tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is no tool name: it must have 1 to {MAX_NAME} characters out of A-Z, a-z, 0-9, `_` and `-`"
)]
pub struct InvalidName {
    name: String,
}

/// Checks that a text is a valid tool name everywhere: 1 to 64 characters out of `[A-Za-z0-9_-]`, which every model
/// provider and MCP accept.
///
/// # Errors
/// If the name is invalid.
pub fn check_name(name: &str) -> Result<(), InvalidName> {
    if is_name(name) {
        Ok(())
    } else {
        Err(InvalidName {
            name: name.chars().take(2 * MAX_NAME).collect(),
        })
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Returns the name under which agents see a tool with any name. Invalid characters become `_`; a longer name is cut
/// to 55 characters, followed by `_` and the first 8 hexadecimal digits of the SHA-256 of the original name.
///
/// # Examples
/// ```
/// assert_eq!(tool_core::outward_name("files__read file"), "files__read_file");
/// assert_eq!(tool_core::outward_name(&"x".repeat(70)).len(), 64);
/// ```
#[must_use]
pub fn outward_name(name: &str) -> String {
    if is_name(name) {
        return name.to_owned();
    }
    let mut outward: String = name
        .chars()
        .map(|c| {
            if c.is_ascii() && is_allowed(c as u8) {
                c
            } else {
                '_'
            }
        })
        .collect();
    if outward.is_empty() {
        outward.push('_');
    }
    if outward.len() > MAX_NAME {
        outward.truncate(MAX_NAME - 9);
        outward.push('_');
        outward.push_str(&raw_json::hex(&Sha256::digest(name)[..4]));
    }
    outward
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
