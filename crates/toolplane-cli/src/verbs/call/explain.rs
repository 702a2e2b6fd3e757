//! What the layers decided about a call.

use serde_json::{Value, json};
use toolplane::{LAYERS, RawJson, core::Note};

use super::elapsed;
use crate::{
    command::Format,
    failure::Failure,
    output::Console,
    text::{self, table::Table},
};

/// The notes as a table, in the order in which the layers decided, and the names of those that had nothing to decide or
/// were not reached.
pub(super) fn table(notes: &[Note]) -> String {
    let Some(first) = notes.first() else {
        return "no layer was reached".to_owned();
    };
    let rows = notes.iter().map(|note| {
        let decision = text::line(&note.decision).into_owned();
        [text::time(elapsed(note, first)), note.layer.to_owned(), decision]
    });
    let table = Table::new(false, text::terminal_width())
        .header(["AFTER", "LAYER", "DECISION"])
        .rows(rows);
    let is_silent = |layer: &&str| !notes.iter().any(|note| note.layer == *layer);
    let silent: Vec<&str> = LAYERS.into_iter().filter(is_silent).collect();
    if silent.is_empty() {
        return table.to_string();
    }
    format!(
        "{}\nnothing from: {}",
        table.to_string().trim_end(),
        silent.join(", ")
    )
}

pub(super) fn json(notes: &[Note]) -> RawJson {
    let rows = notes.iter().map(|note| {
        let first = notes.first().unwrap_or(note);
        let after = u64::try_from(elapsed(note, first).as_micros()).unwrap_or(u64::MAX);
        json!({"layer": note.layer, "decision": note.decision, "after_us": after})
    });
    RawJson::from(&rows.collect::<Value>())
}

/// Prints what a dry run came to: here the notes are the data.
pub(super) fn dry_run(notes: &[Note], console: Console) -> Result<(), Failure> {
    if console.format == Format::Table {
        return console.data(&table(notes));
    }
    let value = json!({"dry_run": true, "explain": serde_json::from_str::<Value>(json(notes).as_str()).unwrap_or_default()});
    console.value(&value, String::new)
}
