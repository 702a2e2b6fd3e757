//! Formats of the clients.

use tempfile::TempDir;

use super::{load_in, summary, transport};

/// Source: docs.claude.com/en/docs/claude-code/mcp, and modelcontextprotocol.io/docs/develop/connect-local-servers.
#[test]
fn claude() {
    insta::assert_snapshot!(summary(
        "claude_desktop_config.json",
        r#"{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]}
  }
}"#
    ));
    insta::assert_snapshot!(summary(
        ".mcp.json",
        r#"{
  "mcpServers": {
    "db": {"command": "./bin/db", "args": ["--dsn", "${DSN:-sqlite}"], "env": {"KEY": "$KEY_NAME"}, "timeout": 30000},
    "api": {"type": "http", "url": "${API:-https://api.example.com}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "helped": {"type": "http", "url": "https://h.example.com/mcp", "headersHelper": "/opt/headers.sh"},
    "oauth": {"type": "sse", "url": "https://o.example.com/sse", "oauth": {"clientId": "x"}}
  }
}"#
    ));
}

/// The servers of the project of the working directory are used, and replace those of the user.
///
/// Source: docs.claude.com/en/docs/claude-code/mcp (local scope).
#[test]
fn projects_of_claude_code() {
    let project = TempDir::new().unwrap();
    let text = r#"{
  "numStartups": 7,
  "mcpServers": {"user": {"command": "a"}, "both": {"command": "b"}, "off": {"command": "c"}},
  "projects": {
    "[project]": {"allowedTools": [], "mcpServers": {"both": {"command": "d"}}, "disabledMcpServers": ["off"]},
    "/somewhere/else": {"mcpServers": {"other": {"command": "e"}}}
  }
}"#;
    let text = text.replace("[project]", project.path().to_str().unwrap());
    let loaded = load_in(&project, "home/.claude.json", &text);
    let servers: Vec<String> = loaded
        .configuration
        .servers
        .iter()
        .map(|server| {
            let mut text = format!("{}={} ", server.disabled, server.name);
            transport(&mut text, &server.transport);
            text.replace(project.path().to_str().unwrap(), "[project]")
        })
        .collect();
    assert_eq!(
        servers,
        ["false=both d\n  in [project]", "false=user a", "true=off c"]
    );
    let said: Vec<&str> = loaded
        .diagnostics
        .iter()
        .map(|problem| &*problem.message)
        .collect();
    assert_eq!(said, ["1 server of another project is not used"]);
}

/// Source: docs.cursor.com/context/mcp (`envFile`, interpolation, static OAuth).
#[test]
fn cursor() {
    insta::assert_snapshot!(summary(
        ".cursor/mcp.json",
        r#"{
  "mcpServers": {
    "local": {
      "type": "stdio",
      "command": "${workspaceFolder}/run",
      "args": ["${userHome}", "${workspaceFolderBasename}", "a${/}b"],
      "env": {"KEY": "${env:KEY}"},
      "envFile": "${workspaceFolder}/.env",
    },
    "static": {"url": "https://a.example.com/mcp", "auth": {"CLIENT_ID": "x", "scopes": ["read"]}},
    "asked": {"command": "x", "args": ["${command:pick}"]},
  }
}"#
        .replace("${workspaceFolderBasename}", "base")
        .as_str()
    ));
}

/// Source: code.visualstudio.com/docs/copilot/reference/mcp-configuration.
#[test]
fn vscode() {
    insta::assert_snapshot!(summary(
        ".vscode/mcp.json",
        r#"{
  "inputs": [
    {"type": "promptString", "id": "key", "description": "Key", "password": true},
    {"type": "pickString", "id": "region", "description": "Region", "options": ["eu", "us"], "default": "eu"},
  ],
  "servers": {
    "plain": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": null, "N": 3}},
    "asked": {"command": "x", "env": {"KEY": "${input:key}", "REGION": "${input:region}"}, "envFile": "${workspaceFolder}/.env"},
    "boxed": {"command": "y", "sandboxEnabled": true, "dev": {"watch": "src/**"}},
    "io.github.acme/tools": {"type": "http", "url": "https://api.example.com/mcp", "gallery": true},
    "file": {"command": "z", "args": ["${file}"]},
  },
  "sandbox": {"network": {"allowedDomains": ["api.example.com"]}}
}"#
    ));
    // `inputs` in settings of VS Code, and a sandbox that cannot be had, which concerns one server.
    insta::assert_snapshot!(summary(
        "Code/User/settings.json",
        r#"{
  "editor.fontSize": 12,
  "mcp": {
    "servers": {
      "boxed": {"command": "y", "sandboxEnabled": true},
      "free": {"command": "x"},
      "nowhere": {"command": "x", "args": ["${workspaceFolder}"]}
    },
    "sandbox": {"network": {"allowedDomains": ["*.example.com"], "deniedDomains": ["a.example.com"]}}
  }
}"#
    ));
}

/// A file of VS Code without `inputs` under any name is known by the keys of its servers.
#[test]
fn vscode_without_inputs() {
    let text = r#"{"servers": {"a": {"command": "x", "envFile": ".env"}, "b": {"command": "y"}}}"#;
    insta::assert_snapshot!(summary("servers.json", text));
}

/// Source: docs.windsurf.com/windsurf/cascade/mcp, docs.cline.bot/mcp, docs.roocode.com/features/mcp, kiro.dev/docs/mcp.
#[test]
fn windsurf_cline_roo_and_kiro() {
    for (path, text) in [
        (
            "windsurf/mcp_config.json",
            r#"{"mcpServers": {"a": {"serverUrl": "https://a.example.com/mcp", "disabledTools": ["drop"], "headers": {"K": "${env:K}"}}}}"#,
        ),
        (
            "cline_mcp_settings.json",
            r#"{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["read"], "disabled": false, "timeout": 90}}}"#,
        ),
        (
            ".roo/mcp.json",
            r#"{"mcpServers": {"a": {"command": "x", "timeout": 60, "watchPaths": ["."], "disabledTools": ["drop", "wipe"]}}}"#,
        ),
        (
            ".kiro/settings/mcp.json",
            r#"{"mcpServers": {"a": {"command": "x", "timeout": 60000, "autoApprove": ["*"], "disabledTools": ["drop"]}}}"#,
        ),
    ] {
        insta::assert_snapshot!(format!("{path}\n{}", summary(path, text)));
    }
}

/// Source: geminicli.com/docs/tools/mcp-server and geminicli.com/docs/cli/configuration.
#[test]
fn gemini() {
    insta::assert_snapshot!(summary(
        ".gemini/settings.json",
        r#"{
  "ui": {"theme": "GitHub"},
  "tools": {"exclude": ["run_shell_command", "py__drop"]},
  "mcp": {"allowed": ["py", "web", "sse", "gone"], "excluded": ["gone"]},
  "mcpServers": {
    "py": {
      "command": "python",
      "args": ["-m", "srv", "$$5"],
      "cwd": "./mcp",
      "env": {"KEY": "$MY_TOKEN", "DB": "${DB_URL}"},
      "includeTools": ["a", "b"],
      "excludeTools": ["b"],
      "timeout": 15000,
      "trust": true
    },
    "web": {"httpUrl": "https://w.example.com/mcp", "headers": {"Authorization": "Bearer $TOKEN"}},
    "sse": {"url": "https://s.example.com/sse"},
    "gone": {"command": "x"},
    "unlisted": {"command": "y"}
  }
}"#
    ));
    // By its keys, under any name.
    let text = r#"{"mcp": {"excluded": ["b"]}, "mcpServers": {"a": {"command": "x", "env": {"K": "$K"}}, "b": {"command": "y"}}}"#;
    insta::assert_snapshot!(summary("exported.json", text));
    let text = r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "$K"}}}}"#;
    assert_eq!(summary("gemini.json", text), "a: x\n  K=<${K}>\n");
}

/// Source: docs.github.com/copilot/how-tos/use-copilot-agents/use-copilot-cli.
#[test]
fn copilot() {
    insta::assert_snapshot!(summary(
        ".copilot/mcp-config.json",
        r#"{
  "mcpServers": {
    "time": {"type": "local", "command": "uvx", "args": ["mcp-server-time"], "tools": ["get_current_time"], "env": {"A": "${A}"}},
    "all": {"type": "http", "url": "https://a.example.com/mcp", "tools": ["*"], "headers": {}},
    "none": {"type": "local", "command": "x", "tools": []},
    "odd": {"type": "local", "command": "x", "tools": "some"}
  }
}"#
    ));
}

/// Source: developers.openai.com/codex/mcp and /codex/config-reference.
#[test]
fn codex() {
    insta::assert_snapshot!(summary(
        ".codex/config.toml",
        r#"
model = "gpt-5"
approval_policy = "on-request"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp", "${NOT_A_VARIABLE}"]
env_vars = ["LOCAL_TOKEN"]
enabled_tools = ["resolve", "docs"]
disabled_tools = ["docs"]
startup_timeout_sec = 12.5
tool_timeout_sec = 45
required = true

[mcp_servers.context7.env]
MY_ENV = "a$b"

[mcp_servers.figma]
url = "https://mcp.figma.example.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "us" }
env_http_headers = { "X-Key" = "KEY_NAME" }
default_tools_approval_mode = "prompt"

[mcp_servers.off]
command = "x"
enabled = false

[mcp_servers.remote]
command = "x"
experimental_environment = "devbox"

[mcp_servers.wrong]
command = ["x"]
"#
    ));
}

/// Source: zed.dev/docs/ai/mcp and zed.dev/docs/ai/tool-permissions.
#[test]
fn zed() {
    insta::assert_snapshot!(summary(
        "zed/settings.json",
        r#"// Settings of Zed
{
  "theme": "One Dark",
  "search": {"whole_word": true},
  "context_servers": {
    "local": {"source": "custom", "enabled": true, "command": "x", "args": ["$HOME"], "env": {"A": "b"}},
    "old": {"command": {"path": "y", "args": ["1"], "env": {"C": "d"}}},
    "web": {"url": "https://w.example.com/mcp", "headers": {"Authorization": "Bearer k"}, "timeout": 20},
    "ext": {"source": "extension", "enabled": true, "settings": {"token": "t"}},
    "off": {"command": "z", "enabled": false},
  },
  "agent": {
    "tool_permissions": {"tools": {"mcp:local:drop": {"default": "deny"}, "mcp:local:run": {"always_deny": [{"pattern": "rm"}]}}}
  }
}"#
    ));
    insta::assert_snapshot!(summary(
        ".zed/settings.json",
        r#"{
  "context_servers": {"box": {"command": "x"}, "other": {"command": "y"}},
  "agent": {
    "default_profile": "box",
    "profiles": {"box": {"name": "Box", "enable_all_context_servers": false,
      "context_servers": {"box": {"tools": {"open": true, "drop": false}}}}}
  }
}"#
    ));
}

/// Source: block.github.io/goose/docs/guides/config-files.
#[test]
fn goose() {
    insta::assert_snapshot!(summary(
        "goose/config.yaml",
        "
GOOSE_PROVIDER: anthropic
GOOSE_MODEL: claude
extensions:
  developer: {bundled: true, enabled: true, name: developer, timeout: 300, type: builtin}
  github:
    name: GitHub
    cmd: npx
    args: [-y, '@modelcontextprotocol/server-github']
    enabled: true
    envs: {HOST: 'a$b'}
    env_keys: [GITHUB_TOKEN]
    type: stdio
    timeout: 300
    available_tools: [search, read]
    description: GitHub
  web:
    type: streamable_http
    name: web
    enabled: false
    uri: https://w.example.com/mcp
    env_keys: [WEB_TOKEN]
    headers: {Authorization: 'Bearer $WEB_TOKEN', Cost: '$OTHER'}
    available_tools: []
  old: {type: sse, name: old, enabled: true, uri: 'https://o.example.com/sse'}
  piped: {type: streamable_http, name: piped, enabled: true, uri: 'http://h/mcp', socket: '@egress'}
"
    ));
}

/// Source: docs.continue.dev/customize/deep-dives/mcp and docs.continue.dev/reference.
#[test]
fn continue_dev() {
    insta::assert_snapshot!(summary(
        ".continue/config.yaml",
        "
name: My assistant
version: 1.0.0
schema: v1
models: []
mcpServers:
  - name: SQLite
    command: npx
    args: [-y, mcp-sqlite, '$5']
    env: {KEY: '${{ secrets.SQLITE_KEY }}'}
    connectionTimeout: 5000
  - name: web
    type: streamable-http
    url: https://w.example.com/mcp
    requestOptions: {headers: {Authorization: 'Bearer ${{ secrets.TOKEN }}'}, timeout: 5}
  - name: keyed
    type: sse
    url: https://k.example.com/sse
    apiKey: ${{ secrets.KEY }}
  - uses: acme/block
  - name: asked
    command: ${{ inputs.COMMAND }}
"
    ));
}

/// Source: opencode.ai/docs/mcp-servers, opencode.ai/docs/permissions and opencode.ai/docs/config.
#[test]
fn opencode() {
    insta::assert_snapshot!(summary(
        "opencode.json",
        r#"{
  "$schema": "https://opencode.ai/config.json",
  "model": "a/b",
  "mcp": {
    "local": {"type": "local", "command": ["bun", "x", "{env:PKG}"], "environment": {"A": "$b"}, "enabled": true, "timeout": 9000},
    "web": {"type": "remote", "url": "https://w.example.com/mcp", "headers": {"Authorization": "Bearer {env:TOKEN}", "F": "{file:./key}"}, "oauth": false},
    "login": {"type": "remote", "url": "https://l.example.com/mcp", "oauth": {}},
    "off": {"type": "local", "command": ["x"], "enabled": false},
    "quiet": {"type": "local", "command": ["y"]}
  },
  "tools": {"quiet": false, "local_drop*": false},
  "permission": {"bash": "ask", "web_*": "deny", "web_read": "allow", "*_wipe": "deny"}
}"#
    ));
    let text = r#"{"mcp": {"servers": {"a": {"type": "local", "command": ["x", "y"]}}}}"#;
    insta::assert_snapshot!(summary("opencode.json", text));
}
