//! `toolplane export`: writes versions of tools, and servers, as bundles of a catalog.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};
use toolplane::{
    StoredManifests,
    catalog::{Bundle, CatalogIndex, CatalogNeeds, MAX_INDEX_BYTES},
    core::written_credentials,
    registry::{NewVersion, PublishError, Publisher, ReadManifest as _, VersionState},
};

use super::{
    catalog::needs_of_tool,
    registry::{configuration, publisher, tool_and_version},
};
use crate::{
    command::{Export, Options},
    error::CliError,
    exit::Exit,
    output::{Console, file::replace, text},
    process::runtime::block_on,
    store::open_store,
};

/// Maximum length of the description of a tool in a catalog, in characters.
const MAX_DESCRIPTION: usize = 400;
/// Version of a server for which none is given.
const FIRST_VERSION: &str = "1.0.0";

pub(crate) fn run(options: &Options, export: &Export, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        let mut bundles = Vec::new();
        if !export.versions.is_empty() {
            let publisher = publisher(options, console).await?;
            for version in &export.versions {
                bundles.push(tool(&publisher, version, console).await?);
            }
        }
        for server in &export.servers {
            bundles.push(self::server(options, export, server, console).await?);
        }
        write(&export.to, &bundles, console)
    })
}

/// Returns the bundle of a version in the store.
async fn tool(publisher: &Publisher, written: &str, console: Console) -> Result<Bundle, CliError> {
    let (tool, request) = tool_and_version(written)?;
    let stored = publisher.find(tool, &request).await?;
    let name = format!("{tool}@{}", stored.head.version);
    match &stored.head.state {
        VersionState::Published | VersionState::Deprecated(_) => {}
        state => {
            let message = format!("`{name}` is {} and cannot be shared", state.as_str());
            return Err(CliError::new(Exit::Failed, "refused", message).with_hint(format!(
                "`toolplane tools versions {tool}` lists the published ones"
            )));
        }
    }
    let descriptor = StoredManifests.read(tool, &stored.manifest).map_err(|reason| {
        CliError::new(
            Exit::Failed,
            "invalid",
            format!("`{name}` cannot be read: {reason}"),
        )
    })?;
    warn_of_credentials(&name, &descriptor.executor.config, console);
    let version = NewVersion::new(tool, stored.head.version, stored.manifest).with_files(stored.files);
    let description = text::first_line(&descriptor.description).chars();
    let description: String = description.take(MAX_DESCRIPTION).collect();
    let bundle = Bundle::of_tool(&version, &description)?;
    let needs = needs_of_tool(&version)?;
    Ok(bundle
        .with_tags(descriptor.metadata.tags.clone())
        .with_needs(needs))
}

/// Returns the bundle of a server of the configuration, or else of the store.
async fn server(
    options: &Options,
    export: &Export,
    written: &str,
    console: Console,
) -> Result<Bundle, CliError> {
    let (name, version) = written.split_once('@').unwrap_or((written, FIRST_VERSION));
    let loaded = configuration(options, console)?;
    let mut known: BTreeSet<String> = loaded
        .configuration
        .servers
        .iter()
        .map(|server| server.name.clone())
        .collect();
    let mut settings = loaded.server_settings(name);
    if settings.is_none()
        && let Some(store) = open_store(&loaded).await?
    {
        let servers = store.tools.servers().await.map_err(PublishError::from)?;
        // What an agent proposed is not shared before an operator approves it.
        let mut servers = servers;
        servers.retain(|server| server.proposed_by.is_none());
        known.extend(servers.iter().map(|server| server.name.to_string()));
        let stored = servers.into_iter().find(|server| *server.name == *name);
        settings = stored.map(|server| server.settings);
    }
    let settings = settings.ok_or_else(|| {
        let message = format!("there is no server `{}`", text::line(name));
        let failure = CliError::new(Exit::NotFound, "not_found", message);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        match toolplane::settings::suggest::nearest(name, &known) {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None => failure.with_hint("`toolplane servers ls --no-start` lists them"),
        }
    })?;
    let value: Value = settings.to().map_err(|error| {
        CliError::failed(format!("the settings of `{name}` cannot be read")).with_source(&error)
    })?;
    warn_of_credentials(name, &value, console);
    let description = export.description.as_deref().unwrap_or_default();
    let bundle = Bundle::of_server(name, version, &settings, description)?;
    Ok(bundle.with_needs(CatalogNeeds::of_settings(&settings)?))
}

/// Warns of credentials that are written out: whoever reads the catalog would have them.
fn warn_of_credentials(name: &str, settings: &Value, console: Console) {
    for field in written_credentials(settings) {
        console.warn(&text::line(&format!(
            "`{name}` has a credential in {field}, which is shared with it: write a reference such as `${{NAME}}`"
        )));
    }
}

/// Writes the bundles, and then the index: a catalog that is read meanwhile is whole.
fn write(directory: &Path, bundles: &[Bundle], console: Console) -> Result<Exit, CliError> {
    let path = directory.join("index.json");
    let mut index = read_index(&path)?;
    // All or none: before anything is written.
    let mut rows = Vec::new();
    for bundle in bundles {
        let entry = bundle.entry();
        let is_new = index.add(entry.clone())?;
        rows.push((entry, is_new));
    }
    let index = index.to_text();
    if index.len() as u64 > MAX_INDEX_BYTES {
        let message = format!("the index would have more than {MAX_INDEX_BYTES} bytes");
        return Err(CliError::failed(message).with_hint("export to another directory"));
    }
    for (bundle, (entry, is_new)) in bundles.iter().zip(&rows) {
        let file = directory.join(&entry.place);
        // What is there stays as it is: its signature is over its bytes.
        if *is_new || !file.exists() {
            replace(&file, &bundle.to_text())?;
        }
    }
    if rows.iter().any(|(_, is_new)| *is_new) {
        replace(&path, &index)?;
    }
    let values = rows.iter().map(|(entry, is_new)| {
        json!({
            "kind": entry.kind.as_str(),
            "name": entry.name,
            "version": entry.version,
            "digest": format!("sha256:{}", raw_json::hex(&entry.digest)),
            "file": directory.join(&entry.place).display().to_string(),
            "new": is_new,
        })
    });
    console.value(&values.collect::<Vec<Value>>(), || {
        let lines = rows.iter().map(|(entry, is_new)| {
            let said = if *is_new { "wrote" } else { "is there already:" };
            let file = directory.join(&entry.place);
            format!("{said} {}@{} in {}", entry.name, entry.version, file.display())
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    console.say("the bundles are not signed: `minisign -S -m FILE` writes the signature of each beside it");
    Ok(Exit::Done)
}

fn read_index(path: &Path) -> Result<CatalogIndex, CliError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(CatalogIndex::default()),
        Ok(file) if file.len() > MAX_INDEX_BYTES => {
            return Err(CliError::failed(format!(
                "`{}` is too large for an index",
                path.display()
            )));
        }
        _ => {}
    }
    let content = fs::read(path).map_err(|error| {
        CliError::failed(format!("`{}` cannot be read", path.display())).with_source(&error)
    })?;
    Ok(CatalogIndex::parse(&path.display().to_string(), &content)?)
}
