//! Translation of a user's template to the engine's language: Go's syntax becomes Jinja's, and a placeholder inside a JSON
//! string is marked as such.

use crate::go;

/// Template in the engine's language.
pub(crate) struct Translation {
    pub(crate) source: String,
}

/// Error of the translation, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line})")]
pub(crate) struct TranslateError {
    message: String,
    line: usize,
}

/// Allowed tags: conditions and loops. No tag can store, include or define anything, so the sizes of template and arguments
/// bound the size of all values.
const TAGS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Translates a template.
pub(crate) fn translate(text: &str) -> Result<Translation, TranslateError> {
    let mut writer = Translator {
        out: String::with_capacity(text.len() + 64),
        in_string: false,
        open: Vec::new(),
    };
    let mut rest = text;
    loop {
        let Some(start) = find_tag(rest) else {
            writer.text(rest);
            break;
        };
        writer.text(&rest[..start]);
        let (open, close) = match &rest[start..start + 2] {
            "{{" => ("{{", "}}"),
            "{%" => ("{%", "%}"),
            _ => ("{#", "#}"),
        };
        let inner = &rest[start + 2..];
        let fail = |message: String| TranslateError {
            message,
            line: 1 + text[..text.len() - inner.len()].matches('\n').count(),
        };
        let end = find_end(inner, close).ok_or_else(|| fail(format!("`{open}` without `{close}`")))?;
        match open {
            "{{" => writer.placeholder(&inner[..end]),
            "{%" => writer.tag(&inner[..end]),
            _ => Ok(()),
        }
        .map_err(fail)?;
        rest = &inner[end + 2..];
    }
    if let Some(block) = writer.open.pop() {
        return Err(TranslateError {
            message: format!("`{}` is never closed", block.name()),
            line: text.matches('\n').count() + 1,
        });
    }
    Ok(Translation { source: writer.out })
}

fn find_tag(text: &str) -> Option<usize> {
    ["{{", "{%", "{#"]
        .into_iter()
        .filter_map(|tag| text.find(tag))
        .min()
}

/// Returns the end of a tag. Quoted text inside the tag does not end it.
fn find_end(inner: &str, close: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, character) in inner.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if character == '\\' => escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if inner[at..].starts_with(close) => return Some(at),
            None if close != "#}" && matches!(character, '"' | '\'' | '`') => quote = Some(character),
            None => {}
        }
    }
    None
}

struct Translator {
    out: String,
    /// `true` if the text so far ends inside a JSON string.
    in_string: bool,
    open: Vec<Block>,
}

/// Open block. Records whether it began inside a JSON string, since each branch begins in the same place.
pub(crate) struct Block {
    kind: BlockKind,
    in_string: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    If,
    For,
    GoIf,
    /// `range` of Go, with the name of its item.
    GoRange(usize),
}

impl Block {
    fn name(&self) -> &'static str {
        match self.kind {
            BlockKind::If | BlockKind::GoIf => "if",
            BlockKind::For => "for",
            BlockKind::GoRange(_) => "range",
        }
    }
}

impl Translator {
    fn text(&mut self, text: &str) {
        let mut escaped = false;
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if self.in_string => escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
        self.out.push_str(text);
    }

    /// Translates `{{ .. }}`: a value in Jinja, any action in Go.
    fn placeholder(&mut self, inner: &str) -> Result<(), String> {
        let (before, body, after) = trim_marks(inner);
        let item = self.open.iter().rev().find_map(|block| match block.kind {
            BlockKind::GoRange(item) => Some(item),
            _ => None,
        });
        let Some(action) = go::parse_action(body, item)? else {
            check_expression(body)?;
            self.print(before, body, after);
            return Ok(());
        };
        match action {
            go::Action::Comment => {}
            go::Action::Print(expression) => self.print(before, &expression, after),
            go::Action::If(condition) => {
                self.enter(BlockKind::GoIf);
                self.statement(before, &format!("if {condition}"), after);
            }
            go::Action::ElseIf(condition) => {
                self.branch(&[BlockKind::GoIf])?;
                self.statement(before, &format!("elif {condition}"), after);
            }
            go::Action::Else => {
                self.branch(&[])?;
                self.statement(before, "else", after);
            }
            go::Action::Range(sequence) => {
                let item = self.open.len();
                self.enter(BlockKind::GoRange(item));
                self.statement(
                    before,
                    &format!("for {} in {sequence}", go::item_name(item)),
                    after,
                );
            }
            go::Action::End => match self.open.pop() {
                Some(Block {
                    kind: BlockKind::GoIf,
                    ..
                }) => self.statement(before, "endif", after),
                Some(Block {
                    kind: BlockKind::GoRange(_),
                    ..
                }) => self.statement(before, "endfor", after),
                _ => return Err("`end` without `if` or `range`".to_owned()),
            },
        }
        Ok(())
    }

    /// Translates `{% .. %}`.
    fn tag(&mut self, inner: &str) -> Result<(), String> {
        let (before, body, after) = trim_marks(inner);
        let (name, rest) = body.split_at(body.find(|c: char| !c.is_alphanumeric()).unwrap_or(body.len()));
        if !TAGS.contains(&name) {
            return Err(format!("the tag `{name}` is not available; use `if` or `for`"));
        }
        check_expression(rest)?;
        match name {
            "if" => self.enter(BlockKind::If),
            "for" => self.enter(BlockKind::For),
            "elif" => self.branch(&[BlockKind::If])?,
            "else" => self.branch(&[BlockKind::If, BlockKind::For])?,
            _ => {
                let kind = if name == "endif" {
                    BlockKind::If
                } else {
                    BlockKind::For
                };
                if self.open.pop().is_none_or(|block| block.kind != kind) {
                    return Err(format!("`{name}` closes no open block"));
                }
            }
        }
        self.statement(before, body, after);
        Ok(())
    }

    fn enter(&mut self, kind: BlockKind) {
        self.open.push(Block {
            kind,
            in_string: self.in_string,
        });
    }

    /// Begins another branch of the innermost block, which must be of one of these kinds, or of any of Go's kinds if the list
    /// is empty.
    fn branch(&mut self, kinds: &[BlockKind]) -> Result<(), String> {
        let block = self.open.last().ok_or("`else` without `if`")?;
        let fits = if kinds.is_empty() {
            matches!(block.kind, BlockKind::GoIf | BlockKind::GoRange(_))
        } else {
            kinds.contains(&block.kind)
        };
        if !fits {
            return Err(format!("`else` does not belong to the open `{}`", block.name()));
        }
        self.in_string = block.in_string;
        Ok(())
    }

    fn print(&mut self, before: &str, expression: &str, after: &str) {
        let expression = expression.trim();
        if self.in_string {
            self.out
                .push_str(&format!("{{{{{before} _text(({expression})) {after}}}}}"));
        } else {
            self.out
                .push_str(&format!("{{{{{before} ({expression}) {after}}}}}"));
        }
    }

    fn statement(&mut self, before: &str, body: &str, after: &str) {
        self.out
            .push_str(&format!("{{%{before} {} {after}%}}", body.trim()));
    }
}

/// Strips the marks that trim white space around a tag.
fn trim_marks(inner: &str) -> (&'static str, &str, &'static str) {
    let (before, inner) = inner.strip_prefix('-').map_or(("", inner), |inner| ("-", inner));
    let (after, inner) = inner.strip_suffix('-').map_or(("", inner), |inner| ("-", inner));
    (before, inner.trim(), after)
}

/// Refuses `*`, which can produce large texts from small ones: it repeats texts as well as it multiplies numbers.
fn check_expression(expression: &str) -> Result<(), String> {
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for character in expression.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if character == '\\' => escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if matches!(character, '"' | '\'') => quote = Some(character),
            None if character == '*' => {
                return Err("`*` is not available; the filter `times` multiplies".to_owned());
            }
            None => {}
        }
    }
    Ok(())
}
