//! Table of the known clients.

use super::places::{
    Base::{Config, DotConfig, FileVariable, Home, Project, Settings, Variable},
    Place,
    Platform::{Linux, MacOs, Windows},
};

/// Format of a client's file, and the form of its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON with comments: an object of entries by name.
    Json,
    /// TOML: a table of entries by name.
    Toml,
    /// YAML: a map of entries by name.
    YamlMap,
    /// YAML: a list of entries with names.
    YamlList,
}

impl Format {
    /// Returns the name for messages.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::YamlMap | Self::YamlList => "YAML",
        }
    }
}

/// Form of a client's entry for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// `command` and `args`; the URL under this key, with this `type` if the client needs one. `None`: no URL.
    Plain(Option<(&'static str, Option<&'static str>)>),
    /// `type` before `command` and `args`, and before `url`: the names of the types for a program and a URL.
    Typed(&'static str, &'static str),
    /// As [`EntryForm::Typed`], with the allowed `tools`: all.
    Copilot,
    /// Extension of Goose, with the time limit of its documentation.
    Goose,
    /// Item of a list, with its `name`; the `type` of a URL.
    Named(&'static str),
    /// `command` with its arguments as one list, and `enabled`.
    OpenCode,
}

/// A program that is an MCP client.
#[derive(Debug)]
pub(crate) struct Client {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Name for people.
    pub(crate) title: &'static str,
    /// Other names that are accepted.
    pub(crate) aliases: &'static [&'static str],
    /// Format of its file.
    pub(crate) format: Format,
    /// Keys that lead to its servers.
    pub(crate) section: &'static [&'static str],
    /// Form of an entry.
    pub(crate) form: EntryForm,
    /// Content of a file that is created, before the entry is added.
    pub(crate) template: &'static str,
    /// File beside it that the client does not read any more once there is one of this format.
    pub(crate) replaces: Option<&'static str>,
    /// Places of a user's file.
    pub(crate) user: &'static [Place],
    /// Places of a project's file.
    pub(crate) project: &'static [Place],
}

const fn place(base: super::places::Base, directory: &'static str, file: &'static str) -> Place {
    Place {
        base,
        directory,
        file,
        platform: None,
    }
}

const fn only(platform: super::places::Platform, place: Place) -> Place {
    Place {
        platform: Some(platform),
        ..place
    }
}

/// Form of most clients: `{"mcpServers": {NAME: {"command": .., "args": ..}}}`.
const PLAIN: Client = Client {
    name: "",
    title: "",
    aliases: &[],
    format: Format::Json,
    section: &["mcpServers"],
    form: EntryForm::Plain(Some(("url", None))),
    template: "",
    replaces: None,
    user: &[],
    project: &[],
};

/// All known clients. The link above each is its public documentation.
pub(crate) const CLIENTS: &[Client] = &[
    // https://modelcontextprotocol.io/docs/develop/connect-local-servers
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        aliases: &["claude"],
        form: EntryForm::Plain(None),
        user: &[place(Settings, "Claude", "claude_desktop_config.json")],
        ..PLAIN
    },
    // https://code.claude.com/docs/en/mcp
    Client {
        name: "claude-code",
        title: "Claude Code",
        form: EntryForm::Typed("stdio", "http"),
        user: &[
            place(Variable("CLAUDE_CONFIG_DIR"), "", ".claude.json"),
            place(Home, "", ".claude.json"),
        ],
        project: &[place(Project, "", ".mcp.json")],
        ..PLAIN
    },
    // https://cursor.com/docs/context/mcp
    Client {
        name: "cursor",
        title: "Cursor",
        user: &[place(Home, ".cursor", "mcp.json")],
        project: &[place(Project, ".cursor", "mcp.json")],
        ..PLAIN
    },
    // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
    Client {
        name: "vscode",
        title: "VS Code",
        aliases: &["vs-code", "code"],
        section: &["servers"],
        form: EntryForm::Typed("stdio", "http"),
        user: &[place(Settings, "Code", "User/mcp.json")],
        project: &[place(Project, ".vscode", "mcp.json")],
        ..PLAIN
    },
    // https://docs.windsurf.com/windsurf/cascade/mcp
    Client {
        name: "windsurf",
        title: "Windsurf",
        form: EntryForm::Plain(Some(("serverUrl", None))),
        user: &[place(Home, ".codeium/windsurf", "mcp_config.json")],
        ..PLAIN
    },
    // https://docs.cline.bot/mcp/mcp-overview
    Client {
        name: "cline",
        title: "Cline",
        form: EntryForm::Plain(Some(("url", Some("streamableHttp")))),
        user: &[
            place(FileVariable("CLINE_MCP_SETTINGS_PATH"), "", ""),
            place(
                Settings,
                "Code/User/globalStorage/saoudrizwan.claude-dev",
                "settings/cline_mcp_settings.json",
            ),
            place(Home, ".cline", "data/settings/cline_mcp_settings.json"),
        ],
        ..PLAIN
    },
    // https://docs.roocode.com/features/mcp/using-mcp-in-roo
    Client {
        name: "roo",
        title: "Roo Code",
        aliases: &["roo-code"],
        form: EntryForm::Plain(Some(("url", Some("streamable-http")))),
        user: &[place(
            Settings,
            "Code/User/globalStorage/rooveterinaryinc.roo-cline",
            "settings/mcp_settings.json",
        )],
        project: &[place(Project, ".roo", "mcp.json")],
        ..PLAIN
    },
    // https://kiro.dev/docs/mcp/configuration/
    Client {
        name: "kiro",
        title: "Kiro",
        user: &[place(Home, ".kiro", "settings/mcp.json")],
        project: &[place(Project, ".kiro", "settings/mcp.json")],
        ..PLAIN
    },
    // https://geminicli.com/docs/tools/mcp-server/
    Client {
        name: "gemini",
        title: "Gemini CLI",
        aliases: &["gemini-cli"],
        form: EntryForm::Plain(Some(("httpUrl", None))),
        user: &[
            place(Variable("GEMINI_CLI_HOME"), ".gemini", "settings.json"),
            place(Home, ".gemini", "settings.json"),
        ],
        project: &[place(Project, ".gemini", "settings.json")],
        ..PLAIN
    },
    // https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
    Client {
        name: "copilot",
        title: "Copilot CLI",
        aliases: &["copilot-cli"],
        form: EntryForm::Copilot,
        user: &[
            place(Variable("COPILOT_HOME"), "", "mcp-config.json"),
            place(Home, ".copilot", "mcp-config.json"),
        ],
        project: &[place(Project, ".github", "mcp.json")],
        ..PLAIN
    },
    // https://developers.openai.com/codex/mcp
    Client {
        name: "codex",
        title: "Codex",
        format: Format::Toml,
        section: &["mcp_servers"],
        user: &[
            place(Variable("CODEX_HOME"), "", "config.toml"),
            place(Home, ".codex", "config.toml"),
        ],
        project: &[place(Project, ".codex", "config.toml")],
        ..PLAIN
    },
    // https://zed.dev/docs/ai/mcp
    Client {
        name: "zed",
        title: "Zed",
        section: &["context_servers"],
        user: &[place(Config, "zed", "settings.json")],
        project: &[place(Project, ".zed", "settings.json")],
        ..PLAIN
    },
    // https://block.github.io/goose/docs/guides/config-files
    Client {
        name: "goose",
        title: "Goose",
        format: Format::YamlMap,
        section: &["extensions"],
        form: EntryForm::Goose,
        user: &[
            place(Variable("GOOSE_PATH_ROOT"), "config", "config.yaml"),
            only(Linux, place(DotConfig, "goose", "config.yaml")),
            only(MacOs, place(DotConfig, "goose", "config.yaml")),
            only(Windows, place(Config, "Block/goose", "config/config.yaml")),
        ],
        ..PLAIN
    },
    // https://docs.continue.dev/reference
    Client {
        name: "continue",
        title: "Continue",
        format: Format::YamlList,
        form: EntryForm::Named("streamable-http"),
        template: "name: Local Config\nversion: 1.0.0\nschema: v1\n",
        replaces: Some("config.json"),
        user: &[
            place(Variable("CONTINUE_GLOBAL_DIR"), "", "config.yaml"),
            place(Home, ".continue", "config.yaml"),
        ],
        ..PLAIN
    },
    // https://opencode.ai/docs/mcp-servers/
    Client {
        name: "opencode",
        title: "OpenCode",
        section: &["mcp"],
        form: EntryForm::OpenCode,
        user: &[
            place(DotConfig, "opencode", "opencode.json"),
            place(DotConfig, "opencode", "opencode.jsonc"),
        ],
        project: &[
            place(Project, "", "opencode.json"),
            place(Project, "", "opencode.jsonc"),
        ],
        ..PLAIN
    },
];

/// Returns the client of a name, or of one of its other names.
pub(crate) fn client(name: &str) -> Option<&'static Client> {
    CLIENTS
        .iter()
        .find(|client| client.name == name || client.aliases.contains(&name))
}
