//! Translation of the simple part of Go's `text/template`: fields, conditions, `range`, and some functions.

/// Go action, with expressions in the engine's language.
pub(crate) enum Action {
    Comment,
    Print(String),
    If(String),
    ElseIf(String),
    Else,
    Range(String),
    End,
}

/// Returns the name of the item of the `range` that is opened as the `level`-th block.
pub(crate) fn item_name(level: usize) -> String {
    format!("_item{level}")
}

/// Known functions, with the minimum and maximum number of operands.
const FUNCTIONS: [(&str, usize, usize); 12] = [
    ("eq", 2, 8),
    ("ne", 2, 2),
    ("lt", 2, 2),
    ("le", 2, 2),
    ("gt", 2, 2),
    ("ge", 2, 2),
    ("and", 1, 8),
    ("or", 1, 8),
    ("not", 1, 1),
    ("len", 1, 1),
    ("index", 2, 8),
    ("toJson", 1, 1),
];
/// Go keywords and functions that are not supported.
const UNKNOWN: [&str; 10] = [
    "with", "define", "template", "block", "printf", "print", "println", "html", "js", "urlquery",
];

/// Translates an action. Returns `None` if it is not in Go's syntax. `item` is the innermost `range`.
pub(crate) fn parse_action(body: &str, item: Option<usize>) -> Result<Option<Action>, String> {
    let word = body
        .split(|c: char| c.is_whitespace() || c == '(')
        .next()
        .unwrap_or_default();
    let rest = &body[word.len()..];
    if body.starts_with("/*") && body.ends_with("*/") {
        return Ok(Some(Action::Comment));
    }
    if !word.is_empty() && rest.starts_with('(') {
        // Jinja's syntax of a call.
        return Ok(None);
    }
    let rest = rest.trim();
    // Go's operands begin with a dot, a `$`, a quote, a parenthesis or a digit; Jinja's operators do not.
    let has_operand =
        rest.starts_with(['.', '$', '"', '`', '(']) || rest.starts_with(|c: char| c.is_ascii_digit());
    if UNKNOWN.contains(&word) && has_operand {
        return Err(format!("Go's `{word}` is not available"));
    }
    let dot = item.map_or_else(|| "_arguments".to_owned(), item_name);
    let parse = |text: &str, strict: bool| Parser::new(text, &dot)?.whole_expression(strict);
    Ok(Some(match word {
        "if" => Action::If(parse(rest, false)?),
        "else" if rest.is_empty() => Action::Else,
        "else" => match rest.strip_prefix("if") {
            Some(condition) => Action::ElseIf(parse(condition, false)?),
            None => return Err("only `if` may follow `else`".to_owned()),
        },
        "end" if rest.is_empty() => Action::End,
        "range" => Action::Range(parse(rest, true)?),
        "not" if rest.starts_with('(') => return Ok(None),
        _ if body.starts_with(['.', '$']) => Action::Print(parse(body, true)?),
        _ if has_operand && FUNCTIONS.iter().any(|(name, ..)| *name == word) => {
            Action::Print(parse(body, true)?)
        }
        _ => return Ok(None),
    }))
}

/// Token of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Token<'a> {
    /// Field of the dot: `.a.b`.
    Field(Vec<&'a str>),
    /// Field of the arguments: `$.a.b`.
    Root(Vec<&'a str>),
    /// Number, boolean or text, in the engine's syntax.
    Literal(String),
    Name(&'a str),
    Open,
    Close,
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    dot: &'a str,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, dot: &'a str) -> Result<Self, String> {
        Ok(Self {
            tokens: tokens(text)?,
            at: 0,
            dot,
        })
    }

    /// Translates the whole expression. If it is strict, a missing field is an error; in a condition it is false.
    fn whole_expression(mut self, strict: bool) -> Result<String, String> {
        let expression = self.expression(strict)?;
        match self.tokens.get(self.at) {
            None => Ok(expression),
            Some(_) => Err("unexpected text after the expression".to_owned()),
        }
    }

    fn expression(&mut self, strict: bool) -> Result<String, String> {
        let Some(Token::Name(name)) = self.tokens.get(self.at) else {
            return self.operand(strict);
        };
        let (name, least, most) = *FUNCTIONS
            .iter()
            .find(|(known, ..)| known == name)
            .ok_or_else(|| format!("the function `{name}` is not available"))?;
        self.at += 1;
        // Operands of functions may be missing, except for functions that need a value.
        let strict = strict && matches!(name, "len" | "index" | "toJson");
        let mut operands = Vec::new();
        while self.at < self.tokens.len() && self.tokens[self.at] != Token::Close {
            operands.push(self.operand(strict)?);
        }
        if operands.len() < least || operands.len() > most {
            return Err(format!("`{name}` has a wrong number of operands"));
        }
        Ok(call(name, &operands))
    }

    fn operand(&mut self, strict: bool) -> Result<String, String> {
        let token = self.tokens.get(self.at).cloned().ok_or("an operand is missing")?;
        self.at += 1;
        match token {
            Token::Field(names) => Ok(field(self.dot, &names, strict)),
            Token::Root(names) => Ok(field("_arguments", &names, strict)),
            Token::Literal(text) => Ok(text),
            Token::Open => {
                let inner = self.expression(strict)?;
                if self.tokens.get(self.at) != Some(&Token::Close) {
                    return Err("`(` without `)`".to_owned());
                }
                self.at += 1;
                Ok(inner)
            }
            Token::Close => Err("`)` without `(`".to_owned()),
            Token::Name(name) => Err(format!("`{name}` is not allowed here")),
        }
    }
}

fn field(base: &str, names: &[&str], strict: bool) -> String {
    let function = if strict { "_part" } else { "_seek" };
    let names: String = names.iter().map(|name| format!(", \"{name}\"")).collect();
    format!("{function}({base}{names})")
}

fn call(name: &str, operands: &[String]) -> String {
    let joined = |operator: &str| format!("({})", operands.join(operator));
    match name {
        // Go's `eq` is true if the first operand equals any of the others.
        "eq" => {
            let choices: Vec<String> = operands[1..]
                .iter()
                .map(|other| format!("{} == {other}", operands[0]))
                .collect();
            format!("({})", choices.join(" or "))
        }
        "ne" => joined(" != "),
        "lt" => joined(" < "),
        "le" => joined(" <= "),
        "gt" => joined(" > "),
        "ge" => joined(" >= "),
        "and" => joined(" and "),
        "or" => joined(" or "),
        "not" => format!("(not {})", operands[0]),
        "len" => format!("({}|length)", operands[0]),
        "index" => format!("_part({})", operands.join(", ")),
        _ => operands[0].clone(),
    }
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' => {
                tokens.push(Token::Open);
                1
            }
            ')' => {
                tokens.push(Token::Close);
                1
            }
            '"' | '`' => {
                let (literal, length) = string(rest, first)?;
                tokens.push(Token::Literal(literal));
                length
            }
            _ => {
                let length = rest
                    .find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '`'))
                    .unwrap_or(rest.len());
                tokens.push(word(&rest[..length])?);
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Reads a quoted text. Returns it in the engine's syntax, with its length in the source.
fn string(text: &str, quote: char) -> Result<(String, usize), String> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if quote == '"' && character == '\\' {
            escaped = true;
        } else if character == quote {
            let raw = &text[..=at];
            let value: String = if quote == '"' {
                serde_json::from_str(raw).map_err(|_| format!("{raw} has an escape that is not available"))?
            } else {
                text[1..at].to_owned()
            };
            return Ok((serde_json::Value::from(value).to_string(), at + 1));
        }
    }
    Err("a text is never closed".to_owned())
}

fn word(word: &str) -> Result<Token<'_>, String> {
    if let Some(path) = word.strip_prefix('.') {
        return names(path).map(Token::Field);
    }
    if let Some(path) = word.strip_prefix('$') {
        return match path.strip_prefix('.') {
            Some(path) => names(path).map(Token::Root),
            None if path.is_empty() => Ok(Token::Root(Vec::new())),
            None => Err("variables are not available".to_owned()),
        };
    }
    match word {
        "true" | "false" => Ok(Token::Literal(word.to_owned())),
        "nil" => Ok(Token::Literal("none".to_owned())),
        "|" => Err("`|` is not available in Go's spelling".to_owned()),
        _ if word.parse::<f64>().is_ok() && word.contains(|c: char| c.is_ascii_digit()) => {
            Ok(Token::Literal(word.to_owned()))
        }
        _ if is_name(word) => Ok(Token::Name(word)),
        _ => Err(format!("unexpected `{word}`")),
    }
}

fn names(path: &str) -> Result<Vec<&str>, String> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    path.split('.')
        .map(|name| {
            is_name(name)
                .then_some(name)
                .ok_or_else(|| format!("`.{path}` is not a field"))
        })
        .collect()
}

fn is_name(word: &str) -> bool {
    word.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}
