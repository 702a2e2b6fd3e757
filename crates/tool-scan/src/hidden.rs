use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
    props::{
        BidiClass, DefaultIgnorableCodePoint, Emoji, EmojiModifier, ExtendedPictographic, GeneralCategory,
        Script,
    },
};

static IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();
static PICTOGRAPHIC: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<ExtendedPictographic>();
static EMOJI: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<Emoji>();
static MODIFIER: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<EmojiModifier>();
static SCRIPT: CodePointMapDataBorrowed<'static, Script> = CodePointMapData::<Script>::new();
static CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();
static DIRECTION: CodePointMapDataBorrowed<'static, BidiClass> = CodePointMapData::<BidiClass>::new();

/// Class of a character that is invisible or changes how other text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CharClass {
    /// C0 and C1 controls except tab, line feed and CRLF; among them ESC, which starts terminal sequences.
    Control,
    /// Control or mark of text direction (UAX #9).
    Bidi,
    /// Character without a glyph: zero width, default-ignorable, filler, or line or paragraph separator.
    Invisible,
    /// Tag character (U+E0000 to U+E007F): invisible ASCII.
    Tag,
    /// Private-use character or noncharacter, whose appearance is undefined.
    PrivateUse,
}

/// Hidden character and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HiddenChar {
    /// Byte offset in the text.
    pub at: usize,
    /// Character itself.
    pub char: char,
    /// Class of the character.
    pub class: CharClass,
}

/// Returns the class of a hidden character, without regard to its neighbours. Returns `None` for other characters.
pub(crate) fn class_of(c: char) -> Option<CharClass> {
    Some(match c {
        '\t' | '\n' | ' '..='~' => return None,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => CharClass::Control,
        '\u{e0000}'..='\u{e007f}' => CharClass::Tag,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            CharClass::Bidi
        }
        // A braille cell without dots (U+2800) is as empty as a space, but is not one.
        '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{fff9}'..='\u{fffb}' => CharClass::Invisible,
        // Musical controls and the like; marks of Egyptian quadrats are of the same category and format visible text.
        c if IGNORABLE.contains(c) => CharClass::Invisible,
        c if is_noncharacter(c) => CharClass::PrivateUse,
        c => match CATEGORY.get(c) {
            GeneralCategory::PrivateUse => CharClass::PrivateUse,
            GeneralCategory::Format if !is_visible_format(c) => CharClass::Invisible,
            _ => return None,
        },
    })
}

fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code)
}

/// Returns `true` for format characters with a glyph: signs before numbers, and controls of hieroglyphs.
fn is_visible_format(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
    )
}

/// Returns `true` if a character is invisible or changes how others are shown, without regard to its neighbours. Tab and
/// line feed are not hidden. [`hidden_chars`] excludes characters that their neighbours need.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    class_of(c).is_some()
}

/// Returns the hidden characters of a text. Characters that their script or an emoji needs are excluded: a joiner between
/// emoji or after a letter of a joining script, a variation selector after its base, a direction mark next to right-to-left
/// text, the flags of England, Scotland and Wales, a zero-width space in scripts without spaces.
///
/// # Examples
///
/// ```
/// let hidden: Vec<_> = tool_scan::hidden_chars("a\u{202e}b").collect();
/// assert_eq!((hidden[0].at, hidden[0].class), (1, tool_scan::CharClass::Bidi));
/// ```
pub fn hidden_chars(text: &str) -> impl Iterator<Item = HiddenChar> + '_ {
    text.char_indices().filter_map(move |(at, c)| {
        let class = class_of(c)?;
        let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
        (!is_needed(c, before, after)).then_some(HiddenChar { at, char: c, class })
    })
}

/// Returns `true` if a hidden character is needed between these texts.
fn is_needed(c: char, before: &str, after: &str) -> bool {
    match c {
        '\r' => after.starts_with('\n'),
        '\u{200d}' => joins_emoji(before, after) || is_behind_joining_letter(before, after),
        '\u{200c}' => is_behind_joining_letter(before, after),
        '\u{200b}' => {
            let is_spaceless = |c: Option<char>| c.is_some_and(is_written_without_spaces);
            is_spaceless(before.chars().next_back()) && is_spaceless(after.chars().next())
        }
        '\u{61c}' | '\u{200e}' | '\u{200f}' => is_beside_right_to_left(before, after),
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => selects_variation(c, before, after),
        '\u{180b}'..='\u{180f}' => before
            .chars()
            .next_back()
            .is_some_and(|base| script(base) == Script::Mongolian && class_of(base).is_none()),
        '\u{e0020}'..='\u{e007f}' => is_in_flag(c, before, after),
        _ => false,
    }
}

fn script(c: char) -> Script {
    SCRIPT.get(c)
}

/// Returns `true` between two emoji, for a joiner of an emoji sequence (UTS #51). The first may have a modifier or selector.
fn joins_emoji(before: &str, after: &str) -> bool {
    let base = before
        .chars()
        .rev()
        .find(|c| *c != '\u{fe0f}' && !MODIFIER.contains(*c))
        .or_else(|| before.chars().next_back());
    base.is_some_and(|c| PICTOGRAPHIC.contains(c))
        && after.chars().next().is_some_and(|c| PICTOGRAPHIC.contains(c))
}

/// Returns `true` after a letter, or a mark on it, of a joining script, unless another hidden character follows.
fn is_behind_joining_letter(before: &str, after: &str) -> bool {
    let is_plain = |c: char| class_of(c).is_none();
    let is_joining = |c: char| is_plain(c) && is_joining_script(script(c));
    let Some(last) = before.chars().next_back() else {
        return false;
    };
    let base = before.chars().rev().take(4).find(|c| !is_mark(*c));
    let is_behind = is_joining(last) || is_mark(last) && is_plain(last) && base.is_some_and(is_joining);
    is_behind && after.chars().next().is_none_or(is_plain)
}

fn is_mark(c: char) -> bool {
    matches!(
        CATEGORY.get(c),
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark
    )
}

fn is_joining_script(script: Script) -> bool {
    const JOINING: [Script; 29] = [
        Script::Arabic,
        Script::Syriac,
        Script::Mongolian,
        Script::Nko,
        Script::Mandaic,
        Script::Manichaean,
        Script::PhagsPa,
        Script::Adlam,
        Script::HanifiRohingya,
        Script::Devanagari,
        Script::Bengali,
        Script::Gurmukhi,
        Script::Gujarati,
        Script::Oriya,
        Script::Tamil,
        Script::Telugu,
        Script::Kannada,
        Script::Malayalam,
        Script::Sinhala,
        Script::Khmer,
        Script::Myanmar,
        Script::Tibetan,
        Script::Balinese,
        Script::Javanese,
        Script::Grantha,
        Script::Tirhuta,
        Script::Newa,
        Script::Chakma,
        Script::MeeteiMayek,
    ];
    JOINING.contains(&script)
}

fn is_written_without_spaces(c: char) -> bool {
    matches!(
        script(c),
        Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar | Script::Tibetan | Script::TaiTham
    ) && class_of(c).is_none()
}

/// Maximum distance of a direction mark from right-to-left text, in characters.
const REACH: usize = 8;

/// Returns `true` for the place of a single mark near a right-to-left letter.
fn is_beside_right_to_left(before: &str, after: &str) -> bool {
    let is_hidden = |c: Option<char>| c.is_some_and(|c| class_of(c).is_some());
    if is_hidden(before.chars().next_back()) || is_hidden(after.chars().next()) {
        return false;
    }
    let runs_left = |c: char| {
        let class = DIRECTION.get(c);
        class_of(c).is_none() && (class == BidiClass::RightToLeft || class == BidiClass::ArabicLetter)
    };
    before.chars().rev().take(REACH).any(runs_left) || after.chars().take(REACH).any(runs_left)
}

/// Returns `true` for a selector directly after a base that has variations.
fn selects_variation(c: char, before: &str, after: &str) -> bool {
    let Some(base) = before.chars().next_back() else {
        return false;
    };
    match c {
        // Digits, `#` and `*` are emoji as keycaps alone.
        '\u{fe0e}' | '\u{fe0f}' if base.is_ascii() => {
            matches!(base, '0'..='9' | '#' | '*') && after.starts_with('\u{20e3}')
        }
        '\u{fe0e}' | '\u{fe0f}' => EMOJI.contains(base) && class_of(base).is_none(),
        '\u{fe00}'..='\u{fe02}' => {
            script(base) == Script::Han
                || script(base) == Script::PhagsPa
                || matches!(CATEGORY.get(base), GeneralCategory::MathSymbol)
        }
        '\u{e0100}'..='\u{e01ef}' => script(base) == Script::Han,
        _ => false,
    }
}

/// Returns `true` for a tag character of one of the three flags that are written with tags.
fn is_in_flag(c: char, before: &str, after: &str) -> bool {
    const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
    const LONGEST: usize = 6;
    let ascii = |c: char| {
        let code = u32::from(c).checked_sub(0xe0000)?;
        u8::try_from(code).ok().filter(u8::is_ascii).map(char::from)
    };
    let mut letters: Vec<char> = before.chars().rev().take(LONGEST).map_while(ascii).collect();
    let start = before.chars().rev().nth(letters.len());
    letters.reverse();
    letters.extend(ascii(c));
    letters.extend(after.chars().take(LONGEST + 1).map_while(ascii));
    let Some(('\x7f', name)) = letters.split_last() else {
        return false;
    };
    let name: String = name.iter().collect();
    start == Some('\u{1f3f4}') && FLAGS.contains(&name.as_str())
}
