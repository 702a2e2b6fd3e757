//! `~/.claude.json` of Claude Code: servers of the user, and those of each project.
//!
//! Source: docs.claude.com/en/docs/claude-code/mcp (scopes: local servers are stored below the path of their project).

use std::path::{Path, PathBuf};

use tool_settings::NodeId;

use crate::{
    clients::{server::Remark, workspace::Surroundings},
    document::node::{Document, Kind},
};

/// The project of the working directory.
#[derive(Debug)]
pub(crate) struct ClaudeProject {
    /// Directory of the project.
    pub(crate) directory: PathBuf,
    /// Its servers.
    pub(crate) servers: Vec<(String, NodeId)>,
    /// Names of servers that are switched off in it.
    pub(crate) disabled: Vec<String>,
}

/// Returns the project of the working directory, or of the nearest directory above it, and tells of servers of other projects.
pub(crate) fn project(
    document: &Document,
    root: NodeId,
    surroundings: &Surroundings,
) -> (Option<ClaudeProject>, Option<Remark>) {
    let Some(projects) = document.get(root, "projects") else {
        return (None, None);
    };
    let entries = document.entries(projects);
    let servers = |at: NodeId| {
        let servers = document.get(at, "mcpServers");
        servers
            .map(|servers| document.entries(servers))
            .unwrap_or_default()
    };
    let working_directory = surroundings.working_directory.as_deref();
    let chosen = working_directory.and_then(|directory| {
        directory
            .ancestors()
            .find_map(|directory| entries.iter().find(|(path, _)| Path::new(path) == directory))
    });
    let is_other = |path: &String| chosen.is_none_or(|(chosen, _)| chosen != path);
    let n_others: usize = entries
        .iter()
        .filter(|(path, _)| is_other(path))
        .map(|(_, at)| servers(*at).len())
        .sum();
    let remark = (n_others > 0).then(|| {
        let noun = if n_others == 1 {
            "server of another project is"
        } else {
            "servers of other projects are"
        };
        let message = format!("{n_others} {noun} not used");
        Remark::new(
            projects,
            message,
            "start toolplane in the directory of the project",
        )
    });
    let project = chosen.map(|(path, at)| ClaudeProject {
        directory: PathBuf::from(path),
        servers: servers(*at).to_vec(),
        disabled: match document
            .get(*at, "disabledMcpServers")
            .map(|at| document.kind(at))
        {
            Some(Kind::List(items)) => items
                .iter()
                .filter_map(|item| document.text(*item).map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        },
    });
    (project, remark)
}
