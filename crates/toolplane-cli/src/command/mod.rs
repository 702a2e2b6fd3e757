//! The types that read the command line. Help, completions and the reference are generated from them.

mod add;
mod agent;
mod catalog;
mod clients;
mod operator;
mod registry;
mod route;
mod usage;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::{
    add::Add,
    agent::{Agent, RunAgent},
    catalog::{AddCatalog, Catalog, Export, InstallEntry},
    clients::{ClientChange, Connect, Disconnect, ImportClients},
    operator::{Approvals, CreateToken, Health, Ledger, ProbedLevel, Sandbox, SandboxProbe, Tokens},
    registry::{
        Accept, Definitions, Deprecate, Import, ImportApi, ImportOpenapi, Lock, Provider, Publish, Search,
        Secrets, Servers, Sort, Tools, VersionVerb,
    },
    route::{Priority, Route},
    usage::{Since, Usage, UsageBy},
};
use crate::exit::Exit;

/// One governed set of tools for agents: mock tools, HTTP APIs, scripts and MCP servers behind one gateway.
#[derive(Debug, Parser)]
#[command(
    name = "toolplane",
    version,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub(crate) struct Cli {
    /// Options of every verb.
    #[command(flatten)]
    pub(crate) options: Options,
    /// The verb.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Configuration file, or directory of such files; may be given more than once. Without it: `$TOOLPLANE_CONFIG`,
    /// `./toolplane.yaml`, `$XDG_CONFIG_HOME/toolplane/toolplane.yaml`
    #[arg(long = "config", short = 'c', global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Output format
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table, hide_default_value = true)]
    pub(crate) output: Format,
    /// Use of colors
    #[arg(long, global = true, hide_short_help = true, value_enum, default_value_t = Color::Auto, hide_default_value = true)]
    pub(crate) color: Color,
    /// Format of logs on stderr
    #[arg(long, global = true, hide_short_help = true, value_enum, default_value_t = LogFormat::Auto, hide_default_value = true)]
    pub(crate) log_format: LogFormat,
    /// Log filter, such as `info` or `mcp_client=debug`. Without it: `$TOOLPLANE_LOG`, `$RUST_LOG`; `warn` for `serve`,
    /// otherwise `error`
    #[arg(long = "log", global = true, hide_short_help = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Print errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log more: `-v` for info, `-vv` for debug, `-vvv` for trace
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// `true` if `$MCP_ENDPOINT` is not used: it may name this program.
    #[arg(skip)]
    pub(crate) ignores_endpoint_variable: bool,
}

/// Format of data on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and text for people
    Table,
    /// One JSON value; errors are one JSON object on stderr
    Json,
    /// YAML
    Yaml,
}

/// Use of colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// JSON with `-o json`, otherwise text
    Auto,
    /// Text
    Pretty,
    /// One JSON object on each line
    Json,
}

/// A verb with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write an example configuration that works without a network
    Init(Init),
    /// Check a configuration: files, executor settings, schemas, `${…}` references, names
    Check(Check),
    /// Try everything that the configuration names: start servers, look for programs, certificates and ports
    Doctor,
    /// Bring the tools and servers of files into the store, or import the description of an API or the servers of MCP clients
    Import(Import),
    /// Add an MCP server by package, image, URL or command: starts it once, shows its tools, and writes it into the configuration
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Write this gateway into the file of an MCP client, such as Claude, Cursor or VS Code
    #[command(after_help = CONNECT_HELP)]
    Connect(Connect),
    /// Take this gateway out of the file of an MCP client
    Disconnect(Disconnect),
    /// Add catalogs of tools and servers, search them, and install from them
    #[command(subcommand)]
    Catalog(Catalog),
    /// Write versions of tools, and servers, into a directory that others add as a catalog
    Export(Export),
    /// List, show, enable or disable tools
    #[command(subcommand)]
    Tools(Tools),
    /// List MCP servers, approve those that agents proposed, or delete kept lists
    #[command(subcommand)]
    Servers(Servers),
    /// Grant secrets to tools that agents made
    #[command(subcommand)]
    Secrets(Secrets),
    /// Write the definitions of all tools, prompts and resources to the lock file, `toolplane.lock` beside
    /// `toolplane.yaml`, or compare them with it; starts the servers
    Lock(Lock),
    /// Call a tool
    #[command(after_help = CALL_HELP)]
    Call(Call),
    /// Let a model use the tools
    #[command(subcommand)]
    Agent(Agent),
    /// Check, draw or run workflows
    #[command(subcommand)]
    Flow(Flow),
    /// Tell which tool a call for a capability would go to now, and why; calls nothing
    Route(Route),
    /// Serve all tools over MCP
    Serve(Serve),
    /// Answer requests for tools on stdin, as JSON: for `MCP_ENDPOINT` of an okso runtime
    #[command(after_help = ENDPOINT_HELP)]
    Endpoint(Endpoint),
    /// Ask a running gateway for its readiness and the health of its tools and servers, with the token in
    /// `$TOOLPLANE_TOKEN` if it asks for one
    Health(Health),
    /// List, approve or deny calls that wait for approval in your gateways on this machine
    #[command(subcommand)]
    Approvals(Approvals),
    /// Look up calls with unknown outcome in your gateways on this machine
    #[command(subcommand)]
    Ledger(Ledger),
    /// Create, list or revoke the tokens by which clients authenticate
    #[command(subcommand)]
    Tokens(Tokens),
    /// Show the calls of the last days by tool, principal, server or day, with errors, latencies, costs and sizes; or the tools that
    /// could be removed
    Usage(Usage),
    /// Show what the sandbox of Python and Bash tools enforces on this machine
    #[command(subcommand)]
    Sandbox(Sandbox),
    /// Serve a mock MCP server that answers, and misbehaves, as a scenario says: for tests of clients and gateways
    MockServer(MockServer),
    /// Print the JSON Schema of the configuration, or of a chaos file, for editors
    Schema(Schema),
    /// Print the completions of a shell
    Completions(Completions),
    /// Print the version
    Version,
    /// Print the manual page, or write the pages of all commands
    #[command(hide = true)]
    Man(Man),
    /// Print a page of the reference
    #[command(hide = true)]
    Docs(Docs),
}

const ADD_HELP: &str = "\
Examples:
  toolplane add files npm:@modelcontextprotocol/server-filesystem -- /srv/files
  toolplane add time pypi:mcp-server-time==2026.1.14
  toolplane add github oci:ghcr.io/github/github-mcp-server:v1.0.0 --env 'GITHUB_PERSONAL_ACCESS_TOKEN=${env:GITHUB_TOKEN}'
  toolplane add docs https://example.com/mcp --header 'Authorization: Bearer ${env:DOCS_TOKEN}'
  toolplane add mine -- python3 server.py";

const CONNECT_HELP: &str = "\
Clients: claude-desktop, claude-code, cursor, vscode, windsurf, cline, roo, kiro,
gemini, copilot, codex, zed, goose, continue, opencode

Examples:
  toolplane connect --list
  toolplane connect cursor --dry-run
  toolplane connect claude-code --project --yes
  toolplane connect vscode --http http://127.0.0.1:8080/mcp";

/// `toolplane init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// File to write
    #[arg(default_value = "toolplane.yaml", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// `toolplane check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Files or directories to check instead of the configuration
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
}

const CALL_HELP: &str = "\
Arguments:
  name=value   typed by the tool's input schema: 5 is a number where it asks
               for one and a text where it asks for a text; lists are given
               with commas or by repeating the name, objects as JSON
  name:=json   parsed as JSON, regardless of the schema

Examples:
  toolplane call echo message=hello
  toolplane call search tags=a,b limit=5 filter:='{\"since\": 2024}'
  toolplane call search --json @arguments.json
  echo '{\"message\": \"hi\"}' | toolplane call echo --json -";

/// `toolplane call`
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// Name of the tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Arguments, `name=value` or `name:=json`
    #[arg(value_name = "ARGUMENT", conflicts_with = "json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object: the text, `@FILE`, or `-` for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// Show the decision of each layer
    #[arg(long)]
    pub(crate) explain: bool,
    /// Run all layers without sending the request, and show the request without secrets
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Bypass the cache
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Approve the call if it needs approval, unless another person must
    #[arg(long)]
    pub(crate) approve: bool,
    /// Inject the faults of this chaos file into the call
    #[arg(long, value_name = "FILE")]
    pub(crate) chaos: Option<PathBuf>,
    /// Time limit, such as `500ms`, `5s` or `1m`
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Idempotency key: the call has its effect once. Sent to the backend if the configuration says how
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// `toolplane flow`
#[derive(Debug, Subcommand)]
pub(crate) enum Flow {
    /// Check workflows against the tools that they call: their names, arguments, references and types; starts the servers
    Check {
        /// Name of a workflow; all by default
        #[arg(value_name = "WORKFLOW")]
        workflow: Option<String>,
    },
    /// Print the graph of a workflow: which step waits for which
    Graph {
        /// Name of the workflow
        #[arg(value_name = "WORKFLOW")]
        workflow: String,
        /// Language of the graph
        #[arg(long, value_enum, default_value_t = GraphLanguage::Mermaid)]
        format: GraphLanguage,
    },
    /// Call a workflow, and show how each step ended
    Run(Call),
}

/// Language of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphLanguage {
    /// Flowchart of Mermaid
    Mermaid,
    /// Digraph of Graphviz
    Dot,
}

/// Options to record calls and to answer them from a recording.
#[derive(Debug, Clone, Args)]
pub(crate) struct Recording {
    /// Record the calls of tools into files of this directory, without secrets
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answer the calls of tools from a recording: nothing is sent, no server is started, and no other call passes
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
    /// Way in which a call is matched with a recorded one
    #[arg(long, value_enum, value_name = "WAY", default_value_t = ReplayMatch::Strict, requires = "replay")]
    pub(crate) replay_match: ReplayMatch,
}

/// Way in which a call is matched with a recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMatch {
    /// By tool and arguments
    Strict,
    /// By tool and order
    Position,
}

/// `toolplane serve`
#[derive(Debug, Clone, Args)]
pub(crate) struct Serve {
    /// Serve on stdin and stdout, for an MCP client that starts this program
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Listen for HTTP at this address, instead of the configuration's `gateway.listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) http: Option<SocketAddr>,
    /// Tools that clients are listed, instead of the configuration's `gateway.mode`
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// Serve Prometheus metrics at this address, instead of the configuration's `gateway.metrics_listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Inject the faults of this chaos file into calls: for tests, never for real work
    #[arg(long, value_name = "FILE")]
    pub(crate) chaos: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) recording: Recording,
    /// Time that running calls have to finish after a signal to end
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::duration, default_value = "30s")]
    pub(crate) drain: Duration,
    /// Offer only what `toolplane.lock` has: other definitions are withheld
    #[arg(long)]
    pub(crate) locked: bool,
    /// Do not reload the configuration when its files change; SIGHUP still does
    #[arg(long)]
    pub(crate) no_reload: bool,
}

/// Tools that clients are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// All tools
    List,
    /// `tool_search`, `tool_describe`, `tool_call` and pinned tools
    Search,
    /// All tools if the caller may see few, otherwise as `search`
    Auto,
}

const ENDPOINT_HELP: &str = "\
Requests:
  {\"action\": \"list_tools\"}
  {\"action\": \"describe_tool\", \"tool\": \"echo\"}
  {\"action\": \"call_tool\", \"tool\": \"echo\", \"arguments\": {\"message\": \"hi\"}}

Each request gets one line with its answer. An error is an answer as well, of
the type `error`: the exit code is 0 whenever all requests were answered.

Examples:
  echo '{\"action\": \"list_tools\"}' | toolplane endpoint
  export MCP_ENDPOINT=\"toolplane endpoint\"";

/// `toolplane endpoint`
#[derive(Debug, Clone, Args)]
pub(crate) struct Endpoint {
    /// Do not forward requests to a running gateway of yours; `--config` implies it
    #[arg(long)]
    pub(crate) no_gateway: bool,
}

/// `toolplane schema`
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Kind of the file
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

/// `toolplane mock-server`
#[derive(Debug, Args)]
pub(crate) struct MockServer {
    /// Scenario file, in YAML or JSON: the offer of the server and its answers
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,
    /// Serve one client on stdin and stdout
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Listen for HTTP at this address
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address, default_value = "127.0.0.1:7090")]
    pub(crate) http: SocketAddr,
}

/// `toolplane completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Name of the shell
    pub(crate) shell: clap_complete::Shell,
}

/// `toolplane man`
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for a page of each command; without it, the page of the program is printed
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// `toolplane docs`
#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// Name of the page
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

/// Returns the command line as clap sees it, with the parts that are computed at run time.
pub(crate) fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command().after_help(Exit::table())
}
