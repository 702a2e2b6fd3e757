//! What can be written on the command line. Help, completions and the reference are made from these types.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::exit::Exit;

/// One governed set of tools for agents: mock tools, HTTP APIs and MCP servers behind one gateway.
#[derive(Debug, Parser)]
#[command(
    name = "toolplane",
    version,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub(crate) struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub(crate) options: Options,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What holds for every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Configuration file, or directory of such files; may be given more than once. Without it: `$TOOLPLANE_CONFIG`,
    /// `./toolplane.yaml`, `$XDG_CONFIG_HOME/toolplane/toolplane.yaml`
    #[arg(long = "config", short = 'c', global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// How data are printed
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table, hide_default_value = true)]
    pub(crate) output: Format,
    /// When to use colours
    #[arg(long, global = true, hide_short_help = true, value_enum, default_value_t = Color::Auto, hide_default_value = true)]
    pub(crate) color: Color,
    /// How logs are printed to stderr
    #[arg(long, global = true, hide_short_help = true, value_enum, default_value_t = LogFormat::Auto, hide_default_value = true)]
    pub(crate) log_format: LogFormat,
    /// What is logged, such as `info` or `mcp_client=debug`. Without it: `$TOOLPLANE_LOG`, `$RUST_LOG`; `warn` for
    /// `serve`, otherwise `error`
    #[arg(long = "log", global = true, hide_short_help = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Say only what went wrong
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log more: `-v` for info, `-vv` for debug, `-vvv` for trace
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// How data are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: tables and text
    Table,
    /// One JSON value; errors are one JSON object on stderr
    Json,
    /// YAML
    Yaml,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How logs are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// JSON with `-o json`, otherwise text
    Auto,
    /// Text
    Pretty,
    /// One JSON object on each line
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write an example configuration that works at once, without a network
    Init(Init),
    /// Check a configuration: files, executors' settings, schemas, `${…}` references, names
    Check(Check),
    /// Try everything that the configuration names: start servers, look for programs, certificates and ports
    Doctor,
    /// Look at tools
    #[command(subcommand)]
    Tools(Tools),
    /// Look at MCP servers
    #[command(subcommand)]
    Servers(Servers),
    /// Call a tool
    #[command(after_help = CALL_HELP)]
    Call(Call),
    /// Serve all tools over MCP
    Serve(Serve),
    /// Ask a running gateway whether it is ready and how its tools and servers are
    Health(Health),
    /// Look at calls that wait for somebody's approval in the gateways that run here, and decide
    #[command(subcommand)]
    Approvals(Approvals),
    /// Look up calls of the gateways that run here of which nobody knows whether the tool ran
    #[command(subcommand)]
    Ledger(Ledger),
    /// Serve a mock MCP server that answers, and misbehaves, as a scenario says: for tests of clients and gateways
    MockServer(MockServer),
    /// Print the JSON Schema of the configuration, or of another file, for editors
    Schema(Schema),
    /// Print the completions of a shell
    Completions(Completions),
    /// Print the version
    Version,
    /// Print a page of the reference
    #[command(hide = true)]
    Docs(Docs),
}

/// `toolplane init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where to write it
    #[arg(default_value = "toolplane.yaml", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace a file that is there already
    #[arg(long)]
    pub(crate) force: bool,
}

/// `toolplane check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Files or directories to check in place of the configuration
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Take warnings for errors
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `toolplane tools`
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools; servers are started for it
    Ls {
        /// Only the tools of this server
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
    },
    /// Show everything about one tool
    Show {
        /// The tool's name
        #[arg(value_name = "TOOL")]
        name: String,
    },
    /// Switch a tool off in the gateways that you run on this machine: it is not offered and not called until `tools enable`
    /// or the end of the gateway
    Disable {
        /// The tool's name
        #[arg(value_name = "TOOL")]
        name: String,
        /// Why, in words that callers are told
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Switch a tool on again, in the gateways that you run on this machine, that was switched off by `tools disable` or since
    /// its credentials were refused
    Enable {
        /// The tool's name
        #[arg(value_name = "TOOL")]
        name: String,
    },
}

/// `toolplane servers`
#[derive(Debug, Subcommand)]
pub(crate) enum Servers {
    /// List the servers and how they are; they are started for it
    Ls {
        /// Start none of them
        #[arg(long, conflicts_with = "gateway")]
        no_start: bool,
        /// List those of the gateways that you run on this machine, as they are there; nothing is started for it
        #[arg(long)]
        gateway: bool,
    },
    /// Delete the lists of a server, or of all servers, that are kept on disk; each is read again when its server is started
    Forget {
        /// The server's name
        #[arg(value_name = "SERVER")]
        name: Option<String>,
    },
}

const CALL_HELP: &str = "\
Arguments:
  name=value   typed by the tool's input schema: 5 is a number where it asks
               for one and a text where it asks for a text; lists are given
               with commas or by repeating the name, objects as JSON
  name:=json   taken as JSON, whatever the schema says

Examples:
  toolplane call echo message=hello
  toolplane call search tags=a,b limit=5 filter:='{\"since\": 2024}'
  toolplane call search --json @arguments.json
  echo '{\"message\": \"hi\"}' | toolplane call echo --json -";

/// `toolplane call`
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool's name
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Arguments, `name=value` or `name:=json`
    #[arg(value_name = "ARGUMENT", conflicts_with = "json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object: the text, `@FILE`, or `-` for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// Show what each layer decided
    #[arg(long)]
    pub(crate) explain: bool,
    /// Go through everything that a call would, and show the request, without secrets, in place of sending it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Have the call made, whatever is kept of earlier ones
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Approve the call yourself if it needs approval, unless somebody else must
    #[arg(long)]
    pub(crate) approve: bool,
    /// Have the call fail on purpose as this file says, to see what becomes of it
    #[arg(long, value_name = "FILE")]
    pub(crate) chaos: Option<PathBuf>,
    /// Give up after this time, such as `500ms`, `5s` or `1m`
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::duration)]
    pub(crate) timeout: Option<Duration>,
    /// The key under which the call has its effect once: it is passed on to what runs the tool, where the
    /// configuration says how
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// `toolplane serve`
#[derive(Debug, Clone, Args)]
pub(crate) struct Serve {
    /// Serve on stdin and stdout, for an MCP client that starts this program
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve over HTTP at this address, in place of the configuration's `gateway.listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve metrics for Prometheus at this address, in place of the configuration's `gateway.metrics_listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Have calls fail on purpose as this file says, to see what becomes of them: for tests, never for real work
    #[arg(long, value_name = "FILE")]
    pub(crate) chaos: Option<PathBuf>,
    /// How long calls may go on after a signal to end
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::duration, default_value = "30s")]
    pub(crate) drain: Duration,
    /// Do not load the configuration again when its files change; SIGHUP still does
    #[arg(long)]
    pub(crate) no_reload: bool,
}

/// `toolplane health`
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Where the gateway listens, in place of the configuration's `gateway.listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) address: Option<SocketAddr>,
    /// Ask no gateway: start the servers, and check them and the health check endpoints of tools once
    #[arg(long, conflicts_with = "address")]
    pub(crate) direct: bool,
}

/// `toolplane schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Which file it is of
    #[arg(value_enum, default_value_t = SchemaOf::Configuration)]
    pub(crate) of: SchemaOf,
}

/// A kind of file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The configuration
    Configuration,
    /// A chaos file, for `serve --chaos`
    Chaos,
}

/// `toolplane approvals`
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the calls that wait, and those that were decided
    Ls,
    /// Show everything about one
    Show {
        /// Its handle, or the beginning of it
        #[arg(value_name = "HANDLE")]
        handle: String,
    },
    /// Let the call be made, once
    Approve {
        /// Its handle, or the beginning of it
        #[arg(value_name = "HANDLE")]
        handle: String,
        /// Who decides, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
    },
    /// Refuse the call
    Deny {
        /// Its handle, or the beginning of it
        #[arg(value_name = "HANDLE")]
        handle: String,
        /// Who decides, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
        /// Why, for whoever called
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// `toolplane ledger`
#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// List the calls that ended as `outcome_unknown`, the latest first
    Ls,
    /// Show what is remembered of one call: of those with an idempotency key as well
    Show {
        /// The `ledger_id` of its error, which is its correlation id in the logs
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// `toolplane mock-server`
#[derive(Debug, Args)]
pub(crate) struct MockServer {
    /// What the server offers and how it answers, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,
    /// Serve one client on stdin and stdout
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve over HTTP at this address
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address, default_value = "127.0.0.1:7090")]
    pub(crate) http: SocketAddr,
}

/// `toolplane completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// `toolplane docs`
#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// The page
    pub(crate) page: Page,
}

/// A page of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// The configuration, by its JSON Schema
    Configuration,
    /// The command line
    Cli,
}

/// The command line as clap sees it, with everything that is put together at run time.
pub(crate) fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command().after_help(Exit::table())
}
