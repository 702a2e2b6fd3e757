//! One pass over a text: JSON's grammar, the depth of nesting and, if asked, duplicate keys.

use std::{borrow::Cow, collections::HashSet};

use crate::{Error, ErrorKind, plain::plain};

/// What a text may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many arrays and objects may stand inside each other.
    pub depth: usize,
    /// Whether an object may have a key twice.
    pub duplicates: Duplicates,
}

/// What to do about an object that has a key twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// Let it pass: for text that is only relayed.
    Allow,
    /// Refuse it: for text that a policy reads and an upstream reads again.
    Refuse,
}

impl Limits {
    /// For text that is relayed: 128 levels, duplicate keys pass.
    pub const RELAY: Self = Self {
        depth: 128,
        duplicates: Duplicates::Allow,
    };
    /// For text that is judged: 128 levels, no duplicate key at any depth.
    pub const STRICT: Self = Self {
        depth: 128,
        duplicates: Duplicates::Refuse,
    };
}

/// Checks that `text` is one JSON value within `limits`, and nothing after it but white space.
///
/// The pass is iterative, so no text can exhaust the stack.
///
/// # Errors
/// The first breach of the grammar (RFC 8259) or of the limits, with its offset.
pub fn check(text: &str, limits: Limits) -> Result<(), Error> {
    let mut scanner = Scanner::new(text);
    scanner.space();
    scanner.value(limits)?;
    scanner.space();
    if scanner.at < text.len() {
        return Err(scanner.syntax("text after the value"));
    }
    Ok(())
}

/// Where the scanner stands in a container.
enum Open<'a> {
    Array,
    Object(Keys<'a>),
}

/// The keys of an object that were seen so far.
enum Keys<'a> {
    Ignored,
    /// While they are few: those behind this place in the list of all objects that are open.
    Few(usize),
    Many(HashSet<Cow<'a, str>>),
}

impl<'a> Keys<'a> {
    /// Notes a key and tells whether it is new.
    fn insert(&mut self, key: Cow<'a, str>, list: &mut Vec<Cow<'a, str>>) -> bool {
        match self {
            Self::Ignored => true,
            Self::Many(set) => set.insert(key),
            Self::Few(start) => {
                if list[*start..].contains(&key) {
                    return false;
                }
                list.push(key);
                if list.len() - *start == 16 {
                    *self = Self::Many(list.drain(*start..).collect());
                }
                true
            }
        }
    }
}

/// A cursor over JSON text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    pub(crate) fn syntax(&self, what: &'static str) -> Error {
        Error::new(ErrorKind::Syntax(what), self.at)
    }

    /// Passes over one value. On return the cursor stands right behind it.
    pub(crate) fn value(&mut self, limits: Limits) -> Result<(), Error> {
        let mut open: Vec<Open<'a>> = Vec::new();
        let mut list = Vec::new();
        loop {
            // A value is due here.
            let opened = match self.peek() {
                Some(b'{') => Some(Open::Object(match limits.duplicates {
                    Duplicates::Allow => Keys::Ignored,
                    Duplicates::Refuse => Keys::Few(list.len()),
                })),
                Some(b'[') => Some(Open::Array),
                _ => {
                    self.scalar()?;
                    None
                }
            };
            if let Some(mut container) = opened {
                if open.len() >= limits.depth {
                    return Err(Error::new(ErrorKind::TooDeep(limits.depth), self.at));
                }
                self.at += 1;
                self.space();
                let close = if matches!(container, Open::Array) {
                    b']'
                } else {
                    b'}'
                };
                if self.peek() == Some(close) {
                    self.at += 1;
                } else {
                    if let Open::Object(keys) = &mut container {
                        self.key(keys, &mut list)?;
                    }
                    open.push(container);
                    continue;
                }
            }
            // A value has ended: close what it closes, or go on to the next one.
            loop {
                let Some(container) = open.last_mut() else {
                    return Ok(());
                };
                self.space();
                match (self.peek(), container) {
                    (Some(b','), Open::Array) => {
                        self.at += 1;
                        self.space();
                        break;
                    }
                    (Some(b','), Open::Object(keys)) => {
                        self.at += 1;
                        self.space();
                        self.key(keys, &mut list)?;
                        break;
                    }
                    (Some(b']'), Open::Array) | (Some(b'}'), Open::Object(_)) => {
                        self.at += 1;
                        if let Some(Open::Object(Keys::Few(start))) = open.pop() {
                            list.truncate(start);
                        }
                    }
                    (None, _) => return Err(self.syntax("the text ends inside a value")),
                    (_, Open::Array) => return Err(self.syntax("expected `,` or `]`")),
                    (_, Open::Object(_)) => return Err(self.syntax("expected `,` or `}`")),
                }
            }
        }
    }

    fn key(&mut self, keys: &mut Keys<'a>, list: &mut Vec<Cow<'a, str>>) -> Result<(), Error> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a key in double quotes"));
        }
        let raw = self.string()?;
        if !matches!(keys, Keys::Ignored) {
            let key = unescape(raw)
                .ok_or_else(|| Error::new(ErrorKind::Syntax("lone surrogate in a key"), start))?;
            if !keys.insert(key.clone(), list) {
                return Err(Error::new(
                    ErrorKind::DuplicateKey(key.chars().take(64).collect()),
                    start,
                ));
            }
        }
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.syntax("expected `:` after a key"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            None => Err(self.syntax("the text ends where a value is due")),
            Some(_) => Err(self.syntax("expected a value")),
        }
    }

    /// Passes over a value that is no array or object and returns its text.
    pub(crate) fn scalar_text(&mut self) -> Result<&'a str, Error> {
        let start = self.at;
        self.scalar()?;
        Ok(&self.text[start..self.at])
    }

    fn word(&mut self, word: &'static str) -> Result<(), Error> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.syntax("expected a value"))
        }
    }

    fn digits(&mut self) -> Result<(), Error> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.syntax("expected a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Error> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.syntax("a number with a leading zero"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Passes over a string and returns what stands between its quotes, escapes and all.
    pub(crate) fn string(&mut self) -> Result<&'a str, Error> {
        self.at += 1;
        let start = self.at;
        loop {
            self.at += plain(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.syntax("a control character in a string")),
                None => return Err(self.syntax("the text ends inside a string")),
            }
        }
    }

    /// Passes over one value of a text that was checked before: only looks for its end.
    pub(crate) fn skip(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                Some(_) if depth > 0 => self.at += 1,
                Some(_) => self.skip_word(),
                None => return,
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while self.at < self.bytes.len() {
            self.at += plain(&self.bytes[self.at..]);
            if self.peek() == Some(b'"') {
                self.at += 1;
                return;
            }
            // A backslash and what it escapes.
            self.at += 2;
        }
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn skip_word(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
        {
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Result<(), Error> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
                if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(self.syntax("a bad \\u escape"));
                }
                self.at += 6;
            }
            _ => return Err(self.syntax("a bad escape")),
        }
        Ok(())
    }
}

/// The text that a string stands for, from what stands between its quotes; nothing for a lone surrogate.
pub(crate) fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    if plain(raw.as_bytes()) == raw.len() {
        return Some(Cow::Borrowed(raw));
    }
    // serde_json decodes escapes; the quotes make the slice a string again.
    serde_json::from_str::<String>(&format!("\"{raw}\""))
        .ok()
        .map(Cow::Owned)
}

/// The UTF-16 code units that a string stands for, from what stands between its quotes: also those of a lone
/// surrogate.
pub(crate) fn utf16(raw: &str) -> impl Iterator<Item = u16> + '_ {
    let mut rest = raw.chars();
    let mut second = None;
    std::iter::from_fn(move || {
        if let Some(unit) = second.take() {
            return Some(unit);
        }
        let character = rest.next()?;
        if character != '\\' {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units);
            second = units.get(1).copied();
            return Some(units[0]);
        }
        Some(match rest.next()? {
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'u' => rest
                .by_ref()
                .take(4)
                .filter_map(|digit| digit.to_digit(16))
                .fold(0, |unit, digit| unit << 4 | digit as u16),
            // A quote, a backslash or a slash: one byte that stands for itself.
            other => other as u16,
        })
    })
}
