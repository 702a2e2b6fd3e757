//! The lock file beside the configuration.

use std::path::PathBuf;

use serde_json::json;
use toolplane::{
    Builder, LockFile, LockFilePins, RawJson,
    core::{FieldChange, PinMode, Template, hide_credentials, names_secret},
    manifest::{Configuration, Loaded, ServerSpec, ServerTransport},
};

use crate::{error::CliError, exit::Exit, output::Console, process::logging, store::OpenStore};

/// Name of the lock file of a directory.
const FILE: &str = "toolplane.lock";

/// Returns the path of the lock file: beside the first file of the configuration and with its name, `toolplane.lock` for
/// `toolplane.yaml`; in a directory, `toolplane.lock`.
pub(crate) fn path(loaded: &Loaded) -> PathBuf {
    match loaded.files.first() {
        Some(directory) if directory.is_dir() => directory.join(FILE),
        Some(file) => file.with_extension("lock"),
        None => FILE.into(),
    }
}

/// Returns `true` if a configuration has a lock file. Its pins may precede those of a store.
pub(crate) fn exists(loaded: &Loaded) -> bool {
    path(loaded).exists()
}

/// Reads the lock file of a configuration. Returns `None` if there is none.
pub(crate) fn read(loaded: &Loaded) -> Result<Option<LockFile>, CliError> {
    LockFile::read(&path(loaded)).map_err(|error| {
        CliError::configuration(error.to_string()).with_hint(format!(
            "restore `{}` from version control, or remove it and write it anew with `toolplane lock`",
            path(loaded).display()
        ))
    })
}

/// Gives the builder the pins of the lock file, and warns of servers that the file was not made for. Without a file,
/// or with one that pins only what was installed, the pins are those of a store that the configuration names, or else those of
/// this run.
pub(crate) async fn with_pins(
    builder: Builder,
    loaded: &Loaded,
    store: Option<&OpenStore>,
    console: Console,
) -> Result<Builder, CliError> {
    let lock = read(loaded)?;
    let has_sources = lock.as_ref().is_some_and(|lock| !lock.has_no_sources());
    if let (false, Some(store)) = (has_sources, store)
        && let Some(pins) = store.pins().await?
    {
        return Ok(builder.pins(pins));
    }
    if let Some(lock) = &lock {
        for (server, changes) in moved_servers(lock, loaded) {
            console.warn(&moved(loaded, &server, &changes));
        }
    }
    Ok(builder.pins(std::sync::Arc::new(pins(loaded, lock))))
}

/// Gives the builder the pins of the lock file, and offers only the definitions that it has.
pub(crate) fn with_locked_pins(
    builder: Builder,
    loaded: &Loaded,
    console: Console,
) -> Result<Builder, CliError> {
    let Some(lock) = read(loaded)? else {
        let message = format!("there is no `{}`", path(loaded).display());
        return Err(CliError::configuration(message)
            .with_hint("`toolplane lock` writes it; commit it with the configuration"));
    };
    if let Some((server, changes)) = moved_servers(&lock, loaded).into_iter().next() {
        let hint = format!("`toolplane lock --update {server}` accepts it");
        return Err(CliError::new(
            Exit::ToolChanged,
            "tool_changed",
            moved(loaded, &server, &changes),
        )
        .with_hint(hint));
    }
    let configuration = &loaded.configuration;
    let servers = configuration
        .servers
        .iter()
        .map(|server| (&server.name, server.pin));
    let endpoints = configuration.endpoints.iter();
    let endpoints = endpoints.map(|endpoint| (&endpoint.name, endpoint.pin));
    let unpinned = servers
        .chain(endpoints)
        .filter(|(_, pin)| *pin == Some(PinMode::Off));
    for (name, _) in unpinned {
        console.warn(&format!(
            "the definitions of `{name}` are offered without a lock: it has `pin: off`"
        ));
    }
    let pins = LockFilePins::new(path(loaded), lock).with_redaction(redact);
    Ok(builder.pins(std::sync::Arc::new(pins)).pin_mode(PinMode::Locked))
}

fn pins(loaded: &Loaded, lock: Option<LockFile>) -> LockFilePins {
    let pins = LockFilePins::new(path(loaded), lock.unwrap_or_default()).with_redaction(redact);
    match locks(&loaded.configuration) {
        true => pins,
        // Nobody asked for a file.
        false => pins.without_creation(),
    }
}

/// Returns `true` if the configuration wants locked definitions.
pub(crate) fn locks(configuration: &Configuration) -> bool {
    let is_locked = |mode: Option<PinMode>| mode == Some(PinMode::Locked);
    let mut servers = configuration.servers.iter();
    let mut endpoints = configuration.endpoints.iter();
    is_locked(configuration.policy.pin)
        || servers.any(|server| is_locked(server.pin))
        || endpoints.any(|endpoint| is_locked(endpoint.pin))
}

/// Replaces secrets in a definition.
pub(crate) fn redact(definition: &RawJson) -> Option<RawJson> {
    logging::redactor().hide_in_json(definition)
}

fn moved(loaded: &Loaded, server: &str, changes: &[FieldChange]) -> String {
    let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
    format!(
        "`{}` was made for another command or URL of the server `{server}`: {}",
        path(loaded).display(),
        changes.join("; ")
    )
}

/// Returns the servers whose command or URL differs from the lock file.
fn moved_servers(lock: &LockFile, loaded: &Loaded) -> Vec<(String, Vec<FieldChange>)> {
    let mut present = LockFile::default();
    add_servers(&mut present, &loaded.configuration);
    let moved = lock.drift(&present).servers.into_iter();
    moved
        .map(|(server, changes)| (server.to_string(), changes))
        .collect()
}

/// Adds the identity of each server and endpoint that is in use and pinned.
pub(crate) fn add_servers(lock: &mut LockFile, configuration: &Configuration) {
    for server in configuration.servers.iter().filter(|server| !server.disabled) {
        if server.pin != Some(PinMode::Off) {
            lock.set_server(server.name.as_str(), &identity(server));
        }
    }
    let endpoints = configuration
        .endpoints
        .iter()
        .filter(|endpoint| !endpoint.disabled);
    for endpoint in endpoints.filter(|endpoint| endpoint.pin != Some(PinMode::Off)) {
        let identity = program(&endpoint.command, &endpoint.args);
        lock.set_server(endpoint.name.as_str(), &RawJson::from(identity));
    }
}

/// Returns the identity of a server: its command with its arguments, or its URL. References stay as they are written, and
/// credentials that are written out are hidden.
fn identity(server: &ServerSpec) -> RawJson {
    let identity = match &server.transport {
        ServerTransport::Stdio { command, args, .. } => program(command, args),
        ServerTransport::Http { url, .. } => json!({"url": text(url)}),
        ServerTransport::Refused { .. } => json!({}),
    };
    RawJson::from(identity)
}

/// Returns the identity of a program: its command with its arguments.
fn program(command: &Template, args: &[Template]) -> serde_json::Value {
    let mut is_secret = false;
    let args = args.iter().map(|arg| {
        let shown = if is_secret {
            "[redacted]".to_owned()
        } else {
            text(arg)
        };
        // The value of an option such as `--token` is the next argument.
        is_secret =
            shown.starts_with('-') && !shown.contains('=') && names_secret(shown.trim_start_matches('-'));
        shown
    });
    json!({"command": text(command), "args": args.collect::<Vec<_>>()})
}

/// Returns a template as it is written, without credentials.
fn text(template: &Template) -> String {
    let parts = template.parts();
    let written: String = parts
        .map(|part| part.map_or_else(ToString::to_string, str::to_owned))
        .collect();
    hide_credentials(&written).into_owned()
}
