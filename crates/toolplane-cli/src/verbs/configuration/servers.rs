//! Servers that are added to a configuration file, which keeps its comments and order.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolplane::{
    manifest::{LoadOptions, is_client_file, load},
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
    /// If it is the file of a client, or cannot be loaded.
    pub(crate) fn servers(&self) -> Result<Map<String, Value>, CliError> {
        self.must_be_own()?;
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

    /// Returns an error if the file belongs to an MCP client, which does not know our keys.
    fn must_be_own(&self) -> Result<(), CliError> {
        let file = TextFile::read(&self.path)?;
        let example = [("example".to_owned(), json!({"command": "true"}))];
        let is_of_client = |text: &str| is_client_file(&self.path, text);
        let is_refused = match &file.text {
            None => is_of_client(&self.document(&example)),
            // The key `servers` can make it one of VS Code.
            Some(text) => {
                is_of_client(text)
                    || self
                        .with_servers(text, &example)
                        .is_ok_and(|new| is_of_client(&new))
            }
        };
        if !is_refused {
            return Ok(());
        }
        let name = self.path.display();
        let message = format!("`{name}` is the file of an MCP client: it does not get servers of toolplane");
        let hint = match file.text {
            Some(_) => format!("make a file of your own with `include: [{name}]`"),
            None => "name a file of your own, such as `toolplane.yaml`".to_owned(),
        };
        Err(CliError::usage(message).with_hint(hint))
    }

    /// Adds servers to the file, and makes it if it is absent. The file stays as it was if the result cannot be loaded or does not
    /// have the servers.
    ///
    /// # Errors
    /// If a server of a name is there, or the file cannot be edited or written.
    pub(crate) fn add(&self, servers: &[(String, Value)]) -> Result<(), CliError> {
        let file = TextFile::read(&self.path)?;
        match &file.text {
            None => self.create(servers),
            Some(text) => self.write(&file, &self.with_servers(text, servers)?, servers),
        }
    }

    /// Replaces the text of the file, and restores the old one if the result cannot be loaded or does not have the servers.
    fn write(&self, file: &TextFile, new: &str, servers: &[(String, Value)]) -> Result<(), CliError> {
        file.replace(Some(new))?;
        let Err(failure) = self.must_have(servers) else {
            return Ok(());
        };
        let restored = TextFile::read(&self.path).and_then(|written| written.replace(file.text.as_deref()));
        Err(failure.with_hint(match (restored, &file.text) {
            (Ok(()), Some(_)) => "the file was left as it was: add the server by hand",
            (Ok(()), None) => "no file was made: name another one",
            (Err(_), Some(_)) => "the file was changed: restore it from version control",
            (Err(_), None) => "the file was made: remove it",
        }))
    }

    /// Returns an error if the file cannot be loaded, or a server is not in the configuration that it makes.
    fn must_have(&self, servers: &[(String, Value)]) -> Result<(), CliError> {
        let loaded = load(&LoadOptions::new().path(&self.path))?;
        let known = &loaded.configuration.servers;
        let is_absent = |name: &str| known.iter().all(|server| server.name != name);
        match servers.iter().find(|(name, _)| is_absent(name)) {
            None => Ok(()),
            Some((name, _)) => Err(CliError::failed(format!(
                "the server `{}` is not used in `{}`",
                text::line(name),
                self.path.display()
            ))),
        }
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

    /// Makes a file with these servers. There is no file if it cannot be loaded or does not have the servers.
    ///
    /// # Errors
    /// If it exists, or cannot be written or used.
    pub(crate) fn create(&self, servers: &[(String, Value)]) -> Result<(), CliError> {
        let name = self.path.display();
        if fs::symlink_metadata(&self.path).is_ok() {
            return Err(CliError::failed(format!("`{name}` exists already")).with_hint(
                "name another file, or add to the configuration with `--config FILE` and `--write`",
            ));
        }
        self.write(&TextFile::read(&self.path)?, &self.document(servers), servers)
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
