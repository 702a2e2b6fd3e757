//! List of the added catalogs: `catalogs.json` in the user's configuration directory.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    config::variable,
    error::CliError,
    exit::Exit,
    output::{file::replace, text},
};

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The added catalogs, by their names on this machine.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddedCatalogs {
    pub(super) catalogs: BTreeMap<String, AddedCatalog>,
}

/// A catalog that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddedCatalog {
    /// Absolute path of a directory, or a URL that ends with `/`.
    pub(super) place: String,
    /// Public key that signs its bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

impl AddedCatalogs {
    /// Reads the list.
    ///
    /// # Errors
    /// If the file cannot be read or has another structure.
    pub(super) fn read() -> Result<Self, CliError> {
        let path = path()?;
        let unusable = |source: &dyn std::error::Error| {
            CliError::configuration(format!("`{}` cannot be used: {source}", path.display()))
                .with_hint("correct it, or remove it and add the catalogs again")
        };
        match fs::metadata(&path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(&error)),
            Ok(file) if file.len() > MAX_BYTES => {
                return Err(unusable(&io::Error::other(format!(
                    "it has more than {MAX_BYTES} bytes"
                ))));
            }
            Ok(_) => {}
        }
        let content = fs::read(&path).map_err(|error| unusable(&error))?;
        serde_json::from_slice(&content).map_err(|error| unusable(&error))
    }

    /// Writes the list, by replacing it as a whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self) -> Result<(), CliError> {
        let path = path()?;
        let content = serde_json::to_value(self).map(raw_json::RawJson::from);
        let content = content.map(|content| content.indented());
        let content = content.map_err(|error| {
            CliError::new(Exit::Bug, "internal", "the catalogs cannot be written").with_source(&error)
        })?;
        replace(&path, &format!("{content}\n"))
    }

    /// Returns a catalog.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(super) fn get(&self, name: &str) -> Result<&AddedCatalog, CliError> {
        self.catalogs.get(name).ok_or_else(|| self.unknown(name))
    }

    /// Returns the error of a name that no catalog has.
    pub(super) fn unknown(&self, name: &str) -> CliError {
        let message = format!("there is no catalog `{}`", text::line(name));
        let failure = CliError::new(Exit::NotFound, "not_found", message);
        let known: Vec<&str> = self.catalogs.keys().map(String::as_str).collect();
        match toolplane::settings::suggest::nearest(name, &known) {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None => failure.with_hint("`toolplane catalog ls` lists them; `toolplane catalog add` adds one"),
        }
    }
}

/// Returns the path of the list: in `$XDG_CONFIG_HOME/toolplane`, else in `~/.config/toolplane`.
fn path() -> Result<PathBuf, CliError> {
    // XDG Base Directory Specification: a relative path is ignored.
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let directory = |name: &str| variable(name).map(PathBuf::from).and_then(absolute);
    let home = || Some(directory("HOME")?.join(".config"));
    let config = directory("XDG_CONFIG_HOME").or_else(home).ok_or_else(|| {
        CliError::failed("there is no place for the list of catalogs")
            .with_hint("set `$HOME` or `$XDG_CONFIG_HOME`")
    })?;
    Ok(config.join("toolplane/catalogs.json"))
}
