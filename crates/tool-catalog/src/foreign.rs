//! Limits and rules of what a catalog holds.

use raw_json::{JsonLimits, RawJson};
use tool_core::is_relative_path;

use crate::CatalogError;

/// Maximum size of an index, in bytes.
pub const MAX_INDEX_BYTES: u64 = 8 << 20;
/// Maximum size of a bundle or `server.json`, in bytes: files of a version have at most 8 MiB, and a third more in Base64.
pub const MAX_BUNDLE_BYTES: u64 = 16 << 20;
/// Maximum size of a signature, in bytes.
pub const MAX_SIGNATURE_BYTES: u64 = 4 << 10;
/// Maximum number of entries of an index.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// Maximum depth of the JSON of a catalog: that of a manifest, in a bundle.
pub(crate) const MAX_DEPTH: usize = 72;
/// Maximum size of the name of an entry, in bytes.
pub(crate) const MAX_NAME: usize = 200;
/// Maximum size of the version of an entry, in bytes.
pub(crate) const MAX_VERSION: usize = 255;
/// Maximum size of a description, in bytes.
pub(crate) const MAX_DESCRIPTION: usize = 4 << 10;
/// Maximum number of tags of an entry.
pub(crate) const MAX_TAGS: usize = 32;

/// Parses foreign JSON: UTF-8, no duplicate keys, and a limited depth.
pub(crate) fn parse(place: &str, bytes: &[u8], max_bytes: u64) -> Result<RawJson, CatalogError> {
    if bytes.len() as u64 > max_bytes {
        let problem = format!("it has more than {max_bytes} bytes");
        return Err(CatalogError::invalid(place, problem));
    }
    // An owned copy: the parts of a document outlive what it was read from.
    let limits = JsonLimits::STRICT.with_depth(MAX_DEPTH);
    RawJson::parse_within(bytes.to_vec(), limits).map_err(|error| {
        let before = bytes.iter().take(error.offset());
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        CatalogError::invalid(place, format!("line {line}: {error}"))
    })
}

/// Returns `true` if a path names a file of a catalog: relative, with `/`, without `.` and `..`, and of letters, digits and
/// `-_.+@~` alone, so that it means the same in a directory and in a URL.
///
/// # Examples
/// ```
/// assert!(tool_catalog::is_catalog_path("tools/greet-1.0.0.json"));
/// assert!(!tool_catalog::is_catalog_path("../greet.json"));
/// assert!(!tool_catalog::is_catalog_path("https://example.com/greet.json"));
/// ```
#[must_use]
pub fn is_catalog_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@~/".contains(&byte);
    is_relative_path(path) && path.bytes().all(is_plain)
}

/// Removes the white space between the tokens of a value. Numbers and strings keep their spelling, and members their order.
pub(crate) fn compact(value: &RawJson) -> RawJson {
    let mut text = Vec::with_capacity(value.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in value.as_str().bytes() {
        if !in_string && byte.is_ascii_whitespace() {
            continue;
        }
        (in_string, is_escaped) = match (in_string, is_escaped, byte) {
            (true, true, _) => (true, false),
            (true, false, b'\\') => (true, true),
            (inside, false, b'"') => (!inside, false),
            (inside, ..) => (inside, false),
        };
        text.push(byte);
    }
    let limits = JsonLimits::STRICT.with_depth(MAX_DEPTH);
    RawJson::parse_within(text, limits).unwrap_or_else(|_| value.clone())
}

/// Reads a digest, written as `sha256:` and 64 hexadecimal digits.
pub(crate) fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 64 || !digits.bytes().all(is_hex) {
        return None;
    }
    let mut digest = [0; 32];
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// Writes a digest.
pub(crate) fn digest_text(digest: &[u8; 32]) -> String {
    format!("sha256:{}", raw_json::hex(digest))
}

/// Checks the name, version and texts that every entry has.
pub(crate) fn check_texts(
    place: &str,
    name: &str,
    version: &str,
    description: &str,
) -> Result<(), CatalogError> {
    if !is_entry_name(name) {
        let problem = format!(
            "`{}` is no name: write up to {MAX_NAME} letters, digits, `_`, `-`, `.` and `/`",
            shown(name)
        );
        return Err(CatalogError::invalid(place, problem));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    if version.is_empty()
        || version.len() > MAX_VERSION
        || version == "latest"
        || !version.bytes().all(is_plain)
    {
        let problem = format!(
            "`{}` of `{name}` is no version: write one such as `1.0.0`",
            shown(version)
        );
        return Err(CatalogError::invalid(place, problem));
    }
    if description.len() > MAX_DESCRIPTION {
        let problem = format!("the description of `{name}` has more than {MAX_DESCRIPTION} bytes");
        return Err(CatalogError::invalid(place, problem));
    }
    Ok(())
}

/// Returns `true` for the name of a tool or server, such as `greet` or `io.github.ada/weather`.
pub(crate) fn is_entry_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let begins = |part: &str| part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    let is_part = |part: &str| begins(part) && part.bytes().all(is_plain);
    name.len() <= MAX_NAME && name.split('/').count() <= 4 && name.split('/').all(is_part)
}

/// Truncates and escapes foreign text for a message.
pub(crate) fn shown(text: &str) -> String {
    tool_settings::suggest::shown(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_files_of_a_catalog() {
        for good in ["a.json", "tools/a-1.0.0+x.json", "a@1~b_c"] {
            assert!(is_catalog_path(good), "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "../a",
            "a/../b",
            "./a",
            "a//b",
            "a\\b",
            "a b",
            "a%2e",
            "a?b",
            "a#b",
            "http://a/b",
            "c:/a",
            "ä",
            "a\0",
        ] {
            assert!(!is_catalog_path(bad), "{bad}");
        }
    }

    #[test]
    fn white_space_inside_strings_stays() {
        let value = RawJson::parse("{ \"a\\\" b\" : [ 1.50 , \" x \" ] }").unwrap();
        assert_eq!(compact(&value).as_str(), r#"{"a\" b":[1.50," x "]}"#);
    }

    #[test]
    fn digests_have_one_spelling() {
        let digest = [0xab; 32];
        assert_eq!(parse_digest(&digest_text(&digest)), Some(digest));
        let upper = digest_text(&digest).to_uppercase();
        for bad in ["", "sha256:", "sha256:ab", upper.as_str(), "sha1:00"] {
            assert_eq!(parse_digest(bad), None, "{bad}");
        }
    }
}
