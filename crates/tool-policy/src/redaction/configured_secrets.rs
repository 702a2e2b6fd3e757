//! Configured secrets: finds secrets in values that a configuration holds in clear text.

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::percent_decode_str;
use tool_core::names_secret;

/// Authentication schemes that precede a credential in a header (registry of RFC 9110, section 16.4).
const SCHEMES: [&str; 7] = ["bearer", "basic", "token", "apikey", "api-key", "key", "dpop"];
/// Minimum length of a secret. A shorter value is more likely a setting.
const MIN_LENGTH: usize = 8;
/// Minimum length of a secret that consists of letters alone, lower-case and upper-case ones.
const MIN_LETTERS: usize = 20;

/// Returns `true` if a name is that of a proxy variable, such as `HTTPS_PROXY` or `npm_config_proxy`.
pub(crate) fn is_proxy(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("proxy")
}

/// Finds the secrets in the value of a variable, header or parameter.
///
/// The name must indicate a secret, and the value must look like one. `API_KEY: sk7-1f…` is a secret.
/// `AUTH_MODE: client_credentials`, `TOKEN_LIMIT: 100000` and `KEY_FILE: /etc/key1.pem` are not: they would hide a common word,
/// number or path everywhere.
pub(crate) fn find_secrets(name: &str, value: &str) -> Vec<String> {
    if is_proxy(name) {
        return proxy_credentials(value);
    }
    if !names_secret(name) {
        return Vec::new();
    }
    let value = value.trim();
    let (scheme, rest) = value.split_once(' ').unwrap_or(("", value));
    let has_scheme = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
    let value = if has_scheme { rest.trim() } else { value };
    let mut found: Vec<String> = Some(value)
        .filter(|value| looks_random(value))
        .map(str::to_owned)
        .into_iter()
        .collect();
    if scheme.eq_ignore_ascii_case("basic") {
        found.extend(basic_password(value));
    }
    found
}

/// Returns `true` if a text looks like a key or a password, not like a word, a number, a path or a URL.
fn looks_random(value: &str) -> bool {
    let is_location = value.contains("://") || value.starts_with(['/', '~']) || value.starts_with("./");
    if value.len() < MIN_LENGTH || is_location {
        return false;
    }
    let has = |class: fn(&char) -> bool| value.chars().any(|letter| class(&letter));
    let has_letters = has(|letter| letter.is_alphabetic());
    let has_others = has(|letter| letter.is_ascii_digit() || "!@#$%^&*+=?|<>".contains(*letter));
    let is_mixed = has(|letter| letter.is_lowercase()) && has(|letter| letter.is_uppercase());
    let is_word = value.contains(char::is_whitespace);
    has_letters && (has_others || is_mixed && !is_word && value.len() >= MIN_LETTERS)
}

/// Returns the password in credentials of the scheme `Basic` (RFC 7617).
fn basic_password(credentials: &str) -> Option<String> {
    let decoded = BASE64_STANDARD.decode(credentials).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (_, password) = text.split_once(':')?;
    Some(password.to_owned())
}

/// Returns the user and the password in the URL of a proxy, separate and joined, as written and decoded. A URL may lack its
/// scheme, and programs disagree about where a user name with `/` or `@` ends: all readings are returned.
fn proxy_credentials(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let mut found = Vec::new();
    for text in [authority, rest] {
        let ends = [text.find('@'), text.rfind('@')];
        for end in ends.into_iter().flatten() {
            let joined = &text[..end];
            let (user, password) = joined.split_once(':').unwrap_or((joined, ""));
            for part in [joined, user, password] {
                found.push(part.to_owned());
                found.push(percent_decode_str(part).decode_utf8_lossy().into_owned());
            }
        }
    }
    found.retain(|part| !part.is_empty());
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_identify_secrets() {
        for (name, value, expected) in [
            (
                "GITHUB_TOKEN",
                "ghp_16C7e42F292c6912E7",
                &["ghp_16C7e42F292c6912E7"][..],
            ),
            ("Authorization", "Bearer s3cret-of-mine", &["s3cret-of-mine"]),
            (
                "authorization",
                "Basic YWRhOnMzY3JldC1wdw==",
                &["YWRhOnMzY3JldC1wdw==", "s3cret-pw"],
            ),
            ("x-api-key", " 9f2d1c77aa ", &["9f2d1c77aa"]),
            ("DB_PASSWORD", "correct horse 42!", &["correct horse 42!"]),
            ("SECRET", "QwErTyUiOpAsDfGhJkLzXc", &["QwErTyUiOpAsDfGhJkLzXc"]),
            ("NAME", "ghp_16C7e42F292c6912E7", &[]),
            ("AUTH_MODE", "client_credentials", &[]),
            ("TOKEN_LIMIT", "10000000", &[]),
            ("TOKENIZERS_PARALLELISM", "false", &[]),
            ("GIT_AUTHOR_NAME", "Ada 1815 Lovelace", &[]),
            ("KEYBOARD", "dvorak-1936", &[]),
            ("KEY_FILE", "/etc/key1.pem", &[]),
            ("OAUTH_ISSUER", "https://login.example.com/v2", &[]),
        ] {
            assert_eq!(find_secrets(name, value), expected, "{name}: {value}");
        }
    }

    #[test]
    fn users_and_passwords_of_proxies() {
        for url in [
            "http://ada:p%40ss@proxy:3128",
            "ada:p%40ss@proxy:3128",
            "socks5h://ada:p%40ss@proxy/",
            "http://ada:p%40ss@proxy:3128/path?a=b@c",
        ] {
            let found = proxy_credentials(url);
            for expected in ["ada", "p%40ss", "p@ss", "ada:p%40ss", "ada:p@ss"] {
                assert!(
                    found.iter().any(|part| part == expected),
                    "{url}: {expected}: {found:?}"
                );
            }
        }
        assert!(proxy_credentials("http://ada:pa/ss@proxy").contains(&"pa/ss".to_owned()));
        assert!(proxy_credentials("http://ada:p@ss@proxy").contains(&"p@ss".to_owned()));
        assert_eq!(proxy_credentials("http://ada@proxy"), ["ada"]);
        for url in ["http://proxy:3128", "proxy:3128", "localhost,.example.com", ""] {
            assert!(proxy_credentials(url).is_empty(), "{url}");
        }
    }
}
