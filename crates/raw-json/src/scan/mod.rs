//! Single-pass scanner: validates the grammar of JSON, the depth of nesting and, on request, the uniqueness of keys.

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

/// Validates that `text` is one JSON value within `limits`, followed by nothing but white space.
///
/// The pass is iterative, so no text can exhaust the stack.
///
/// # Errors
/// Returns the first violation of the grammar (RFC 8259) or of the limits, with its offset.
pub fn validate(text: &str, limits: JsonLimits) -> Result<(), JsonError> {
    validate_with(text, limits, &mut ())
}

/// Validates like [`validate`] and reports members and large values to `visitor`.
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

/// Visitor of the outermost object's members and of large values at any depth.
pub(crate) trait ScanVisitor {
    fn visit_member(&mut self, span: Span);

    /// Minimum length of a large value, in bytes.
    fn min_large(&self) -> usize {
        usize::MAX
    }

    /// Called for each large value, at any depth, with its start and end.
    fn visit_large(&mut self, _start: usize, _end: usize) {}
}

impl ScanVisitor for () {
    fn visit_member(&mut self, _: Span) {}
}

/// Offsets of one member of an object.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    /// Offset of the key's opening quote.
    pub(crate) key: usize,
    /// Offset after the key's closing quote.
    pub(crate) key_end: usize,
    pub(crate) is_escaped: bool,
    pub(crate) value: usize,
    /// Offset after the value.
    pub(crate) end: usize,
}

impl Span {
    /// Decodes the key. A lone surrogate has no decoded form, so such a key keeps its escapes, which still distinguish
    /// it from others.
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

/// Stack of the open containers: one bit for each, set for an object.
struct OpenContainers {
    depth: usize,
    /// Bits of the innermost containers, back to the last multiple of 64. The innermost one has the lowest bit.
    inner: u64,
    /// Bits of the outer containers, 64 in each word.
    outer: Vec<u64>,
    /// Minimum length of a container whose start matters, in bytes.
    least: usize,
    /// Starts of the open containers. Empty if no start matters.
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

    /// Closes the innermost container at `end`. Returns its start if it is a large one.
    fn pop(&mut self, end: usize) -> Option<usize> {
        self.depth -= 1;
        self.inner >>= 1;
        if self.depth.is_multiple_of(Self::INNER) {
            self.inner = self.outer.pop().unwrap_or_default();
        }
        self.starts.pop().filter(|start| end - start >= self.least)
    }

    /// `true` if the innermost container is an object.
    fn is_object(&self) -> bool {
        self.inner & 1 == 1
    }
}

/// Cursor over JSON text.
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

    /// Skips white space and returns the byte after it, or zero at the end of the text.
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

    /// Scans one value. Leaves the cursor right after it.
    fn value(&mut self, limits: JsonLimits, visitor: &mut impl ScanVisitor) -> Result<(), JsonError> {
        let least = visitor.min_large();
        let mut open = OpenContainers::new(least);
        let mut keys = OpenKeys::new(self.bytes);
        let is_strict = limits.duplicate_keys == DuplicateKeys::Refuse;
        // Current member of the outermost object.
        let mut outermost = Span::default();
        // `true` while the innermost container is an object.
        let mut is_object = false;
        // Byte at the cursor.
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
            // A value must start here.
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
            // A value has ended: close the containers that end with it, or continue with the next value.
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
            (None, _) => "unexpected end of text inside a value",
            (Some(_), false) => "expected `,` or `]`",
            (Some(_), true) => "expected `,` or `}`",
        };
        JsonError::syntax(what, self.at)
    }

    /// Scans a key, whose first byte is `first`, and its colon. Returns its offsets.
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

    /// Decodes the key from `start` to the cursor.
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

    /// Scans a value that is neither array nor object and begins with the byte `first`.
    #[inline(always)]
    fn scalar(&mut self, first: u8) -> Result<(), JsonError> {
        if first == b'"' {
            self.string()?;
        } else {
            self.at = lexer::scalar_end(self.bytes, self.at)?;
        }
        Ok(())
    }

    /// Scans a value that is neither array nor object, and returns its text.
    pub(crate) fn scalar_text(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        let first = self.token();
        self.scalar(first)?;
        Ok(&self.text[start..self.at])
    }

    /// Scans a string. Returns `true` if it contains escapes.
    #[inline(always)]
    fn string(&mut self) -> Result<bool, JsonError> {
        let (end, is_escaped) = lexer::string_end(self.bytes, self.at)?;
        self.at = end;
        Ok(is_escaped)
    }

    /// Scans a string, and returns the text between its quotes with its escapes.
    pub(crate) fn string_text(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at + 1;
        self.string()?;
        Ok(&self.text[start..self.at - 1])
    }
}
