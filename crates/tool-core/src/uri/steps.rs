//! Steps in which readers of URIs differ. Each returns `None` if it changes nothing.

use icu_normalizer::DecomposingNormalizerBorrowed;
use url::{Host, Url};

pub(super) type Step = fn(&str) -> Option<String>;

/// Steps after which a reader that performs them still finds the same resource.
pub(super) const EQUIVALENT: &[Step] = &[
    strip_invisible,
    decompose,
    slashes,
    lower_authority,
    parse_as_browser,
    file_without_authority,
    file_authority_as_path,
    without_empty_authority,
    drive_letter,
    resolve_dots,
    collapse_slashes,
    trim_dots,
];

/// Steps that remove a part of the URI: readers of files know no query, others no fragment.
pub(super) const CUTS: &[Step] = &[cut_at_control, cut_fragment, cut_query, cut_params];

/// Steps of some readers that merge URIs which others distinguish.
pub(super) const COARSE: &[Step] = &[resolve_host, trim_slashes];

/// [`COARSE`] steps for URIs, but not for rules: a rule with an authority is about that authority, and a shortened
/// rule is about more resources.
pub(super) const COARSE_OF_URI: &[Step] = &[resolve_host, trim_slashes, cut_stream, without_authority];

/// Parts of a URI, unchecked.
struct Parts<'a> {
    scheme: &'a str,
    authority: Option<&'a str>,
    path: &'a str,
}

impl<'a> Parts<'a> {
    fn parse(uri: &'a str) -> Option<Self> {
        let (scheme, rest) = uri.split_once(':')?;
        // A pattern may have `*` here.
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.*".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
            return None;
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        Some(Self {
            scheme,
            authority,
            path,
        })
    }

    fn is_file(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("file")
    }

    /// Returns the authority if it is present and not empty, and the URI is not a file URI.
    fn host(&self) -> Option<&'a str> {
        self.authority.filter(|host| !host.is_empty() && !self.is_file())
    }
}

fn changed(before: &str, after: String) -> Option<String> {
    (after != before).then_some(after)
}

/// Returns `true` for invisible characters: controls, and the default ignorables of Unicode.
pub(super) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Removes tabs and line breaks anywhere, and controls and spaces at both ends (WHATWG URL).
fn strip_invisible(uri: &str) -> Option<String> {
    let is_plain = |byte: u8| byte > b' ' && byte < 0x7f;
    if uri.bytes().all(is_plain) {
        return None;
    }
    let kept: String = uri.chars().filter(|c| !is_invisible(*c)).collect();
    changed(uri, kept.trim().to_owned())
}

/// Decomposes the text (NFKD): file systems normalize names, and hosts are read in compatibility forms.
fn decompose(uri: &str) -> Option<String> {
    if uri.is_ascii() {
        return None;
    }
    let normalizer = DecomposingNormalizerBorrowed::new_nfkd();
    changed(uri, normalizer.normalize(uri).into_owned())
}

fn slashes(uri: &str) -> Option<String> {
    uri.contains('\\').then(|| uri.replace('\\', "/"))
}

/// Writes scheme and host in lower case, without the default port (RFC 3986, sections 6.2.2.1 and 6.2.3), user and
/// password: they identify the caller, not the resource.
fn lower_authority(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri)?;
    let scheme = parts.scheme.to_lowercase();
    let Some(authority) = parts.host() else {
        let rest = &uri[parts.scheme.len()..];
        return changed(uri, scheme + rest);
    };
    let host = authority.rsplit('@').next().unwrap_or(authority).to_lowercase();
    let default_port = match &*scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        "ftp" => ":21",
        _ => ":",
    };
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    let host = host.trim_end_matches([':', '.']);
    changed(uri, format!("{scheme}://{host}{}", parts.path))
}

/// Parses and serializes the URI as a browser does (WHATWG URL).
fn parse_as_browser(uri: &str) -> Option<String> {
    changed(uri, Url::parse(uri).ok()?.into())
}

/// Removes the authority of a file: an absent, an empty and a local one name the same file (RFC 8089). Readers such
/// as Python's `urlparse(uri).path` ignore it.
fn file_without_authority(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri).filter(Parts::is_file)?;
    let slash = if parts.path.starts_with('/') { "" } else { "/" };
    changed(uri, format!("{}://{slash}{}", parts.scheme, parts.path))
}

/// Treats the authority of a file as a directory, like readers that cut off `file://`.
fn file_authority_as_path(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri).filter(Parts::is_file)?;
    let authority = parts.authority.filter(|authority| !authority.is_empty())?;
    Some(format!("{}:///{authority}{}", parts.scheme, parts.path))
}

/// Removes an empty authority: `demo:///x` and `demo:/x` have the same path.
fn without_empty_authority(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri).filter(|parts| !parts.is_file())?;
    let is_empty = parts.authority == Some("") && !parts.path.starts_with("//");
    is_empty.then(|| format!("{}:{}", parts.scheme, parts.path))
}

/// Removes the authority, like readers that use the path alone.
fn without_authority(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri)?;
    parts.host()?;
    Some(format!("{}://{}", parts.scheme, parts.path))
}

/// Writes drive letters in one form: `file:///c|/x` is `file:///c:/x`.
fn drive_letter(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri).filter(Parts::is_file)?;
    let path = parts.path.trim_start_matches('/');
    let is_drive = path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && path[1..].starts_with('|');
    is_drive.then(|| format!("{}:///{}:{}", parts.scheme, &path[..1], &path[2..]))
}

/// Returns the URI with another path.
fn with_path(uri: &str, make: impl FnOnce(&str) -> String) -> Option<String> {
    let path = Parts::parse(uri).map_or(uri, |parts| parts.path);
    let head = &uri[..uri.len() - path.len()];
    changed(uri, format!("{head}{}", make(path)))
}

/// Resolves dot segments (RFC 3986, section 5.2.4). Empty segments count.
fn resolve_dots(uri: &str) -> Option<String> {
    if !has_dot_segments(uri) {
        return None;
    }
    with_path(uri, |path| {
        let (root, body) = match path.strip_prefix('/') {
            Some(body) => ("/", body),
            None => ("", path),
        };
        let mut segments = Vec::new();
        for segment in body.split('/') {
            match segment {
                "." => {}
                ".." => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        let ends_in_dots = matches!(body.rsplit('/').next(), Some("." | ".."));
        let end = if ends_in_dots && !segments.is_empty() {
            "/"
        } else {
            ""
        };
        format!("{root}{}{end}", segments.join("/"))
    })
}

/// Returns `true` if a segment of the path leads elsewhere.
pub(super) fn has_dot_segments(uri: &str) -> bool {
    let path = Parts::parse(uri).map_or(uri, |parts| parts.path);
    path.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Collapses slashes: several are one (POSIX).
fn collapse_slashes(uri: &str) -> Option<String> {
    if uri.matches("//").take(2).count() == 0 {
        return None;
    }
    with_path(uri, |path| {
        let mut collapsed = String::with_capacity(path.len());
        for character in path.chars() {
            if character != '/' || !collapsed.ends_with('/') {
                collapsed.push(character);
            }
        }
        collapsed
    })
}

/// Removes dots and spaces at the end of names (Windows).
fn trim_dots(uri: &str) -> Option<String> {
    let trimmed = |segment: &str| {
        let without_spaces = segment.trim_end_matches(' ');
        let without_dots = segment.trim_end_matches(['.', ' ']);
        match without_spaces {
            "." | ".." => without_spaces,
            // A pattern would match more.
            _ if without_dots.ends_with('*') => segment,
            _ => without_dots,
        }
        .to_owned()
    };
    with_path(uri, |path| {
        path.split('/').map(trimmed).collect::<Vec<_>>().join("/")
    })
}

/// Cuts at a NUL or a line break, like C strings and line-based readers.
fn cut_at_control(uri: &str) -> Option<String> {
    let at = uri.find(char::is_control).filter(|at| *at > 0)?;
    Some(uri[..at].to_owned())
}

fn cut_fragment(uri: &str) -> Option<String> {
    uri.find('#').map(|at| uri[..at].to_owned())
}

fn cut_query(uri: &str) -> Option<String> {
    uri.find('?').map(|at| uri[..at].to_owned())
}

/// Removes parameters: the part of a segment after `;` (RFC 3986, section 3.3).
fn cut_params(uri: &str) -> Option<String> {
    if !uri.contains(';') {
        return None;
    }
    with_path(uri, |path| {
        let names = path
            .split('/')
            .map(|segment| segment.split(';').next().unwrap_or(segment));
        names.collect::<Vec<_>>().join("/")
    })
}

/// Writes the host as browsers read it: percent-decoded, in Punycode, with numbers in their usual form. All names of
/// the local machine become one.
fn resolve_host(uri: &str) -> Option<String> {
    let parts = Parts::parse(uri)?;
    let authority = parts.host()?;
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => (host, Some(port).filter(|port| !port.is_empty())),
        _ => (authority, None),
    };
    let is_loopback = |host: &Host| match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => {
            address.is_loopback()
                || address
                    .to_ipv4_mapped()
                    .is_some_and(|address| address.is_loopback())
        }
    };
    let host = match Host::parse(host.trim_end_matches('.')).ok()? {
        host if is_loopback(&host) => "localhost".to_owned(),
        host => host.to_string(),
    };
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    changed(uri, format!("{}://{host}{port}{}", parts.scheme, parts.path))
}

fn trim_slashes(uri: &str) -> Option<String> {
    with_path(uri, |path| {
        let trimmed = path.trim_end_matches('/');
        let is_root = trimmed.is_empty() && !path.is_empty();
        if is_root { "/" } else { trimmed }.to_owned()
    })
}

/// Removes the stream of a file name: `a.txt::$DATA` is `a.txt` (NTFS).
fn cut_stream(uri: &str) -> Option<String> {
    Parts::parse(uri).filter(Parts::is_file)?;
    with_path(uri, |path| {
        let drive = path
            .find(':')
            .filter(|at| path[..*at].trim_start_matches('/').len() == 1);
        let body = drive.map_or(0, |at| at + 1);
        let names = path[body..]
            .split('/')
            .map(|segment| segment.split(':').next().unwrap_or(segment));
        format!("{}{}", &path[..body], names.collect::<Vec<_>>().join("/"))
    })
}
