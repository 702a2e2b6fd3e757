//! The types that read the command line. Help, completions and the reference are generated from them.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

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
    /// Bring the tools and servers of files into the store, or import the description of an API
    Import(Import),
    /// List, show, enable or disable tools
    #[command(subcommand)]
    Tools(Tools),
    /// List MCP servers, or delete their kept lists
    #[command(subcommand)]
    Servers(Servers),
    /// Write the definitions of all tools, prompts and resources to the lock file, `toolplane.lock` beside
    /// `toolplane.yaml`, or compare them with it; starts the servers
    Lock(Lock),
    /// Call a tool
    #[command(after_help = CALL_HELP)]
    Call(Call),
    /// Serve all tools over MCP
    Serve(Serve),
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
    /// Print a page of the reference
    #[command(hide = true)]
    Docs(Docs),
}

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

/// `toolplane import`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Import {
    /// Description of an API
    #[command(subcommand)]
    pub(crate) api: Option<ImportApi>,
    /// Files with tools and servers in any accepted form, or directories of them
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Publish the tools and keep the servers in the store; without it, they are only shown
    #[arg(long)]
    pub(crate) publish: bool,
    /// Mark the servers as official
    #[arg(long, requires = "publish")]
    pub(crate) official: bool,
    /// Version of tools that state none; `1.0.0` for new ones
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// Declare versions compatible where that is not proven
    #[arg(long)]
    pub(crate) compatible: bool,
    /// Name of the person who publishes, for the record
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
}

/// Descriptions of APIs that are imported.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportApi {
    /// Import the operations of an OpenAPI document as tools: Swagger 2.0, OpenAPI 3.0, 3.1 or 3.2, in JSON or YAML
    #[command(after_help = IMPORT_HELP)]
    Openapi(ImportOpenapi),
}

const IMPORT_HELP: &str = "\
Examples:
  toolplane import openapi petstore.yaml --dry-run
  toolplane import openapi github.json --tag issues --method get --out github.yaml
  toolplane import openapi api.json.gz --path '/users/*' --server https://api.example.com/v1 --prefix users_ --out users.yaml";

/// `toolplane import openapi`
#[derive(Debug, Args)]
pub(crate) struct ImportOpenapi {
    /// Document, also compressed with gzip; `-` for stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// File to write the tools to, in the form of a configuration
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["dry_run", "publish"],
        conflicts_with = "dry_run"
    )]
    pub(crate) out: Option<PathBuf>,
    /// Publish the tools in the store
    #[arg(long, conflicts_with_all = ["dry_run", "out"])]
    pub(crate) publish: bool,
    /// Version of the published tools; `1.0.0` for new ones
    #[arg(long, value_name = "VERSION", requires = "publish")]
    pub(crate) version: Option<String>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the tools instead of writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only operations with this tag; may be given more than once
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only operations whose path matches, with `*` for any text; may be given more than once
    #[arg(long = "path", value_name = "PATTERN")]
    pub(crate) paths: Vec<String>,
    /// Only operations with this method; may be given more than once
    #[arg(long = "method", value_name = "METHOD")]
    pub(crate) methods: Vec<String>,
    /// Only the operation with this id or tool name; may be given more than once
    #[arg(long = "operation", value_name = "NAME")]
    pub(crate) operations: Vec<String>,
    /// URL of the API, instead of the servers of the document
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Text before the names of all tools and secrets, such as `github_`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Security scheme that all operations use, instead of the ones that the document requires
    #[arg(long, value_name = "SCHEME")]
    pub(crate) security: Option<String>,
    /// Permit the tools to reach loopback and private networks
    #[arg(long)]
    pub(crate) allow_private: bool,
}

/// `toolplane tools`
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools; starts the servers
    Ls {
        /// Only the tools of this server
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Show the version, the kind and the origin of each tool
        #[arg(long)]
        wide: bool,
    },
    /// Find tools by what they do; starts the servers
    Search(Search),
    /// Show one tool in detail
    Show {
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        name: String,
    },
    /// Publish, deprecate, withdraw and roll back versions in the store
    #[command(flatten)]
    Versions(VersionVerb),
    /// Disable a tool in your gateways on this machine: it is neither listed nor called until `tools enable` or the end
    /// of the gateway
    Disable {
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        name: String,
        /// Reason, shown to callers
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Show what has changed in definitions that are withheld: in your gateways on this machine, or else by the lock file.
    /// For `TOOL@VERSION`, show what differs between two versions in the store
    Diff {
        /// Name of the tool or prompt, or URI of the resource; all if absent. `TOOL@VERSION` for a version in the store
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Version to compare a version in the store with, instead of the latest one
        #[arg(value_name = "VERSION", requires = "name")]
        other: Option<String>,
    },
    /// Accept definitions that are withheld, and offer them: in your gateways on this machine, or else in the lock file
    Accept(Accept),
    /// Enable a tool in your gateways on this machine, after `tools disable` or after its credentials were refused
    Enable {
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        name: String,
    },
}

/// The verbs of `toolplane tools` about versions in the store.
#[derive(Debug, Subcommand)]
pub(crate) enum VersionVerb {
    /// Publish the tools of a file, or a draft of the store
    Publish(Publish),
    /// List the versions of a tool in the store
    Versions {
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        tool: String,
    },
    /// Mark a version as deprecated, for agents and operators
    Deprecate(Deprecate),
    /// Withdraw a version: only calls that name it exactly get it
    Yank {
        /// The version, `TOOL@VERSION`
        #[arg(value_name = "TOOL@VERSION")]
        version: String,
        /// Reason, shown to callers
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Name of the person who withdraws it, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
    },
    /// Make the former latest version the latest one again
    Rollback {
        /// Name of the tool
        #[arg(value_name = "TOOL")]
        tool: String,
        /// The version, instead of the one that was the latest before
        #[arg(long, value_name = "VERSION")]
        to: Option<String>,
        /// Name of the person who rolls back, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
    },
    /// List a version of a tool under a second name, or remove such a name
    Alias {
        /// The second name
        #[arg(value_name = "NAME")]
        name: String,
        /// The tool and its version, such as `search@^1`
        #[arg(value_name = "TOOL@VERSION", required_unless_present = "remove")]
        target: Option<String>,
        /// Remove the second name
        #[arg(long, conflicts_with = "target")]
        remove: bool,
    },
}

/// `toolplane tools publish`
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// File with tools in any accepted form, or a draft, `TOOL@VERSION`
    #[arg(value_name = "FILE")]
    pub(crate) source: String,
    /// Only this tool of the file
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Version, instead of the one in the file; `1.0.0` for a new tool without one
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// Directory of the files that belong to the version
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) files: Option<PathBuf>,
    /// Store a draft, which is neither listed nor called
    #[arg(long)]
    pub(crate) draft: bool,
    /// Declare the version compatible where that is not proven
    #[arg(long)]
    pub(crate) compatible: bool,
    /// Show what would be published, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Name of the person who publishes, for the record
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
}

/// `toolplane tools accept`
#[derive(Debug, Args)]
pub(crate) struct Accept {
    /// Name of the tool or prompt, or URI of the resource
    #[arg(value_name = "NAME", required_unless_present_any = ["server", "all"])]
    pub(crate) name: Option<String>,
    /// All withheld definitions of this server
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "all"])]
    pub(crate) server: Option<String>,
    /// All withheld definitions
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
    /// Only the definition with this digest, or its beginning, as `tools diff` shows it
    #[arg(long, value_name = "HEX", requires = "name")]
    pub(crate) digest: Option<String>,
    /// Name of the person who accepts, for the record
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
}

/// `toolplane tools deprecate`
#[derive(Debug, Args)]
pub(crate) struct Deprecate {
    /// The version, `TOOL@VERSION`; `TOOL@latest` for the latest one
    #[arg(value_name = "TOOL@VERSION")]
    pub(crate) version: String,
    /// Tool to use instead, `TOOL` or `TOOL@VERSION`
    #[arg(long = "use", value_name = "TOOL")]
    pub(crate) replacement: Option<String>,
    /// Day on which it may disappear, `YYYY-MM-DD`
    #[arg(long, value_name = "DAY")]
    pub(crate) until: Option<String>,
    /// Reason, shown to callers
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Take the deprecation back
    #[arg(long, conflicts_with_all = ["replacement", "until", "reason"])]
    pub(crate) undo: bool,
}

/// `toolplane lock`
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// Write nothing: print what differs from the lock file, and exit with 7 if anything does
    #[arg(long, conflicts_with = "update")]
    pub(crate) check: bool,
    /// Write the present definitions although others are locked: those of these tools and servers, or all
    #[arg(long, value_name = "NAME", num_args = 0..)]
    pub(crate) update: Option<Vec<String>>,
}

/// `toolplane tools search`
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Purpose of the tool, or its name; several queries share the results
    #[arg(value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Only tools with this capability; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) capability: Vec<String>,
    /// Only tools with this tag; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Vec<String>,
    /// Only tools of this server; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// Only tools that require this permission; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) permission: Vec<String>,
    /// Maximum number of tools, at most 100
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) limit: usize,
    /// Order of the tools
    #[arg(long, value_enum, default_value_t = Sort::Relevance)]
    pub(crate) sort: Sort,
}

/// Order of found tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Best match first
    Relevance,
    /// Largest share of successful calls first, measured or declared
    Sla,
    /// Lowest latency first, measured or declared
    Latency,
}

/// `toolplane servers`
#[derive(Debug, Subcommand)]
pub(crate) enum Servers {
    /// List the servers with their state; starts them
    Ls {
        /// Start no server
        #[arg(long, conflicts_with = "gateway")]
        no_start: bool,
        /// List the servers of your gateways on this machine; starts none
        #[arg(long)]
        gateway: bool,
    },
    /// Delete the kept lists of one server, or of all; they are read again at the next start
    Forget {
        /// Name of the server
        #[arg(value_name = "SERVER")]
        name: Option<String>,
    },
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

/// `toolplane health`
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Address of the gateway, instead of the configuration's `gateway.listen`
    #[arg(long, value_name = "ADDRESS", value_parser = crate::output::text::address)]
    pub(crate) address: Option<SocketAddr>,
    /// Ask no gateway: start the servers and run all health checks once
    #[arg(long, conflicts_with = "address")]
    pub(crate) direct: bool,
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

/// `toolplane approvals`
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the calls that wait for approval, and the decided ones
    Ls,
    /// Show all about one call
    Show {
        /// Handle of the call, or its beginning
        #[arg(value_name = "HANDLE")]
        handle: String,
    },
    /// Allow the call, once
    Approve {
        /// Handle of the call, or its beginning
        #[arg(value_name = "HANDLE")]
        handle: String,
        /// Name of the person who decides, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
    },
    /// Refuse the call
    Deny {
        /// Handle of the call, or its beginning
        #[arg(value_name = "HANDLE")]
        handle: String,
        /// Name of the person who decides, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
        /// Reason, shown to the caller
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// `toolplane ledger`
#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// List the calls that ended as `outcome_unknown`, latest first
    Ls,
    /// Show one call with unknown outcome or with an idempotency key
    Show {
        /// The `ledger_id` of the error, which is the correlation id in the logs
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// `toolplane tokens`
#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Create a token and print it, once
    Create(CreateToken),
    /// List the tokens, oldest first, without their secrets
    Ls,
    /// Revoke a token: it is refused from the next request on
    Revoke {
        /// Id of the token, or its beginning
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// `toolplane sandbox`
#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Attack the sandbox, and print what it held against and which limits hold for what
    Probe(SandboxProbe),
}

/// `toolplane sandbox probe`
#[derive(Debug, Args)]
pub(crate) struct SandboxProbe {
    /// Level to attack; the strongest that works if not given
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) level: Option<ProbedLevel>,
}

/// Level of a sandbox that isolates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbedLevel {
    /// Namespaces by bubblewrap
    Bwrap,
    /// Landlock, without namespaces
    Landlock,
}

/// `toolplane tokens create`
#[derive(Debug, Args)]
pub(crate) struct CreateToken {
    /// Name of the person or program that the token authenticates
    #[arg(value_name = "PRINCIPAL")]
    pub(crate) principal: String,
    /// Tenant of the principal, unless `policy.principals` sets it
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Role of `policy.roles` that the token adds to those of the principal; may be given more than once
    #[arg(long = "role", value_name = "NAME")]
    pub(crate) roles: Vec<String>,
    /// Time until the token expires, such as `12h` or `30d`; it does not expire by default
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::lifetime)]
    pub(crate) expires: Option<Duration>,
    /// Note for people, shown in lists
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
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
