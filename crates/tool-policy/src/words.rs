//! What of a text may be told to a model.

use std::{borrow::Cow, net::IpAddr};

/// What stands in the place of a secret.
const HIDDEN: &str = "[redacted]";
/// Words in a name that say that its value is a secret.
const NAMES: [&str; 8] = [
    "key",
    "token",
    "secret",
    "passw",
    "auth",
    "credential",
    "cookie",
    "signature",
];
/// What stands in the place of an address inside.
const ADDRESS: &str = "[internal address]";
/// What stands in the place of a path on this machine.
const PATH: &str = "[path]";
/// Schemes of URLs that say where to connect to.
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
/// The longest message that is told.
const MAX: usize = 600;

/// Where paths of a machine begin. Others, such as `/v1/users`, are those of an API and say what was asked for.
const ROOTS: [&str; 24] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "mnt", "nix", "opt", "private", "proc", "root",
    "run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var", "Users", "Volumes", "work",
];

/// A message as it may be told: masked, and no longer than models should read.
pub(crate) fn tellable(text: &str) -> Cow<'_, str> {
    let mut told = masked(text);
    if told.len() > MAX {
        let cut = (0..=MAX).rev().find(|at| told.is_char_boundary(*at)).unwrap_or(0);
        told = Cow::Owned(format!("{}…", &told[..cut]));
    }
    told
}

/// The text without what is nobody's business outside: credentials, addresses of the inside and paths of this machine.
/// What is told by a public address is left, as far as its path.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let mut told = String::new();
    let mut is_changed = false;
    let mut next = Next::Anything;
    for piece in pieces(text) {
        let shown = match &piece {
            Piece::Between(between) => {
                next = next.after(between);
                Cow::Borrowed(*between)
            }
            // Between quotes, as in JSON.
            Piece::Word(word @ (":" | "=")) => {
                next = next.after(word);
                Cow::Borrowed(*word)
            }
            Piece::Word(word) => {
                let shown = if next.hides(word) {
                    Cow::Owned(HIDDEN.to_owned())
                } else {
                    self::word(word)
                };
                next = Next::of(word);
                shown
            }
        };
        is_changed |= *shown != *piece.text();
        told.push_str(&shown);
    }
    if is_changed {
        Cow::Owned(told)
    } else {
        Cow::Borrowed(text)
    }
}

/// What the word may be that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Anything.
    Anything,
    /// A secret if `:` or `=` comes first; the flag says that it is one whatever it looks like.
    Named(bool),
    /// A secret, unless it is a word of a language: what follows "token:" may be an explanation.
    Secret(bool),
}

impl Next {
    /// After `Bearer`, `password`, `api_key=`.
    fn of(word: &str) -> Self {
        let word = word.to_ascii_lowercase();
        let name = word.trim_end_matches([':', '=']);
        let is_word = name.contains("passw") || name.contains("secret");
        if matches!(name, "bearer" | "basic") {
            Self::Secret(false)
        } else if name.contains("://") || !NAMES.iter().any(|known| name.contains(known)) {
            Self::Anything
        } else if name.len() < word.len() {
            Self::Secret(is_word)
        } else {
            Self::Named(is_word)
        }
    }

    fn after(self, between: &str) -> Self {
        let is_plain = between.chars().all(|c| c.is_whitespace() || "\"'`:=".contains(c));
        match self {
            Self::Named(is_word) if is_plain && between.contains([':', '=']) => Self::Secret(is_word),
            Self::Secret(_) | Self::Named(_) if is_plain => self,
            _ => Self::Anything,
        }
    }

    fn hides(self, word: &str) -> bool {
        let bare = word.trim_end_matches(['.', ':', '!', '?']);
        let is_prose = bare.len() < 16 && bare.chars().all(|c| c.is_lowercase() || c == '-');
        match self {
            // `Authorization: Bearer abc`: the scheme is no secret, and what comes after it is.
            Self::Secret(_) if bare.eq_ignore_ascii_case("bearer") || bare.eq_ignore_ascii_case("basic") => {
                false
            }
            Self::Secret(is_word) => is_word || !is_prose,
            _ => false,
        }
    }
}

enum Piece<'a> {
    /// Something that may be an address, a path or a secret.
    Word(&'a str),
    /// Spaces, quotes and brackets.
    Between(&'a str),
}

impl<'a> Piece<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Word(text) | Self::Between(text) => text,
        }
    }
}

/// Cuts a text where no address, path or secret goes on.
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

fn word(word: &str) -> Cow<'_, str> {
    if let Some((scheme, rest)) = word.split_once("://") {
        return url(scheme, rest).into();
    }
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && NAMES
            .iter()
            .any(|known| name.to_ascii_lowercase().contains(known))
    {
        return format!("{name}={HIDDEN}").into();
    }
    if looks_secret(word) {
        return Cow::Owned(HIDDEN.to_owned());
    }
    let bare = word.trim_end_matches(['.', ':', '!', '?', ']']);
    let ending = &word[bare.len()..];
    if is_inside(bare.trim_start_matches('[')) && (has_port(bare) || address(bare).is_some() || has_dot(bare))
    {
        return format!("{ADDRESS}{ending}").into();
    }
    if is_path(bare) {
        return format!("{PATH}{ending}").into();
    }
    Cow::Borrowed(word)
}

/// A URL without credentials, query and whatever an inside address leads to.
fn url(scheme: &str, rest: &str) -> String {
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
        // A name for something, such as a resource's: nobody connects to it, and whoever called has named it so.
        return format!("{before}{scheme}://{rest}");
    }
    if is_inside(end) {
        return format!("{before}{ADDRESS}");
    }
    let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    format!("{before}{scheme}://{host}{path}")
}

/// Whether a host, perhaps with a port, is one that only the inside reaches.
fn is_inside(host: &str) -> bool {
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
    is_name && (!name.contains('.') || ends.iter().any(|end| name.ends_with(end)))
}

/// The address that a text is, perhaps with a port and in brackets.
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

/// Whether a bare name is one of a host rather than a word: it has a port, or is `localhost`.
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
    parts.next().is_some_and(|root| ROOTS.contains(&root))
        && parts.next().is_some_and(|next| !next.is_empty())
}

/// Whether a word has the form of a well-known kind of token.
fn looks_secret(word: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "sk-",
        "pk-",
        "rk-",
        "sk_live_",
        "sk_test_",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "eyJ",
    ];
    word.len() >= 20 && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
}
