//! One pass over a text: JSON's grammar, the depth of nesting and, if asked, duplicate keys.

mod duplicate_keys;
mod lexer;
pub(crate) mod skip;
mod special_bytes;
mod strings;
mod utf8;

use std::borrow::Cow;

use self::duplicate_keys::OpenKeys;
pub(crate) use self::{
    lexer::skip_space,
    special_bytes::end_of_plain,
    strings::{unescape, utf16},
    utf8::text_of,
};
use crate::{DuplicateKeys, JsonError, JsonErrorKind, JsonLimits};

/// Checks that `text` is one JSON value within `limits`, and nothing after it but white space.
///
/// The pass is iterative, so no text can exhaust the stack.
///
/// # Errors
/// The first breach of the grammar (RFC 8259) or of the limits, with its offset.
pub fn validate(text: &str, limits: JsonLimits) -> Result<(), JsonError> {
    validate_with(text, limits, &mut ())
}

/// The same, and tells on the way where the members of the outermost object stand.
pub(crate) fn validate_with(
    text: &str,
    limits: JsonLimits,
    visitor: &mut impl ScanVisitor,
) -> Result<(), JsonError> {
    let mut scanner = Scanner::new(text);
    scanner.space();
    scanner.value(limits, visitor)?;
    scanner.space();
    if scanner.at < text.len() {
        return Err(JsonError::syntax("text after the value", scanner.at));
    }
    Ok(())
}

/// Is told where the members of the outermost object stand, and which values are large.
pub(crate) trait ScanVisitor {
    fn visit_member(&mut self, span: Span);

    /// How long a value must be to be noted as a large one.
    fn min_large(&self) -> usize {
        usize::MAX
    }

    /// Is told where a large value begins and ends, at any depth.
    fn visit_large(&mut self, _start: usize, _end: usize) {}
}

impl ScanVisitor for () {
    fn visit_member(&mut self, _: Span) {}
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
    /// The key, decoded. A lone surrogate has no decoded form; the escaped text still tells keys apart.
    #[inline]
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
struct OpenContainers {
    depth: usize,
    /// A bit for each of the innermost ones, up to the last multiple of 64 of them, the innermost one's the lowest.
    inner: u64,
    /// The bits of those around them, 64 in each.
    outer: Vec<u64>,
    /// How long they must be for it to matter where they begin.
    least: usize,
    /// Where they begin, if that matters for any.
    starts: Vec<usize>,
}

impl OpenContainers {
    const INNER: usize = u64::BITS as usize;

    fn new(least: usize) -> Self {
        Self {
            depth: 0,
            inner: 0,
            outer: Vec::new(),
            least,
            starts: Vec::new(),
        }
    }

    fn push(&mut self, is_object: bool, start: usize) {
        if self.least < usize::MAX {
            self.starts.push(start);
        }
        if self.depth.is_multiple_of(Self::INNER) && self.depth > 0 {
            self.outer.push(self.inner);
        }
        self.inner = self.inner << 1 | u64::from(is_object);
        self.depth += 1;
    }

    /// Closes the innermost one, which ends there; returns where it began if it is a long one.
    fn pop(&mut self, end: usize) -> Option<usize> {
        self.depth -= 1;
        self.inner >>= 1;
        if self.depth.is_multiple_of(Self::INNER) {
            self.inner = self.outer.pop().unwrap_or_default();
        }
        self.starts.pop().filter(|start| end - start >= self.least)
    }

    /// Whether the innermost one is an object.
    fn is_object(&self) -> bool {
        self.inner & 1 == 1
    }
}

/// A cursor over JSON text.
#[derive(Clone, Copy)]
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

    #[inline(always)]
    pub(crate) fn space(&mut self) {
        self.at = lexer::skip_space(self.bytes, self.at);
    }

    /// Passes over space and returns the byte behind it, which at the end is zero.
    #[inline(always)]
    fn token(&mut self) -> u8 {
        match self.peek() {
            Some(byte) if byte > b' ' => byte,
            _ => {
                self.at = lexer::skip_spaces(self.bytes, self.at);
                self.peek().unwrap_or_default()
            }
        }
    }

    /// Passes over one value. On return the cursor stands right behind it.
    fn value(&mut self, limits: JsonLimits, visitor: &mut impl ScanVisitor) -> Result<(), JsonError> {
        let least = visitor.min_large();
        let mut open = OpenContainers::new(least);
        let mut keys = OpenKeys::new(self.bytes);
        let is_strict = limits.duplicate_keys == DuplicateKeys::Refuse;
        // The member of the outermost object that the cursor is in.
        let mut outermost = Span::default();
        // Whether the innermost container is an object.
        let mut is_object = false;
        // The byte at which the cursor stands.
        let mut next = self.token();
        loop {
            if is_object {
                let member = self.key(next, is_strict, &mut keys)?;
                next = self.token();
                if open.depth == 1 {
                    outermost = member;
                    outermost.value = self.at;
                }
            }
            // A value is due here.
            let start = self.at;
            if let byte @ (b'{' | b'[') = next {
                if open.depth >= limits.depth {
                    return Err(JsonError::new(JsonErrorKind::TooDeep(limits.depth), start));
                }
                self.at += 1;
                next = self.token();
                if next == if byte == b'{' { b'}' } else { b']' } {
                    self.at += 1;
                } else {
                    is_object = byte == b'{';
                    open.push(is_object, start);
                    if is_object && is_strict {
                        keys.open();
                    }
                    continue;
                }
            } else {
                self.scalar(next)?;
                if self.at - start >= least {
                    visitor.visit_large(start, self.at);
                }
            }
            // A value has ended: close what it closes, or go on to the next one.
            loop {
                if open.depth == 0 {
                    return Ok(());
                }
                if open.depth == 1 && is_object {
                    outermost.end = self.at;
                    visitor.visit_member(outermost);
                }
                match self.token() {
                    b',' => {
                        self.at += 1;
                        next = self.token();
                        break;
                    }
                    b'}' if is_object => {
                        if is_strict {
                            keys.close();
                        }
                    }
                    b']' if !is_object => {}
                    _ => return Err(self.unclosed(is_object)),
                }
                self.at += 1;
                if let Some(start) = open.pop(self.at) {
                    visitor.visit_large(start, self.at);
                }
                is_object = open.is_object();
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn unclosed(self, is_object: bool) -> JsonError {
        let what = match (self.peek(), is_object) {
            (None, _) => "the text ends inside a value",
            (Some(_), false) => "expected `,` or `]`",
            (Some(_), true) => "expected `,` or `}`",
        };
        JsonError::syntax(what, self.at)
    }

    /// Passes over a key, of which this is the first byte, and its colon, and returns where it stands.
    #[inline(always)]
    fn key(&mut self, first: u8, is_strict: bool, keys: &mut OpenKeys<'a>) -> Result<Span, JsonError> {
        let key = self.at;
        if first != b'"' {
            return Err(JsonError::syntax("expected a key in double quotes", key));
        }
        let is_escaped = self.string()?;
        let key_end = self.at;
        if is_strict {
            let is_new = if is_escaped {
                keys.insert_into_set(self.decoded(key)?)
            } else {
                keys.insert(key + 1..key_end - 1)
            };
            if !is_new {
                return Err(self.duplicate(key, is_escaped));
            }
        }
        if self.token() != b':' {
            return Err(JsonError::syntax("expected `:` after a key", self.at));
        }
        self.at += 1;
        Ok(Span {
            key,
            key_end,
            is_escaped,
            ..Span::default()
        })
    }

    /// The key that began at `start` and ends here, without its escapes.
    #[cold]
    #[inline(never)]
    fn decoded(self, start: usize) -> Result<Cow<'a, [u8]>, JsonError> {
        match unescape(&self.text[start + 1..self.at - 1]) {
            Some(Cow::Borrowed(key)) => Ok(Cow::Borrowed(key.as_bytes())),
            Some(Cow::Owned(key)) => Ok(Cow::Owned(key.into_bytes())),
            None => Err(JsonError::syntax("lone surrogate in a key", start)),
        }
    }

    #[cold]
    #[inline(never)]
    fn duplicate(self, start: usize, is_escaped: bool) -> JsonError {
        let span = Span {
            key: start,
            key_end: self.at,
            is_escaped,
            ..Span::default()
        };
        let shown = span.key(self.text).chars().take(64).collect();
        JsonError::new(JsonErrorKind::DuplicateKey(shown), start)
    }

    /// Passes over a value that is no array or object, of which this is the first byte.
    #[inline(always)]
    fn scalar(&mut self, first: u8) -> Result<(), JsonError> {
        if first == b'"' {
            self.string()?;
        } else {
            self.at = lexer::scalar_end(self.bytes, self.at)?;
        }
        Ok(())
    }

    /// Passes over a value that is no array or object and returns its text.
    pub(crate) fn scalar_text(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        let first = self.token();
        self.scalar(first)?;
        Ok(&self.text[start..self.at])
    }

    /// Passes over a string, and tells whether anything in it is escaped.
    #[inline(always)]
    fn string(&mut self) -> Result<bool, JsonError> {
        let (end, is_escaped) = lexer::string_end(self.bytes, self.at)?;
        self.at = end;
        Ok(is_escaped)
    }

    /// Passes over a string and returns what stands between its quotes, escapes and all.
    pub(crate) fn string_text(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at + 1;
        self.string()?;
        Ok(&self.text[start..self.at - 1])
    }
}
