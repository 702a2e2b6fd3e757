//! Servers that are added to a configuration file, which keeps its comments and order.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolplane::{
    manifest::{LoadOptions, load},
    raw_json::RawJson,
};

use crate::{
    clients::{
        edit::{self, Slot},
        file::TextFile,
        table::Format,
    },
    command::Options,
    config,
    error::CliError,
    output::{text, yaml::yaml},
};

/// File that is made where there is no configuration.
const DEFAULT_FILE: &str = "toolplane.yaml";

/// Configuration file that gets servers.
#[derive(Debug)]
pub(crate) struct Target {
    /// Path of the file, which may be absent.
    pub(crate) path: PathBuf,
}

impl Target {
    /// Returns the file of a path.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the configuration in use: the first file of the command line or the one that is found, or else `toolplane.yaml` in
    /// the working directory.
    ///
    /// # Errors
    /// If it is a directory.
    pub(crate) fn find(options: &Options) -> Result<Self, CliError> {
        let first = config::named_files(options)
            .ok()
            .and_then(|files| files.into_iter().next());
        let path = first.unwrap_or_else(|| DEFAULT_FILE.into());
        match path.is_dir() {
            true => Err(
                CliError::usage(format!("the configuration `{}` is a directory", path.display()))
                    .with_hint("name the file that gets the servers, with `--config FILE`"),
            ),
            false => Ok(Self::new(path)),
        }
    }

    /// Returns the settings of the servers that the configuration has, with those of the files that it includes.
    ///
    /// # Errors
    /// If it cannot be loaded.
    pub(crate) fn servers(&self) -> Result<Map<String, Value>, CliError> {
        if !self.path.exists() {
            return Ok(Map::new());
        }
        let loaded = load(&LoadOptions::new().path(&self.path))?;
        let configuration = &loaded.configuration;
        let servers = configuration.servers.iter().map(|server| {
            let settings = loaded.server_settings(&server.name);
            let settings = settings.and_then(|settings| settings.to().ok());
            (server.name.clone(), settings.unwrap_or_default())
        });
        // Endpoints and servers share their names.
        let endpoints = configuration
            .endpoints
            .iter()
            .map(|endpoint| (endpoint.name.clone(), Value::Null));
        Ok(servers.chain(endpoints).collect())
    }

    /// Adds servers to the file, and makes it if it is absent. The file stays as it was if the result cannot be loaded.
    ///
    /// # Errors
    /// If a server of a name is there, or the file cannot be edited or written.
    pub(crate) fn add(&self, servers: &[(String, Value)]) -> Result<(), CliError> {
        let file = TextFile::read(&self.path)?;
        let Some(text) = &file.text else {
            return self.create(servers);
        };
        let new = self.with_servers(text, servers)?;
        file.replace(Some(&new))?;
        let loaded = load(&LoadOptions::new().path(&self.path));
        loaded.map(drop).map_err(|problems| {
            let restored = TextFile::read(&self.path).and_then(|written| written.replace(Some(text)));
            let failure = CliError::from(problems);
            match restored {
                Ok(()) => failure.with_hint("the file was left as it was: add the server by hand"),
                Err(_) => failure.with_hint("the file was changed: restore it from version control"),
            }
        })
    }

    /// Returns the text of the file with servers in it.
    ///
    /// # Errors
    /// If a server of a name is there, or the text cannot be edited.
    pub(crate) fn with_servers(&self, text: &str, servers: &[(String, Value)]) -> Result<String, CliError> {
        let mut new = text.to_owned();
        for (name, settings) in servers {
            let slot = Slot {
                format: self.format(),
                section: &["servers"],
                name,
            };
            new = edit::insert(&new, slot, settings).map_err(|error| {
                CliError::failed(format!("`{}` is not changed: {error}", self.path.display()))
                    .with_hint("`--dry-run` prints the servers: add them by hand")
            })?;
        }
        Ok(new)
    }

    /// Makes a file with these servers.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub(crate) fn create(&self, servers: &[(String, Value)]) -> Result<(), CliError> {
        let name = self.path.display();
        if fs::symlink_metadata(&self.path).is_ok() {
            return Err(CliError::failed(format!("`{name}` exists already")).with_hint(
                "name another file, or add to the configuration with `--config FILE` and `--write`",
            ));
        }
        TextFile::read(&self.path)?.replace(Some(&self.document(servers)))
    }

    /// Returns the text of a file that has these servers alone.
    pub(crate) fn document(&self, servers: &[(String, Value)]) -> String {
        let document = RawJson::from(json!({"servers": servers.iter().cloned().collect::<Map<_, _>>()}));
        match self.format() {
            Format::Json => format!("{}\n", document.indented()),
            _ => yaml(&document),
        }
    }

    fn format(&self) -> Format {
        let extension = self.path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("json" | "jsonc") => Format::Json,
            _ => Format::YamlMap,
        }
    }
}

/// Returns an error if the configuration has a source of this name.
///
/// # Errors
/// If the name is taken.
pub(crate) fn must_be_free(known: &Map<String, Value>, name: &str, file: &Path) -> Result<(), CliError> {
    match known.contains_key(name) {
        false => Ok(()),
        true => Err(CliError::failed(format!(
            "`{}` has a server `{}`",
            file.display(),
            text::line(name)
        ))
        .with_hint("use another name, or remove that server from the file")),
    }
}
