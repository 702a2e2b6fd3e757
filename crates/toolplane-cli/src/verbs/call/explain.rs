//! Output of `--explain`: the decisions of the layers.

use serde_json::{Value, json};
use toolplane::{
    LAYERS, Place, RawJson,
    core::{LayerDecision, Preview},
};

use super::elapsed;
use crate::{
    command::Format,
    error::CliError,
    output::{Console, table::Table, text},
};

/// Sorts the decisions by time: concurrent attempts, such as hedges, interleave theirs.
fn in_order(notes: &[LayerDecision]) -> Vec<&LayerDecision> {
    let mut notes: Vec<&LayerDecision> = notes.iter().collect();
    notes.sort_by_key(|note| note.at);
    notes
}

/// Formats the decisions as a table in the order of time, followed by the layers without a decision.
pub(super) fn table(notes: &[LayerDecision]) -> String {
    let sorted = in_order(notes);
    let Some(first) = sorted.first().copied() else {
        return "no layer was reached".to_owned();
    };
    let rows = sorted.iter().map(|note| {
        let decision = text::line(&note.decision).into_owned();
        [text::time(elapsed(note, first)), note.layer.to_owned(), decision]
    });
    let table = Table::new(false, text::terminal_width())
        .header(["AFTER", "LAYER", "DECISION"])
        .rows(rows);
    // The command line adds no layers of its own.
    let is_place = |layer: &str| Place::ALL.iter().any(|place| place.name() == layer);
    let is_silent = |layer: &&str| !is_place(layer) && !notes.iter().any(|note| note.layer == *layer);
    let silent: Vec<&str> = LAYERS.iter().copied().filter(is_silent).collect();
    if silent.is_empty() {
        return table.to_string();
    }
    format!(
        "{}\nno decision from: {}",
        table.to_string().trim_end(),
        silent.join(", ")
    )
}

pub(super) fn json(notes: &[LayerDecision]) -> RawJson {
    let sorted = in_order(notes);
    let rows = sorted.iter().map(|note| {
        let first = sorted.first().unwrap_or(note);
        let after = u64::try_from(elapsed(note, first).as_micros()).unwrap_or(u64::MAX);
        json!({"layer": note.layer, "decision": note.decision, "after_us": after})
    });
    RawJson::from(&rows.collect::<Value>())
}

/// Prints the result of a dry run: the request, if it is known, and the decisions, which are data here.
pub(super) fn dry_run(
    notes: &[LayerDecision],
    preview: Option<&Preview>,
    console: Console,
) -> Result<(), CliError> {
    if console.format == Format::Table {
        let table = table(notes);
        return match preview {
            Some(preview) => console.data(&format!("{}\n\n{table}", text::lines(&preview.text))),
            None => console.data(&table),
        };
    }
    let value = |raw: &RawJson| serde_json::from_str::<Value>(raw.as_str()).unwrap_or_default();
    let request = preview.map(|preview| value(&preview.request));
    let value = json!({"dry_run": true, "request": request, "explain": value(&json(notes))});
    console.value(&value, String::new)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolplane::core::Instant;

    use super::*;

    #[test]
    fn notes_of_attempts_side_by_side_are_in_the_order_of_their_times() {
        let note = |layer: &'static str, milliseconds: u64| {
            let at = Instant::since_start(Duration::from_millis(milliseconds));
            LayerDecision::new(layer, "decided", at)
        };
        let notes = [
            note("hedge", 0),
            note("attempt", 1),
            note("executor", 300),
            note("attempt", 200),
        ];
        let sorted: Vec<&str> = in_order(&notes).iter().map(|note| note.layer).collect();
        assert_eq!(sorted, ["hedge", "attempt", "attempt", "executor"]);
        let json: Value = serde_json::from_str(json(&notes).as_str()).expect("it is JSON");
        let times: Vec<u64> = json
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| row["after_us"].as_u64())
            .collect();
        assert_eq!(times, [0, 1_000, 200_000, 300_000]);
    }
}
