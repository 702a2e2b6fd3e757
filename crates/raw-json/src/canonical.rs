//! The canonical form of a value: RFC 8785 (JSON Canonicalization Scheme) in the order of keys and the spelling of
//! strings. Numbers differ from it on purpose: RFC 8785 writes every number as the double next to it, which would
//! make two different 30-digit integers one. Here a number that is no exact double keeps its own text.

use std::{borrow::Cow, ops::Range};

use sha2::{Digest, Sha256};

use crate::{
    RawJson,
    scan::{Scanner, unescape, utf16},
};

/// Writes a value in its canonical form: no space, keys in the order of their UTF-16 code units, strings with the
/// fewest escapes (RFC 8785 section 3.2), numbers that are exact doubles in their shortest form and others as
/// they were written.
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

/// The SHA-256 of the [`canonical`] form: equal for texts that mean the same value.
#[must_use]
pub fn digest(value: &RawJson) -> [u8; 32] {
    Sha256::digest(canonical(value)).into()
}

/// Writes bytes, such as a [`digest`], in hexadecimal digits.
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

/// Passes over a text once and writes it anew. It keeps its own stack, since a part of a message may be nested
/// deeper than a thread's stack allows.
struct Writer<'a> {
    scanner: Scanner<'a>,
    out: String,
    open: Vec<Open<'a>>,
}

enum Open<'a> {
    Array,
    Object {
        /// Where the members begin in the output.
        start: usize,
        members: Vec<Member<'a>>,
    },
}

struct Member<'a> {
    /// The key as it was written.
    key: &'a str,
    /// Where the member stands in the output.
    place: Range<usize>,
}

/// The text was checked when it became a `RawJson`.
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
            // A value has ended: close what it closes, or go on to the next one.
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

    /// Opens an array or object; one that is empty is closed at once.
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

    /// Writes the key that is due in an object.
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

    /// Puts the members of an object in order, if they are not.
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

/// Writes a string, given what stands between its quotes. serde_json escapes just what RFC 8785 section 3.2.2.2 asks
/// for. A lone surrogate has no canonical spelling and stays as it was written.
fn string(raw: &str, out: &mut String) {
    // Without an escape there is nothing that needed one.
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

/// A number in the form of ECMAScript's `Number::toString` if it is an exact double, else as it was written.
fn number(text: &str) -> Cow<'_, str> {
    // Up to fifteen digits are exact, and the shortest form of a whole number is itself.
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() <= 15 && digits != "0" && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    let Ok(double) = text.parse::<f64>() else {
        return Cow::Borrowed(text);
    };
    // The shortest form that reads back as this double has the very digits of the text, or the text says more.
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

/// The significant digits of a number and the power of ten of the last one.
fn decimal(text: &str) -> (Vec<u8>, i64) {
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    // An exponent beyond i64 is no double that is finite and not zero.
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

/// The fewest digits that read back as this double and the power of ten of the last one, as ECMA-262 section
/// 6.1.6.1.20 asks: of two that are equally near, those that end evenly.
fn shortest(double: f64) -> (Vec<u8>, i64) {
    let (mut digits, power) = decimal(&format!("{double:e}"));
    // Rust rounds such a tie up. Only a double with a digit more than the shortest form is one.
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

/// ECMA-262 section 6.1.6.1.20 `Number::toString` for a finite double that is not zero, from its shortest digits.
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
