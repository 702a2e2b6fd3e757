use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag, options};

use tool_settings::NodeId;

use crate::{
    Diagnostic,
    diagnostics::report::Report,
    document::{
        node::{Arena, Document, Kind, MAX_DEPTH, Slot, too_deep},
        scalar::{self, Plain},
        source::SourceFile,
        suggest,
    },
};

/// Maximum number of values that aliases may expand to in a file: far less than a file may have written out, since a
/// few lines of aliases can expand to billions.
const MAX_ALIASED: usize = 10_000;

/// Reads a text as YAML 1.2: its documents as far as they could be read, with the problems in `report`.
pub(crate) fn read(source: &Arc<SourceFile>, report: &Report) -> Vec<Document> {
    let mut reader = Reader {
        source,
        report,
        arena: Arena::new(source.clone()),
        anchors: HashMap::new(),
        n_aliased: 0,
        open: Vec::new(),
        root: None,
    };
    let limits = options! {
        disallow_directives: false,
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let mut documents = Vec::new();
    for next in Parser::new_from_str_with_options(&source.text, limits) {
        let done = match next {
            Ok((event, span)) => reader.event(event, &span, &mut documents),
            Err(error) => Err(reader.syntax(&error)),
        };
        if let Err(problem) = done {
            report.push(problem);
            break;
        }
    }
    documents
}

struct Reader<'a> {
    source: &'a Arc<SourceFile>,
    report: &'a Report,
    arena: Arena,
    anchors: HashMap<usize, NodeId>,
    n_aliased: usize,
    open: Vec<Open>,
    root: Option<NodeId>,
}

/// A list or map whose end has not come yet.
struct Open {
    id: NodeId,
    /// In a map, the key whose value comes next.
    key: Option<(String, Range<usize>)>,
    seen: HashSet<String>,
}

type Step = Result<(), Diagnostic>;

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, span: &Span, documents: &mut Vec<Document>) -> Step {
        let span = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(..) => {
                self.anchors.clear();
                self.root = None;
                Ok(())
            }
            Event::DocumentEnd => {
                if let Some(root) = self.root.take() {
                    documents.push(self.arena.finish(root));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", &span)?;
                self.open(Kind::List(Vec::new()), anchor, span)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", &span)?;
                self.open(Kind::Map(Vec::new()), anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let node = self.arena.node_mut(open.id);
                    node.span.end = span.end.max(node.span.end);
                    self.arena.attach(open.id);
                }
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Range<usize>,
    ) -> Step {
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
        if !is_text {
            self.check_tag(tag, "str", &span)?;
        }
        if self.wants_key() {
            return self.key(text, span);
        }
        let kind = if is_text || style != ScalarStyle::Plain {
            Kind::String(text.to_owned())
        } else {
            self.plain(text, &span)
        };
        let id = self.push(kind, anchor, span)?;
        self.arena.attach(id);
        Ok(())
    }

    fn plain(&self, text: &str, span: &Range<usize>) -> Kind {
        let problem = match scalar::resolve(text) {
            Plain::Value(kind) => return kind,
            _ if self.report.is_full() => return Kind::String(text.to_owned()),
            Plain::LeadingZero => {
                let decimal = text.trim_start_matches(['+', '-', '0']);
                let octal = u64::from_str_radix(decimal, 8);
                let readings = match octal {
                    Ok(octal) => format!("as {octal} by some readers of YAML and as {decimal} by others"),
                    Err(_) => "as a number by some readers of YAML and as a text by others".to_owned(),
                };
                Diagnostic::error(format!("`{text}` is read {readings}")).with_hint(format!(
                    "write `\"{text}\"` for the text, or the number without leading zeros"
                ))
            }
            Plain::NotFinite => Diagnostic::error(format!("`{text}` is no number that JSON can hold"))
                .with_hint(format!("write `\"{text}\"` for the text")),
        };
        self.report
            .push(problem.at(self.source, span.clone(), String::new()));
        // Its meaning is unknown; as a text it does no more harm.
        Kind::String(text.to_owned())
    }

    fn wants_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.key.is_none() && matches!(self.arena.node(open.id).kind, Kind::Map(_)))
    }

    fn key(&mut self, text: &str, span: Range<usize>) -> Step {
        let shown = self.source.slice(&span);
        if text == "<<" && shown == "<<" {
            return Err(self
                .problem("merge keys (`<<`) are not part of YAML 1.2", span)
                .with_hint("write the entries out, or use an alias for a whole value"));
        }
        if let Some(open) = self.open.last_mut() {
            open.key = Some((text.to_owned(), span));
        }
        Ok(())
    }

    /// Makes a node at the place of the next value.
    fn push(&mut self, kind: Kind, anchor: usize, span: Range<usize>) -> Result<NodeId, Diagnostic> {
        let parent = self.parent()?;
        let id = self.arena.push(kind, span, parent)?;
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        if self.open.is_empty() {
            self.root = Some(id);
        }
        Ok(id)
    }

    fn parent(&mut self) -> Result<Option<(NodeId, Slot)>, Diagnostic> {
        let Some(open) = self.open.last_mut() else {
            return Ok(None);
        };
        let id = open.id;
        if let Kind::List(items) = &self.arena.node(id).kind {
            return Ok(Some((id, Slot::Index(items.len()))));
        }
        let Some((key, span)) = open.key.take() else {
            return Ok(None);
        };
        if !open.seen.insert(key.clone()) {
            self.duplicate(id, &key, &span);
            // It hangs in the tree only by its parent: the map keeps the first.
            return Ok(Some((id, Slot::Index(usize::MAX))));
        }
        Ok(Some((id, Slot::Key(key, span))))
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
            problem = problem.with_related(
                "first given here",
                crate::Location::new(self.source, first.clone(), String::new()),
            );
        }
        self.report.push(problem);
    }

    fn open(&mut self, kind: Kind, anchor: usize, span: Range<usize>) -> Step {
        if self.wants_key() {
            return Err(self.problem("a key must be a text, not a list or a map", span));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        let id = self.push(kind, anchor, span)?;
        self.open.push(Open {
            id,
            key: None,
            seen: HashSet::new(),
        });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Range<usize>) -> Step {
        if self.wants_key() {
            return Err(self.problem("an alias cannot be a key", span));
        }
        let Some(target) = self.anchors.get(&anchor).copied() else {
            return Err(self.problem("this alias has no anchor", span));
        };
        if self.open.iter().any(|open| open.id == target) {
            return Err(self.problem("this alias stands for a value that it is itself a part of", span));
        }
        let parent = self.parent()?;
        let depth = self.open.len() + 1;
        let id = self.copy(target, parent, depth, &span)?;
        if self.open.is_empty() {
            self.root = Some(id);
        }
        self.arena.attach(id);
        Ok(())
    }

    /// Copies the value of an anchor. The copies keep the spans of the written value, since that is the one to edit.
    fn copy(
        &mut self,
        from: NodeId,
        parent: Option<(NodeId, Slot)>,
        depth: usize,
        alias: &Range<usize>,
    ) -> Result<NodeId, Diagnostic> {
        self.n_aliased += 1;
        if self.n_aliased > MAX_ALIASED {
            return Err(self
                .problem(
                    &format!("aliases stand for more than {MAX_ALIASED} values"),
                    alias.clone(),
                )
                .with_hint("write the values out, or use fewer aliases"));
        }
        if depth > MAX_DEPTH {
            return Err(self.too_deep(alias.clone()));
        }
        let node = self.arena.node(from);
        let (kind, span) = (node.kind.clone(), node.span.clone());
        let empty = match &kind {
            Kind::List(_) => Kind::List(Vec::new()),
            Kind::Map(_) => Kind::Map(Vec::new()),
            scalar => scalar.clone(),
        };
        let id = self.arena.push(empty, span, parent)?;
        let children: Vec<NodeId> = match kind {
            Kind::List(items) => items,
            Kind::Map(entries) => entries.into_iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        };
        for child in children {
            let slot = match &self.arena.node(child).parent {
                Some((_, slot)) => slot.clone(),
                None => continue,
            };
            let copy = self.copy(child, Some((id, slot)), depth + 1, alias)?;
            self.arena.attach(copy);
        }
        Ok(id)
    }

    fn check_tag(&self, tag: Option<&Tag>, usual: &str, span: &Range<usize>) -> Step {
        match tag {
            Some(tag) if !tag.is_yaml_core_schema_tag(usual) => Err(self
                .problem(
                    &format!("the tag `{}` has no meaning here", tag.original()),
                    span.clone(),
                )
                .with_hint("remove it; values are read by the core schema of YAML 1.2")),
            _ => Ok(()),
        }
    }

    fn too_deep(&self, span: Range<usize>) -> Diagnostic {
        self.problem(&too_deep(), span)
    }

    fn problem(&self, message: &str, span: Range<usize>) -> Diagnostic {
        Diagnostic::error(message).at(self.source, span, String::new())
    }

    fn syntax(&self, error: &ScanError) -> Diagnostic {
        let at = error.marker().byte_offset().unwrap_or(self.source.text.len());
        let span = at..at + self.source.text.get(at..).map_or(0, next_width);
        let (message, hint) = match error.kind() {
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => (
                "a tab stands where YAML wants spaces".to_owned(),
                Some("indent with spaces"),
            ),
            ErrorKind::RecursionLimitExceeded => return self.too_deep(span),
            ErrorKind::UnknownAnchor => (
                "this alias has no anchor".to_owned(),
                Some("a text that begins with `*` must be quoted"),
            ),
            ErrorKind::MappingValueNotAllowed => (
                "a `:` stands where no key can be".to_owned(),
                Some("quote a text that contains `: `, and check the indentation"),
            ),
            ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => (
                "a quoted text does not end where it should".to_owned(),
                Some("look for its missing quotation mark"),
            ),
            other => (format!("this is no valid YAML: {other}"), None),
        };
        let problem = self.problem(&message, span);
        match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }
}

fn next_width(rest: &str) -> usize {
    rest.chars()
        .next()
        .filter(|c| *c != '\n')
        .map_or(0, char::len_utf8)
}
