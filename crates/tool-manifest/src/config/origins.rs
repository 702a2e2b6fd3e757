use tool_settings::Field;

use crate::document::{place::Cx, suggest};

/// Reads the origins of web pages. Each is a scheme, a host and perhaps a port, as a browser writes it.
pub(crate) fn read(cx: Cx<'_>, origins: Field<Vec<Field<String>>>) -> Vec<String> {
    let mut read = Vec::new();
    for (at, origin) in origins
        .get()
        .unwrap_or_default()
        .into_iter()
        .filter_map(Field::located)
    {
        match problem(&origin) {
            None => read.push(origin.trim_end_matches('/').to_owned()),
            Some((problem, hint)) => cx.error(at, format!("`{}` {problem}", suggest::shown(&origin)), hint),
        }
    }
    read
}

/// Returns the reason for which a text is no origin that can be listed, and what to write instead.
fn problem(origin: &str) -> Option<(&'static str, &'static str)> {
    const EXAMPLE: &str = "write a scheme, a host and perhaps a port, such as `https://app.example.com`";
    if origin.contains('*') {
        return Some((
            "would let pages of any origin in",
            "list each origin, such as `https://app.example.com`",
        ));
    }
    if origin.eq_ignore_ascii_case("null") {
        return Some(("is the origin of pages that nobody can tell apart", EXAMPLE));
    }
    let Some((scheme, rest)) = origin.split_once("://") else {
        return Some(("is no origin", EXAMPLE));
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    let is_authority = !authority.is_empty()
        && authority.chars().all(|letter| {
            letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_' | ':' | '[' | ']')
        });
    (!is_scheme || !is_authority).then_some(("is no origin", EXAMPLE))
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn only_origins_can_be_listed() {
        for origin in [
            "https://app.example.com",
            "https://app.example.com/",
            "http://localhost:6274",
            "http://[::1]:6274",
            "chrome-extension://abcdefghijklmnop",
        ] {
            assert_eq!(problem(origin), None, "{origin}");
        }
        for origin in [
            "*",
            "https://*.example.com",
            "null",
            "NULL",
            "app.example.com",
            "https://",
            "https:///",
            "https://app.example.com/path",
            "https://app.example.com//",
            "https://user@app.example.com",
            "https://app.example.com?x",
            "https://app example.com",
            "://app.example.com",
            "",
        ] {
            assert!(problem(origin).is_some(), "{origin}");
        }
    }
}
