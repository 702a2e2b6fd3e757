//! Command line of `toolplane add`.

use clap::Args;

/// `toolplane add`
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// `npm:PACKAGE[@VERSION]`, `pypi:PACKAGE[==VERSION]`, `oci:IMAGE[:TAG][@DIGEST]`, or a URL
    #[arg(value_name = "SERVER")]
    pub(crate) source: Option<String>,
    /// Command that starts the server, with its arguments; behind a package, arguments of its program
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
    /// Variable of the program's environment, `KEY=VALUE`; may be given more than once
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// Header of requests to the URL, `'NAME: VALUE'`; may be given more than once
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Start the server and show its tools, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}
