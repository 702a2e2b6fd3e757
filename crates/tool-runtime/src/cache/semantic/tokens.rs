//! Tokens of a request: words, values and commas.

/// Part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word of letters, in lower case, with its apostrophes but without `'s` of a possessor.
    Word {
        text: Box<str>,
        /// `true` if it has a capital that does not come from the beginning of a sentence.
        is_name: bool,
    },
    /// A number, a symbol, an identifier or a quotation, as it is written.
    Value(Box<str>),
    /// Separates the members of a list.
    Comma,
    /// Ends a sentence.
    End,
    /// Any other punctuation.
    Other,
}

/// Characters that may stand between the letters and digits of one token.
const INNER: [char; 10] = ['.', ',', ':', '/', '@', '_', '\'', '=', '&', '-'];
/// Punctuation that says nothing.
const PUNCTUATION: [char; 12] = ['.', '!', '?', ':', '"', '\'', '-', '–', '—', '…', '/', '`'];
/// Brackets, which tell nothing but the order of operators.
const BRACKETS: [char; 6] = ['(', ')', '[', ']', '{', '}'];
/// Quotation marks in pairs.
const QUOTES: [(char, char); 4] = [('"', '"'), ('“', '”'), ('`', '`'), ('\'', '\'')];

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    /// Places of brackets among the tokens.
    brackets: Vec<usize>,
    has_operator: bool,
    begins_sentence: bool,
}

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let text = text.replace(['’', '‘'], "'");
    let mut scanner = Scanner {
        text: without_quotes(text.trim()),
        at: 0,
        tokens: Vec::new(),
        brackets: Vec::new(),
        has_operator: false,
        begins_sentence: true,
    };
    while scanner.next().is_some() {}
    if !scanner.has_operator {
        for place in scanner.brackets {
            scanner.tokens[place] = Token::Other;
        }
    }
    scanner.tokens
}

/// Returns a text that is quoted as a whole without its quotation marks.
fn without_quotes(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).unwrap_or(text)
}

impl Scanner<'_> {
    /// Reads the next token. `None` at the end.
    fn next(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let second = rest[first.len_utf8()..].chars().next();
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if let Some((quoted, n_bytes)) = self.quotation(first) {
            let quoted = quoted.trim().to_owned();
            self.at += n_bytes;
            if quoted.contains(char::is_whitespace) {
                self.push(Token::Value(quoted.into()));
            } else {
                self.tokens.extend(tokens(&quoted).into_iter().map(as_value));
            }
            self.begins_sentence = false;
        } else if first.is_alphanumeric() || self.begins_number(first, second) {
            let n_bytes = self.length_of_word(first);
            let word = &self.text[self.at..self.at + n_bytes];
            self.at += n_bytes;
            self.word(word);
            self.begins_sentence = false;
        } else {
            self.symbol(first, second);
            self.at += first.len_utf8();
        }
        Some(())
    }

    /// Returns the text between quotation marks that begin here, and the length with the marks.
    fn quotation(&self, first: char) -> Option<(&str, usize)> {
        let (_, end) = QUOTES.into_iter().find(|(begin, _)| *begin == first)?;
        let is_apostrophe = |at: usize| {
            end == '\''
                && self.text[at + 1..]
                    .chars()
                    .next()
                    .is_some_and(char::is_alphanumeric)
        };
        if end == '\'' && self.last_char().is_some_and(char::is_alphanumeric) {
            return None;
        }
        let from = self.at + first.len_utf8();
        let mut ends = self.text[from..].match_indices(end).map(|(at, _)| from + at);
        let until = ends.find(|at| !is_apostrophe(*at))?;
        (until > from).then(|| (&self.text[from..until], until + end.len_utf8() - self.at))
    }

    /// Returns `true` for the sign or currency of a number.
    fn begins_number(&self, first: char, second: Option<char>) -> bool {
        let is_sign =
            matches!(first, '-' | '+') && !self.last_char().is_some_and(|c| c.is_alphanumeric() || c == ')');
        let is_currency = matches!(first, '$' | '€' | '£' | '#');
        is_sign && second.is_some_and(|second| second.is_ascii_digit())
            || is_currency && second.is_some_and(char::is_alphanumeric)
    }

    /// Returns the character in front.
    fn last_char(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// Returns the length of the word that begins here, in bytes.
    fn length_of_word(&self, first: char) -> usize {
        let rest = &self.text[self.at..];
        let mut end = first.len_utf8();
        while let Some(char) = rest[end..].chars().next() {
            let after = &rest[end + char.len_utf8()..];
            let continues = char.is_alphanumeric()
                || char == '_'
                || INNER.contains(&char)
                    && after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            if rest[end..].starts_with("://") {
                end += "://".len();
            } else if continues {
                end += char.len_utf8();
            } else {
                break;
            }
        }
        // `C++`, `C#`, `5%`
        let suffix = rest[end..]
            .chars()
            .take_while(|char| matches!(char, '+' | '#' | '%'))
            .count();
        let follows = rest[end + suffix..].chars().next();
        end + if follows.is_some_and(char::is_alphanumeric) {
            0
        } else {
            suffix
        }
    }

    fn symbol(&mut self, symbol: char, next: Option<char>) {
        let follows_number = self.tokens.last().is_some_and(is_number);
        match symbol {
            '-' | '–' | '+'
                if follows_number
                    && next.is_none_or(|next| next.is_whitespace() || next.is_ascii_digit()) =>
            {
                self.operator(symbol);
            }
            // `-ln(5)`, `-v`, but no dash between words
            '-' if !self.last_char().is_some_and(char::is_alphanumeric)
                && next.is_some_and(char::is_alphanumeric) =>
            {
                self.operator(symbol);
            }
            ',' | ';' | '+' | '&' => self.push(Token::Comma),
            _ if BRACKETS.contains(&symbol) => {
                self.brackets.push(self.tokens.len());
                self.push(Token::Value(symbol.to_string().into()));
            }
            _ if PUNCTUATION.contains(&symbol) => {
                let is_end = matches!(symbol, '.' | '!' | '?' | '…');
                self.begins_sentence |= is_end || symbol == ':';
                self.push(if is_end { Token::End } else { Token::Other });
            }
            _ => self.operator(symbol),
        }
    }

    fn operator(&mut self, symbol: char) {
        self.has_operator = true;
        self.push(Token::Value(symbol.to_string().into()));
    }

    fn word(&mut self, word: &str) {
        let word = word
            .strip_suffix("'s")
            .filter(|word| !is_contracted(word))
            .unwrap_or(word);
        let is_plain = word
            .chars()
            .all(|char| char.is_alphabetic() || matches!(char, '-' | '\''));
        let mut capitals = word.chars().map(char::is_uppercase);
        let (begins_with_capital, has_inner) = (
            capitals.next().unwrap_or_default(),
            capitals.any(|capital| capital),
        );
        let is_upper = has_inner && word.chars().all(|char| !char.is_lowercase());
        if !is_plain || has_inner && !is_upper && !word.contains('-') {
            self.push(Token::Value(value(word).into()));
            return;
        }
        let is_name = is_upper || begins_with_capital && !self.begins_sentence && word != "I";
        for part in word.split('-').filter(|part| !part.is_empty()) {
            self.push(Token::Word {
                text: part.to_lowercase().into(),
                is_name,
            });
        }
    }

    fn push(&mut self, token: Token) {
        self.tokens.push(token);
    }
}

/// Returns `true` if `'s` after this word is short for `is`.
fn is_contracted(word: &str) -> bool {
    const WORDS: [&str; 9] = [
        "what", "where", "how", "who", "when", "it", "that", "there", "let",
    ];
    WORDS.contains(&word.to_lowercase().as_str())
}

/// Returns a number without the separators of thousands and the ending of an ordinal; other values as they are.
fn value(word: &str) -> String {
    let without_ending = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending));
    if let Some(number) = without_ending.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
        return number.to_owned();
    }
    let digits = word.trim_start_matches(|char: char| !char.is_ascii_digit());
    let mut groups = digits.split('.').next().unwrap_or_default().split(',');
    let is_short = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    let rest: Vec<&str> = groups.collect();
    let is_group = |group: &&str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    if is_short && !rest.is_empty() && rest.iter().all(is_group) {
        return word.replace(',', "");
    }
    word.to_owned()
}

fn is_number(token: &Token) -> bool {
    matches!(token, Token::Value(text) if text.ends_with(|char: char| char.is_ascii_digit() || char == ')'))
}

fn as_value(token: Token) -> Token {
    match token {
        Token::Word { text, .. } => Token::Word { text, is_name: true },
        other => other,
    }
}
