use std::{collections::HashMap, ops::Range, sync::Arc};

use jsonc_parser::{
    CollectOptions, ParseOptions, ParseStringErrorKind,
    ast::{Object, Value},
    common::Ranged,
    errors::{ParseError, ParseErrorKind},
    parse_to_ast,
};

use tool_settings::NodeId;

use crate::{
    Diagnostic, Location,
    diagnostics::report::Report,
    document::{
        node::{Arena, Document, Kind, MAX_DEPTH, Slot, too_deep},
        source::SourceFile,
        suggest,
    },
};

/// JSON with comments and trailing commas, as MCP clients write their files; nothing else of JSON5.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const MISSING_QUOTE: &str = "missing closing quotation mark";

/// Reads a text as JSON with comments and trailing commas. Returns the document, or nothing with the problem in
/// `report`.
///
/// Uses `jsonc-parser`, which knows the place of each value; `serde_json` does not, and keeps the last of two equal
/// keys. Numbers and control characters in strings are checked here, where that parser is more lenient than JSON.
pub(crate) fn read(source: &Arc<SourceFile>, report: &Report) -> Vec<Document> {
    let mut reader = Reader {
        source,
        report,
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
    arena: Arena,
}

type Parent = Option<(NodeId, Slot)>;

impl Reader<'_> {
    fn document(&mut self) -> Result<Option<NodeId>, Diagnostic> {
        let parsed = parse_to_ast(&self.source.text, &CollectOptions::default(), &OPTIONS);
        let parsed = parsed.map_err(|error| self.not_json(&error))?;
        parsed.value.map(|value| self.value(&value, None, 1)).transpose()
    }

    fn value(&mut self, value: &Value<'_>, parent: Parent, depth: usize) -> Result<NodeId, Diagnostic> {
        let span = value.start()..value.end();
        match value {
            Value::NullKeyword(_) => self.arena.push(Kind::Null, span, parent),
            Value::BooleanLit(literal) => self.arena.push(Kind::Bool(literal.value), span, parent),
            Value::NumberLit(literal) => self.number(literal.value, span, parent),
            Value::StringLit(literal) => {
                self.check_string(&span)?;
                let text = literal.value.clone().into_owned();
                self.arena.push(Kind::String(text), span, parent)
            }
            Value::Array(array) => {
                let id = self.open(Kind::List(Vec::new()), span, parent, depth)?;
                for (index, element) in array.elements.iter().enumerate() {
                    let item = self.value(element, Some((id, Slot::Index(index))), depth + 1)?;
                    self.arena.attach(item);
                }
                Ok(id)
            }
            Value::Object(object) => {
                let id = self.open(Kind::Map(Vec::new()), span, parent, depth)?;
                self.entries(object, id, depth)?;
                Ok(id)
            }
        }
    }

    fn entries(&mut self, object: &Object<'_>, id: NodeId, depth: usize) -> Result<(), Diagnostic> {
        let mut first_spans = HashMap::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let span = property.name.start()..property.name.end();
            self.check_string(&span)?;
            let first = first_spans.get(key).cloned();
            let slot = Slot::Key(key.to_owned(), span.clone());
            let value = self.value(&property.value, Some((id, slot)), depth + 1)?;
            match first {
                Some(first) => self.duplicate(key, span, first),
                None => {
                    first_spans.insert(key, span);
                    self.arena.attach(value);
                }
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        kind: Kind,
        span: Range<usize>,
        parent: Parent,
        depth: usize,
    ) -> Result<NodeId, Diagnostic> {
        if depth > MAX_DEPTH {
            return Err(self.problem(&too_deep(), span.start..span.start + 1));
        }
        self.arena.push(kind, span, parent)
    }

    fn number(&mut self, text: &str, span: Range<usize>, parent: Parent) -> Result<NodeId, Diagnostic> {
        if serde_json::from_str::<serde_json::Number>(text).is_err() {
            let shown: String = text.chars().take(40).collect();
            return Err(self.problem(&format!("invalid number `{shown}`"), span));
        }
        self.arena.push(Kind::Number(text.to_owned()), span, parent)
    }

    /// Refuses control characters in a string, a line break among them: usually a quotation mark is missing.
    fn check_string(&self, span: &Range<usize>) -> Result<(), Diagnostic> {
        let text = self.source.slice(span);
        let Some(at) = text.find(|c: char| c < ' ') else {
            return Ok(());
        };
        if text[at..].starts_with(['\n', '\r']) {
            return Err(self.problem(MISSING_QUOTE, span.start..span.start + 1));
        }
        let at = span.start + at;
        let message = "invalid string: control character, write it as `\\u` and four hex digits";
        Err(self.problem(message, at..at + 1))
    }

    fn duplicate(&self, key: &str, span: Range<usize>, first: Range<usize>) {
        if self.report.is_full() {
            return;
        }
        let problem = self.problem(&format!("the key `{}` is given twice", suggest::shown(key)), span);
        let first = Location::new(self.source, first, String::new());
        self.report.push(problem.with_related("first given here", first));
    }

    /// Converts an error of the parser, at a range of at least one character.
    fn not_json(&self, error: &ParseError) -> Diagnostic {
        let text = &self.source.text;
        let start = text.floor_char_boundary(error.range().start);
        let end = text.ceil_char_boundary(error.range().end.max(start + 1));
        // The parser takes `012` for two numbers.
        let is_number = text[..start].ends_with(|c: char| c.is_ascii_digit())
            && text[start..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
        if is_number && matches!(error.kind(), ParseErrorKind::ExpectedComma) {
            return self.problem("invalid number", start..end);
        }
        self.problem(&message(error.kind()), start..end)
    }

    fn problem(&self, message: &str, span: Range<usize>) -> Diagnostic {
        Diagnostic::error(message).at(self.source, span, String::new())
    }
}

/// Names the rule that a text broke.
fn message(kind: &ParseErrorKind) -> String {
    let known = match kind {
        ParseErrorKind::ExpectedColonAfterObjectKey => "missing `:` after the key",
        ParseErrorKind::ExpectedComma => "missing `,`",
        ParseErrorKind::ExpectedStringObjectProperty | ParseErrorKind::UnexpectedTokenInObject => {
            "expected a key in double quotation marks"
        }
        ParseErrorKind::ExpectedObjectValue
        | ParseErrorKind::UnexpectedToken
        | ParseErrorKind::UnexpectedWord => "expected a value",
        ParseErrorKind::MultipleRootJsonValues => "expected the end of the file",
        ParseErrorKind::UnterminatedObject => "missing `}`",
        ParseErrorKind::UnterminatedArray => "missing `]`",
        ParseErrorKind::UnterminatedCommentBlock => "missing `*/` at the end of the comment",
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => MISSING_QUOTE,
        ParseErrorKind::String(ParseStringErrorKind::InvalidUnicodeEscapeSequence(_)) => {
            "invalid string: this escape stands for no character"
        }
        ParseErrorKind::NestingDepthExceeded => return too_deep(),
        other => {
            let message = other.to_string();
            let mut letters = message.chars();
            let first = letters.next().into_iter().flat_map(char::to_lowercase);
            return format!("invalid JSON: {}", first.chain(letters).collect::<String>());
        }
    };
    known.to_owned()
}
