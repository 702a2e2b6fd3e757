//! Command line of tools, versions and servers.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `toolplane import`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Import {
    /// Kind of what is imported
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

/// Descriptions of APIs, and files of clients, that are imported.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportApi {
    /// Import the operations of an OpenAPI document as tools: Swagger 2.0, OpenAPI 3.0, 3.1 or 3.2, in JSON or YAML
    #[command(after_help = IMPORT_HELP)]
    Openapi(ImportOpenapi),
    /// Import the servers of MCP clients, such as Claude, Cursor or VS Code, from their files; shows them, and writes only if told
    #[command(after_help = IMPORT_CLIENTS_HELP)]
    McpJson(super::clients::ImportClients),
}

const IMPORT_CLIENTS_HELP: &str = "\
Examples:
  toolplane import mcp-json
  toolplane import mcp-json --from cursor --from vscode --dry-run
  toolplane import mcp-json --write
  toolplane import mcp-json ~/backup/claude_desktop_config.json --out servers.yaml";

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
    /// Print the definitions of tools in the format of a provider of language models: the member `tools` of its requests
    Definitions(Definitions),
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
    /// Accept definitions that are withheld, and offer them: in your gateways on this machine, or else in the lock file. For
    /// `TOOL@VERSION`, accept what a version declares that an agent made: its guarantees and its settings count then
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
    /// Store the tools of a file as drafts, which are neither listed nor called: `publish --draft`
    Create(Publish),
    /// Call the examples of a version in the store, a draft for example, or call it once with these arguments
    Test {
        /// The tool, `TOOL` or `TOOL@VERSION`; by default its newest draft, or else its latest version
        #[arg(value_name = "TOOL@VERSION")]
        version: String,
        /// Arguments of one call as a JSON object, instead of the examples
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        json: Option<String>,
    },
    /// Delete a draft
    Delete {
        /// The draft, `TOOL@VERSION`
        #[arg(value_name = "TOOL@VERSION")]
        version: String,
    },
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
#[derive(Debug, Clone, Args)]
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
    /// Name of the tool or prompt, or URI of the resource; `TOOL@VERSION` for a version in the store
    #[arg(value_name = "NAME", required_unless_present_any = ["server", "all"])]
    pub(crate) name: Option<String>,
    /// All withheld definitions of this server
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "all"])]
    pub(crate) server: Option<String>,
    /// All withheld definitions
    #[arg(long, conflicts_with = "name")]
    pub(crate) all: bool,
    /// Only the definition with this digest, or its beginning, as `tools diff` and `tools versions` show it
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

/// `toolplane tools definitions`
#[derive(Debug, Args)]
pub(crate) struct Definitions {
    /// Names of the tools; all that you may call by default
    #[arg(value_name = "TOOL")]
    pub(crate) tools: Vec<String>,
    /// Format
    #[arg(long = "for", value_enum, value_name = "PROVIDER")]
    pub(crate) provider: Provider,
    /// Ask for arguments that satisfy their schema, where the provider has that and the schema allows it
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Format of a provider of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// Format of the Chat Completions API of OpenAI
    Openai,
    /// Format of the Responses API of OpenAI
    OpenaiResponses,
    /// Format of the Messages API of Anthropic
    Anthropic,
    /// Format of the Gemini API of Google
    Gemini,
    /// Format of the chat API of Ollama
    Ollama,
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

/// `toolplane secrets`
#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Let a version of a tool that an agent made use secrets: those references of its settings, as it is now
    Grant {
        /// The tool, `TOOL` or `TOOL@VERSION`; by default its newest draft, or else its latest version
        #[arg(value_name = "TOOL@VERSION")]
        version: String,
        /// Secret as the tool refers to it, `NAME` for `${NAME}`
        #[arg(value_name = "SECRET", required_unless_present = "all")]
        secrets: Vec<String>,
        /// All secrets that it refers to
        #[arg(long, conflicts_with = "secrets")]
        all: bool,
        /// Only to the content with this digest, or its beginning, as `secrets grants` shows it
        #[arg(long, value_name = "HEX")]
        digest: Option<String>,
        /// Name of the person who grants, for the record
        #[arg(long = "as", value_name = "NAME")]
        by: Option<String>,
    },
    /// List the grants, and the secrets that tools of agents refer to without one
    Grants {
        /// Name of the tool; all tools if absent
        #[arg(value_name = "TOOL")]
        tool: Option<String>,
    },
    /// Take grants back: gateways on the store no longer offer the version
    Revoke {
        /// The tool, `TOOL` or `TOOL@VERSION`; by default its newest draft, or else its latest version
        #[arg(value_name = "TOOL@VERSION")]
        version: String,
        /// Secret as the tool refers to it; all if absent
        #[arg(value_name = "SECRET")]
        secret: Option<String>,
    },
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
    /// List the servers that agents proposed, with their settings
    Proposed,
    /// Approve a server that an agent proposed: gateways on the store start it, in its sandbox
    Approve {
        /// Name of the server
        #[arg(value_name = "SERVER")]
        name: String,
        /// Host that its program may reach from the sandbox; may be given more than once
        #[arg(long = "network", value_name = "HOST")]
        hosts: Vec<String>,
    },
    /// Remove a server that an agent proposed
    Reject {
        /// Name of the server
        #[arg(value_name = "SERVER")]
        name: String,
    },
    /// Delete the kept lists of one server, or of all; they are read again at the next start
    Forget {
        /// Name of the server
        #[arg(value_name = "SERVER")]
        name: Option<String>,
    },
}
