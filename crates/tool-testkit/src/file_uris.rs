//! Spellings of a file's URI, and readers that resolve them.

use url::Url;

/// Chooses alternatives by the bytes that a property test generates.
struct Choices<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        let byte = self.bytes.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        usize::from(byte) % n
    }

    fn pick(&mut self, alternatives: &[&'static str]) -> &'static str {
        alternatives[self.below(alternatives.len())]
    }
}

/// Texts after the scheme.
const AUTHORITIES: &[&str] = &[
    "",
    "//",
    "//",
    "//",
    "//",
    "//localhost",
    "//LocalHost",
    "//127.0.0.1",
    "//[::1]",
    "//127.1",
    "//0x7f.0.0.1",
    "//[::ffff:127.0.0.1]",
    "//u:p@localhost",
    "//localhost.",
    "//localhost:80",
    "////",
    "//%6cocalhost",
    "//\u{ff4c}ocalhost",
    "//elsewhere",
    "\\\\",
    "/\\",
    "//.",
];

/// Texts after the path.
const ENDS: &[&str] = &[
    "",
    "",
    "",
    "",
    "?",
    "?a=/../b",
    "#x",
    "#/../../x",
    ";p=1",
    "/",
    "//",
    ".",
    " ",
    "%20",
    "%00.png",
    "\0",
    "\n",
    "/.",
    "/x/..",
    "%23x",
    "%3fx",
    "::$DATA",
];

/// Spells the URI of a file with this absolute path in the way that `choices` selects. Many spellings name this file
/// for some reader, and some for none.
#[must_use]
pub fn file_spelling(path: &str, choices: &[u8]) -> String {
    let mut choices = Choices {
        bytes: choices,
        next: 0,
    };
    let mut uri = choices
        .pick(&["", "", "", "", "", "", "", " ", "\u{1}", "\t"])
        .to_owned();
    uri += choices.pick(&[
        "file", "file", "file", "file", "file", "FILE", "FiLe", "fi\tle", "f\nile",
    ]);
    uri += ":";
    uri += choices.pick(AUTHORITIES);
    let mut is_first = true;
    for segment in path.trim_start_matches('/').split('/') {
        let usual = [
            "/",
            "/",
            "/",
            "/",
            "/",
            "/",
            "/",
            "/",
            "/",
            "//",
            "/./",
            "/%2e/",
            "/x/../",
            "/x/%2E%2e/",
            "/..;/../",
            "/x/.%2E/",
        ];
        let disguised = [
            "\\",
            "%2f",
            "%5C",
            "%252F",
            "/x/..%2f",
            "/x/..\\",
            "/\t/",
            "/.\n/",
            "/x/%252e%252e/",
        ];
        uri += match (is_first, choices.below(6)) {
            (true, 3) => choices.pick(&["", "/", "\\", "//"]),
            (_, 3) => choices.pick(&disguised),
            _ => choices.pick(&usual),
        };
        for character in segment.chars() {
            uri += &spelled(character, &mut choices);
        }
        uri += choices.pick(&["", "", "", "", "", "", ";v=1", "\t", "%09"]);
        is_first = false;
    }
    uri += choices.pick(ENDS);
    uri
}

fn spelled(character: char, choices: &mut Choices<'_>) -> String {
    let wide = u32::from(character).checked_add(0xfee0).and_then(char::from_u32);
    match choices.below(48) {
        0 => format!("%{:02x}", u32::from(character)),
        1 => format!("%{:02X}", u32::from(character)),
        2 => format!("%25{:02x}", u32::from(character)),
        3 => format!("%{:02x}", u32::from(character)).replace('6', "%36"),
        4 => format!("{character}\n"),
        5 => wide.map_or_else(|| character.to_string(), String::from),
        6 => format!("{character}\u{200b}"),
        7 => character.to_uppercase().to_string(),
        _ => character.to_string(),
    }
}

/// A reader of URIs: returns the path of the file that it opens, if any.
pub type FileReader = fn(&str) -> Option<String>;

/// Returns readers in common use, by name.
#[must_use]
pub fn file_readers() -> [(&'static str, FileReader); 6] {
    [
        ("url crate", |uri| {
            let path = Url::parse(uri).ok()?.to_file_path().ok()?;
            Some(normal(path.to_str()?))
        }),
        ("Node's fileURLToPath", node),
        ("Python's urlparse and unquote", |uri| {
            Some(normal(&unquote(&python_path(uri)?)))
        }),
        ("Python, unquoted twice", |uri| {
            Some(normal(&unquote(&unquote(&python_path(uri)?))))
        }),
        ("a reader that cuts off file://", |uri| {
            Some(normal(&unquote(uri.strip_prefix("file://")?)))
        }),
        ("Windows after Python", |uri| {
            let path = unquote(&python_path(uri)?).replace('\\', "/").to_lowercase();
            let path = path.split('\0').next().unwrap_or_default();
            let names = normal(path);
            let names = names.split('/').map(|name| {
                name.split("::")
                    .next()
                    .unwrap_or(name)
                    .trim_end_matches(['.', ' '])
            });
            Some(names.collect::<Vec<_>>().join("/"))
        }),
    ]
}

/// Reads like `url.fileURLToPath` of Node 22 for POSIX.
fn node(uri: &str) -> Option<String> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    let is_here = url
        .host_str()
        .is_none_or(|host| host.is_empty() || host == "localhost");
    let path = url.path();
    if !is_here || path.to_lowercase().contains("%2f") {
        return None;
    }
    let bytes = percent_decoded(path);
    let path = String::from_utf8(bytes).ok()?;
    // `fs` refuses NUL.
    (!path.contains('\0')).then(|| normal(&path))
}

/// Returns the path as `urllib.parse.urlparse` does.
fn python_path(uri: &str) -> Option<String> {
    let uri = uri.trim_start_matches(|c: char| c <= ' ');
    let uri: String = uri.chars().filter(|c| !['\t', '\r', '\n'].contains(c)).collect();
    let (scheme, rest) = uri.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let rest = match rest.strip_prefix("//") {
        Some(rest) => &rest[rest.find(['/', '?', '#']).unwrap_or(rest.len())..],
        None => rest,
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let path = rest.split('?').next().unwrap_or(rest);
    let last = path.rfind('/').map_or(0, |at| at + 1);
    let end = path[last..].find(';').map_or(path.len(), |at| last + at);
    Some(path[..end].to_owned())
}

fn unquote(text: &str) -> String {
    String::from_utf8_lossy(&percent_decoded(text)).into_owned()
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let (bytes, mut decoded) = (text.as_bytes(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

/// Normalizes like `posixpath.normpath`, for a process whose directory is the root.
fn normal(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_differ() {
        let read = |uri: &str| file_readers().map(|(_, reader)| reader(uri).unwrap_or_default());
        assert_eq!(read("file:///a/b"), ["/a/b"; 6].map(String::from));
        let elsewhere = ["", "", "/b", "/b", "/a/b", "/b"];
        assert_eq!(read("file://a/b"), elsewhere.map(String::from));
        let with_params = ["/a;p", "/a;p", "/a", "/a", "", "/a"];
        assert_eq!(read("file:/x/../a;p"), with_params.map(String::from));
    }

    #[test]
    fn spellings_are_often_read_as_the_file() {
        let mut state = 1_u64;
        let mut hits = [0; 6];
        for _ in 0..2000 {
            let choices: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_le_bytes()[6]
            })
            .take(80)
            .collect();
            let uri = file_spelling("/secret/key", &choices);
            for (hits, (_, reader)) in hits.iter_mut().zip(file_readers()) {
                *hits += usize::from(reader(&uri).as_deref() == Some("/secret/key"));
            }
        }
        assert!(hits.iter().all(|hits| *hits > 0), "{hits:?}");
    }
}
