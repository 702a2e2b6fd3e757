//! Command line of catalogs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `toolplane catalog`
#[derive(Debug, Subcommand)]
pub(crate) enum Catalog {
    /// Add a catalog of tools and servers: a directory, or the URL of one
    #[command(after_help = ADD_HELP)]
    Add(AddCatalog),
    /// List the added catalogs
    Ls,
    /// Remove a catalog; what was installed from it stays
    Remove {
        /// Name of the catalog
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Find tools and servers in the added catalogs by what they do; without a query, list them
    Search {
        /// Purpose, or name
        #[arg(value_name = "QUERY", default_value = "", hide_default_value = true)]
        query: String,
        /// Only in this catalog
        #[arg(long, value_name = "NAME")]
        catalog: Option<String>,
    },
    /// Show an entry of a catalog: its content, its signature, and what it needs
    Show {
        /// The entry, `NAME`, `NAME@VERSION` or `CATALOG/NAME@VERSION`
        #[arg(value_name = "NAME")]
        entry: String,
    },
    /// Install a version of a tool, or a server, from a catalog into the store, and pin its digest in `toolplane.lock`
    #[command(after_help = INSTALL_HELP)]
    Install(InstallEntry),
}

const ADD_HELP: &str = "\
Examples:
  toolplane catalog add team ../catalog --key-file team.pub
  toolplane catalog add vendor https://tools.example.com/catalog --key RWQ...";

const INSTALL_HELP: &str = "\
Examples:
  toolplane catalog install greet@1.2.0 --dry-run
  toolplane catalog install io.github.ada/weather@1.0.2 --package npm --set units=metric";

/// `toolplane catalog add`
#[derive(Debug, Args)]
pub(crate) struct AddCatalog {
    /// Name for the catalog on this machine
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Directory of an `index.json` or of `server.json` files, or the URL of an `index.json`, with https or on loopback
    #[arg(value_name = "DIR_OR_URL")]
    pub(crate) place: String,
    /// Public key that signs its bundles: of minisign, or ed25519 in Base64
    #[arg(long, value_name = "KEY", conflicts_with = "key_file")]
    pub(crate) key: Option<String>,
    /// File with this key: of minisign, or ed25519 in Base64 or PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// `toolplane catalog install`
#[derive(Debug, Args)]
pub(crate) struct InstallEntry {
    /// The entry, `NAME@VERSION` or `CATALOG/NAME@VERSION`
    #[arg(value_name = "NAME@VERSION")]
    pub(crate) entry: String,
    /// Show what would be installed and what it needs, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Grant a tool the secrets that it refers to, and publish it; without it, such a tool stays a draft
    #[arg(long)]
    pub(crate) grant: bool,
    /// Value that a `server.json` asks for; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) values: Vec<String>,
    /// Package of a `server.json`, by its number or its type, such as `npm`, `oci` or `remote`; the first usable one by default
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) package: Option<String>,
    /// Name for the server in the store; by default the last part of its name in the catalog
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Replace a server of this name that has other settings
    #[arg(long)]
    pub(crate) replace: bool,
    /// Declare the version of a tool compatible where that is not proven
    #[arg(long)]
    pub(crate) compatible: bool,
    /// Name of the person who installs, for the record
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
}

/// `toolplane export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Versions of tools in the store
    #[arg(value_name = "NAME@VERSION", required_unless_present = "servers")]
    pub(crate) versions: Vec<String>,
    /// Server of the configuration or of the store, with the version to give it, `1.0.0` by default; may be given more than once
    #[arg(long = "server", value_name = "NAME[@VERSION]")]
    pub(crate) servers: Vec<String>,
    /// Description of the servers
    #[arg(long, value_name = "TEXT", requires = "servers")]
    pub(crate) description: Option<String>,
    /// Directory to write to; its `index.json` is created or extended
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}
