use std::{ops::Range, sync::Arc};

use toml_edit::{Array, Item, TableLike, Value};
use tool_settings::NodeId;

use crate::{
    Diagnostic,
    diagnostics::report::Report,
    document::{
        node::{Arena, Document, Kind, MAX_DEPTH, Slot, too_deep},
        source::SourceFile,
    },
};

/// Reads a text as TOML. Returns the document, or nothing with the problem in `report`.
///
/// Uses `toml_edit`, which knows the place of each value.
pub(crate) fn read(source: &Arc<SourceFile>, report: &Report) -> Vec<Document> {
    let parsed = match toml_edit::Document::parse(source.text.as_str()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let span = error.span().unwrap_or_default();
            report.push(Diagnostic::error(error.message()).at(source, span, String::new()));
            return Vec::new();
        }
    };
    let mut reader = Reader {
        arena: Arena::new(source.clone()),
    };
    let whole = 0..source.text.len();
    match reader.table(parsed.as_table(), whole, None, 0) {
        Ok(root) => vec![reader.arena.finish(root)],
        Err(problem) => {
            report.push(problem);
            Vec::new()
        }
    }
}

struct Reader {
    arena: Arena,
}

/// The map or list that contains a value, and its place there.
type Parent = Option<(NodeId, Slot)>;

impl Reader {
    fn table(
        &mut self,
        table: &dyn TableLike,
        span: Range<usize>,
        parent: Parent,
        depth: usize,
    ) -> Result<NodeId, Diagnostic> {
        let id = self.push(Kind::Map(Vec::new()), span.clone(), parent, depth)?;
        for (key, item) in table.iter() {
            let written = table.key(key).and_then(toml_edit::Key::span);
            let slot = Slot::Key(key.to_owned(), written.unwrap_or(span.clone()));
            self.item(item, &span, Some((id, slot)), depth + 1)?;
        }
        Ok(id)
    }

    /// Adds an item. One without a place of its own, such as a table that only its subtables make, stands at its parent.
    fn item(
        &mut self,
        item: &Item,
        above: &Range<usize>,
        parent: Parent,
        depth: usize,
    ) -> Result<(), Diagnostic> {
        let span = item.span().unwrap_or(above.clone());
        match item {
            Item::None => {}
            Item::Value(value) => self.value(value, span, parent, depth)?,
            Item::Table(table) => {
                self.table(table, span, parent, depth)?;
            }
            Item::ArrayOfTables(tables) => {
                let id = self.push(Kind::List(Vec::new()), span.clone(), parent, depth)?;
                for (index, table) in tables.iter().enumerate() {
                    let place = table.span().unwrap_or(span.clone());
                    self.table(table, place, Some((id, Slot::Index(index))), depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        value: &Value,
        span: Range<usize>,
        parent: Parent,
        depth: usize,
    ) -> Result<(), Diagnostic> {
        let kind = match value {
            Value::String(text) => Kind::String(text.value().clone()),
            Value::Integer(number) => Kind::Number(number.value().to_string()),
            Value::Float(number) => match number.value() {
                number if number.is_finite() => Kind::Number(number.to_string()),
                number => Kind::String(number.to_string()),
            },
            Value::Boolean(value) => Kind::Bool(*value.value()),
            Value::Datetime(time) => Kind::String(time.value().to_string()),
            Value::Array(items) => return self.array(items, span, parent, depth),
            Value::InlineTable(table) => {
                self.table(table, span, parent, depth)?;
                return Ok(());
            }
        };
        self.push(kind, span, parent, depth)?;
        Ok(())
    }

    fn array(
        &mut self,
        items: &Array,
        span: Range<usize>,
        parent: Parent,
        depth: usize,
    ) -> Result<(), Diagnostic> {
        let id = self.push(Kind::List(Vec::new()), span.clone(), parent, depth)?;
        for (index, item) in items.iter().enumerate() {
            let place = item.span().unwrap_or(span.clone());
            self.value(item, place, Some((id, Slot::Index(index))), depth + 1)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        kind: Kind,
        span: Range<usize>,
        parent: Parent,
        depth: usize,
    ) -> Result<NodeId, Diagnostic> {
        if depth > MAX_DEPTH {
            return Err(Diagnostic::error(too_deep()).at(self.arena.source(), span, String::new()));
        }
        let id = self.arena.push(kind, span, parent)?;
        self.arena.attach(id);
        Ok(id)
    }
}
