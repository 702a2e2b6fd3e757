use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    ops::Range,
};

use crate::HIDDEN;

/// Words in a name that denote a credential.
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
/// Names of authentication schemes, after which a credential follows.
const SCHEMES: [&str; 9] = [
    "bearer",
    "basic",
    "token",
    "digest",
    "apikey",
    "negotiate",
    "ntlm",
    "splunk",
    "ssws",
];
/// Beginnings of well-known kinds of credentials.
const BEGINNINGS: [&str; 22] = [
    "sk-",
    "pk-",
    "rk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "npm_",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
];
/// Minimum length of such a credential.
const MIN_LENGTH: usize = 20;

/// Returns a text without anything that looks like a credential: the values after `Authorization:`, `Bearer`,
/// `password:` or `api_key=`, the user information of URLs, and tokens of well-known kinds. [`HIDDEN`] replaces each.
/// Addresses and paths stay, and so do explanations such as "invalid token: expired".
///
/// Use it for texts from outside, such as errors of upstreams, before anybody reads them: a model, or an operator in
/// a log, a trace or an alert.
///
/// # Examples
/// ```
/// let message = "GET https://ada:pw@10.0.0.7/v1?api_key=x1 was refused";
/// assert_eq!(
///     tool_core::hide_credentials(message),
///     "GET https://[redacted]@10.0.0.7/v1?api_key=[redacted] was refused"
/// );
/// ```
#[must_use]
pub fn hide_credentials(text: &str) -> Cow<'_, str> {
    match without_private_keys(text) {
        None => hide_in_words(text),
        Some(without) => Cow::Owned(hide_in_words(&without).into_owned()),
    }
}

/// Returns the text without private keys in PEM (RFC 7468), if it contains any. A truncated key is hidden up to the
/// end of the text or the string.
fn without_private_keys(text: &str) -> Option<String> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    const LABEL: &str = "PRIVATE KEY-----";
    let mut without = String::new();
    let (mut end, mut at) = (0, 0);
    while let Some(begin) = text[at..].find(BEGIN).map(|begin| begin + at) {
        at = begin + BEGIN.len();
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_uppercase() || b" 0123456789".contains(&byte))
        };
        let label_of = |from: usize| {
            let label = text[from..].find(LABEL).map(|label| label + from)?;
            is_name(&text[from..label]).then_some(label + LABEL.len())
        };
        let Some(label) = label_of(at) else { continue };
        let mut close = label;
        at = loop {
            let Some(next) = text[close..].find(END) else {
                let rest = text[label..].find('"').map_or(text.len(), |quote| label + quote);
                break text[..rest].trim_end().len();
            };
            close += next + END.len();
            if let Some(closed) = label_of(close) {
                break closed;
            }
        };
        without.push_str(&text[end..begin]);
        without.push_str(HIDDEN);
        end = at;
    }
    if end == 0 {
        return None;
    }
    without.push_str(&text[end..]);
    Some(without)
}

fn hide_in_words(text: &str) -> Cow<'_, str> {
    let mut shown = Shown::new(text);
    let mut next = Next::Anything;
    let mut end = 0;
    for range in words(text) {
        next = next.after(&text[end..range.start]);
        end = range.end;
        let word = &text[range.clone()];
        next = match next {
            _ if word.chars().all(|letter| ":=[".contains(letter)) => next.signed(),
            // `Authorization: Bearer abc`: the scheme is not the credential; the next word is.
            Next::Value(_) if is_scheme(word) => next,
            Next::Value(spared) if spared.is_hidden(word) => {
                shown.hide(range);
                Next::Anything
            }
            Next::Cookies if Spared::Words.is_hidden(word) => {
                shown.hide(range);
                next
            }
            _ => match (next, shown.hide_within(range)) {
                (Next::Cookies, Next::Anything) => Next::Cookies,
                (_, after) => after,
            },
        };
    }
    shown.finish()
}

/// Splits a text into words at spaces, quotes and most brackets, without the backslashes that escape quotes.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let ends = |letter: char| letter.is_whitespace() || "\"'`<>(){},;|".contains(letter);
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(|letter| !ends(letter))?;
            let end = text[start..]
                .find(ends)
                .map_or(text.len(), |length| start + length);
            at = end;
            let word = text[start..end].trim_end_matches('\\');
            if !word.is_empty() {
                return Some(start..start + word.len());
            }
        }
    })
}

/// Expectation for the next word.
#[derive(Clone, Copy)]
enum Next {
    /// Any word.
    Anything,
    /// Value of the named item, if a sign such as `:` comes first.
    Signed(After),
    /// Credential.
    Value(Spared),
    /// Cookies, of which a line has several.
    Cookies,
}

/// Kind of the named item.
#[derive(Clone, Copy)]
enum After {
    /// Password or secret, by its name.
    Secret,
    Cookie,
    /// Other name of a credential.
    Other,
}

/// Values that are not hidden although they are where a credential would be.
#[derive(Clone, Copy)]
enum Spared {
    Nothing,
    /// URLs, addresses and small numbers.
    Figures,
    /// Figures, and words of a language: an explanation may follow "token:".
    Words,
}

impl Next {
    /// Returns the expectation after a name, which may include its sign.
    fn after_name(word: &str) -> Self {
        let name = word.trim_end_matches([':', '=', '[']);
        let sign = &word[name.len()..];
        if ["bearer", "basic"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
        {
            return Self::Value(Spared::Words);
        }
        match named(name).map(Self::Signed) {
            None => Self::Anything,
            Some(next) if sign.is_empty() => next,
            // An explanation never follows without a space.
            Some(Self::Signed(After::Other)) if sign.ends_with('=') => Self::Value(Spared::Figures),
            Some(next) => next.signed(),
        }
    }

    fn signed(self) -> Self {
        match self {
            Self::Signed(After::Secret) => Self::Value(Spared::Nothing),
            Self::Signed(After::Cookie) => Self::Cookies,
            Self::Signed(After::Other) => Self::Value(Spared::Words),
            next => next,
        }
    }

    /// Returns the expectation after the text between two words.
    fn after(self, between: &str) -> Self {
        let goes_on = |letter: char| letter.is_whitespace() || "\"'`\\>".contains(letter);
        match self {
            Self::Cookies if between.chars().all(|c| c == ';' || c != '\n' && goes_on(c)) => self,
            Self::Anything | Self::Cookies => Self::Anything,
            _ if !between.chars().all(goes_on) => Self::Anything,
            // `<token>abc</token>`
            Self::Signed(_) if between.contains('>') => self.signed(),
            Self::Value(Spared::Figures) if between.contains(char::is_whitespace) => {
                Self::Value(Spared::Words)
            }
            _ => self,
        }
    }
}

impl Spared {
    fn is_hidden(self, word: &str) -> bool {
        let bare = word.trim_end_matches(['.', ':', '!', '?', ']']);
        let is_number = || bare.len() < 6 && bare.bytes().all(|byte| byte.is_ascii_digit());
        let is_address = || bare.parse::<IpAddr>().is_ok() || bare.parse::<SocketAddr>().is_ok();
        let is_figure = || word.contains("://") || is_number() || is_address();
        let is_prose = || bare.len() < 16 && bare.chars().all(|c| c.is_lowercase() || c == '-');
        match self {
            Self::Nothing => true,
            Self::Figures => !is_figure(),
            Self::Words => !is_figure() && !is_prose(),
        }
    }
}

/// Returns the kind of the credential that this names, if any. Of a host or a path, only the last part is a name.
fn named(name: &str) -> Option<After> {
    let name = name.rsplit(['.', '/']).next().unwrap_or(name);
    let holds = |part: &&str| {
        let mut parts = name.as_bytes().windows(part.len());
        parts.any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
    };
    match *NAMES.iter().find(|part| holds(part))? {
        _ if holds(&"passw") || holds(&"secret") => Some(After::Secret),
        "cookie" => Some(After::Cookie),
        _ => Some(After::Other),
    }
}

/// Returns the range of `user:password` in a word such as `user:password@host`. URLs have a rule of their own.
fn user_of(word: &str) -> Option<Range<usize>> {
    /// Words before mail addresses and the like.
    const NAMES: [&str; 14] = [
        "mailto", "sip", "sips", "acct", "xmpp", "email", "mail", "from", "to", "cc", "bcc", "user", "npm",
        "jsr",
    ];
    let colon = word.find(':')?;
    let end = word.rfind('@').filter(|at| *at > colon + 1)?;
    let start = word[..colon]
        .rfind(['=', '?', '&', '#', '[', '/'])
        .map_or(0, |at| at + 1);
    let (user, host) = (&word[start..colon], &word[end + 1..]);
    let is_address = !user.is_empty()
        && !NAMES.iter().any(|name| user.eq_ignore_ascii_case(name))
        && host.starts_with(|first: char| first.is_alphanumeric() || first == '[')
        && !host.starts_with("sha256:")
        && !word[..end].ends_with(']')
        && !word.contains("://");
    is_address.then_some(start..end)
}

fn is_scheme(word: &str) -> bool {
    let bare = word.trim_matches(['[', ':']);
    SCHEMES.iter().any(|scheme| bare.eq_ignore_ascii_case(scheme))
}

/// Text that is copied only once something is hidden.
struct Shown<'a> {
    text: &'a str,
    written: String,
    /// Length of the text written so far.
    end: usize,
}

impl<'a> Shown<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            written: String::new(),
            end: 0,
        }
    }

    /// Hides a range after all that were hidden so far.
    fn hide(&mut self, range: Range<usize>) {
        let from = range.start.max(self.end);
        if from >= range.end || self.text[range.clone()] == *HIDDEN {
            return;
        }
        self.written.push_str(&self.text[self.end..from]);
        self.written.push_str(HIDDEN);
        self.end = range.end;
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.end == 0 {
            return Cow::Borrowed(self.text);
        }
        self.written.push_str(&self.text[self.end..]);
        Cow::Owned(self.written)
    }

    /// Hides the credentials within a word, and returns the expectation for the next one.
    fn hide_within(&mut self, word: Range<usize>) -> Next {
        let text = self.text;
        let (mut start, mut next) = (word.start, Next::Anything);
        if let Some(user) = user_of(&text[word.clone()]) {
            self.hide_values(word.start..word.start + user.start);
            self.hide(word.start + user.start..word.start + user.end);
            start += user.end;
        }
        // URLs may be nested.
        while let Some(at) = text[start..word.end].find("://") {
            self.hide_values(start..start + at);
            start += at + "://".len();
            let rest = &text[start..word.end];
            let end = start + rest.find(['/', '?', '#']).unwrap_or(rest.len());
            if let Some(user) = text[start..end].rfind('@') {
                self.hide(start..start + user);
                start += user;
            }
            // Separately, so that the end of an address stays, unless the next one begins with it.
            if !text.as_bytes()[end - 1..].starts_with(b"://") {
                next = self.hide_values(start..end);
                start = end;
            }
        }
        if start < word.end {
            next = self.hide_values(start..word.end);
        }
        next
    }

    /// Hides the values of `name=value`, including several as in a query, and tokens of well-known kinds.
    fn hide_values(&mut self, range: Range<usize>) -> Next {
        let text = self.text;
        let mut next = Next::Anything;
        let mut start = range.start;
        for part in text[range].split(['?', '&', '#']) {
            next = self.hide_value(start..start + part.len());
            start += part.len() + 1;
        }
        next
    }

    fn hide_value(&mut self, part: Range<usize>) -> Next {
        let text = &self.text[part.clone()];
        let mut start = 0;
        for (at, sign) in text.match_indices([':', '=', '/', '@', '[', '+']) {
            self.hide_token(part.start + start..part.end);
            let after = named(&text[start..at]).filter(|_| matches!(sign, ":" | "="));
            start = at + 1;
            let Some(after) = after else { continue };
            let value = match &text[start..] {
                HIDDEN => HIDDEN,
                value => value.trim_start_matches([':', '=', '[']),
            };
            if value.is_empty() {
                continue;
            }
            let spared = match after {
                After::Secret => Spared::Nothing,
                _ if sign == "=" => Spared::Figures,
                _ => Spared::Words,
            };
            if is_scheme(value) {
                return Next::Value(Spared::Words);
            }
            if spared.is_hidden(value) {
                self.hide(part.start + start..part.end);
                return match after {
                    After::Cookie => Next::Cookies,
                    _ => Next::Anything,
                };
            }
        }
        self.hide_token(part.start + start..part.end);
        let name = text.trim_end_matches([':', '=', '[']);
        let name = name.rfind([':', '=', '/', '@', '[', '+']).map_or(0, |at| at + 1);
        // Hidden text names nothing.
        let name = name.max(self.end.saturating_sub(part.start));
        Next::after_name(&text[name..])
    }

    /// Hides a token that begins here and has the form of a well-known kind.
    fn hide_token(&mut self, range: Range<usize>) {
        let text = &self.text[range.clone()];
        let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || "-_.".contains(letter));
        let length = text.find(is_end).unwrap_or(text.len());
        if length >= MIN_LENGTH && BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) {
            self.hide(range.start..range.start + length);
        }
    }
}
