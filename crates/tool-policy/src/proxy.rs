//! Credentials in the URLs of proxies.

use percent_encoding::percent_decode_str;
use tool_core::{Provider, Reference};

/// Whether a reference names the variable of a proxy, such as `HTTPS_PROXY` or `npm_config_proxy`.
pub(crate) fn is_named(reference: &Reference) -> bool {
    let name = reference.name.to_ascii_lowercase();
    reference.provider == Provider::Environment && name.ends_with("proxy")
}

/// The user and the password in the URL of a proxy, each alone and both joined, as they are written and decoded. A URL may
/// lack its scheme, and programs disagree where a user ends that holds `/` or `@`: each way is followed.
pub(crate) fn credentials(url: &str) -> Vec<String> {
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
    fn users_and_passwords_of_proxies() {
        for url in [
            "http://ada:p%40ss@proxy:3128",
            "ada:p%40ss@proxy:3128",
            "socks5h://ada:p%40ss@proxy/",
            "http://ada:p%40ss@proxy:3128/path?a=b@c",
        ] {
            let found = credentials(url);
            for expected in ["ada", "p%40ss", "p@ss", "ada:p%40ss", "ada:p@ss"] {
                assert!(
                    found.iter().any(|part| part == expected),
                    "{url}: {expected}: {found:?}"
                );
            }
        }
        assert!(credentials("http://ada:pa/ss@proxy").contains(&"pa/ss".to_owned()));
        assert!(credentials("http://ada:p@ss@proxy").contains(&"p@ss".to_owned()));
        assert_eq!(credentials("http://ada@proxy"), ["ada"]);
        for url in ["http://proxy:3128", "proxy:3128", "localhost,.example.com", ""] {
            assert!(credentials(url).is_empty(), "{url}");
        }
    }
}
