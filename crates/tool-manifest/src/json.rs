use std::{collections::HashSet, ops::Range, sync::Arc};

use crate::{
    Diagnostic, Location,
    node::{Arena, Document, Kind, MAX_DEPTH, NodeId, Slot},
    report::Report,
    source::SourceFile,
    suggest,
};

/// Reads a text as JSON with comments and trailing commas: the document, if it could be read, with the problems in
/// `report`.
///
/// Not by serde_json, which knows no places and keeps the last of two equal keys.
pub(crate) fn read(source: &Arc<SourceFile>, report: &Report) -> Vec<Document> {
    let mut reader = Reader {
        source,
        report,
        text: &source.text,
        at: 0,
        arena: Arena::new(source.clone()),
    };
    match reader.document() {
        Ok(None) => Vec::new(),
        Ok(Some(root)) => vec![reader.arena.finish(root)],
        Err(problem) => {
            report.push(problem);
            Vec::new()
        }
    }
}

struct Reader<'a> {
    source: &'a Arc<SourceFile>,
    report: &'a Report,
    text: &'a str,
    at: usize,
    arena: Arena,
}

type Parent = Option<(NodeId, Slot)>;

impl Reader<'_> {
    fn document(&mut self) -> Result<Option<NodeId>, Diagnostic> {
        self.skip()?;
        if self.rest().is_empty() {
            return Ok(None);
        }
        let root = self.value(None, 1)?;
        self.skip()?;
        if self.rest().is_empty() {
            Ok(Some(root))
        } else {
            Err(self.unexpected("the end of the file"))
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), Diagnostic> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return Err(self.problem("this comment is not closed", self.at..self.at + 2));
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, parent: Parent, depth: usize) -> Result<NodeId, Diagnostic> {
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.map(parent, depth),
            Some(b'[') => self.list(parent, depth),
            Some(b'"') => {
                let text = self.string()?;
                self.arena.push(Kind::String(text), start..self.at, parent)
            }
            Some(b'-' | b'0'..=b'9') => self.number(parent),
            _ => {
                let words = [
                    ("true", Kind::Bool(true)),
                    ("false", Kind::Bool(false)),
                    ("null", Kind::Null),
                ];
                let word = self.word();
                match words.into_iter().find(|(text, _)| *text == word) {
                    Some((text, kind)) => {
                        self.at += text.len();
                        self.arena.push(kind, start..self.at, parent)
                    }
                    None => Err(self.unexpected("a value")),
                }
            }
        }
    }

    /// The letters and digits that follow.
    fn word(&self) -> &str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        &rest[..end]
    }

    fn number(&mut self, parent: Parent) -> Result<NodeId, Diagnostic> {
        let start = self.at;
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .unwrap_or(rest.len());
        let text = rest[..end].to_owned();
        self.at += end;
        if serde_json::from_str::<serde_json::Number>(&text).is_err() {
            let shown: String = text.chars().take(40).collect();
            return Err(self.problem(&format!("`{shown}` is no number of JSON"), start..self.at));
        }
        self.arena.push(Kind::Number(text), start..self.at, parent)
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                None | Some(b'\n') => {
                    return Err(self.problem("this text has no closing quotation mark", start..start + 1));
                }
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        serde_json::from_str(&self.text[start..=end]).map_err(|error| {
            // serde_json says the place within this text; a column is enough, for there is one line.
            let at = (start + error.column().saturating_sub(1)).min(end);
            let at = self.text.floor_char_boundary(at);
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default().to_owned();
            self.problem(&format!("this text is not valid: {message}"), at..at + 1)
        })
    }

    fn list(&mut self, parent: Parent, depth: usize) -> Result<NodeId, Diagnostic> {
        let id = self.open(Kind::List(Vec::new()), parent, depth)?;
        for index in 0.. {
            self.skip()?;
            if self.peek() == Some(b']') {
                break;
            }
            let item = self.value(Some((id, Slot::Index(index))), depth + 1)?;
            self.arena.attach(item);
            if !self.comma(b']')? {
                break;
            }
        }
        self.close(id);
        Ok(id)
    }

    fn map(&mut self, parent: Parent, depth: usize) -> Result<NodeId, Diagnostic> {
        let id = self.open(Kind::Map(Vec::new()), parent, depth)?;
        let mut seen = HashSet::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.unexpected("a key in quotation marks or `}`")),
            }
            let start = self.at;
            let key = self.string()?;
            let span = start..self.at;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected("`:` after the key"));
            }
            self.at += 1;
            self.skip()?;
            let first = seen.insert(key.clone());
            if !first {
                self.duplicate(id, &key, &span);
            }
            let value = self.value(Some((id, Slot::Key(key, span))), depth + 1)?;
            if first {
                self.arena.attach(value);
            }
            if !self.comma(b'}')? {
                break;
            }
        }
        self.close(id);
        Ok(id)
    }

    fn open(&mut self, kind: Kind, parent: Parent, depth: usize) -> Result<NodeId, Diagnostic> {
        let span = self.at..self.at + 1;
        if depth > MAX_DEPTH {
            let message = format!("values are nested deeper than {MAX_DEPTH} levels");
            return Err(self.problem(&message, span));
        }
        self.at += 1;
        self.arena.push(kind, span, parent)
    }

    fn close(&mut self, id: NodeId) {
        self.at += 1;
        self.arena.node_mut(id).span.end = self.at;
    }

    /// Whether another entry may follow; otherwise the closing bracket is next.
    fn comma(&mut self, close: u8) -> Result<bool, Diagnostic> {
        self.skip()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            _ => Err(self.unexpected(if close == b'}' { "`,` or `}`" } else { "`,` or `]`" })),
        }
    }

    fn duplicate(&self, map: NodeId, key: &str, span: &Range<usize>) {
        if self.report.is_full() {
            return;
        }
        let mut problem = self.problem(
            &format!("the key `{}` is given twice", suggest::shown(key)),
            span.clone(),
        );
        if let Kind::Map(entries) = &self.arena.node(map).kind
            && let Some((_, first)) = entries.iter().find(|(name, _)| name == key)
            && let Some((_, Slot::Key(_, first))) = &self.arena.node(*first).parent
        {
            let first = Location::new(self.source, first.clone(), String::new());
            problem = problem.with_related("first given here", first);
        }
        self.report.push(problem);
    }

    fn unexpected(&self, expected: &str) -> Diagnostic {
        let found = match self.rest().chars().next() {
            None => "the end of the file".to_owned(),
            Some(_) if self.word().len() > 1 => {
                format!("`{}`", self.word().chars().take(40).collect::<String>())
            }
            Some(c) if c.is_control() => format!("`{}`", c.escape_debug()),
            Some(c) => format!("`{c}`"),
        };
        let width = self.word().len().max(usize::from(!self.rest().is_empty()));
        self.problem(
            &format!("expected {expected}, found {found}"),
            self.at..self.text.ceil_char_boundary(self.at + width),
        )
    }

    fn problem(&self, message: &str, span: Range<usize>) -> Diagnostic {
        Diagnostic::error(message).at(self.source, span, String::new())
    }
}
