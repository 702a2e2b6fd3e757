use std::borrow::Cow;

use super::special_bytes::end_of_plain;

/// Decodes a string, given the text between its quotes. Returns `None` for a lone surrogate.
pub(crate) fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    if end_of_plain(raw.as_bytes(), 0) == raw.len() {
        return Some(Cow::Borrowed(raw));
    }
    // serde_json decodes escapes; the quotes make the slice a string again.
    serde_json::from_str::<String>(&format!("\"{raw}\""))
        .ok()
        .map(Cow::Owned)
}

/// UTF-16 code units of a string, given the text between its quotes. Includes lone surrogates.
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
            // An escaped quote, backslash or slash is itself one code unit.
            other => other as u16,
        })
    })
}
