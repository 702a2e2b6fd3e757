//! Formats of the clients, one module each.

pub(crate) mod claude_projects;
pub(crate) mod codex;
pub(crate) mod continue_dev;
pub(crate) mod gemini;
pub(crate) mod goose;
pub(crate) mod mcp_servers;
pub(crate) mod opencode;
pub(crate) mod vscode;
pub(crate) mod zed;
