//! Gateway's entry in a client's file.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{
    edit::Slot,
    table::{Client, EntryForm},
};

/// Name of this program's file, and usual name of its entry.
pub(crate) const PROGRAM: &str = "toolplane";
/// Time limit of Goose for a request, in seconds: the one of its documentation.
const GOOSE_TIMEOUT: u32 = 300;
/// Programs that run a package by its name.
const RUNNERS: [&str; 5] = ["npx", "bunx", "pnpx", "uvx", "pipx"];

/// Way in which a client reaches the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The client starts a program.
    Program { command: String, args: Vec<String> },
    /// The client connects to a URL.
    Url(String),
}

impl Entry {
    /// Returns the entry in the form of a client. `None` if its file cannot hold a URL.
    pub(crate) fn to_value(&self, client: &Client, name: &str) -> Option<Value> {
        Some(match (self, client.form) {
            (Self::Program { command, args }, EntryForm::Plain(_)) => {
                json!({"command": command, "args": args})
            }
            (Self::Url(_), EntryForm::Plain(None)) => return None,
            (Self::Url(url), EntryForm::Plain(Some((key, None)))) => json!({key: url}),
            (Self::Url(url), EntryForm::Plain(Some((key, Some(kind))))) => json!({"type": kind, key: url}),
            (Self::Program { command, args }, EntryForm::Typed(kind, _)) => {
                json!({"type": kind, "command": command, "args": args})
            }
            (Self::Url(url), EntryForm::Typed(_, kind)) => json!({"type": kind, "url": url}),
            (Self::Program { command, args }, EntryForm::Copilot) => {
                json!({"type": "local", "command": command, "args": args, "tools": ["*"]})
            }
            (Self::Url(url), EntryForm::Copilot) => json!({"type": "http", "url": url, "tools": ["*"]}),
            (Self::Program { command, args }, EntryForm::Goose) => json!({
                "name": name, "type": "stdio", "cmd": command, "args": args, "enabled": true, "timeout": GOOSE_TIMEOUT,
            }),
            (Self::Url(url), EntryForm::Goose) => json!({
                "name": name, "type": "streamable_http", "uri": url, "enabled": true, "timeout": GOOSE_TIMEOUT,
            }),
            (Self::Program { command, args }, EntryForm::Named(_)) => {
                json!({"name": name, "command": command, "args": args})
            }
            (Self::Url(url), EntryForm::Named(kind)) => json!({"name": name, "type": kind, "url": url}),
            (Self::Program { command, args }, EntryForm::OpenCode) => {
                let whole: Vec<&str> = [command].into_iter().chain(args).map(String::as_str).collect();
                json!({"type": "local", "command": whole, "enabled": true})
            }
            (Self::Url(url), EntryForm::OpenCode) => json!({"type": "remote", "url": url, "enabled": true}),
        })
    }

    /// Reads the entry of a client. `None` if it has neither a program nor a URL.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for key in ["url", "serverUrl", "httpUrl", "uri"] {
            if let Some(url) = value[key].as_str() {
                return Some(Self::Url(url.to_owned()));
            }
        }
        if let Some([command, args @ ..]) = value["command"].as_array().map(Vec::as_slice) {
            let args = texts(&Value::from(args.to_vec()));
            return Some(Self::Program {
                command: command.as_str()?.to_owned(),
                args,
            });
        }
        // Zed had an object here.
        let nested = &value["command"]["path"];
        let args = if nested.is_string() {
            &value["command"]["args"]
        } else {
            &value["args"]
        };
        let command = [&value["command"], &value["cmd"], nested]
            .into_iter()
            .find_map(Value::as_str)?;
        Some(Self::Program {
            command: command.to_owned(),
            args: texts(args),
        })
    }

    /// Returns `true` if the entry starts a program with `serve`.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Program { args, .. } if args.iter().any(|arg| arg == "serve"))
    }

    /// Returns `true` if the entry starts this program as a gateway, also by the name of its package.
    pub(crate) fn is_gateway(&self) -> bool {
        let Self::Program { command, args } = self else {
            return false;
        };
        if !self.serves() {
            return false;
        }
        let program = stem(command);
        let is_package = |arg: &String| {
            let name = arg.split(['@', '=']).next().unwrap_or_default();
            name == PROGRAM
        };
        program == PROGRAM
            || RUNNERS.contains(&program.as_str())
                && args
                    .iter()
                    .find(|arg| !arg.starts_with('-') && *arg != "run")
                    .is_some_and(is_package)
    }
}

/// Returns the name of a program without its directory and `.exe`.
fn stem(command: &str) -> String {
    let file = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let lower = file.to_ascii_lowercase();
    let stem = [".exe", ".cmd"]
        .iter()
        .find_map(|ending| lower.strip_suffix(ending));
    stem.map_or(lower.clone(), str::to_owned)
}

/// Returns the section of a client's file that holds its servers. OpenCode has two forms.
pub(crate) fn section(client: &Client, root: &Value) -> &'static [&'static str] {
    let has_inner = root["mcp"]["servers"].is_object();
    match client.form {
        EntryForm::OpenCode if has_inner => &["mcp", "servers"],
        _ => client.section,
    }
}

/// Returns the slot of the gateway's entry.
pub(crate) fn slot<'a>(client: &Client, root: &Value, name: &'a str) -> Slot<'a> {
    Slot {
        format: client.format,
        section: section(client, root),
        name,
    }
}

/// Returns the entries of a client's file, by name.
pub(crate) fn entries<'a>(client: &Client, root: &'a Value) -> Vec<(String, &'a Value)> {
    let section = section(client, root)
        .iter()
        .try_fold(root, |value, key| value.get(key));
    match section {
        Some(Value::Object(entries)) => entries
            .iter()
            .map(|(name, entry)| (name.clone(), entry))
            .collect(),
        Some(Value::Array(entries)) => {
            let named = entries.iter();
            named
                .map(|entry| (entry["name"].as_str().unwrap_or_default().to_owned(), entry))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the directories of `PATH` that do not depend on the working directory.
fn directories(path: Option<&str>) -> impl Iterator<Item = PathBuf> {
    let directories = path.map(std::env::split_paths).into_iter().flatten();
    directories.filter(|directory| directory.is_absolute())
}

/// Finds a program in `PATH`.
pub(crate) fn find_program(name: &str, path: Option<&str>) -> Option<PathBuf> {
    directories(path)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Returns the path of this program for a client: as it is found in `PATH`, which an update keeps, or else where it is.
pub(crate) fn program(path: Option<&str>) -> std::io::Result<PathBuf> {
    let current = std::env::current_exe()?;
    let real = current.canonicalize()?;
    let Some(name) = current.file_name() else {
        return Ok(current);
    };
    let mut found = directories(path).map(|directory| directory.join(name));
    let is_same = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == real);
    Ok(found.find(is_same).unwrap_or(current))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_gateway(command: &str, args: &[&str]) -> bool {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let command = command.to_owned();
        Entry::Program { command, args }.is_gateway()
    }

    #[test]
    fn the_gateway_is_known_by_its_program_or_package() {
        for (command, args) in [
            ("/usr/bin/toolplane", &["serve", "--stdio"][..]),
            (r"C:\bin\Toolplane.EXE", &["serve"]),
            ("npx", &["-y", "toolplane@1.2.0", "serve"]),
            ("/usr/bin/uvx", &["toolplane", "serve"]),
            ("pipx", &["run", "toolplane==1.0", "serve"]),
        ] {
            assert!(is_gateway(command, args), "{command}");
        }
        for (command, args) in [
            ("/usr/bin/toolplane-extra", &["serve"][..]),
            ("/usr/bin/toolplane", &["mock-server", "m.yaml"]),
            ("npx", &["-y", "server", "toolplane"]),
            ("node", &["toolplane"]),
            ("", &[]),
        ] {
            assert!(!is_gateway(command, args), "{command}");
        }
    }

    #[test]
    fn entries_are_read_in_the_form_of_each_client() {
        for client in crate::clients::table::CLIENTS {
            let program = Entry::Program {
                command: "/t".into(),
                args: vec!["serve".into(), "--stdio".into()],
            };
            let value = program.to_value(client, "toolplane").unwrap();
            assert_eq!(Entry::from_value(&value), Some(program), "{value}");
            let url = Entry::Url("http://h/mcp".into());
            if let Some(value) = url.to_value(client, "toolplane") {
                assert_eq!(Entry::from_value(&value), Some(url), "{value}");
            }
        }
        // An older form of Zed.
        let nested = json!({"command": {"path": "/t", "args": ["serve"]}});
        let read = Entry::Program {
            command: "/t".into(),
            args: vec!["serve".into()],
        };
        assert_eq!(Entry::from_value(&nested), Some(read));
        assert_eq!(Entry::from_value(&json!({"command": [], "args": 1})), None);
    }
}
