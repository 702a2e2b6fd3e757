//! Strategies of hidden characters, by class, and of their spellings.

use proptest::prelude::*;

/// Strategy of characters of each class that no text of a definition needs.
pub(crate) fn hidden_char() -> impl Strategy<Value = char> {
    let range = |range: std::ops::RangeInclusive<u32>| range.prop_filter_map("a character", char::from_u32);
    prop_oneof![
        // C0 without tab, line feed and carriage return; DEL; C1.
        range(0..=8),
        range(0x0b..=0x0c),
        range(0x0e..=0x1f),
        range(0x7f..=0x9f),
        // Bidi controls.
        range(0x202a..=0x202e),
        range(0x2066..=0x2069),
        // Zero width, separators, fillers, soft hyphen, interlinear annotation.
        Just('\u{200b}'),
        Just('\u{feff}'),
        Just('\u{ad}'),
        Just('\u{34f}'),
        Just('\u{115f}'),
        Just('\u{3164}'),
        Just('\u{ffa0}'),
        Just('\u{2800}'),
        range(0x2028..=0x2029),
        range(0x2060..=0x2065),
        range(0x206a..=0x206f),
        range(0xfff9..=0xfffb),
        // Tags, including unassigned ones.
        range(0xe0000..=0xe00ff),
        // Private use, and noncharacters.
        range(0xe000..=0xf8ff),
        range(0xf_0000..=0xf_fffd),
        range(0xfdd0..=0xfdef),
    ]
}

/// ASCII texts around which no hidden character is needed.
pub(crate) fn ascii() -> impl Strategy<Value = String> {
    "[a-z ]{0,12}"
}
