use std::fmt;

use comfy_table::{ContentArrangement, Row, presets};

use super::text::{self, HEADER, PLAIN};

/// A table without borders, at most as wide as the terminal.
pub(crate) struct Table {
    table: comfy_table::Table,
    color: bool,
}

impl Table {
    pub(crate) fn new(color: bool, width: Option<u16>) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        match width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        Self { table, color }
    }

    pub(crate) fn header(mut self, names: impl Into<Row>) -> Self {
        self.table.set_header(names);
        self
    }

    /// Adds rows. Each cell takes one line: hidden characters and line breaks of untrusted text are escaped.
    pub(crate) fn rows<R>(mut self, rows: impl IntoIterator<Item = R>) -> Self
    where
        R: IntoIterator<Item: AsRef<str>>,
    {
        self.table.add_rows(rows.into_iter().map(|row| {
            let cells = row.into_iter().map(|cell| text::line(cell.as_ref()).into_owned());
            cells.collect::<Vec<_>>()
        }));
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.table.trim_fmt();
        let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
        let style = if self.color { HEADER } else { PLAIN };
        write!(f, "{style}{header}{style:#}")?;
        if !rows.is_empty() {
            write!(f, "\n{rows}")?;
        }
        Ok(())
    }
}
