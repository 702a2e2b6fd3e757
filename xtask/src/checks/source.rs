//! Views of Rust source text: comments and literals are blanked out, and test code is marked.

use std::ops::Range;

/// Text of one Rust file.
///
/// Blanked characters become spaces and line ends stay, so offsets and line numbers are valid in every view.
#[derive(Clone, Debug)]
pub struct SourceFile {
    code: String,
    uncommented: String,
    tests: Vec<Range<usize>>,
    line_starts: Vec<usize>,
}

/// Name of a function and its lines, from `fn` to its closing brace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) lines: Range<usize>,
}

impl SourceFile {
    /// Parses the text of a file.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (code, uncommented) = blank(text);
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(index, _)| index + 1))
            .collect();
        let tests = test_regions(&code);
        Self {
            code,
            uncommented,
            tests,
            line_starts,
        }
    }

    /// Returns the text without comments and without the contents of string and character literals.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the text without comments. Literals stay.
    #[must_use]
    pub fn uncommented(&self) -> &str {
        &self.uncommented
    }

    /// Returns `true` if a comment begins at this offset.
    pub(crate) fn is_comment(&self, offset: usize) -> bool {
        self.uncommented[offset..].starts_with(' ')
    }

    /// Returns the line of an offset, counted from 1.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Returns `true` if an offset is in an item behind `#[cfg(test)]`.
    #[must_use]
    pub fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|region| region.contains(&offset))
    }

    /// Counts the lines that are not test code.
    #[must_use]
    pub fn n_lines(&self) -> usize {
        let n_test_lines: usize = self
            .tests
            .iter()
            .map(|region| self.line(region.end) - self.line(region.start) + 1)
            .sum();
        let all = self.line_starts.len() - usize::from(self.line_starts.last() == Some(&self.code.len()));
        all.saturating_sub(n_test_lines)
    }

    /// Finds the names of the tests.
    pub(crate) fn tests(&self) -> Vec<&str> {
        ["#[test]", "#[tokio::test"]
            .iter()
            .flat_map(|attribute| self.code.match_indices(attribute))
            .filter_map(|(start, _)| {
                let rest = &self.code[start..];
                let name = rest[words(rest, "fn").next()? + 2..].trim_start();
                name.split(|c| !is_word(c)).next()
            })
            .collect()
    }

    /// Finds the functions that are not test code.
    pub(crate) fn functions(&self) -> Vec<Function> {
        words(&self.code, "fn")
            .filter(|offset| !self.is_test(*offset))
            .filter_map(|offset| {
                let rest = &self.code[offset + 2..];
                let name: String = rest.trim_start().chars().take_while(|c| is_word(*c)).collect();
                let body = (!name.is_empty()).then(|| body(&self.code, offset)).flatten()?;
                Some(Function {
                    name,
                    lines: self.line(offset)..self.line(body.end) + 1,
                })
            })
            .collect()
    }
}

/// Finds the occurrences of a word that are not next to a letter, digit or underscore.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(offset, _)| offset)
        .filter(move |offset| {
            let before = text[..*offset].chars().next_back();
            let after = text[offset + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Finds the braces of the item that starts at `offset`. An item with a `;` before any brace has none.
fn body(code: &str, offset: usize) -> Option<Range<usize>> {
    let mut nested = 0_usize;
    let mut start = None;
    for (index, c) in code[offset..].char_indices() {
        match c {
            '(' | '[' => nested += 1,
            ')' | ']' => nested = nested.saturating_sub(1),
            '{' => {
                start.get_or_insert(offset + index);
                nested += 1;
            }
            '}' => {
                nested = nested.checked_sub(1)?;
                if nested == 0 {
                    return start.map(|start| start..offset + index);
                }
            }
            ';' if nested == 0 => return None,
            _ => {}
        }
    }
    None
}

fn test_regions(code: &str) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for attribute in ["#[cfg(test)]", "#[cfg(all(test", "#[test]", "#[tokio::test"] {
        for (start, _) in code.match_indices(attribute) {
            // The attribute's own brackets are balanced, so the scan may begin at it.
            if let Some(body) = body(code, start) {
                regions.push(start..body.end);
            }
        }
    }
    regions.sort_by_key(|region| (region.start, std::cmp::Reverse(region.end)));
    let mut outermost: Vec<Range<usize>> = Vec::new();
    for region in regions {
        if outermost.last().is_none_or(|last| region.start > last.end) {
            outermost.push(region);
        }
    }
    outermost
}

/// Returns the text without comments and literals, and the text without comments.
fn blank(text: &str) -> (String, String) {
    let mut code = String::with_capacity(text.len());
    let mut uncommented = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let before = code.chars().next_back();
        let (token, kind) = next_token(rest, before);
        let (length, open, close) = match kind {
            Kind::Code => (first.len_utf8().max(token), 0, 0),
            Kind::Comment => (token, 0, 0),
            Kind::Literal { open, close } => (token, open, close),
        };
        let piece = &rest[..length];
        match kind {
            Kind::Code => {
                code.push_str(piece);
                uncommented.push_str(piece);
            }
            Kind::Comment => {
                push_blank(&mut code, piece);
                push_blank(&mut uncommented, piece);
            }
            Kind::Literal { .. } => {
                code.push_str(&piece[..open]);
                push_blank(&mut code, &piece[open..length - close]);
                code.push_str(&piece[length - close..]);
                uncommented.push_str(piece);
            }
        }
        rest = &rest[length..];
    }
    (code, uncommented)
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal { open: usize, close: usize },
}

fn next_token(rest: &str, before: Option<char>) -> (usize, Kind) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Kind::Comment);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Kind::Comment);
    }
    if let Some(literal) = raw_string(rest, before) {
        return literal;
    }
    if rest.starts_with('"') {
        let length = quoted(rest, '"');
        let close = usize::from(length > 1 && rest[..length].ends_with('"'));
        return (length, Kind::Literal { open: 1, close });
    }
    if is_character(rest) {
        return (quoted(rest, '\''), Kind::Literal { open: 1, close: 1 });
    }
    (0, Kind::Code)
}

fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut index) = (0_usize, 0);
    while index + 1 < bytes.len() {
        match &bytes[index..index + 2] {
            b"/*" => {
                depth += 1;
                index += 2;
            }
            b"*/" => {
                depth -= 1;
                index += 2;
                if depth == 0 {
                    return index;
                }
            }
            _ => index += 1,
        }
    }
    rest.len()
}

/// Reads `r"…"` and `r#"…"#`, also behind `b` and `c`; the prefix letters before the `r` are plain code.
fn raw_string(rest: &str, before: Option<char>) -> Option<(usize, Kind)> {
    let hashes_and_quote = rest.strip_prefix('r')?;
    let n_hashes = hashes_and_quote.len() - hashes_and_quote.trim_start_matches('#').len();
    let inside = hashes_and_quote[n_hashes..].strip_prefix('"')?;
    if before.is_some_and(|c| is_word(c) && c != 'b' && c != 'c') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(n_hashes));
    let open = 2 + n_hashes;
    Some(match inside.find(&end) {
        Some(index) => (
            open + index + end.len(),
            Kind::Literal {
                open,
                close: end.len(),
            },
        ),
        None => (rest.len(), Kind::Literal { open, close: 0 }),
    })
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return index + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Returns `true` for a character literal such as `'a'`, and `false` for the lifetime `'a`.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars();
    if characters.next() != Some('\'') {
        return false;
    }
    match characters.next() {
        Some('\\') => rest[2..].contains('\''),
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

fn push_blank(view: &mut String, piece: &str) {
    // One space for each byte, so that an offset means the same position in every view.
    for byte in piece.bytes() {
        view.push(if byte == b'\n' { '\n' } else { ' ' });
    }
}
