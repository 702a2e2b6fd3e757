use unicode_normalization::UnicodeNormalization;
use unicode_security::{RestrictionLevel, RestrictionLevelDetection};

use crate::hidden::class_of;

/// Returns the skeleton of a name, which is equal for names that look alike (UTS #39, section 4).
///
/// Such names differ in case, in `-`, `_` and other separators, in hidden characters, in compatibility forms, or in
/// look-alikes such as `l`, `1` and `I`, `0` and `O`, `rn` and `m`, and letters of other scripts.
///
/// # Examples
/// ```
/// use tool_scan::name_skeleton;
///
/// assert_eq!(name_skeleton("Read_File"), name_skeleton("read-fi1e"));
/// assert_eq!(name_skeleton("read_file"), name_skeleton("r\u{435}ad_file"));
/// assert_ne!(name_skeleton("read_file"), name_skeleton("read_files"));
/// ```
#[must_use]
pub fn name_skeleton(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    if name.is_ascii() {
        name.bytes().for_each(|byte| put(char::from(byte), &mut key));
        return key;
    }
    for c in name.chars().filter(|c| class_of(*c).is_none()).nfkc() {
        if c.is_ascii() {
            put(c, &mut key);
        } else {
            let mut text = [0; 4];
            for c in unicode_security::skeleton(c.encode_utf8(&mut text)) {
                c.to_lowercase().for_each(|c| put(c, &mut key));
            }
        }
    }
    key
}

fn put(c: char, key: &mut String) {
    match c.to_ascii_lowercase() {
        'i' | '1' | '|' | '!' => key.push('l'),
        '0' => key.push('o'),
        'm' => key.push_str("rn"),
        'w' => key.push_str("vv"),
        '-' | '.' | ' ' | '/' | ':' => key.push('_'),
        c => key.push(c),
    }
}

/// Returns `true` if the letters of a name come from scripts that are not written together (UTS #39, section 5.2, below
/// "highly restrictive"): Latin with Han, kana, hangul or bopomofo is allowed, Latin with Cyrillic is not.
#[must_use]
pub fn has_mixed_scripts(name: &str) -> bool {
    let letters: String = name.chars().filter(|c| c.is_alphabetic()).collect();
    !letters.is_ascii() && letters.as_str().detect_restriction_level() > RestrictionLevel::HighlyRestrictive
}
