use std::{ops::Range, sync::Arc};

use serde_json::{Map, Value};
use tool_settings::{ConfigValue, NodeId};

use crate::{Diagnostic, Location, document::source::SourceFile};

/// Maximum depth of nested values.
pub(crate) const MAX_DEPTH: usize = 64;
/// Returns the message about a value that is nested too deep.
pub(crate) fn too_deep() -> String {
    format!("values are nested deeper than {MAX_DEPTH} levels")
}

/// Maximum number of values of a file, those that aliases expand to included.
pub(crate) const MAX_NODES: usize = 200_000;

/// A document as a tree of values that know where they stand.
///
/// One arena holds all values, so that a place is a number, cheap to keep with whatever is made from it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: Arc<SourceFile>,
    nodes: Vec<Node>,
    root: NodeId,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
    /// The map or list that contains it, and its place there.
    pub(crate) parent: Option<(NodeId, Slot)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Key(String, Range<usize>),
    Index(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// A number as JSON writes it.
    Number(String),
    String(String),
    List(Vec<NodeId>),
    /// In the order of the file; keys are unique.
    Map(Vec<(String, NodeId)>),
}

impl Document {
    pub(crate) fn new(source: Arc<SourceFile>, nodes: Vec<Node>, root: NodeId) -> Self {
        Self { source, nodes, root }
    }

    /// Adds a value that stands at the place of another.
    pub(crate) fn add(&mut self, kind: Kind, at: NodeId) -> NodeId {
        let node = self.node(at);
        let (span, parent) = (node.span.clone(), node.parent.clone());
        let id = NodeId::new(u32::try_from(self.nodes.len()).expect("a document is bounded"));
        self.nodes.push(Node { kind, span, parent });
        id
    }

    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index() as usize]
    }

    pub(crate) fn kind(&self, id: NodeId) -> &Kind {
        &self.node(id).kind
    }

    pub(crate) fn value(&self, id: NodeId) -> ConfigValue<'_> {
        match self.kind(id) {
            Kind::Null => ConfigValue::Null,
            Kind::Bool(value) => ConfigValue::Bool(*value),
            Kind::Number(text) => ConfigValue::Number(text),
            Kind::String(text) => ConfigValue::String(text),
            Kind::List(items) => ConfigValue::List(items),
            Kind::Map(entries) => ConfigValue::Map(entries),
        }
    }

    /// Returns the entries of a map; none for anything else.
    pub(crate) fn entries(&self, id: NodeId) -> &[(String, NodeId)] {
        match self.kind(id) {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        let (_, value) = self.entries(id).iter().find(|(name, _)| name == key)?;
        Some(*value)
    }

    pub(crate) fn text(&self, id: NodeId) -> Option<&str> {
        match self.kind(id) {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a scalar's text as it is written in the file; `None` for lists, maps and null.
    pub(crate) fn verbatim(&self, id: NodeId) -> Option<&str> {
        match self.kind(id) {
            Kind::String(text) => Some(text),
            Kind::Number(_) | Kind::Bool(_) => Some(self.source.slice(&self.node(id).span)),
            Kind::Null | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// Describes a value in words that fit "expected .., found ..". Leaves out the content of a text, which may be
    /// secret.
    pub(crate) fn describe(&self, id: NodeId) -> String {
        match self.kind(id) {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool(value) => format!("`{value}`"),
            Kind::Number(_) => format!("the number `{}`", self.source.slice(&self.node(id).span)),
            Kind::String(_) => "a text".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
        }
    }

    /// Returns the place of a value.
    pub(crate) fn location(&self, id: NodeId) -> Location {
        Location::new(&self.source, self.node(id).span.clone(), self.field(id))
    }

    /// Returns the place of a value's key, or of the value where it has none.
    pub(crate) fn key_location(&self, id: NodeId) -> Location {
        match &self.node(id).parent {
            Some((_, Slot::Key(_, span))) => Location::new(&self.source, span.clone(), self.field(id)),
            _ => self.location(id),
        }
    }

    /// Returns the line of a value's key, which is found faster than the whole place.
    pub(crate) fn key_line(&self, id: NodeId) -> usize {
        let start = match &self.node(id).parent {
            Some((_, Slot::Key(_, span))) => span.start,
            _ => self.node(id).span.start,
        };
        self.source.line_number(start)
    }

    /// Returns the path to a value, such as `servers.files.args[0]`.
    pub(crate) fn field(&self, id: NodeId) -> String {
        let mut slots = Vec::new();
        let mut at = id;
        while let Some((parent, slot)) = &self.node(at).parent {
            slots.push(slot);
            at = *parent;
        }
        let mut field = String::new();
        for slot in slots.into_iter().rev() {
            match slot {
                Slot::Index(index) => field.push_str(&format!("[{index}]")),
                Slot::Key(key, _) => {
                    if !field.is_empty() {
                        field.push('.');
                    }
                    field.push_str(key);
                }
            }
        }
        field
    }

    /// Returns the value at a JSON Pointer, or the last one on the way there that exists.
    pub(crate) fn descend(&self, from: NodeId, pointer: &str) -> NodeId {
        let mut at = from;
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let next = match self.kind(at) {
                Kind::Map(_) => self.get(at, &segment),
                Kind::List(items) => segment
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index).copied()),
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// Converts the value to a tree. Numbers beyond a double lose digits there: see [`Document::imprecise`].
    pub(crate) fn to_value(&self, id: NodeId) -> Value {
        match self.kind(id) {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            Kind::String(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(|item| self.to_value(*item)).collect()),
            Kind::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| (key.clone(), self.to_value(*value)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// Writes the value as JSON, numbers with all their digits.
    pub(crate) fn to_json(&self, id: NodeId) -> String {
        let mut json = String::new();
        self.write_json(id, &mut json);
        json
    }

    fn write_json(&self, id: NodeId, json: &mut String) {
        match self.kind(id) {
            Kind::Null => json.push_str("null"),
            Kind::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
            Kind::Number(text) => json.push_str(text),
            Kind::String(text) => json.push_str(&Value::from(text.as_str()).to_string()),
            Kind::List(items) => {
                json.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        json.push(',');
                    }
                    self.write_json(*item, json);
                }
                json.push(']');
            }
            Kind::Map(entries) => {
                json.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        json.push(',');
                    }
                    json.push_str(&Value::from(key.as_str()).to_string());
                    json.push(':');
                    self.write_json(*value, json);
                }
                json.push('}');
            }
        }
    }

    /// Returns the first integer in a value that a tree cannot hold with all its digits.
    pub(crate) fn imprecise(&self, id: NodeId) -> Option<NodeId> {
        match self.kind(id) {
            Kind::Number(text) => {
                let is_integer = !text.contains(['.', 'e', 'E']);
                (is_integer && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()).then_some(id)
            }
            Kind::List(items) => items.iter().find_map(|item| self.imprecise(*item)),
            Kind::Map(entries) => entries.iter().find_map(|(_, value)| self.imprecise(*value)),
            Kind::Null | Kind::Bool(_) | Kind::String(_) => None,
        }
    }
}

/// Builds the arena of a file's documents and enforces its limits.
#[derive(Debug)]
pub(crate) struct Arena {
    source: Arc<SourceFile>,
    nodes: Vec<Node>,
    /// Number of nodes of earlier documents of the file.
    n_earlier: usize,
}

impl Arena {
    pub(crate) fn new(source: Arc<SourceFile>) -> Self {
        Self {
            source,
            nodes: Vec::new(),
            n_earlier: 0,
        }
    }

    pub(crate) fn source(&self) -> &SourceFile {
        &self.source
    }

    pub(crate) fn push(
        &mut self,
        kind: Kind,
        span: Range<usize>,
        parent: Option<(NodeId, Slot)>,
    ) -> Result<NodeId, Diagnostic> {
        let n_nodes = self.n_earlier + self.nodes.len();
        if n_nodes >= MAX_NODES {
            return Err(
                Diagnostic::error(format!("the file has more than {MAX_NODES} values")).at(
                    &self.source,
                    span,
                    String::new(),
                ),
            );
        }
        let id = NodeId::new(u32::try_from(self.nodes.len()).expect("the limit is far below"));
        self.nodes.push(Node { kind, span, parent });
        Ok(id)
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index() as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index() as usize]
    }

    /// Adds a value to the list or map it belongs to.
    pub(crate) fn attach(&mut self, id: NodeId) {
        let Some((parent, slot)) = self.node(id).parent.clone() else {
            return;
        };
        match (&mut self.node_mut(parent).kind, slot) {
            (Kind::List(items), _) => items.push(id),
            (Kind::Map(entries), Slot::Key(key, _)) => entries.push((key, id)),
            _ => {}
        }
    }

    pub(crate) fn finish(&mut self, root: NodeId) -> Document {
        let nodes = std::mem::take(&mut self.nodes);
        self.n_earlier += nodes.len();
        Document::new(self.source.clone(), nodes, root)
    }
}
