/// Removes one layer of percent-encoding as lenient readers do: accepts `%u002e` (JavaScript's `unescape`) and
/// overlong sequences of UTF-8. Returns `None` if nothing changes.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = (*first == b'%').then(|| escape(tail)).flatten();
        let (decoded, n) = escape.unwrap_or((u32::from(*first), 0));
        match (u8::try_from(decoded), char::from_u32(decoded)) {
            (Ok(byte), _) => bytes.push(byte),
            (_, Some(character)) => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            _ => bytes.extend(char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]).bytes()),
        }
        rest = &tail[n..];
    }
    let decoded = lenient_text(&bytes);
    (decoded != text).then_some(decoded)
}

/// Returns the code of an escape and its length after the `%`, in characters.
fn escape(tail: &[u8]) -> Option<(u32, usize)> {
    let hex = |digits: &[u8]| {
        let text = std::str::from_utf8(digits).ok()?;
        let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten()
    };
    if let [b'u' | b'U', digits @ ..] = tail {
        return Some((hex(digits.get(..4)?)?, 5));
    }
    Some((hex(tail.get(..2)?)?, 2))
}

/// Decodes UTF-8, including overlong sequences. Invalid bytes become U+FFFD.
fn lenient_text(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [lead, tail @ ..] = rest {
        let (n, bits) = match lead {
            0xc0..=0xdf => (1, lead & 0x1f),
            0xe0..=0xef => (2, lead & 0x0f),
            0xf0..=0xf7 => (3, lead & 0x07),
            _ => (0, *lead),
        };
        let following = tail.get(..n).unwrap_or_default();
        let is_whole = following.len() == n && following.iter().all(|byte| byte & 0xc0 == 0x80);
        let code = following
            .iter()
            .fold(u32::from(bits), |code, byte| code << 6 | u32::from(byte & 0x3f));
        let character = char::from_u32(code).filter(|_| is_whole && (n > 0 || lead.is_ascii()));
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = if is_whole { &tail[n..] } else { tail };
    }
    text
}
