//! `toolplane catalog add`, `ls` and `remove`.

use std::{fs, path::Path};

use serde_json::{Value, json};
use toolplane::catalog::CatalogKey;

use super::{
    fetch::base_url,
    settings::{AddedCatalog, AddedCatalogs},
    source::OpenCatalog,
};
use crate::{
    command::{AddCatalog, Format},
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Maximum length of the name of a catalog.
const MAX_NAME: usize = 64;

/// Adds a catalog, after its index was read.
pub(super) async fn add(add: &AddCatalog, console: Console) -> Result<Exit, CliError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if add.name.is_empty() || add.name.len() > MAX_NAME || !add.name.chars().all(is_plain) {
        let message = format!("`{}` is no name of a catalog", text::line(&add.name));
        return Err(CliError::usage(message).with_hint("write up to 64 letters, digits, `-` and `_`"));
    }
    let catalog = AddedCatalog {
        place: place(&add.place)?,
        key: key(add)?.map(|key| key.to_string()),
    };
    let mut added = AddedCatalogs::read()?;
    let known = added.catalogs.get(&add.name);
    if known.is_some_and(|known| *known != catalog) {
        let message = format!("there is another catalog `{}`", add.name);
        return Err(CliError::failed(message).with_hint(format!(
            "name this one otherwise, or remove the other: `toolplane catalog remove {}`",
            add.name
        )));
    }
    let is_new = known.is_none();
    let open = OpenCatalog::open(&add.name, &catalog, console).await?;
    if is_new {
        added.catalogs.insert(add.name.clone(), catalog.clone());
        added.write()?;
    }
    let mut row = to_json(&add.name, &catalog);
    row["entries"] = json!(open.index.entries().len());
    row["new"] = json!(is_new);
    console.value(&row, || {
        let entries = text::count(open.index.entries().len(), "version");
        let verb = if is_new { "added" } else { "is there already:" };
        format!("{verb} {}: {entries} in {}", add.name, text::line(&catalog.place))
    })?;
    if catalog.key.is_none() {
        console.say("no key: signatures of its bundles will not be checked; `--key KEY` names the key that signs them");
    }
    Ok(Exit::Done)
}

/// Returns the place as it is kept: a URL, or an absolute path.
fn place(written: &str) -> Result<String, CliError> {
    if let Some(url) = base_url(written)? {
        return Ok(url.into());
    }
    let path = fs::canonicalize(Path::new(written)).map_err(|error| {
        let message = format!("the catalog `{}` cannot be read", text::line(written));
        CliError::new(Exit::NotFound, "not_found", message).with_source(&error)
    })?;
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(CliError::usage(format!(
            "`{}` is no path in UTF-8",
            path.display()
        ))),
    }
}

fn key(add: &AddCatalog) -> Result<Option<CatalogKey>, CliError> {
    let written = match (&add.key, &add.key_file) {
        (Some(key), _) => key.clone(),
        (None, Some(file)) => fs::read_to_string(file).map_err(|error| {
            CliError::failed(format!("the key `{}` cannot be read", file.display())).with_source(&error)
        })?,
        (None, None) => return Ok(None),
    };
    Ok(Some(written.parse()?))
}

/// Lists the added catalogs, and reads none of them.
pub(super) fn list(console: Console) -> Result<Exit, CliError> {
    let added = AddedCatalogs::read()?;
    if added.catalogs.is_empty() && console.format == Format::Table {
        console.say("no catalogs: `toolplane catalog add NAME DIR_OR_URL` adds one");
        return Ok(Exit::Done);
    }
    let rows: Vec<Value> = added
        .catalogs
        .iter()
        .map(|(name, catalog)| to_json(name, catalog))
        .collect();
    console.list(&rows, |table| {
        table
            .header(["NAME", "PLACE", "KEY"])
            .rows(added.catalogs.iter().map(|(name, catalog)| {
                let key = match key_kind(catalog) {
                    Some(kind) => format!("{kind} {}", catalog.key.as_deref().unwrap_or_default()),
                    None => "none: nothing is checked".to_owned(),
                };
                [name.clone(), catalog.place.clone(), key]
            }))
    })?;
    Ok(Exit::Done)
}

/// Removes a catalog from the list.
pub(super) fn remove(name: &str, console: Console) -> Result<Exit, CliError> {
    let mut added = AddedCatalogs::read()?;
    let Some(catalog) = added.catalogs.remove(name) else {
        return Err(added.unknown(name));
    };
    added.write()?;
    console.value(&to_json(name, &catalog), || {
        format!("removed {name}; what was installed from it stays")
    })?;
    Ok(Exit::Done)
}

fn key_kind(catalog: &AddedCatalog) -> Option<&'static str> {
    let key = catalog.key.as_ref()?.parse::<CatalogKey>();
    Some(key.map_or("unusable", |key| key.kind()))
}

fn to_json(name: &str, catalog: &AddedCatalog) -> Value {
    json!({
        "name": name,
        "place": catalog.place,
        "key": catalog.key,
        "key_kind": key_kind(catalog),
    })
}
