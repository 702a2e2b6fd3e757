/// What a URI comes to when it is taken apart as lenient readers do: percent-encoding is undone, `\` counts as `/`,
/// empty, `.` and `..` segments are resolved, scheme and host are in lower case. Rules look at this as well as at the
/// text, so that another spelling does not get past them.
///
/// It follows the normalisation of RFC 3986, section 6.2.2, and goes further: what is encoded twice is decoded twice.
/// Nothing when the text has more layers of encoding than anyone means.
pub(crate) fn plain_uri(uri: &str) -> Option<String> {
    let mut bytes = uri.as_bytes().to_vec();
    for _ in 0..MAX_LAYERS {
        let decoded = decode(&bytes);
        if decoded == bytes {
            let text = String::from_utf8_lossy(&bytes).replace('\\', "/");
            return Some(resolve(&text));
        }
        bytes = decoded;
    }
    None
}

const MAX_LAYERS: usize = 4;

fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let digits = tail.first_chunk::<2>().filter(|_| *first == b'%');
        match digits.and_then(|[high, low]| Some(hex(*high)? * 16 + hex(*low)?)) {
            Some(byte) => {
                decoded.push(byte);
                rest = &tail[2..];
            }
            None => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    decoded
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Resolves the segments of the path, and lowers the rest.
fn resolve(uri: &str) -> String {
    let (scheme, rest) = match uri.split_once(':') {
        Some((scheme, rest)) if !scheme.contains('/') => (Some(scheme.to_lowercase()), rest),
        _ => (None, uri),
    };
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            (Some(rest[..end].to_lowercase()), &rest[end..])
        }
        None => (None, rest),
    };
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut plain = scheme.map_or_else(String::new, |scheme| scheme + ":");
    if let Some(host) = host {
        plain = plain + "//" + &host;
    }
    if path.starts_with('/') {
        plain.push('/');
    }
    plain += &segments.join("/");
    if path.ends_with('/') && !segments.is_empty() {
        plain.push('/');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_comes_to_the_same() {
        for uri in [
            "file:///secret/a",
            "FILE:///secret/a",
            "file:///x/../secret/a",
            "file:///x/..%2fsecret/a",
            "file:///%73ecret/a",
            "file:///%2573ecret/a",
            "file:////secret//./a",
            "file:///secret\\a",
            "file:///../../secret/a",
        ] {
            assert_eq!(plain_uri(uri).as_deref(), Some("file:///secret/a"), "{uri}");
        }
        for (uri, plain) in [
            ("demo://Host/Path/", "demo://host/Path/"),
            ("mailto:a@b", "mailto:a@b"),
            ("file:///", "file:///"),
            ("a/b", "a/b"),
            ("demo://x/100%", "demo://x/100%"),
            ("demo://x/%zz", "demo://x/%zz"),
            ("", ""),
        ] {
            assert_eq!(plain_uri(uri).as_deref(), Some(plain));
        }
        assert_eq!(plain_uri("file:///%252525252573ecret"), None);
    }
}
