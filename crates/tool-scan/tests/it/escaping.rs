use proptest::prelude::*;
use tool_scan::{CharClass, escape_for_model, escape_json, escape_line, escape_lines, hidden_chars};

use crate::spellings::{ascii, hidden_char};

#[test]
fn hidden_characters_are_written_out() {
    for (text, line, lines) in [
        ("plain", "plain", "plain"),
        ("a\r\nb\rc\nd\te", "a\\nb\\u{d}c\\nd\\te", "a\nb\\u{d}c\nd\te"),
        ("\u{1b}[31mred", "\\u{1b}[31mred", "\\u{1b}[31mred"),
        (
            "a\u{202e}b\u{2028}c",
            "a\\u{202e}b\\u{2028}c",
            "a\\u{202e}b\\u{2028}c",
        ),
        (
            "\u{e0041}\u{200b}\u{ad}",
            "\\u{e0041}\\u{200b}\\u{ad}",
            "\\u{e0041}\\u{200b}\\u{ad}",
        ),
    ] {
        assert_eq!(escape_line(text), line, "{text:?}");
        assert_eq!(escape_lines(text), lines, "{text:?}");
    }
}

/// Texts of many scripts need characters that are hidden elsewhere.
#[test]
fn text_that_people_write_is_left() {
    for text in [
        "Grüße, 你好, ｆｕｌｌ width, naïve café\u{301}",
        "family 👨‍👩‍👧‍👦, doctor 👩🏽‍⚕️, pride 🏳️‍🌈, heart ❤️, keycap 1️⃣, text ❤︎",
        "flags 🇩🇪 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "Persian می\u{200c}خواهم نامه\u{200c}ای",
        "Hindi क्\u{200d}ष, Sinhala ශ්\u{200d}රී, Bengali র\u{200d}্য",
        "Arabic مرحبا\u{200f}! and Hebrew \u{200f}(שלום)\u{200e} C++",
        "Khmer ភាសា\u{200b}ខ្មែរ, Thai ภาษา\u{200b}ไทย",
        "ideographs 葛\u{e0100} and 㐂\u{fe00}",
    ] {
        assert_eq!(escape_line(text), text);
        assert_eq!(hidden_chars(text).next(), None, "{text}");
    }
}

/// Characters that scripts need are hidden in other places.
#[test]
fn characters_out_of_place_are_found() {
    for (text, class) in [
        ("pass\u{200d}word", CharClass::Invisible),
        ("pass\u{200c}word", CharClass::Invisible),
        ("a\u{fe0f}b", CharClass::Invisible),
        ("1\u{fe0f}2", CharClass::Invisible),
        ("❤\u{fe0f}\u{fe0f}", CharClass::Invisible),
        ("a\u{200f}b", CharClass::Bidi),
        ("שלום\u{200f}\u{200e}\u{200f}", CharClass::Bidi),
        // A flag with a message in tag characters.
        ("🏴\u{e0068}\u{e0069}\u{e007f}", CharClass::Tag),
        (
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e0067}\u{e007f}",
            CharClass::Tag,
        ),
        ("م\u{200c}\u{200c}م", CharClass::Invisible),
        ("葛\u{e0100}\u{e0101}", CharClass::Invisible),
    ] {
        assert_eq!(
            hidden_chars(text).next().map(|hidden| hidden.class),
            Some(class),
            "{text:?}"
        );
    }
}

#[test]
fn json_means_the_same_when_it_is_escaped() {
    let json = "{\n  \"a\u{200b}\": [\"👩\u{200d}🚀\u{e0041}\u{202e}\u{7f}\", 1]\n}";
    let escaped = escape_json(json);
    assert!(escaped.contains("\\u200b") && escaped.contains("\\udb40\\udc41") && escaped.contains("\\u007f"));
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&escaped), value(json));
}

#[test]
fn what_a_model_reads_is_one_line_without_markup_that_acts() {
    for (text, expected) in [
        ("a\r\n\r\nb\rc\td", "a b\\u{d}c d"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("< SCRIPT src=x>", "&lt; SCRIPT src=x>"),
        ("<img src=x onerror=y>", "&lt;img src=x onerror=y>"),
        ("<IMPORTANT>do", "&lt;IMPORTANT>do"),
        ("<!-- hid -->", "&lt;!-- hid -->"),
        ("<|im_start|>", "&lt;|im_start|>"),
        (
            "Vec<String> is not <number>; 1 < 2",
            "Vec<String> is not <number>; 1 < 2",
        ),
        ("\u{202e}", "\\u{202e}"),
    ] {
        assert_eq!(escape_for_model(text), expected, "{text}");
    }
}

proptest! {
    /// An escaped line has no hidden characters and no line breaks; escaped lines have line feeds and tabs only.
    #[test]
    fn nothing_hidden_is_left(parts in prop::collection::vec((ascii(), hidden_char(), prop::sample::select(vec!["", "\n", "\r", "\r\n", "\t"])), 0..8)) {
        let text: String = parts.iter().map(|(text, hidden, line_break)| format!("{text}{hidden}{line_break}")).collect();
        let line = escape_line(&text);
        let is_shown = |c: char| c.is_ascii() && !c.is_ascii_control();
        prop_assert!(line.chars().all(is_shown), "{line:?}");
        let lines = escape_lines(&text);
        prop_assert!(lines.chars().all(|c| is_shown(c) || c == '\n' || c == '\t'), "{lines:?}");
        prop_assert!(escape_for_model(&text).chars().all(is_shown));
        for (_, hidden, _) in &parts {
            let code = format!("\\u{{{:x}}}", u32::from(*hidden));
            prop_assert!(line.contains(&code), "{line} has {code}");
        }
        let json = serde_json::to_string(&text).unwrap();
        let escaped = escape_json(&json);
        prop_assert!(escaped.chars().all(is_shown), "{escaped:?}");
        prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    /// The result of cleaning has no hidden characters, for any text.
    #[test]
    fn no_text_is_hidden_after_escaping(text in any::<String>()) {
        let line = escape_line(&text);
        prop_assert_eq!(hidden_chars(&line).next(), None);
        prop_assert!(!line.contains(['\n', '\r', '\t']));
        prop_assert_eq!(escape_line(&line), line.as_ref());
    }
}
