//! Normalization of text, so that rules find it in any spelling.

use icu_properties::{CodePointMapData, CodePointMapDataBorrowed, props::GeneralCategory};
use unicode_normalization::UnicodeNormalization;

use crate::hidden::class_of;

static CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();

/// Normalizes a text: lower case, without hidden characters, with character references and compatibility forms (NFKD)
/// resolved, and with look-alikes of ASCII letters (UTS #39) replaced by those letters.
pub(crate) fn plain_text(text: &str) -> String {
    let decoded = if text.contains('&') {
        decode(text)
    } else {
        text.to_owned()
    };
    if decoded.is_ascii() {
        let shown = decoded
            .bytes()
            .filter(|byte| !byte.is_ascii_control() || b"\t\r\n".contains(byte));
        return shown.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    }
    let mut plain = String::with_capacity(decoded.len());
    let shown = decoded.chars().filter_map(|c| match c {
        '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => Some('\n'),
        // Models read invisible ASCII.
        '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(c) - 0xe0000),
        c => class_of(c).is_none().then_some(c),
    });
    for c in shown.nfkd() {
        if c.is_ascii() {
            plain.push(c.to_ascii_lowercase());
        } else if CATEGORY.get(c) != GeneralCategory::NonspacingMark {
            put_look_alike(c, &mut plain);
        }
    }
    plain
}

/// Appends the ASCII letter that a character looks like, or the character itself if there is none.
fn put_look_alike(c: char, plain: &mut String) {
    let mut text = [0; 4];
    let mut alike = unicode_security::skeleton(c.encode_utf8(&mut text));
    match (alike.next(), alike.next()) {
        (Some(alike), None) if alike.is_ascii_alphanumeric() => plain.push(alike.to_ascii_lowercase()),
        _ => {
            // The upper case may look like an ASCII letter even if the lower case does not.
            let mut upper = c.to_uppercase();
            let alike = upper.next().filter(|_| upper.next().is_none()).and_then(|upper| {
                let mut text = [0; 4];
                let mut alike = unicode_security::skeleton(upper.encode_utf8(&mut text));
                alike.next().filter(char::is_ascii_alphabetic)
            });
            match alike {
                Some(alike) => plain.push(alike.to_ascii_lowercase()),
                None => plain.extend(c.to_lowercase()),
            }
        }
    }
}

/// Resolves character references such as `&lt;`, `&#60;` and `&#x3c;`.
fn decode(text: &str) -> String {
    const LONGEST: usize = 10;
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        decoded.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        match end.and_then(|end| Some((end, reference(rest.get(1..end)?)?))) {
            Some((end, c)) => {
                decoded.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn reference(name: &str) -> Option<char> {
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let code = name.strip_prefix('#')?;
            match code.strip_prefix(['x', 'X']) {
                Some(hex) => number(hex, 16)?,
                None => number(code, 10)?,
            }
        }
    })
}

/// Returns the words of a [`plain_text`], separated by one space. Single letters are joined to a word, and digits within a
/// word become the letters that they imitate.
pub(crate) fn words(plain: &str) -> String {
    let mut words = String::with_capacity(plain.len());
    let mut single = 0;
    for word in plain.split(|c: char| !c.is_alphanumeric() && c != '@' && c != '$') {
        let word = word.trim_matches(['@', '$']);
        if word.is_empty() {
            continue;
        }
        let is_single = word.len() == 1;
        let continues = is_single && single > 0;
        if !words.is_empty() && !continues {
            words.push(' ');
        }
        single = if is_single { single + 1 } else { 0 };
        let has_letters = word.bytes().any(|byte| byte.is_ascii_alphabetic());
        let has_signs = word.bytes().any(|byte| !byte.is_ascii_alphabetic());
        if has_letters && has_signs {
            words.extend(word.chars().map(letter));
        } else {
            words.push_str(word);
        }
    }
    words
}

/// Returns the letter that a digit or sign imitates within a word.
fn letter(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        c => c,
    }
}
