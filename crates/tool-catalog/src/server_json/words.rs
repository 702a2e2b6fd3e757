//! Names that become a part of a command.

/// Returns `true` for the name of a package on npm: no URL, no alias and no range.
pub(super) fn is_npm(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
    };
    match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        Some(Some((scope, name))) => is_part(scope) && is_part(name),
        Some(None) => false,
        None => is_part(name),
    }
}

/// Returns `true` for the name of a distribution (PEP 508), without extras.
pub(super) fn is_pypi(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Returns `true` for a reference to an image, with a tag or a digest.
pub(super) fn is_image(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@".contains(&byte))
}

/// Returns `true` for one version: no range and no moving tag.
pub(super) fn is_exact_version(version: &str) -> bool {
    let mut numbers = version.split(['-', '+']).next().unwrap_or_default().split('.');
    version.starts_with(|first: char| first.is_ascii_digit())
        && version
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
        && !numbers.any(|number| matches!(number, "x" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_neither_options_nor_urls() {
        for good in ["@ada/weather", "weather", "weather.js", "A-b_c"] {
            assert!(is_npm(good), "{good}");
        }
        for bad in [
            "",
            "-y",
            "@ada",
            "@ada/",
            "@/x",
            "a@1",
            "git+https://x/y",
            "a b",
            "file:x",
            "@a/b/c",
            "--x",
        ] {
            assert!(!is_npm(bad), "{bad}");
        }
        assert!(is_pypi("weather-mcp") && !is_pypi("--index-url") && !is_pypi("a[b]") && !is_pypi("a @ x"));
        assert!(is_image("docker.io/mcp/fs:1.0") && !is_image("--privileged") && !is_image("a b"));
        for (version, expected) in [
            ("1.0.2", true),
            ("0.4.0-beta", true),
            ("2024.1.5", true),
            ("1.0.0rc1", true),
            ("latest", false),
            ("^1.2.3", false),
            ("1.x", false),
            ("1.*", false),
            (">=1", false),
            ("", false),
            ("-1", false),
            ("npm:x", false),
        ] {
            assert_eq!(is_exact_version(version), expected, "{version}");
        }
    }
}
