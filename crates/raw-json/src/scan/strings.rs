use std::borrow::Cow;

use super::special_bytes::end_of_plain;

/// The text that a string stands for, from what stands between its quotes; nothing for a lone surrogate.
pub(crate) fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    if end_of_plain(raw.as_bytes(), 0) == raw.len() {
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
