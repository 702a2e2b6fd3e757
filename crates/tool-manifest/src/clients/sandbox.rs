//! Sandboxes of servers in files of VS Code.
//!
//! Source: code.visualstudio.com/docs/copilot/reference/mcp-configuration ("Sandbox configuration").

use std::path::Path;

use tool_settings::NodeId;

use crate::{
    clients::{
        paths,
        server::{ClientServer, Remark},
        variables::Variables,
        workspace::Surroundings,
    },
    document::node::{Document, Kind},
    servers::sandbox::{ClientPath, ClientSandbox},
};

/// Meaning of the paths of a file.
pub(crate) struct PathContext<'a> {
    pub(crate) variables: Variables,
    /// Directory in which relative paths begin, unless the server has a `cwd`.
    pub(crate) directory: &'a Path,
    pub(crate) surroundings: &'a Surroundings,
}

impl ClientServer {
    /// Writes the sandbox of a program that asks for it into its settings: its own rules, or those of the file. The program is
    /// refused if the sandbox cannot enforce them.
    pub(crate) fn give_sandbox(
        &mut self,
        document: &mut Document,
        file_rules: Option<NodeId>,
        paths: &PathContext<'_>,
    ) {
        let own = document.get(self.settings, "sandbox");
        let own_rules = own.filter(|at| is_of_client(document, *at));
        let asks = document.get(self.settings, "sandboxEnabled");
        let asks = asks.filter(|at| matches!(document.kind(*at), Kind::Bool(true)));
        let is_program = document.get(self.settings, "command").is_some();
        let (Some(at), true) = (asks, is_program) else {
            // The client does not look at the rules either.
            if own_rules.is_some() {
                self.remove(document, "sandbox");
            }
            return;
        };
        if let (Some(own), None) = (own, own_rules) {
            let reason = "`sandbox` is in a form that the client does not know";
            self.refusal.get_or_insert(Remark::new(own, reason, ""));
            return;
        }
        match own_rules.or(file_rules) {
            None => self.set(document, "sandbox", Kind::String("auto".to_owned()), at),
            Some(rules) => self.apply_rules(document, rules, at, paths),
        }
    }

    fn apply_rules(&mut self, document: &mut Document, rules: NodeId, at: NodeId, paths: &PathContext<'_>) {
        let cwd = document.get(self.settings, "cwd");
        let cwd = cwd.and_then(|cwd| document.text(cwd));
        let cwd = cwd.map(|cwd| paths.surroundings.absolute_text(cwd));
        let rules = match read(document, rules, paths, cwd.as_deref()) {
            Ok(rules) => rules,
            Err((at, reason)) => {
                self.refusal.get_or_insert(Remark::new(at, reason, ""));
                return;
            }
        };
        let hint = "write `sandbox` of the server in a file of your own";
        for (at, reason) in rules.unenforced(cwd.as_deref()) {
            self.refusal.get_or_insert(Remark::new(at, reason, hint));
        }
        let mut entries = Vec::new();
        let mut list = |document: &mut Document, key: &str, texts: Vec<(NodeId, String)>| {
            if texts.is_empty() {
                return;
            }
            let texts = texts.into_iter();
            let items: Vec<NodeId> = texts
                .map(|(at, text)| document.add(Kind::String(text), at))
                .collect();
            entries.push((key.to_owned(), document.add(Kind::List(items), at)));
        };
        let writes = rules.writes.into_iter().map(|path| (path.at, path.path));
        list(document, "writes", writes.collect());
        list(document, "network", rules.hosts);
        let sandbox = match entries.is_empty() {
            true => Kind::String("auto".to_owned()),
            false => Kind::Map(entries),
        };
        self.set(document, "sandbox", sandbox, at);
    }
}

/// Returns `true` for rules in the form of VS Code.
fn is_of_client(document: &Document, at: NodeId) -> bool {
    let network = document.get(at, "network").map(|at| document.kind(at));
    let is_empty = matches!(document.kind(at), Kind::Map(entries) if entries.is_empty());
    is_empty || document.get(at, "filesystem").is_some() || matches!(network, Some(Kind::Map(_)))
}

/// Reads rules, with absolute paths.
///
/// # Errors
/// The place and the reason of the first part that is not understood.
fn read(
    document: &Document,
    rules: NodeId,
    paths: &PathContext<'_>,
    cwd: Option<&str>,
) -> Result<ClientSandbox, (NodeId, String)> {
    let mut read = ClientSandbox::default();
    for (group, at) in document.entries(rules) {
        for (key, list) in document.entries(*at) {
            let texts = texts(document, key, *list)?;
            let resolved = || {
                let texts = texts.iter().cloned();
                let resolved = texts.map(|(at, written)| {
                    let path = paths.resolve(&written, cwd).map_err(|reason| (at, reason))?;
                    Ok(ClientPath { at, written, path })
                });
                resolved.collect::<Result<Vec<_>, _>>()
            };
            match (group.as_str(), key.as_str()) {
                ("filesystem", "allowWrite") => read.writes = resolved()?,
                ("filesystem", "denyWrite") => read.unwritable = resolved()?,
                ("filesystem", "denyRead") => read.unreadable = resolved()?,
                ("network", "allowedDomains") => read.hosts = texts,
                ("network", "deniedDomains") => read.denied_hosts = texts,
                _ => {
                    let key = tool_settings::suggest::shown(key);
                    return Err((*list, format!("`{key}` of the sandbox is not understood")));
                }
            }
        }
        if !["filesystem", "network"].contains(&group.as_str()) {
            let group = tool_settings::suggest::shown(group);
            return Err((*at, format!("`{group}` of the sandbox is not understood")));
        }
    }
    Ok(read)
}

fn texts(document: &Document, key: &str, at: NodeId) -> Result<Vec<(NodeId, String)>, (NodeId, String)> {
    let wrong = |at| {
        (
            at,
            format!("`{}` is no list of texts", tool_settings::suggest::shown(key)),
        )
    };
    let Kind::List(items) = document.kind(at) else {
        return Err(wrong(at));
    };
    let texts = items.iter().map(|item| {
        let text = document.text(*item).ok_or_else(|| wrong(*item))?;
        Ok((*item, text.to_owned()))
    });
    texts.collect()
}

impl PathContext<'_> {
    /// Returns the absolute path, as the text of a template. Relative ones begin in the working directory of the program.
    fn resolve(&self, written: &str, cwd: Option<&str>) -> Result<String, String> {
        let translated = self.variables.translate(written)?;
        let path = match (translated.as_ref(), cwd) {
            ("~", _) => "~".to_owned(),
            (path, Some(cwd)) if paths::is_relative(path) => format!("{cwd}/{path}"),
            (path, _) => paths::absolute(path, self.directory).unwrap_or_else(|| path.to_owned()),
        };
        Ok(self.surroundings.absolute_text(&path))
    }
}
