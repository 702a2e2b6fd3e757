//! Entries of all catalogs: search, and the entry that a request names.

use serde_json::{Value, json};
use toolplane::catalog::{CatalogEntry, CatalogError, CatalogErrorKind, EntryRequest, find_entry};

use super::{
    settings::AddedCatalogs,
    source::{OpenCatalog, open_all},
};
use crate::{
    command::Format,
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Finds entries by what they do.
pub(super) async fn search(query: &str, catalog: Option<&str>, console: Console) -> Result<Exit, CliError> {
    let open = open_all(&AddedCatalogs::read()?, catalog, console).await?;
    let mut found = Vec::new();
    let entries: Vec<&CatalogEntry> = open.iter().flat_map(|catalog| catalog.index.entries()).collect();
    for entry in toolplane::catalog::search(&entries, query) {
        let owner = open.iter().find(|catalog| {
            catalog
                .index
                .entries()
                .iter()
                .any(|known| std::ptr::eq(known, entry))
        });
        if let Some(owner) = owner {
            found.push((owner.name.as_str(), entry));
        }
    }
    if found.is_empty() && console.format == Format::Table {
        console.say("nothing fits; without a query, everything is listed");
        return Ok(Exit::Done);
    }
    let rows: Vec<Value> = found
        .iter()
        .map(|(catalog, entry)| to_json(catalog, entry))
        .collect();
    console.list(&rows, |table| {
        let header = ["NAME", "VERSION", "KIND", "CATALOG", "DESCRIPTION"];
        table.header(header).rows(found.iter().map(|(catalog, entry)| {
            [
                entry.name.clone(),
                entry.version.clone(),
                entry.kind.as_str().to_owned(),
                (*catalog).to_owned(),
                text::first_line(&entry.description).to_owned(),
            ]
        }))
    })?;
    Ok(Exit::Done)
}

/// Returns an entry as JSON.
pub(super) fn to_json(catalog: &str, entry: &CatalogEntry) -> Value {
    json!({
        "catalog": catalog,
        "kind": entry.kind.as_str(),
        "name": entry.name,
        "version": entry.version,
        "title": entry.title,
        "description": entry.description,
        "tags": entry.tags,
        "digest": format!("sha256:{}", raw_json::hex(&entry.digest)),
    })
}

/// Opens the catalogs that may have an entry, and finds it: `NAME`, `NAME@VERSION` or `CATALOG/NAME@VERSION`.
pub(super) async fn find(written: &str, console: Console) -> Result<(OpenCatalog, CatalogEntry), CliError> {
    let added = AddedCatalogs::read()?;
    // A name may have a `/` as well: the first part is a catalog only if one has this name.
    let (only, rest) = match written.split_once('/') {
        Some((catalog, rest)) if added.catalogs.contains_key(catalog) => (Some(catalog), rest),
        _ => (None, written),
    };
    let request: EntryRequest = rest.parse()?;
    let mut open = open_all(&added, only, console).await?;
    let entries: Vec<&CatalogEntry> = open.iter().flat_map(|catalog| catalog.index.entries()).collect();
    let entry = find_entry(&entries, &request)?.clone();
    let is_same = |known: &CatalogEntry| known.name == entry.name && known.version == entry.version;
    let owners: Vec<usize> = (0..open.len())
        .filter(|number| open[*number].index.entries().iter().any(is_same))
        .collect();
    if let [_, _, ..] = owners.as_slice() {
        let names: Vec<String> = owners
            .iter()
            .map(|number| format!("`{}`", open[*number].name))
            .collect();
        let place = format!("{}@{}", entry.name, entry.version);
        let failure = CatalogError::new(
            CatalogErrorKind::Invalid,
            place.as_str(),
            format!("several catalogs have it: {}", names.join(", ")),
        );
        let hint = format!("write `{}/{place}`", open[owners[0]].name);
        return Err(failure.with_hint(hint).into());
    }
    let owner = owners.first().copied().unwrap_or_default();
    Ok((open.swap_remove(owner), entry))
}
