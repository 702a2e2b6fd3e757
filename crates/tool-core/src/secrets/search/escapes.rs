//! Escapes that represent one character each, within text that stays as it is.

use std::ops::Range;

use memchr::{memchr, memchr2};

/// Kind of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaping {
    /// Backslash escapes of JSON (RFC 8259, section 7), and `\xHH`, `\u{H…}` and `\'` of programming languages.
    Json,
    /// Percent-encoding (RFC 3986, section 2.1).
    Percent,
    /// Percent-encoding with `+` for a space (`application/x-www-form-urlencoded`).
    Form,
    /// [`Escaping::Form`], applied only around `%2B`: if no secret contains a space, a neighbouring `+` occurs in
    /// encoded text alone.
    FormPlus,
    /// Character references of HTML: decimal, hexadecimal, and the five names of XML.
    Html,
}

/// One escape in a text.
pub(super) struct Escape {
    /// Range in the text.
    pub(super) range: Range<usize>,
    bytes: [u8; 4],
    length: usize,
}

/// Text after one kind of escape was decoded, and the origin of each of its parts.
pub(super) struct Unescaped {
    pub(super) bytes: Vec<u8>,
    marks: Vec<Mark>,
}

/// Decoded escape.
struct Mark {
    /// Range in the decoded text.
    decoded: Range<usize>,
    source: Range<usize>,
}

/// Maximum number of digits of a character reference: readers take any number of leading zeros.
const MAX_DIGITS: usize = 64;

impl Escape {
    /// Returns the represented bytes.
    pub(super) fn decoded(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn byte(range: Range<usize>, byte: u8) -> Self {
        Self {
            range,
            bytes: [byte, 0, 0, 0],
            length: 1,
        }
    }

    /// Creates the escape of a character. An invalid code becomes the replacement character.
    fn character(range: Range<usize>, code: u32) -> Self {
        let mut bytes = [0; 4];
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        let length = character.encode_utf8(&mut bytes).len();
        Self { range, bytes, length }
    }
}

impl Escaping {
    /// Finds the first escape at or after `from`.
    pub(super) fn next(self, text: &[u8], from: usize) -> Option<Escape> {
        let mut at = from;
        loop {
            let rest = text.get(at..)?;
            at += match self {
                Self::Json => memchr(b'\\', rest),
                Self::Percent => memchr(b'%', rest),
                Self::Form | Self::FormPlus => memchr2(b'%', b'+', rest),
                Self::Html => memchr(b'&', rest),
            }?;
            let escape = match self {
                Self::Json => json(text, at),
                Self::Percent | Self::Form | Self::FormPlus => percent(text, at),
                Self::Html => html(text, at),
            };
            if escape.is_some() {
                return escape;
            }
            at += 1;
        }
    }

    /// Decodes every escape of this kind in a text. Returns `None` if there is none.
    pub(super) fn decode(self, text: &[u8]) -> Option<Unescaped> {
        let first = self.next(text, 0)?;
        let mut decoded = Unescaped {
            bytes: Vec::with_capacity(text.len()),
            marks: Vec::new(),
        };
        let mut end = 0;
        let mut next = Some(first);
        while let Some(escape) = next {
            decoded.bytes.extend_from_slice(&text[end..escape.range.start]);
            let start = decoded.bytes.len();
            decoded.bytes.extend_from_slice(escape.decoded());
            end = escape.range.end;
            next = self.next(text, end);
            decoded.marks.push(Mark {
                decoded: start..decoded.bytes.len(),
                source: escape.range,
            });
        }
        decoded.bytes.extend_from_slice(&text[end..]);
        Some(decoded)
    }
}

impl Unescaped {
    /// Returns the source range of a part of the decoded text. An escape belongs to it as a whole.
    pub(super) fn source(&self, range: &Range<usize>) -> Range<usize> {
        let start = match self.mark_at(range.start) {
            Some((mark, 0)) => mark.source.start,
            Some((mark, past)) => mark.source.end + past - 1,
            None => range.start,
        };
        let end = match self.mark_at(range.end - 1) {
            Some((mark, past)) => mark.source.end + past,
            None => range.end,
        };
        start..end
    }

    /// Returns the last escape that begins at or before a byte, and the distance of the byte from its last byte; 0 if
    /// the byte is part of it.
    fn mark_at(&self, at: usize) -> Option<(&Mark, usize)> {
        let index = self.marks.partition_point(|mark| mark.decoded.start <= at);
        let mark = self.marks.get(index.checked_sub(1)?)?;
        Some((mark, (at + 1).saturating_sub(mark.decoded.end)))
    }
}

fn json(text: &[u8], at: usize) -> Option<Escape> {
    let byte = |byte| Some(Escape::byte(at..at + 2, byte));
    match *text.get(at + 1)? {
        b'b' => byte(8),
        b'f' => byte(12),
        b'n' => byte(b'\n'),
        b'r' => byte(b'\r'),
        b't' => byte(b'\t'),
        same @ (b'"' | b'\\' | b'/' | b'\'') => byte(same),
        b'x' => {
            let (value, _) = digits(text, at + 2, 16, 2..3)?;
            Some(Escape::byte(at..at + 4, u8::try_from(value).ok()?))
        }
        b'u' if text.get(at + 2) == Some(&b'{') => {
            let (value, end) = digits(text, at + 3, 16, 1..7)?;
            (text.get(end) == Some(&b'}')).then(|| Escape::character(at..end + 1, value))
        }
        b'u' => {
            let (high, end) = digits(text, at + 2, 16, 4..5)?;
            let is_pair = matches!(high, 0xd800..0xdc00) && text.get(end..end + 2) == Some(b"\\u");
            if is_pair && let Some((low @ 0xdc00..0xe000, end)) = digits(text, end + 2, 16, 4..5) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Some(Escape::character(at..end, code));
            }
            Some(Escape::character(at..end, high))
        }
        _ => None,
    }
}

fn percent(text: &[u8], at: usize) -> Option<Escape> {
    if text[at] == b'+' {
        return Some(Escape::byte(at..at + 1, b' '));
    }
    let (value, end) = digits(text, at + 1, 16, 2..3)?;
    Some(Escape::byte(at..end, u8::try_from(value).ok()?))
}

fn html(text: &[u8], at: usize) -> Option<Escape> {
    const NAMES: [(&[u8], u8); 5] = [
        (b"amp;", b'&'),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
        (b"quot;", b'"'),
        (b"apos;", b'\''),
    ];
    let name = at + 1;
    if text.get(name) != Some(&b'#') {
        return NAMES.iter().find_map(|(known, byte)| {
            let end = name + known.len();
            let is_it = text.get(name..end)?.eq_ignore_ascii_case(known);
            is_it.then(|| Escape::byte(at..end, *byte))
        });
    }
    let (value, end) = match text.get(name + 1) {
        Some(b'x' | b'X') => digits(text, name + 2, 16, 1..MAX_DIGITS + 1)?,
        _ => digits(text, name + 1, 10, 1..MAX_DIGITS + 1)?,
    };
    // Readers of HTML accept references without the semicolon.
    let end = end + usize::from(text.get(end) == Some(&b';'));
    Some(Escape::character(at..end, value))
}

/// Returns the value of the digits at a position, as many as there are within these lengths, and their end.
fn digits(text: &[u8], at: usize, radix: u32, lengths: Range<usize>) -> Option<(u32, usize)> {
    let rest = text.get(at..)?.iter().take(lengths.end - 1);
    let (mut value, mut length) = (0_u32, 0);
    for digit in rest.map_while(|&byte| char::from(byte).to_digit(radix)) {
        value = value.saturating_mul(radix).saturating_add(digit);
        length += 1;
    }
    (length >= lengths.start).then_some((value, at + length))
}
