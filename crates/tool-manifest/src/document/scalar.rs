use crate::document::node::Kind;

/// Meaning of a plain YAML scalar.
pub(crate) enum Plain {
    Value(Kind),
    /// A number that YAML 1.1 reads as octal and YAML 1.2 as decimal.
    LeadingZero,
    /// Infinity or not a number, which JSON has no word for.
    NotFinite,
}

/// Reads a plain scalar by the core schema of YAML 1.2: `no` and `on` are texts, as are dates and `1_000`.
pub(crate) fn resolve(text: &str) -> Plain {
    let kind = match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        _ => return number(text),
    };
    Plain::Value(kind)
}

fn number(text: &str) -> Plain {
    let string = || Plain::Value(Kind::String(text.to_owned()));
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Plain::NotFinite;
    }
    if unsigned.len() == text.len() {
        for (prefix, radix) in [("0x", 16), ("0o", 8)] {
            let Some(digits) = text.strip_prefix(prefix) else {
                continue;
            };
            return match u64::from_str_radix(digits, radix) {
                Ok(value) if !digits.starts_with('+') => Plain::Value(Kind::Number(value.to_string())),
                _ => string(),
            };
        }
    }
    let Some((integer, fraction, exponent)) = decimal(unsigned) else {
        return string();
    };
    if integer.len() > 1 && integer.starts_with('0') {
        return Plain::LeadingZero;
    }
    // JSON wants digits on both sides of the point and no plus sign before the number.
    let mut json = String::with_capacity(text.len() + 2);
    if negative {
        json.push('-');
    }
    json.push_str(if integer.is_empty() { "0" } else { integer });
    match fraction {
        Some("") => json.push_str(".0"),
        Some(digits) => {
            json.push('.');
            json.push_str(digits);
        }
        None => {}
    }
    if let Some(exponent) = exponent {
        json.push('e');
        json.push_str(exponent);
    }
    match serde_json::from_str::<f64>(&json) {
        Ok(_) => Plain::Value(Kind::Number(json)),
        Err(_) => Plain::NotFinite,
    }
}

/// Splits `12.5e-3` into `12`, `5` and `-3`. Returns `None` if the text is no decimal number.
fn decimal(text: &str) -> Option<(&str, Option<&str>, Option<&str>)> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (mantissa, None),
    };
    let has_digit = !integer.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !unsigned.is_empty() && digits(unsigned)
    });
    (has_digit && digits(integer) && fraction.is_none_or(digits) && exponent_fits)
        .then_some((integer, fraction, exponent))
}
