//! Masking: hides credentials, internal addresses and local paths in texts for callers.

use std::{borrow::Cow, net::IpAddr};

use tool_core::hide_credentials;
use tool_scan::escape_for_model;

/// Replaces an internal address.
const ADDRESS: &str = "[internal address]";
/// Replaces a path on this machine.
const PATH: &str = "[path]";
/// Schemes of URLs to which programs connect.
const PROTOCOLS: [&str; 22] = [
    "http",
    "https",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "ssh",
    "tcp",
    "udp",
    "tls",
    "grpc",
    "redis",
    "rediss",
    "postgres",
    "postgresql",
    "mysql",
    "mongodb",
    "amqp",
    "nats",
    "ldap",
    "smtp",
];
/// Maximum length of a message, in bytes.
const MAX_LENGTH: usize = 600;

/// First components of paths on a machine. Other paths, such as `/v1/users`, belong to an API and identify the request.
const PATH_ROOTS: [&str; 24] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "mnt", "nix", "opt", "private", "proc", "root",
    "run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var", "Users", "Volumes", "work",
];

/// Returns a message in a form that clients and models may read: one line of at most 600 bytes, without credentials, internal
/// addresses and paths of this machine, and without hidden characters and active markup.
///
/// # Examples
/// ```
/// use tool_policy::text_for_caller;
///
/// assert_eq!(text_for_caller("no route to 10.0.0.7:5432"), "no route to [internal address]");
/// ```
#[must_use]
pub fn text_for_caller(text: &str) -> Cow<'_, str> {
    let mut shown = match mask(text) {
        Cow::Borrowed(text) => escape_for_model(text),
        Cow::Owned(text) => Cow::Owned(escape_for_model(&text).into_owned()),
    };
    if shown.len() > MAX_LENGTH {
        let cut = (0..=MAX_LENGTH)
            .rev()
            .find(|at| shown.is_char_boundary(*at))
            .unwrap_or(0);
        shown = Cow::Owned(format!("{}…", &shown[..cut]));
    }
    shown
}

/// Returns the text without credentials, internal addresses and paths of this machine. A URL of a public host keeps its host
/// and path.
pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    match hide_credentials(text) {
        Cow::Borrowed(text) => mask_locations(text),
        Cow::Owned(text) => Cow::Owned(mask_locations(&text).into_owned()),
    }
}

/// Returns the text without internal addresses and local paths.
fn mask_locations(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    let mut is_changed = false;
    for piece in pieces(text) {
        let shown = match piece {
            Piece::Between(between) => Cow::Borrowed(between),
            Piece::Word(word) => mask_word(word),
        };
        is_changed |= *shown != *piece.text();
        masked.push_str(&shown);
    }
    if is_changed {
        Cow::Owned(masked)
    } else {
        Cow::Borrowed(text)
    }
}

#[derive(Clone, Copy)]
enum Piece<'a> {
    /// Text that may be an address or a path.
    Word(&'a str),
    /// Spaces, quotes and brackets between words.
    Between(&'a str),
}

impl<'a> Piece<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Word(text) | Self::Between(text) => text,
        }
    }
}

/// Splits a text at characters that end an address or a path.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let ends = |c: char| c.is_whitespace() || "\"'`<>(){},;|".contains(c);
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_between = ends(first);
        let end = rest.find(|c| ends(c) != is_between).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(if is_between {
            Piece::Between(piece)
        } else {
            Piece::Word(piece)
        })
    })
}

fn mask_word(word: &str) -> Cow<'_, str> {
    if let Some((scheme, rest)) = word.split_once("://") {
        return mask_url(scheme, rest).into();
    }
    let bare = word.trim_end_matches(['.', ':', '!', '?', ']']);
    let ending = &word[bare.len()..];
    if is_internal(bare.trim_start_matches('['))
        && (has_port(bare) || address(bare).is_some() || has_dot(bare))
    {
        return format!("{ADDRESS}{ending}").into();
    }
    if is_path(bare) {
        return format!("{PATH}{ending}").into();
    }
    Cow::Borrowed(word)
}

/// Returns a URL without credentials and query, or a placeholder if its host is internal.
fn mask_url(scheme: &str, rest: &str) -> String {
    let before = scheme.rfind(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
    let (before, scheme) = scheme.split_at(before.map_or(0, |at| at + 1));
    if scheme.eq_ignore_ascii_case("file") {
        return format!("{before}{PATH}");
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = host.trim_end_matches([':', '.', '!', ']']);
    let protocol = scheme.rsplit('+').next().unwrap_or(scheme).to_ascii_lowercase();
    let is_reached = PROTOCOLS.contains(&&*protocol) || authority.contains('@');
    if !is_reached && address(end).is_none() && !has_port(end) {
        // A URI that only names something, such as a resource: no program connects to it, and the caller wrote it.
        return format!("{before}{scheme}://{rest}");
    }
    if is_internal(end) {
        return format!("{before}{ADDRESS}");
    }
    let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    format!("{before}{scheme}://{host}{path}")
}

/// Returns `true` if a host, with or without a port, is reachable only from the internal network.
fn is_internal(host: &str) -> bool {
    if let Some(address) = address(host) {
        return is_private(address);
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    let ends = [
        ".internal",
        ".local",
        ".localhost",
        ".lan",
        ".corp",
        ".intranet",
        ".home.arpa",
        ".svc",
    ];
    // The name of a permission, which messages tell callers.
    let is_permission = name == "network.internal";
    is_name && !is_permission && (!name.contains('.') || ends.iter().any(|end| name.ends_with(end)))
}

/// Parses an IP address, with or without a port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_matches(['[', ']']);
    if let Ok(address) = bare.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port
        .then(|| host.trim_matches(['[', ']']).parse().ok())
        .flatten()
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || is_shared
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_private(v4.into()),
            None => {
                let first = v6.segments()[0];
                let is_local = first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80;
                v6.is_loopback() || v6.is_unspecified() || is_local
            }
        },
    }
}

/// Returns `true` if a word is a host name rather than plain text: it has a port, or it is `localhost`.
fn has_port(word: &str) -> bool {
    let is_port =
        |port: &str| !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let local = word.split(':').next().unwrap_or_default();
    word.rsplit_once(':').is_some_and(|(_, port)| is_port(port))
        && local.bytes().any(|b| b.is_ascii_alphabetic())
        || word.eq_ignore_ascii_case("localhost")
}

fn has_dot(word: &str) -> bool {
    word.contains('.')
}

fn is_path(word: &str) -> bool {
    if word.starts_with("~/") || word.starts_with("\\\\") {
        return true;
    }
    if let [drive, b':', b'\\' | b'/', ..] = word.as_bytes()
        && drive.is_ascii_alphabetic()
    {
        return true;
    }
    let mut parts = word
        .strip_prefix('/')
        .into_iter()
        .flat_map(|rest| rest.split('/'));
    parts.next().is_some_and(|root| PATH_ROOTS.contains(&root))
        && parts.next().is_some_and(|next| !next.is_empty())
}
