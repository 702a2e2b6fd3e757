//! `toolplane lock`: writes the present definitions to the lock file, or compares them with it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use toolplane::{
    InstalledKind, LockDrift, LockFile, MemoryPins, PinKey, Pins as _, Toolplane,
    core::{FieldChange, PinMode, SourceState},
    manifest::Loaded,
    registry::PublishError,
};

use super::{on_built_plane, requirements};
use crate::{
    command::{Format, Lock, Options},
    error::CliError,
    exit::Exit,
    lock,
    output::{Console, text},
    store::open_store,
};

pub(crate) fn run(options: &Options, verb: &Lock, console: Console) -> Result<Exit, CliError> {
    // Before anything is built: a tool without its packages is not usable.
    if !requirements::lock_all(options, verb, console)? {
        return Ok(Exit::Done);
    }
    // Everything is accepted by its first use in this run, so that the pins are the present definitions.
    let present = Arc::new(MemoryPins::default());
    let pins = present.clone();
    let build = |builder: toolplane::Builder, _: &Loaded| Ok(builder.pins(pins).pin_mode(PinMode::FirstUse));
    on_built_plane(options, console, build, async |loaded, plane| {
        plane.view(&plane.local_caller()).await;
        complete(plane)?;
        let present = present_lock(loaded, &present);
        let locked = lock::read(loaded)?;
        match (verb.check, &verb.update, locked) {
            (true, _, None) => Err(no_file(loaded)),
            (false, _, None) => write(loaded, &present, None, console),
            // A file that pins only what was installed: no definition was accepted yet.
            (false, None, Some(locked)) if locked.has_no_sources() => {
                write(loaded, &present.with_installed_of(&locked), None, console)
            }
            (_, None, Some(locked)) => {
                let replaced = replaced_versions(loaded, &locked).await?;
                compare(&locked.drift(&present), &replaced, verb.check, &present, console)
            }
            (_, Some(names), Some(mut locked)) => {
                let drift = locked.drift(&present);
                update(&mut locked, &present, &drift, names, plane)?;
                write(loaded, &locked, Some(&drift), console)
            }
        }
    })
}

/// Returns an error if the definitions of a server are not known.
fn complete(plane: &Toolplane) -> Result<(), CliError> {
    for (name, status) in plane.sources() {
        if let SourceState::Failed(reason) = &status.state {
            let message = format!(
                "the definitions of `{name}` are not known: {}",
                text::line(reason)
            );
            return Err(CliError::new(Exit::Unavailable, "unavailable", message)
                .with_hint("`toolplane doctor` tries every server and says what is wrong"));
        }
    }
    Ok(())
}

/// Returns the lock file of the present definitions, without secrets.
fn present_lock(loaded: &Loaded, pins: &MemoryPins) -> LockFile {
    let mut present = LockFile::default();
    lock::add_servers(&mut present, &loaded.configuration);
    for pin in pins.snapshot().iter() {
        let shown = pin.definition().and_then(lock::redact);
        present.insert(match shown {
            Some(shown) => Arc::new((**pin).clone().with_shown_definition(shown)),
            None => pin.clone(),
        });
    }
    present
}

fn no_file(loaded: &Loaded) -> CliError {
    let message = format!("there is no `{}`", lock::path(loaded).display());
    CliError::new(Exit::NotFound, "not_found", message).with_hint("`toolplane lock` writes it")
}

/// A lock file that was written.
#[derive(Serialize)]
struct Written<'a> {
    file: String,
    n_definitions: usize,
    n_servers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<&'a Value>,
}

fn write(
    loaded: &Loaded,
    lock: &LockFile,
    drift: Option<&LockDrift>,
    console: Console,
) -> Result<Exit, CliError> {
    let path = lock::path(loaded);
    lock.write(&path)
        .map_err(|error| CliError::failed(error.to_string()))?;
    let drift = drift.map(drift_json);
    let written = Written {
        file: path.display().to_string(),
        n_definitions: lock.iter().count(),
        n_servers: lock
            .sources()
            .filter(|source| lock.server(source).is_some())
            .count(),
        drift: drift.as_ref(),
    };
    console.value(&written, || {
        let definitions = text::count(written.n_definitions, "definition");
        let servers = text::count(written.n_servers, "server");
        format!("wrote {}: {definitions}, {servers}", written.file)
    })?;
    Ok(Exit::Done)
}

/// Takes over the definitions of these tools and servers, or all without names.
fn update(
    locked: &mut LockFile,
    present: &LockFile,
    drift: &LockDrift,
    names: &[String],
    plane: &Toolplane,
) -> Result<(), CliError> {
    if names.is_empty() {
        *locked = present.clone().with_installed_of(locked);
        return Ok(());
    }
    for name in names {
        let is_source = locked
            .sources()
            .chain(present.sources())
            .any(|source| **source == **name);
        let key = if is_source {
            None
        } else {
            Some(key_of(name, present, drift, plane)?)
        };
        let is_selected = |known: &PinKey| key.as_ref().map_or(*known.source == **name, |key| known == key);
        for pin in present.iter().filter(|pin| is_selected(pin.key())) {
            locked.insert(pin.clone());
        }
        for missing in drift.missing.iter().filter(|key| is_selected(key)) {
            locked.remove(missing);
        }
        if let Some(server) = present.server(name).filter(|_| is_source) {
            locked.set_server(name.as_str(), server);
        } else if is_source && !present.sources().any(|source| **source == **name) {
            locked.remove_source(name);
        }
    }
    Ok(())
}

/// Returns the key of a definition that is named as agents see it, or as its source names it.
fn key_of(name: &str, present: &LockFile, drift: &LockDrift, plane: &Toolplane) -> Result<PinKey, CliError> {
    let offered = plane.pin_key_of(name);
    let is_named = |key: &&PinKey| *key.name == *name || format!("{}__{}", key.source, key.name) == name;
    let mut keys = present.iter().map(|pin| pin.key()).chain(&drift.missing);
    offered.or_else(|| keys.find(is_named).cloned()).ok_or_else(|| {
        let message = format!("there is no definition and no server `{}`", text::line(name));
        CliError::new(Exit::NotFound, "not_found", message)
            .with_hint("`toolplane lock --check` lists what differs from the lock file")
    })
}

/// Returns the tools that were installed from a catalog and have other content in the store. What is not in the store is not
/// installed here.
async fn replaced_versions(loaded: &Loaded, lock: &LockFile) -> Result<Vec<String>, CliError> {
    let tools = lock
        .all_installed()
        .filter(|(kind, ..)| *kind == InstalledKind::Tool);
    let tools: Vec<_> = tools.collect();
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    let Some(store) = open_store(loaded).await? else {
        return Ok(Vec::new());
    };
    let mut replaced = Vec::new();
    for (_, version, digest) in tools {
        let Some((name, number)) = version.split_once('@') else {
            continue;
        };
        let record = store.tools.tool(name).await.map_err(PublishError::from)?;
        let mut stored = record.iter().flat_map(|record| &record.versions);
        let stored = stored.find(|stored| stored.version.to_string() == number);
        if stored.is_some_and(|stored| stored.digest != *digest) {
            replaced.push(version.to_owned());
        }
    }
    Ok(replaced)
}

/// Prints the differences. Without any, the lock file is as it was.
fn compare(
    drift: &LockDrift,
    replaced: &[String],
    is_check: bool,
    present: &LockFile,
    console: Console,
) -> Result<Exit, CliError> {
    if console.format == Format::Table {
        for version in replaced {
            console.data(&format!("replaced `{}` in the store", text::line(version)))?;
        }
        if drift.is_empty() && !replaced.is_empty() {
            return Ok(Exit::ToolChanged);
        }
        if drift.is_empty() {
            let definitions = text::count(present.iter().count(), "definition");
            console.data(&format!("the lock file is up to date: {definitions}"))?;
        } else {
            console.data(&page(drift))?;
        }
    } else {
        let mut value = drift_json(drift);
        if !replaced.is_empty() {
            value["ok"] = false.into();
            value["replaced"] = replaced.into();
        }
        console.value(&value, String::new)?;
    }
    if drift.is_empty() {
        return Ok(if replaced.is_empty() {
            Exit::Done
        } else {
            Exit::ToolChanged
        });
    }
    if is_check {
        return Ok(Exit::ToolChanged);
    }
    let message = "the lock file was not written: it has other definitions";
    Err(CliError::new(Exit::ToolChanged, "tool_changed", message)
        .with_hint("`toolplane lock --update` accepts all of them, `toolplane lock --update NAME` one tool or server"))
}

fn page(drift: &LockDrift) -> String {
    let mut lines = Vec::new();
    for (server, changes) in &drift.servers {
        lines.push(format!("moved    the server `{}`", text::line(server)));
        lines.extend(changes.iter().map(change_line));
    }
    for (key, changes) in &drift.changed {
        lines.push(format!("changed  {}", entry(key)));
        lines.extend(changes.iter().map(change_line));
    }
    lines.extend(drift.new.iter().map(|key| format!("new      {}", entry(key))));
    lines.extend(drift.missing.iter().map(|key| format!("missing  {}", entry(key))));
    lines.push(format!(
        "\n{} new, {} missing, {} changed, {} moved",
        drift.new.len(),
        drift.missing.len(),
        drift.changed.len(),
        drift.servers.len()
    ));
    lines.join("\n")
}

fn entry(key: &PinKey) -> String {
    let (name, source) = (text::line(&key.name), text::line(&key.source));
    format!("{} `{name}` of `{source}`", key.feature.as_str())
}

/// Returns the line for the difference in one place.
pub(super) fn change_line(change: &FieldChange) -> String {
    format!("         {}", text::line(&change.to_string()))
}

fn drift_json(drift: &LockDrift) -> Value {
    let key =
        |key: &PinKey| json!({"source": *key.source, "feature": key.feature.as_str(), "name": *key.name});
    let changes = |changes: &[FieldChange]| -> Vec<Value> {
        let changes = changes.iter();
        changes
            .map(|change| json!({"path": change.path, "before": change.before, "after": change.after}))
            .collect()
    };
    let changed = drift.changed.iter().map(|(changed, all)| {
        let mut changed = key(changed);
        changed["changes"] = changes(all).into();
        changed
    });
    let moved = drift
        .servers
        .iter()
        .map(|(server, all)| json!({"server": **server, "changes": changes(all)}));
    json!({
        "ok": drift.is_empty(),
        "new": drift.new.iter().map(key).collect::<Vec<_>>(),
        "missing": drift.missing.iter().map(key).collect::<Vec<_>>(),
        "changed": changed.collect::<Vec<_>>(),
        "moved": moved.collect::<Vec<_>>(),
    })
}
