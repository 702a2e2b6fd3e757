//! Canonical form of a value: RFC 8785 (JSON Canonicalization Scheme) for the order of keys and the spelling of
//! strings. Numbers deviate on purpose: RFC 8785 writes every number as its nearest double, which would make two
//! different 30-digit integers equal. Here a number that is not exactly a double keeps its own text.

use std::{borrow::Cow, ops::Range};

#[cfg(feature = "digest")]
use sha2::{Digest, Sha256};

use crate::{
    RawJson,
    scan::{Scanner, unescape, utf16},
};

/// Writes a value in its canonical form: no white space, keys ordered by their UTF-16 code units, strings with the
/// fewest escapes (RFC 8785 section 3.2), exact doubles in their shortest form and all other numbers as they were
/// written.
///
/// # Examples
///
/// ```
/// use raw_json::{RawJson, canonical};
///
/// let value = RawJson::parse(r#"{"b": 1.50, "a": "\u0061", "id": 12345678901234567890123}"#)?;
/// assert_eq!(canonical(&value), r#"{"a":"a","b":1.5,"id":12345678901234567890123}"#);
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[must_use]
pub fn canonical(value: &RawJson) -> String {
    let mut writer = Writer {
        scanner: Scanner::new(value.as_str()),
        out: String::with_capacity(value.len()),
        open: Vec::new(),
    };
    writer.write();
    writer.out
}

/// SHA-256 digest of the [`canonical`] form. Equal for texts that mean the same value.
#[must_use]
#[cfg(feature = "digest")]
pub fn digest(value: &RawJson) -> [u8; 32] {
    Sha256::digest(canonical(value)).into()
}

/// SHA-256 digest of the text as it was written. Faster than [`digest`], and another one for texts that mean the same value.
#[must_use]
#[cfg(feature = "digest")]
pub fn text_digest(value: &RawJson) -> [u8; 32] {
    Sha256::digest(value.as_str()).into()
}

/// Formats bytes, such as a digest, as lower-case hexadecimal digits.
///
/// # Examples
///
/// ```
/// assert_eq!(raw_json::hex(&[0, 0xab, 7]), "00ab07");
/// ```
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Rewrites a text in one pass. It keeps its own stack, since a part of a message may be nested deeper than the stack
/// of a thread allows.
struct Writer<'a> {
    scanner: Scanner<'a>,
    out: String,
    open: Vec<Open<'a>>,
}

enum Open<'a> {
    Array,
    Object {
        /// Offset of the first member in the output.
        start: usize,
        members: Vec<Member<'a>>,
    },
}

struct Member<'a> {
    /// Key as it was written.
    key: &'a str,
    /// Range of the member in the output.
    place: Range<usize>,
}

/// Panic message for text that cannot be invalid: it was validated when it became a `RawJson`.
const CHECKED: &str = "the text of a `RawJson` is JSON";

impl<'a> Writer<'a> {
    fn write(&mut self) {
        loop {
            let opened = match self.scanner.peek() {
                Some(b'{') => self.enter('{'),
                Some(b'[') => self.enter('['),
                _ => {
                    self.scalar();
                    false
                }
            };
            if opened {
                continue;
            }
            // A value has ended: close the containers that end with it, or continue with the next value.
            loop {
                if self.open.is_empty() {
                    return;
                }
                self.scanner.space();
                let byte = self.scanner.peek();
                self.scanner.at += 1;
                self.scanner.space();
                self.end_member();
                if byte == Some(b',') {
                    self.out.push(',');
                    self.key();
                    break;
                }
                self.close();
            }
        }
    }

    /// Opens an array or object, and closes it at once if it is empty. Returns `true` if it stays open.
    fn enter(&mut self, bracket: char) -> bool {
        self.scanner.at += 1;
        self.scanner.space();
        self.out.push(bracket);
        self.open.push(match bracket {
            '[' => Open::Array,
            _ => Open::Object {
                start: self.out.len(),
                members: Vec::new(),
            },
        });
        if matches!(self.scanner.peek(), Some(b']' | b'}')) {
            self.scanner.at += 1;
            self.close();
            return false;
        }
        self.key();
        true
    }

    /// Writes the next key if the innermost container is an object.
    fn key(&mut self) {
        let Some(Open::Object { members, .. }) = self.open.last_mut() else {
            return;
        };
        let start = self.out.len();
        let key = self.scanner.string_text().expect(CHECKED);
        self.scanner.space();
        self.scanner.at += 1;
        self.scanner.space();
        string(key, &mut self.out);
        self.out.push(':');
        members.push(Member {
            key,
            place: start..start,
        });
    }

    fn end_member(&mut self) {
        if let Some(Open::Object { members, .. }) = self.open.last_mut()
            && let Some(member) = members.last_mut()
        {
            member.place.end = self.out.len();
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::Object { start, members }) => {
                self.sort(start, members);
                self.out.push('}');
            }
            _ => self.out.push(']'),
        }
    }

    /// Sorts the members of an object unless they are sorted already.
    fn sort(&mut self, start: usize, mut members: Vec<Member<'a>>) {
        let in_order = |a: &Member<'_>, b: &Member<'_>| utf16(a.key).cmp(utf16(b.key));
        if members.is_sorted_by(|a, b| in_order(a, b).is_le()) {
            return;
        }
        members.sort_by(in_order);
        let unsorted = self.out.split_off(start);
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let place = member.place.start - start..member.place.end - start;
            self.out.push_str(&unsorted[place]);
        }
    }

    fn scalar(&mut self) {
        if self.scanner.peek() == Some(b'"') {
            let text = self.scanner.string_text().expect(CHECKED);
            string(text, &mut self.out);
            return;
        }
        let text = self.scanner.scalar_text().expect(CHECKED);
        match text.as_bytes()[0] {
            b't' | b'f' | b'n' => self.out.push_str(text),
            _ => self.out.push_str(&number(text)),
        }
    }
}

/// Writes a string, given the text between its quotes. serde_json escapes exactly as RFC 8785 section 3.2.2.2 requires.
/// A lone surrogate has no canonical spelling and stays as it was written.
fn string(raw: &str, out: &mut String) {
    // A string without escapes needs none.
    if !raw.contains('\\') {
        out.push('"');
        out.push_str(raw);
        out.push('"');
        return;
    }
    match unescape(raw) {
        Some(text) => out.push_str(RawJson::from(&*text).as_str()),
        None => {
            out.push('"');
            out.push_str(raw);
            out.push('"');
        }
    }
}

/// Formats a number as ECMAScript's `Number::toString` if it is an exact double. Otherwise returns its own text.
fn number(text: &str) -> Cow<'_, str> {
    // Up to fifteen digits are exact, and a whole number is its own shortest form.
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() <= 15 && digits != "0" && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    let Ok(double) = text.parse::<f64>() else {
        return Cow::Borrowed(text);
    };
    // If the digits of the text are not those of the shortest form, the text carries more precision than the double.
    if !double.is_finite() {
        return Cow::Borrowed(text);
    }
    let shortest = shortest(double);
    if decimal(text) != shortest {
        return Cow::Borrowed(text);
    }
    if double == 0.0 {
        return Cow::Borrowed("0");
    }
    Cow::Owned(ecmascript(double < 0.0, shortest))
}

/// Returns the significant digits of a number and the power of ten of its last digit.
fn decimal(text: &str) -> (Vec<u8>, i64) {
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    // An exponent beyond `i64` belongs to no finite double other than zero.
    let mut power = exponent
        .parse::<i64>()
        .unwrap_or(i64::MAX)
        .saturating_sub(fraction.len() as i64);
    while digits.last() == Some(&b'0') {
        digits.pop();
        power = power.saturating_add(1);
    }
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..zeros);
    if digits.is_empty() {
        power = 0;
    }
    (digits, power)
}

/// Returns the fewest digits that parse as this double and the power of ten of the last digit, as ECMA-262 section
/// 6.1.6.1.20 defines. Of two candidates that are equally near, takes the even one.
fn shortest(double: f64) -> (Vec<u8>, i64) {
    let (mut digits, power) = decimal(&format!("{double:e}"));
    // Rust rounds such a tie up. Only a double with one digit more than the shortest form can be a tie.
    let n = digits.len();
    if n > 15 && digits[n - 1] % 2 == 1 {
        let exact = format!("{double:.800e}");
        let (exact, _) = decimal(&exact);
        if exact.len() == n + 1 && exact[n] == b'5' && exact[n - 1] + 1 == digits[n - 1] {
            digits[n - 1] -= 1;
        }
    }
    (digits, power)
}

/// Formats a finite double other than zero from its shortest digits: ECMA-262 section 6.1.6.1.20, `Number::toString`.
fn ecmascript(negative: bool, (digits, power): (Vec<u8>, i64)) -> String {
    let sign = if negative { "-" } else { "" };
    let digits = String::from_utf8(digits).expect("decimal digits");
    let k = digits.len() as i64;
    let n = k + power;
    let body = if k <= n && n <= 21 {
        format!("{digits}{}", "0".repeat((n - k) as usize))
    } else if 0 < n && n <= 21 {
        format!("{}.{}", &digits[..n as usize], &digits[n as usize..])
    } else if -6 < n && n <= 0 {
        format!("0.{}{digits}", "0".repeat(-n as usize))
    } else {
        let mark = if n > 0 { "+" } else { "-" };
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{first}{point}{rest}e{mark}{}", (n - 1).abs())
    };
    format!("{sign}{body}")
}
