use std::{
    env,
    path::{Component, Path, PathBuf},
};

use crate::{clients::variables, document::source::SourceFile};

/// Directories of the process and its user, which the variables of editors stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// Home directory of the user.
    pub(crate) home: Option<PathBuf>,
    /// Working directory of the process.
    pub(crate) working_directory: Option<PathBuf>,
}

impl Surroundings {
    /// Returns those of this process.
    pub(crate) fn of_process() -> Self {
        Self {
            home: env::home_dir(),
            working_directory: env::current_dir().ok(),
        }
    }

    /// Makes a path absolute.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        match &self.working_directory {
            Some(directory) => normal(&directory.join(path)),
            None => path.to_owned(),
        }
    }

    /// Makes a path in the text of a template absolute, which may begin in the home directory. One that begins with another
    /// reference stays.
    pub(crate) fn absolute_text(&self, path: &str) -> String {
        let below_home = ["~", "${HOME}", "${env:HOME}"]
            .iter()
            .find_map(|home| path.strip_prefix(home))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let path = match (below_home, &self.home) {
            (Some(rest), Some(home)) => format!("{}{rest}", variables::escape(&home.to_string_lossy())),
            _ => path.to_owned(),
        };
        match path.starts_with("${") {
            true => path,
            false => self.absolute(Path::new(&path)).to_string_lossy().into_owned(),
        }
    }

    /// Returns the workspace that a file of a client belongs to: the directory that contains `.vscode`, `.cursor` or the like, or
    /// the file itself if it lies at the root of a project. Returns `None` for files of the user.
    pub(crate) fn workspace(&self, source: &SourceFile) -> Option<PathBuf> {
        let directory = self.absolute(&source.directory);
        let file = Path::new(&source.name).file_name()?.to_str()?;
        let of_project = match directory.file_name().and_then(|name| name.to_str()) {
            // `.kiro/settings/mcp.json`, `.continue/mcpServers/x.yaml`.
            Some("settings" | "mcpServers") => {
                let parent = directory.parent()?;
                let name = parent.file_name()?.to_str()?;
                OF_CLIENTS.contains(&name).then(|| parent.parent()).flatten()
            }
            Some(name) if OF_CLIENTS.contains(&name) => directory.parent(),
            _ if AT_ROOT.contains(&file) => Some(directory.as_path()),
            _ => None,
        }?;
        (Some(of_project) != self.home.as_deref()).then(|| of_project.to_owned())
    }
}

/// Directories of clients, in a project or in the home directory of the user.
const OF_CLIENTS: [&str; 12] = [
    ".claude",
    ".codex",
    ".continue",
    ".copilot",
    ".cursor",
    ".gemini",
    ".github",
    ".kiro",
    ".roo",
    ".vscode",
    ".windsurf",
    ".zed",
];
/// Names of files that lie at the root of a project.
const AT_ROOT: [&str; 3] = [".mcp.json", "opencode.json", "opencode.jsonc"];

/// Removes `.` and resolves `..` without a look at the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Syntax;

    #[test]
    fn the_workspace_of_a_file() {
        let surroundings = Surroundings {
            home: Some("/users/ada".into()),
            working_directory: Some("/src/shop".into()),
        };
        for (file, expected) in [
            (".vscode/mcp.json", Some("/src/shop")),
            ("../bank/.cursor/mcp.json", Some("/src/bank")),
            (".mcp.json", Some("/src/shop")),
            ("/src/bank/.kiro/settings/mcp.json", Some("/src/bank")),
            ("/src/bank/.continue/mcpServers/db.yaml", Some("/src/bank")),
            ("opencode.json", Some("/src/shop")),
            ("/users/ada/.cursor/mcp.json", None),
            ("/users/ada/.kiro/settings/mcp.json", None),
            ("/users/ada/.config/Code/User/mcp.json", None),
            ("servers.json", None),
        ] {
            let directory = Path::new(file).parent().unwrap().to_owned();
            let source = SourceFile::new(file.to_owned(), directory, Syntax::Json, String::new());
            assert_eq!(
                surroundings.workspace(&source).as_deref(),
                expected.map(Path::new),
                "{file}"
            );
        }
    }
}
