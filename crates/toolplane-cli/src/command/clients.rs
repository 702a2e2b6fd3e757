//! Command line of clients: `connect`, `disconnect`, and `import mcp-json`.

use std::path::PathBuf;

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use crate::clients::table::CLIENTS;

/// `toolplane connect`
#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Client to connect
    #[arg(value_name = "CLIENT", value_parser = client_names(), hide_possible_values = true, required_unless_present_any = ["all", "list"])]
    pub(crate) client: Option<String>,
    /// Connect every client that is found
    #[arg(long, conflicts_with_all = ["client", "list"])]
    pub(crate) all: bool,
    /// List the known clients, their files, and which ones are connected; changes nothing
    #[arg(long, conflicts_with = "client")]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) change: ClientChange,
}

/// `toolplane disconnect`
#[derive(Debug, Args)]
pub(crate) struct Disconnect {
    /// Client to disconnect
    #[arg(value_name = "CLIENT", value_parser = client_names(), hide_possible_values = true, required_unless_present = "all")]
    pub(crate) client: Option<String>,
    /// Disconnect every client that is found
    #[arg(long, conflicts_with = "client")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) change: ClientChange,
}

/// Options of a change to a client's file.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientChange {
    /// Use the client's file in the working directory instead of the user's
    #[arg(long)]
    pub(crate) project: bool,
    /// URL of a gateway that runs, such as `http://127.0.0.1:8080/mcp`, instead of a program that the client starts
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// Name of the entry in the client's file
    #[arg(long, value_name = "NAME", default_value = "toolplane", value_parser = entry_name)]
    pub(crate) name: String,
    /// Show the change and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// Returns the parser of a client's name.
pub(super) fn client_names() -> PossibleValuesParser {
    let values = CLIENTS.iter().map(|client| {
        PossibleValue::new(client.name)
            .aliases(client.aliases)
            .help(client.title)
    });
    PossibleValuesParser::new(values)
}

/// Reads the name of an entry: one that every format has as a plain key.
fn entry_name(written: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let begins_well = written.starts_with(|c: char| c.is_ascii_alphabetic());
    match begins_well && written.len() <= 64 && written.chars().all(is_plain) {
        true => Ok(written.to_owned()),
        false => Err("a name is a letter, then up to 63 letters, digits, `-` and `_`".to_owned()),
    }
}

/// `toolplane import mcp-json`
#[derive(Debug, Args)]
pub(crate) struct ImportClients {
    /// Files to read; without any, those of the clients that are found in the home and in the working directory
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only the files of this client; may be given more than once
    #[arg(long, value_name = "CLIENT", value_parser = client_names(), hide_possible_values = true, conflicts_with = "files")]
    pub(crate) from: Vec<String>,
    /// Add the servers to the configuration, or make `toolplane.yaml`; no server is overwritten
    #[arg(long, conflicts_with_all = ["out", "dry_run"])]
    pub(crate) write: bool,
    /// File to write the servers to, in the form of a configuration
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) out: Option<PathBuf>,
    /// Print the servers in the form of a configuration, without secrets
    #[arg(long)]
    pub(crate) dry_run: bool,
}
