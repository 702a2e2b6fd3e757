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

    /// Writes the sandbox of a file into the settings of a program that asks for it.
    pub(crate) fn give_sandbox(&mut self, document: &mut Document, rules: Option<NodeId>, directory: &Path) {
        let asks = document.get(self.settings, "sandboxEnabled");
        let asks = asks.filter(|at| matches!(document.kind(*at), Kind::Bool(true)));
        let (Some(at), Some(_), None) = (
            asks,
            document.get(self.settings, "command"),
            document.get(self.settings, "sandbox"),
        ) else {
            return;
        };
        let rule = |document: &Document, path: [&str; 2]| {
            let parent = document.get(rules?, path[0])?;
            let list = document.get(parent, path[1])?;
            matches!(document.kind(list), Kind::List(items) if !items.is_empty()).then_some(list)
        };
        let mut entries = Vec::new();
        if let Some(writes) = rule(document, ["filesystem", "allowWrite"]) {
            let Kind::List(items) = document.kind(writes).clone() else {
                return;
            };
            let absolute = items.into_iter().map(|item| {
                let path = document.text(item).and_then(|path| absolute(path, directory));
                match path {
                    Some(path) => document.add(Kind::String(path), item),
                    None => item,
                }
            });
            let items = Kind::List(absolute.collect());
            entries.push(("writes".to_owned(), document.add(items, writes)));
        }
        if let Some(hosts) = rule(document, ["network", "allowedDomains"]) {
            entries.push(("network".to_owned(), hosts));
        }
        let sandbox = match entries.is_empty() {
            true => Kind::String("auto".to_owned()),
            false => Kind::Map(entries),
        };
        self.set(document, "sandbox", sandbox, at);
    }
}

/// Returns the absolute path for a relative one. Paths that begin with a reference or `~/` are absolute.
fn absolute(path: &str, directory: &Path) -> Option<String> {
    if path.starts_with("${") || path.starts_with("~/") || Path::new(path).is_absolute() {
        return None;
    }
    let directory = variables::escape(&directory.to_string_lossy());
    let path = path.trim_start_matches("./");
    Some(match path {
        "" | "." => directory,
        path => format!("{directory}/{path}"),
    })
}
