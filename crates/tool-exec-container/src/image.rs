use std::fmt;

/// Beginning of a digest.
const ALGORITHM: &str = "sha256:";
/// Maximum length of the name of an image.
const MAX_NAME: usize = 255;

/// Image that cannot change: by the digest of its manifest in a registry, or by the id of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageReference {
    /// Name without a tag, and digest of the manifest.
    Manifest { name: String, digest: String },
    /// Id of an image that was made or loaded on this machine.
    Id(String),
}

impl ImageReference {
    /// Reads a reference, or returns a message and a hint.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, String)> {
        let shown = text.escape_debug();
        if is_digest(text) {
            return Ok(Self::Id(text.to_owned()));
        }
        let Some((name, digest)) = text.split_once('@') else {
            let message =
                format!("the image `{shown}` has no digest, and a tag can name another image tomorrow");
            let hint = format!(
                "write `{}@sha256:…`, as `docker image inspect --format '{{{{.RepoDigests}}}}' {shown}` shows it, or the id \
                 `sha256:…` of an image that was made here",
                untagged(text).escape_debug()
            );
            return Err((message, hint));
        };
        if !is_digest(digest) {
            let message = format!("`{}` is no digest of an image", digest.escape_debug());
            return Err((
                message,
                "write `sha256:` and 64 hexadecimal digits in lower case".to_owned(),
            ));
        }
        let name = untagged(name);
        if !is_name(name) {
            let message = format!("`{}` is no name of an image", name.escape_debug());
            let hint = "write it like `alpine`, or with its registry like `registry.example.com/tools/jq`";
            return Err((message, hint.to_owned()));
        }
        Ok(Self::Manifest {
            name: name.to_owned(),
            digest: digest.to_owned(),
        })
    }

    /// Returns the digest that identifies it.
    pub(crate) fn digest(&self) -> &str {
        match self {
            Self::Manifest { digest, .. } | Self::Id(digest) => digest,
        }
    }

    /// Returns what to do so that the engine has the image. `program` is the program of the engine.
    pub(crate) fn how_to_get(&self, program: &str) -> String {
        match self {
            Self::Manifest { .. } => format!("run `{program} pull {self}`"),
            Self::Id(_) => format!("make it with `{program} build`, or load it with `{program} load`"),
        }
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest { name, digest } => write!(f, "{name}@{digest}"),
            Self::Id(id) => f.write_str(id),
        }
    }
}

fn is_digest(text: &str) -> bool {
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let digits = text.strip_prefix(ALGORITHM);
    digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(is_hex))
}

/// Returns a name without its tag, which follows a colon after the last slash.
fn untagged(name: &str) -> &str {
    let last = name.rfind('/').map_or(0, |at| at + 1);
    name[last..].find(':').map_or(name, |at| &name[..last + at])
}

/// Returns `true` for names as registries have them: parts separated by slashes, the first of which can be a host with a port.
fn is_name(name: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let is_part = |part: &str, more: &[u8]| {
        let bytes = part.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return false;
        };
        is_letter(first.to_ascii_lowercase())
            && is_letter(last.to_ascii_lowercase())
            && bytes
                .iter()
                .all(|byte| is_letter(*byte) || b"._-".contains(byte) || more.contains(byte))
    };
    let host = |part: &str| is_part(&part.to_ascii_lowercase(), b":");
    match name.split_once('/') {
        _ if name.len() > MAX_NAME => false,
        None => is_part(name, &[]),
        Some((first, rest)) => host(first) && rest.split('/').all(|part| is_part(part, &[])),
    }
}

#[cfg(test)]
mod tests {
    use super::ImageReference;

    #[test]
    fn references() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for (text, shown) in [
            (format!("alpine@{digest}"), format!("alpine@{digest}")),
            (format!("alpine:3.20@{digest}"), format!("alpine@{digest}")),
            (
                format!("registry.example.com:5000/a/b_c:1@{digest}"),
                format!("registry.example.com:5000/a/b_c@{digest}"),
            ),
            (
                format!("localhost/made@{digest}"),
                format!("localhost/made@{digest}"),
            ),
            (digest.clone(), digest.clone()),
        ] {
            let image = ImageReference::parse(&text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
            assert_eq!(image.to_string(), shown);
            assert_eq!(image.digest(), digest);
        }
        for (text, problem) in [
            ("alpine", "has no digest"),
            ("alpine:3.20", "has no digest"),
            ("", "has no digest"),
            ("alpine@sha256:0a", "is no digest"),
            ("alpine@md5:0a", "is no digest"),
            (&format!("--privileged@{digest}"), "is no name"),
            (&format!("a/../b@{digest}"), "is no name"),
            (&format!("Alpine@{digest}"), "is no name"),
            (&format!("@{digest}"), "is no name"),
            (&format!("a b@{digest}"), "is no name"),
            (&digest.to_uppercase(), "has no digest"),
        ] {
            let (message, hint) = ImageReference::parse(text).expect_err(text);
            assert!(message.contains(problem), "{text}: {message}");
            assert!(!hint.is_empty());
        }
        let (_, hint) = ImageReference::parse("alpine:3.20").expect_err("no digest");
        assert!(
            hint.contains("`alpine@sha256:…`") && hint.contains("{{.RepoDigests}}"),
            "{hint}"
        );
    }
}
