//! Entries that `toolplane connect` wrote, and the files before it.

use serde_json::Value;

use crate::clients::{
    edit,
    entry::{self, Entry},
    file::TextFile,
    table::Client,
};

/// Text of a file before the gateway was connected.
pub(super) enum Origin {
    /// There was a file with this text.
    Text(String),
    /// There was no file.
    Absent,
}

/// Returns the names of the entries of a file that are the gateway: they start this program, or `connect` wrote them. An entry that a
/// user wrote may look like one of `connect`, so that only those of its usual name and those that start a gateway count.
pub(super) fn gateways(file: &TextFile, client: &Client, root: &Value) -> Vec<String> {
    let entries = entry::entries(client, root).into_iter();
    let ours = entries.filter(|(name, value)| {
        let Some(entry) = Entry::from_value(value) else {
            return false;
        };
        let may_be_ours = name == entry::PROGRAM || entry.serves();
        entry.is_gateway() || may_be_ours && origin(file, client, name, value).is_some()
    });
    ours.map(|(name, _)| name).collect()
}

/// Finds the text to which connecting added exactly this entry: a backup, or none if there was no file. `None` if the file was
/// changed since.
pub(super) fn origin(file: &TextFile, client: &Client, name: &str, value: &Value) -> Option<Origin> {
    let current = file.text.as_deref()?;
    let leads_here = |text: &str| {
        let base = start(client, text);
        let root = edit::read(base, client.format);
        let edited = root.and_then(|root| edit::insert(base, entry::slot(client, &root, name), value));
        edited.is_ok_and(|edited| edited == current)
    };
    let backup = file.backups().find(|(_, text)| leads_here(text));
    match backup {
        Some((_, text)) => Some(Origin::Text(text)),
        None => leads_here("").then_some(Origin::Absent),
    }
}

/// Returns the text that an entry is added to: that of the file, or else the one with which a client's file begins.
pub(super) fn start<'a>(client: &Client, text: &'a str) -> &'a str {
    match text.trim().is_empty() {
        true if !client.template.is_empty() => client.template,
        _ => text,
    }
}
