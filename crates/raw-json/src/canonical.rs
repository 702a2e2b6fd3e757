//! The canonical form of a value: RFC 8785 (JSON Canonicalization Scheme) in the order of keys and the spelling of
//! strings. Numbers differ from it on purpose: RFC 8785 writes every number as the double next to it, which would
//! make two different 30-digit integers one. Here a number that is no exact double keeps its own text.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::{
    Kind, RawJson,
    scan::{Limits, Scanner},
};

/// Writes a value in its canonical form: no space, keys in the order of their UTF-16 code units, strings with the
/// fewest escapes (RFC 8785 section 3.2), numbers that are exact doubles in their shortest form and others as
/// they were written.
#[must_use]
pub fn canonical(value: &RawJson) -> String {
    let mut out = String::with_capacity(value.len());
    write(value, &mut out);
    out
}

/// The SHA-256 of the [`canonical`] form: equal for texts that mean the same value.
#[must_use]
pub fn digest(value: &RawJson) -> [u8; 32] {
    Sha256::digest(canonical(value)).into()
}

fn write(value: &RawJson, out: &mut String) {
    match value.kind() {
        Kind::Null | Kind::Bool => out.push_str(value.as_str()),
        Kind::Number => out.push_str(&number(value.as_str())),
        Kind::String => string(value, out),
        Kind::Array => {
            out.push('[');
            for (index, item) in items(value).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(&item, out);
            }
            out.push(']');
        }
        Kind::Object => {
            let mut members: Vec<_> = value.members().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(&RawJson::from(&**key), out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
    }
}

/// The items of an array.
fn items(array: &RawJson) -> impl Iterator<Item = RawJson> {
    let mut at = 1;
    std::iter::from_fn(move || {
        let mut scanner = Scanner::new(array.as_str());
        scanner.at = at;
        scanner.space();
        if scanner.peek() == Some(b',') {
            scanner.at += 1;
            scanner.space();
        }
        if scanner.peek() == Some(b']') {
            return None;
        }
        let start = scanner.at;
        scanner
            .value(Limits {
                depth: usize::MAX,
                ..Limits::RELAY
            })
            .ok()?;
        at = scanner.at;
        Some(array.slice(start..at))
    })
}

/// serde_json escapes just what RFC 8785 section 3.2.2.2 asks for. A lone surrogate has no canonical spelling and
/// stays as it was written.
fn string(value: &RawJson, out: &mut String) {
    match value.string() {
        Some(text) => out.push_str(RawJson::from(&*text).as_str()),
        None => out.push_str(value.as_str()),
    }
}

/// A number in the form of ECMAScript's `Number::toString` if it is an exact double, else as it was written.
fn number(text: &str) -> Cow<'_, str> {
    let Ok(double) = text.parse::<f64>() else {
        return Cow::Borrowed(text);
    };
    if !double.is_finite() || !is_exact(text, double) {
        return Cow::Borrowed(text);
    }
    if double == 0.0 {
        return Cow::Borrowed("0");
    }
    Cow::Owned(ecmascript(double))
}

/// Whether the shortest decimal form of `double` has the very digits and exponent of `text`.
fn is_exact(text: &str, double: f64) -> bool {
    decimal(text) == decimal(&format!("{double:e}")) || decimal(text) == decimal(&format!("{double}"))
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

/// ECMA-262 section 6.1.6.1.20 `Number::toString` for a finite double that is not zero.
fn ecmascript(double: f64) -> String {
    let sign = if double < 0.0 { "-" } else { "" };
    // Rust's `{:e}` gives the shortest digits that read back as the same double, as ECMAScript asks.
    let (digits, power) = decimal(&format!("{:e}", double.abs()));
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
