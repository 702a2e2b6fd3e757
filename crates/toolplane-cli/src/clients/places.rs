//! Places of the files of clients, by operating system and scope.

use std::path::{Path, PathBuf};

use super::table::Client;
use crate::config;

/// Operating system whose conventions decide where programs keep their settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    /// Linux and other systems with the XDG base directories
    Linux,
    /// macOS
    MacOs,
    /// Windows
    Windows,
}

impl Platform {
    /// Returns the system of this program.
    pub(crate) const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// Scope of a file: of a user, or of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// In the user's home
    User,
    /// In the working directory
    Project,
}

impl Scope {
    /// Returns the name for messages and data.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Directory in which a place begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The home directory.
    Home,
    /// The directory of settings: `$XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    Settings,
    /// `$XDG_CONFIG_HOME` or `~/.config`, also on macOS; `%APPDATA%`.
    Config,
    /// `$XDG_CONFIG_HOME` or `~/.config` on every system.
    DotConfig,
    /// The working directory.
    Project,
    /// The directory that this variable names.
    Variable(&'static str),
    /// The file that this variable names.
    FileVariable(&'static str),
}

/// Place of a file of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Directory in which it begins.
    pub(crate) base: Base,
    /// Directory that only the client creates; empty if the file shows alone that the client is used.
    pub(crate) directory: &'static str,
    /// Path of the file in that directory.
    pub(crate) file: &'static str,
    /// System that has this place. `None` for all.
    pub(crate) platform: Option<Platform>,
}

/// Surroundings in which places are looked up, as a value.
pub(crate) struct Surroundings<'a> {
    /// Operating system.
    pub(crate) platform: Platform,
    /// Variables of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Working directory.
    pub(crate) directory: PathBuf,
}

impl Surroundings<'static> {
    /// Returns those of this process.
    pub(crate) fn current() -> Self {
        Self {
            platform: Platform::current(),
            variable: &config::variable,
            directory: std::env::current_dir().unwrap_or_default(),
        }
    }
}

/// File of a client that exists or would be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientFile {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Directory in which the place of the file begins.
    pub(crate) base: PathBuf,
    /// `true` if the file is there, or a directory that the client creates.
    pub(crate) is_found: bool,
}

impl Surroundings<'_> {
    /// Returns the file of a client: the first of its places that exists, or else the first. `None` if the client has none of this
    /// scope here.
    pub(crate) fn file(&self, client: &Client, scope: Scope) -> Option<ClientFile> {
        let files = self.files(client, scope);
        let found = files.iter().find(|file| file.path.is_file());
        let found = found.or_else(|| files.iter().find(|file| file.is_found));
        found.or_else(|| files.first()).cloned()
    }

    /// Returns all files that a client may have of a scope, in the order of their use.
    pub(crate) fn files(&self, client: &Client, scope: Scope) -> Vec<ClientFile> {
        let places = match scope {
            Scope::User => client.user,
            Scope::Project => client.project,
        };
        let here = places
            .iter()
            .filter(|place| place.platform.is_none_or(|platform| platform == self.platform));
        // A variable that is set moves the file: the other places are not used.
        let (by_variable, by_default): (Vec<_>, Vec<_>) =
            here.partition(|place| matches!(place.base, Base::Variable(_) | Base::FileVariable(_)));
        let moved: Vec<_> = by_variable
            .into_iter()
            .filter_map(|place| self.resolve(place))
            .collect();
        match moved.is_empty() {
            true => by_default
                .into_iter()
                .filter_map(|place| self.resolve(place))
                .collect(),
            false => moved,
        }
    }

    fn resolve(&self, place: &Place) -> Option<ClientFile> {
        let base = self.base(place.base)?;
        let (base, path) = match place.base {
            Base::FileVariable(_) => (base.parent().unwrap_or(&base).to_owned(), base),
            _ => {
                let path = join(&join(&base, place.directory), place.file);
                (base, path)
            }
        };
        let has_directory = match place.base {
            Base::Variable(_) => path.parent().is_some_and(Path::is_dir),
            Base::Project | Base::FileVariable(_) => false,
            _ => {
                !place.directory.is_empty()
                    && self
                        .base(place.base)
                        .is_some_and(|base| join(&base, place.directory).is_dir())
            }
        };
        Some(ClientFile {
            is_found: has_directory || path.is_file(),
            path,
            base,
        })
    }

    fn base(&self, base: Base) -> Option<PathBuf> {
        let is_windows = self.platform == Platform::Windows;
        let home = || self.absolute(if is_windows { "USERPROFILE" } else { "HOME" });
        let xdg = || {
            self.absolute("XDG_CONFIG_HOME")
                .or_else(|| Some(join(&home()?, ".config")))
        };
        let roaming = || {
            self.absolute("APPDATA")
                .or_else(|| Some(join(&home()?, "AppData/Roaming")))
        };
        match base {
            Base::Home => home(),
            Base::Settings | Base::Config if is_windows => roaming(),
            Base::Settings if self.platform == Platform::MacOs => {
                Some(join(&home()?, "Library/Application Support"))
            }
            Base::Settings | Base::Config | Base::DotConfig => xdg(),
            Base::Project => Some(self.directory.clone()),
            Base::Variable(name) | Base::FileVariable(name) => self.absolute(name),
        }
    }

    /// Returns the absolute path that a variable holds.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name).filter(|value| !value.is_empty())?;
        let is_drive = self.platform == Platform::Windows && value.as_bytes().get(1) == Some(&b':');
        (is_drive || Path::new(&value).is_absolute()).then(|| PathBuf::from(value))
    }
}

/// Joins a path with `/` in it, so that it has the separator of this system.
fn join(base: &Path, path: &str) -> PathBuf {
    path.split('/')
        .filter(|part| !part.is_empty())
        .fold(base.to_owned(), |path, part| path.join(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::table::{CLIENTS, client};

    fn paths(platform: Platform, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        };
        let surroundings = Surroundings {
            platform,
            variable: &variable,
            directory: "/project".into(),
        };
        let mut lines = String::new();
        for client in CLIENTS {
            for scope in [Scope::User, Scope::Project] {
                for file in surroundings.files(client, scope) {
                    let path = file.path.display().to_string().replace('\\', "/");
                    lines.push_str(&format!("{} {}: {path}\n", client.name, scope.name()));
                }
            }
        }
        lines
    }

    /// The places are those of the documentation of each client, to which the table links.
    #[test]
    fn each_system_has_its_places() {
        insta::assert_snapshot!("linux", paths(Platform::Linux, &[("HOME", "/h/ada")]));
        insta::assert_snapshot!("macos", paths(Platform::MacOs, &[("HOME", "/Users/ada")]));
        let windows = [
            ("USERPROFILE", "C:/Users/ada"),
            ("APPDATA", "C:/Users/ada/AppData/Roaming"),
        ];
        insta::assert_snapshot!("windows", paths(Platform::Windows, &windows));
    }

    #[test]
    fn variables_move_the_places() {
        let moved = [
            ("HOME", "/h/ada"),
            ("XDG_CONFIG_HOME", "/xdg"),
            ("CODEX_HOME", "/codex"),
            ("COPILOT_HOME", "/copilot"),
            ("CLAUDE_CONFIG_DIR", "/claude"),
            ("CLINE_MCP_SETTINGS_PATH", "/cline/mcp.json"),
        ];
        let lines = paths(Platform::Linux, &moved);
        for first in [
            "codex user: /codex/config.toml",
            "copilot user: /copilot/mcp-config.json",
            "claude-code user: /claude/.claude.json",
            "cline user: /cline/mcp.json",
            "vscode user: /xdg/Code/User/mcp.json",
            "goose user: /xdg/goose/config.yaml",
        ] {
            let name = first.split_once(':').unwrap().0;
            assert_eq!(lines.lines().find(|line| line.starts_with(name)), Some(first));
        }
        // The base directory specification: a relative path is to be ignored.
        let relative = paths(Platform::Linux, &[("HOME", "/h/ada"), ("XDG_CONFIG_HOME", "xdg")]);
        assert!(
            relative.contains("zed user: /h/ada/.config/zed/settings.json"),
            "{relative}"
        );
        assert_eq!(
            paths(Platform::MacOs, &[])
                .lines()
                .filter(|line| line.contains(" user: "))
                .count(),
            0
        );
    }

    #[test]
    fn a_client_is_found_by_its_file_or_its_directory() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_str().unwrap().to_owned();
        let variable = |name: &str| (name == "HOME").then(|| path.clone());
        let surroundings = Surroundings {
            platform: Platform::Linux,
            variable: &variable,
            directory: home.path().to_owned(),
        };
        let is_found = |name: &str| {
            surroundings
                .file(client(name).unwrap(), Scope::User)
                .unwrap()
                .is_found
        };
        assert!(!is_found("cursor") && !is_found("claude-code") && !is_found("kiro"));
        std::fs::create_dir_all(home.path().join(".cursor")).unwrap();
        std::fs::create_dir_all(home.path().join(".kiro")).unwrap();
        std::fs::write(home.path().join(".claude.json"), "{}").unwrap();
        assert!(is_found("cursor") && is_found("claude-code") && is_found("kiro"));
        let opencode = || {
            surroundings
                .file(client("opencode").unwrap(), Scope::Project)
                .unwrap()
        };
        assert_eq!(
            (opencode().path.file_name().unwrap(), opencode().is_found),
            ("opencode.json".as_ref(), false)
        );
        std::fs::write(home.path().join("opencode.jsonc"), "{}").unwrap();
        assert_eq!(
            (opencode().path.file_name().unwrap(), opencode().is_found),
            ("opencode.jsonc".as_ref(), true)
        );
    }
}
