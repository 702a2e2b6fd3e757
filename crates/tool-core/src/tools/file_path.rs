/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 255;

/// Returns `true` if a text is a path by which a file of a tool is named: relative, at most 255 bytes, with `/` between its
/// parts, without `.`, `..`, empty parts, backslashes and control characters.
///
/// # Examples
/// ```
/// assert!(tool_core::is_relative_path("lib/words.py"));
/// assert!(!tool_core::is_relative_path("../secret"));
/// ```
#[must_use]
pub fn is_relative_path(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.len() <= MAX_PATH
        && path.split('/').all(is_part)
        && !path.chars().any(|letter| letter == '\\' || letter.is_control())
}

#[cfg(test)]
mod tests {
    use super::is_relative_path;

    #[test]
    fn paths() {
        for good in ["main.py", "a/b/c.sh", "..a", "a b", "ä.py"] {
            assert!(is_relative_path(good), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "a//b",
            "a/",
            "./a",
            "../a",
            "a/../b",
            "a\\b",
            "a\nb",
            "a\0b",
        ] {
            assert!(!is_relative_path(bad), "{bad}");
        }
        assert!(!is_relative_path(&"a".repeat(256)));
    }
}
