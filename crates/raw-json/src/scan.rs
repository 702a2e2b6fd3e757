//! One pass over a text: JSON's grammar, the depth of nesting and, if asked, duplicate keys.

use std::{borrow::Cow, collections::HashSet};

use crate::{Error, ErrorKind, marks::Marks, plain::plain};

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
    check_noting(text, limits, &mut ())
}

/// The same, and tells on the way where the members of the outermost object stand.
pub(crate) fn check_noting(text: &str, limits: Limits, notes: &mut impl Notes) -> Result<(), Error> {
    let mut scanner = Scanner::new(text);
    scanner.space();
    scanner.value(limits, notes)?;
    scanner.space();
    if scanner.at < text.len() {
        return Err(scanner.syntax("text after the value"));
    }
    Ok(())
}

/// Is told where the members of the outermost object stand, and which values are large.
pub(crate) trait Notes {
    fn member(&mut self, span: Span);

    /// How long a value must be to be noted as a large one.
    fn least(&self) -> usize {
        usize::MAX
    }

    /// Is told where a large value begins and ends, at any depth.
    fn large(&mut self, _start: usize, _end: usize) {}
}

impl Notes for () {
    fn member(&mut self, _: Span) {}
}

/// Where one member of an object stands in a text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    /// Where the key's first quote is.
    pub(crate) key: usize,
    /// Behind its last one.
    pub(crate) key_end: usize,
    pub(crate) is_escaped: bool,
    pub(crate) value: usize,
    /// Behind the value.
    pub(crate) end: usize,
}

impl Span {
    /// Counts from a later place in the text.
    pub(crate) fn shift(&mut self, by: usize) {
        for place in [&mut self.key, &mut self.key_end, &mut self.value, &mut self.end] {
            *place = place.saturating_sub(by);
        }
    }

    /// The key, decoded. A lone surrogate has no decoded form; the escaped text still tells keys apart.
    pub(crate) fn key<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let raw = &text[self.key + 1..self.key_end - 1];
        if self.is_escaped {
            unescape(raw).unwrap_or(Cow::Borrowed(raw))
        } else {
            Cow::Borrowed(raw)
        }
    }
}

/// Which of the containers that are open are objects.
#[derive(Default)]
struct Open {
    depth: usize,
    /// A bit for each of the outer ones, which are mostly all.
    outer: u64,
    inner: Vec<bool>,
    /// How long they must be for it to matter where they begin.
    least: usize,
    /// Where they begin, if that matters for any.
    starts: Vec<usize>,
}

impl Open {
    const OUTER: usize = u64::BITS as usize;

    fn push(&mut self, is_object: bool, start: usize) {
        if self.least < usize::MAX {
            self.starts.push(start);
        }
        if self.depth < Self::OUTER {
            let bit = 1 << self.depth;
            self.outer = if is_object {
                self.outer | bit
            } else {
                self.outer & !bit
            };
        } else {
            self.inner.push(is_object);
        }
        self.depth += 1;
    }

    /// Closes the innermost one, which ends there; returns where it began if it is a long one.
    fn pop(&mut self, end: usize) -> Option<usize> {
        self.depth -= 1;
        if self.depth >= Self::OUTER {
            self.inner.pop();
        }
        self.starts.pop().filter(|start| end - start >= self.least)
    }

    fn is_object(&self) -> bool {
        if self.depth <= Self::OUTER {
            self.outer >> (self.depth - 1) & 1 == 1
        } else {
            self.inner.last() == Some(&true)
        }
    }
}

/// The keys of the objects that are open, the innermost object's last.
#[derive(Default)]
struct Keys<'a> {
    seen: Vec<Seen<'a>>,
    /// Those that were written with escapes.
    decoded: Vec<String>,
    /// Those of the objects that have many, the innermost object's last.
    many: Vec<HashSet<Cow<'a, [u8]>>>,
}

#[derive(Clone, Copy)]
enum Seen<'a> {
    /// Those of another object begin here, and when so many were decoded.
    Object(usize),
    Key(&'a [u8]),
    /// A key by its place among those that were decoded.
    Decoded(usize),
    /// The object has many, which are in the set.
    Many,
}

impl<'a> Keys<'a> {
    /// How many keys of an object are compared one by one.
    const FEW: usize = 16;

    fn open(&mut self) {
        if self.seen.capacity() == 0 {
            self.seen.reserve(Self::FEW);
        }
        self.seen.push(Seen::Object(self.decoded.len()));
    }

    /// Notes a key and tells whether it is new.
    fn insert(&mut self, key: Cow<'a, str>) -> bool {
        let mut n_few = 0;
        for seen in self.seen.iter().rev() {
            let known = match seen {
                Seen::Object(_) => break,
                Seen::Key(known) => known,
                Seen::Decoded(place) => self.decoded[*place].as_bytes(),
                Seen::Many => {
                    let many = self.many.last_mut();
                    return many.is_none_or(|many| many.insert(bytes_of(key)));
                }
            };
            if known == key.as_bytes() {
                return false;
            }
            n_few += 1;
        }
        if n_few + 1 < Self::FEW {
            let seen = match key {
                Cow::Borrowed(key) => Seen::Key(key.as_bytes()),
                Cow::Owned(key) => {
                    self.decoded.push(key);
                    Seen::Decoded(self.decoded.len() - 1)
                }
            };
            self.seen.push(seen);
            return true;
        }
        let few = self.seen.drain(self.seen.len() - n_few..);
        let few = few.filter_map(|seen| match seen {
            Seen::Key(key) => Some(Cow::Borrowed(key)),
            Seen::Decoded(place) => Some(Cow::Owned(self.decoded[place].clone().into_bytes())),
            Seen::Object(_) | Seen::Many => None,
        });
        let many = few.chain([bytes_of(key)]).collect();
        self.seen.push(Seen::Many);
        self.many.push(many);
        true
    }

    fn close(&mut self) {
        while let Some(seen) = self.seen.pop() {
            match seen {
                Seen::Object(n_decoded) => return self.decoded.truncate(n_decoded),
                Seen::Key(_) | Seen::Decoded(_) => {}
                Seen::Many => drop(self.many.pop()),
            }
        }
    }
}

fn bytes_of(key: Cow<'_, str>) -> Cow<'_, [u8]> {
    match key {
        Cow::Borrowed(key) => Cow::Borrowed(key.as_bytes()),
        Cow::Owned(key) => Cow::Owned(key.into_bytes()),
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
        Self::at(text, 0)
    }

    pub(crate) fn at(text: &'a str, at: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at,
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
    fn value(&mut self, limits: Limits, notes: &mut impl Notes) -> Result<(), Error> {
        let least = notes.least();
        let mut open = Open {
            least,
            ..Open::default()
        };
        let mut keys = Keys::default();
        let is_strict = limits.duplicates == Duplicates::Refuse;
        // The member of the outermost object that the cursor is in.
        let mut outermost = Span::default();
        loop {
            // A value is due here.
            if let Some(byte @ (b'{' | b'[')) = self.peek() {
                if open.depth >= limits.depth {
                    return Err(Error::new(ErrorKind::TooDeep(limits.depth), self.at));
                }
                let (is_object, start) = (byte == b'{', self.at);
                self.at += 1;
                self.space();
                if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                    self.at += 1;
                } else {
                    open.push(is_object, start);
                    if is_object {
                        if is_strict {
                            keys.open();
                        }
                        let noted = (open.depth == 1).then_some(&mut outermost);
                        self.key(is_strict, &mut keys, noted)?;
                    }
                    continue;
                }
            } else {
                let start = self.at;
                self.scalar()?;
                if self.at - start >= least {
                    notes.large(start, self.at);
                }
            }
            // A value has ended: close what it closes, or go on to the next one.
            loop {
                if open.depth == 0 {
                    return Ok(());
                }
                let is_object = open.is_object();
                if open.depth == 1 && is_object {
                    outermost.end = self.at;
                    notes.member(outermost);
                }
                self.space();
                match (self.peek(), is_object) {
                    (Some(b','), false) => {
                        self.at += 1;
                        self.space();
                        break;
                    }
                    (Some(b','), true) => {
                        self.at += 1;
                        self.space();
                        let noted = (open.depth == 1).then_some(&mut outermost);
                        self.key(is_strict, &mut keys, noted)?;
                        break;
                    }
                    (Some(b']'), false) | (Some(b'}'), true) => {
                        self.at += 1;
                        if let Some(start) = open.pop(self.at) {
                            notes.large(start, self.at);
                        }
                        if is_object && is_strict {
                            keys.close();
                        }
                    }
                    (None, _) => return Err(self.syntax("the text ends inside a value")),
                    (_, false) => return Err(self.syntax("expected `,` or `]`")),
                    (_, true) => return Err(self.syntax("expected `,` or `}`")),
                }
            }
        }
    }

    /// Passes over a key and its colon, and notes where it stands if that is wanted.
    fn key(&mut self, is_strict: bool, keys: &mut Keys<'a>, noted: Option<&mut Span>) -> Result<(), Error> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.syntax("expected a key in double quotes"));
        }
        let is_escaped = self.string()?;
        let key_end = self.at;
        if is_strict {
            let key = self.decoded(start, is_escaped)?;
            if !keys.insert(key) {
                return Err(self.duplicate(start, is_escaped));
            }
        }
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.syntax("expected `:` after a key"));
        }
        self.at += 1;
        self.space();
        if let Some(noted) = noted {
            *noted = Span {
                key: start,
                key_end,
                is_escaped,
                value: self.at,
                end: self.at,
            };
        }
        Ok(())
    }

    /// The key that began at `start` and ends here.
    fn decoded(&self, start: usize, is_escaped: bool) -> Result<Cow<'a, str>, Error> {
        let raw = &self.text[start + 1..self.at - 1];
        if !is_escaped {
            return Ok(Cow::Borrowed(raw));
        }
        unescape(raw).ok_or_else(|| Error::new(ErrorKind::Syntax("lone surrogate in a key"), start))
    }

    #[cold]
    fn duplicate(&self, start: usize, is_escaped: bool) -> Error {
        let span = Span {
            key: start,
            key_end: self.at,
            is_escaped,
            ..Span::default()
        };
        let shown = span.key(self.text).chars().take(64).collect();
        Error::new(ErrorKind::DuplicateKey(shown), start)
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

    /// Passes over a string, and tells whether anything in it is escaped.
    pub(crate) fn string(&mut self) -> Result<bool, Error> {
        self.at += 1;
        let mut is_escaped = false;
        loop {
            self.at += plain(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(is_escaped);
                }
                Some(b'\\') => {
                    is_escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.syntax("a control character in a string")),
                None => return Err(self.syntax("the text ends inside a string")),
            }
        }
    }

    /// Passes over a string and returns what stands between its quotes, escapes and all.
    pub(crate) fn string_text(&mut self) -> Result<&'a str, Error> {
        let start = self.at + 1;
        self.string()?;
        Ok(&self.text[start..self.at - 1])
    }

    /// Passes over one value of a text that was checked before, at once if it is marked.
    pub(crate) fn skip_marked(&mut self, marks: Option<&Marks>) {
        match marks.and_then(|marks| marks.end_of(self.text, self.at)) {
            Some(end) => self.at = end,
            None => self.skip(),
        }
    }

    /// Passes over one value of a text that was checked before: only looks for its end.
    fn skip(&mut self) {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') => self.skip_container(),
            _ => self.skip_word(),
        }
    }

    fn skip_container(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
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
