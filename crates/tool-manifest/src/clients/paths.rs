use std::path::Path;

use tool_settings::NodeId;

use crate::{
    clients::{server::ClientServer, variables},
    document::node::{Document, Kind},
};

/// Changes of translated settings.
impl ClientServer {
    /// Sets a key of the settings.
    pub(crate) fn set(&mut self, document: &mut Document, key: &str, kind: Kind, at: NodeId) {
        let mut entries = document.entries(self.settings).to_vec();
        let value = document.add(kind, at);
        match entries.iter_mut().find(|(known, _)| known == key) {
            Some(entry) => entry.1 = value,
            None => entries.push((key.to_owned(), value)),
        }
        self.settings = document.add(Kind::Map(entries), self.settings);
    }

    /// Removes a key of the settings.
    pub(crate) fn remove(&mut self, document: &mut Document, key: &str) {
        let mut entries = document.entries(self.settings).to_vec();
        entries.retain(|(known, _)| known != key);
        self.settings = document.add(Kind::Map(entries), self.settings);
    }

    /// Starts a program in the directory of its project, as its client does, unless another one is written.
    pub(crate) fn begin_in(&mut self, document: &mut Document, directory: &Path) {
        let command = document.get(self.settings, "command");
        if let (Some(command), None) = (command, document.get(self.settings, "cwd")) {
            let directory = variables::escape(&directory.to_string_lossy());
            self.set(document, "cwd", Kind::String(directory), command);
        }
    }

    /// Makes paths absolute that begin in a directory, so that the settings mean the same in any file.
    pub(crate) fn make_paths_absolute(&mut self, document: &mut Document, directory: &Path) {
        for key in ["cwd", "env_file"] {
            let Some(at) = document.get(self.settings, key) else {
                continue;
            };
            if let Some(path) = document.text(at).and_then(|path| absolute(path, directory)) {
                self.set(document, key, Kind::String(path), at);
            }
        }
    }
}

/// Returns the absolute path for a relative one. Paths that begin with a reference or `~/` are absolute.
pub(super) fn absolute(path: &str, directory: &Path) -> Option<String> {
    if !is_relative(path) {
        return None;
    }
    let directory = variables::escape(&directory.to_string_lossy());
    let path = path.trim_start_matches("./");
    Some(match path {
        "" | "." => directory,
        path => format!("{directory}/{path}"),
    })
}

pub(super) fn is_relative(path: &str) -> bool {
    !path.starts_with("${") && !path.starts_with("~/") && !Path::new(path).is_absolute()
}
