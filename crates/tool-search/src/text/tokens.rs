//! Splits text into words. Compound identifiers (snake case, camel case, digits) are split into their parts, as Lucene's
//! `WordDelimiterGraphFilter` does; the whole word is kept as a further token, so that `GitHub` is found by `github`
//! and by `hub`.

/// Maximum length of a token, in bytes. Longer ones are data, such as hashes, and are ignored.
const MAX_TOKEN: usize = 64;

/// Returns the tokens of a text, lower-cased and in their order.
///
/// # Examples
/// ```
/// let tokens = tool_search::tokens("create_pullRequest2 in GitHub");
/// let expected = [
///     "create", "pull", "request", "2", "pullrequest2", "in", "git", "hub", "github",
/// ];
/// assert_eq!(tokens, expected);
/// ```
#[must_use]
pub fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    each_token(text, &mut |token| tokens.push(token.to_owned()));
    tokens
}

/// Passes each token of a text to a function.
pub(super) fn each_token(text: &str, receive: &mut dyn FnMut(&str)) {
    let mut buffer = String::new();
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        each_part(word, &mut buffer, receive);
    }
}

/// Class of a character that decides where a word is split.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    Lower,
    Upper,
    Digit,
    /// Character of a script that does not separate words by spaces.
    Unspaced,
}

fn kind_of(c: char) -> CharKind {
    if c.is_numeric() {
        CharKind::Digit
    } else if is_unspaced(c) {
        CharKind::Unspaced
    } else if c.is_uppercase() {
        CharKind::Upper
    } else {
        CharKind::Lower
    }
}

/// Returns `true` for scripts without spaces between words: Thai, Lao, Khmer, kana, Han, Hangul.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Splits one word, which consists of letters and digits.
fn each_part(word: &str, buffer: &mut String, receive: &mut dyn FnMut(&str)) {
    let mut start = 0;
    let mut n_parts = 0;
    let mut has_unspaced = false;
    let mut previous = None;
    let mut characters = word.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let kind = kind_of(c);
        has_unspaced |= kind == CharKind::Unspaced;
        let next = characters.peek().map(|(_, next)| kind_of(*next));
        let is_boundary = match (previous, kind) {
            (None, _) => false,
            (Some(CharKind::Lower), CharKind::Upper) => true,
            // The last capital of an acronym begins the next word: `HTTPServer`.
            (Some(CharKind::Upper), CharKind::Upper) => next == Some(CharKind::Lower),
            (Some(CharKind::Upper), CharKind::Lower) => false,
            (Some(before), _) => before != kind,
        };
        if is_boundary {
            part(&word[start..at], buffer, receive);
            n_parts += 1;
            start = at;
        }
        previous = Some(kind);
    }
    part(&word[start..], buffer, receive);
    if n_parts > 0 && !has_unspaced {
        lower_case(word, buffer, receive);
    }
}

/// Passes on a part. Characters of scripts without spaces become overlapping pairs, as in Lucene's `CJKBigramFilter`.
fn part(part: &str, buffer: &mut String, receive: &mut dyn FnMut(&str)) {
    let is_unspaced = part.chars().next().is_some_and(is_unspaced);
    let starts: Vec<usize> = match is_unspaced {
        true => part.char_indices().map(|(at, _)| at).collect(),
        false => Vec::new(),
    };
    if starts.len() < 3 {
        return lower_case(part, buffer, receive);
    }
    let ends = starts[2..].iter().copied().chain([part.len()]);
    for (start, end) in starts.iter().zip(ends) {
        receive(&part[*start..end]);
    }
}

fn lower_case(token: &str, buffer: &mut String, receive: &mut dyn FnMut(&str)) {
    if token.len() > MAX_TOKEN {
        return;
    }
    buffer.clear();
    if token.is_ascii() {
        buffer.push_str(token);
        buffer.make_ascii_lowercase();
    } else {
        buffer.extend(token.chars().flat_map(char::to_lowercase));
    }
    receive(buffer);
}
