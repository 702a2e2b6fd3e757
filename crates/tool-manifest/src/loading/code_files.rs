//! Files of tools whose executors run code.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use serde_json::Value;
use tool_core::{Descriptor, is_relative_path};

use crate::{Diagnostic, Loaded, tools::tool::ToolDraft};

/// Maximum number of files of a tool.
const MAX_FILES: usize = 256;
/// Maximum size of all files of a tool, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// Name under which an executor finds the locked requirements of a tool.
const LOCK: &str = "requirements.lock";

/// Reads the files that the executor's settings name into the descriptor, and adds their paths to those to watch.
pub(crate) fn read(
    tool: &mut ToolDraft,
    kinds: &[&'static str],
    watched: &mut Vec<PathBuf>,
) -> Result<(), Diagnostic> {
    if !kinds.contains(&tool.descriptor.executor.kind.as_str()) {
        return Ok(());
    }
    let ToolDraft {
        descriptor, places, ..
    } = tool;
    let descriptor = Arc::make_mut(descriptor);
    let directory = places.name.document.source.directory.clone();
    for (pointer, path) in named(descriptor) {
        let failed = |message: String, hint: &str| {
            Diagnostic::error(message)
                .with_location(Some(places.settings_location(&pointer)))
                .with_hint(hint)
        };
        if !is_relative_path(&path) {
            let message = format!("`{}` is no path of a tool's file", path.escape_debug());
            let hint = "write a path below the directory of this file, with `/`, without `.` and `..`";
            return Err(failed(message, hint));
        }
        let content = content(&directory, &path).map_err(|reason| {
            let message = format!("the file `{}` cannot be used: {reason}", path.escape_debug());
            failed(message, "paths begin in the directory of this file")
        })?;
        watched.push(directory.join(&path));
        descriptor.files.insert(path, content);
        let n_bytes: usize = descriptor.files.values().map(Bytes::len).sum();
        if descriptor.files.len() > MAX_FILES || n_bytes > MAX_BYTES {
            let message = format!("the tool has more than {MAX_FILES} files, or more than 8 MiB of them");
            return Err(failed(message, "leave out what the code does not need"));
        }
    }
    if has_requirements(descriptor) {
        let path = format!("{}.{LOCK}", descriptor.name);
        if directory.join(&path).exists() {
            let content = content(&directory, &path).map_err(|reason| {
                Diagnostic::error(format!("`{path}` cannot be used: {reason}"))
                    .with_location(Some(places.name.key_location()))
            })?;
            descriptor.files.insert(LOCK.to_owned(), content);
        }
        // Also while it does not exist: it is watched for.
        watched.push(directory.join(path));
    }
    Ok(())
}

impl Loaded {
    /// Returns the path of the file with the locked requirements of a tool: beside the file that describes it. `None` if there is
    /// no such tool.
    #[must_use]
    pub fn requirements_file(&self, tool: &str) -> Option<PathBuf> {
        let places = self.places.tools.get(tool)?;
        let directory = &places.name.document.source.directory;
        Some(directory.join(format!("{tool}.{LOCK}")))
    }
}

/// Returns the files that the settings name, with the places of the names. Files whose content is written in the settings are
/// not read.
fn named(descriptor: &Descriptor) -> Vec<(String, String)> {
    let config = &descriptor.executor.config;
    let written = config.get("files").and_then(Value::as_object);
    let mut named = Vec::new();
    for key in ["file", "entrypoint"] {
        let path = config.get(key).and_then(Value::as_str);
        let path = path.filter(|path| written.is_none_or(|written| !written.contains_key(*path)));
        named.extend(path.map(|path| (format!("/{key}"), path.to_owned())));
    }
    let listed = config
        .get("files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for (index, path) in listed.enumerate() {
        named.extend(
            path.as_str()
                .map(|path| (format!("/files/{index}"), path.to_owned())),
        );
    }
    named
}

fn has_requirements(descriptor: &Descriptor) -> bool {
    let requires = descriptor
        .executor
        .config
        .get("requires")
        .and_then(Value::as_array);
    requires.is_some_and(|requires| !requires.is_empty())
}

/// Reads a regular file below a directory. A link is followed only if it stays there.
fn content(directory: &Path, path: &str) -> Result<Bytes, String> {
    let directory = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let reason = |error: std::io::Error| error.to_string();
    let root = directory.canonicalize().map_err(reason)?;
    let target = root.join(path).canonicalize().map_err(reason)?;
    if !target.starts_with(&root) {
        return Err("it is a link that leads out of the directory".to_owned());
    }
    if !target.metadata().map_err(reason)?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut content = Vec::new();
    let file = fs::File::open(&target).map_err(reason)?;
    file.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut content)
        .map_err(reason)?;
    match content.len() > MAX_BYTES {
        true => Err("it is larger than 8 MiB".to_owned()),
        false => Ok(content.into()),
    }
}
