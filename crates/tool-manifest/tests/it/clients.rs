//! Files of MCP clients, each in the place and form of its client's public documentation, which each test names.

use std::{fmt::Write, fs, path::Path};

use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_core::{Pattern, Template};
use toolplane::manifest::{HttpTransportSpec, LoadOptions, Loaded, ServerTransport, Syntax, load};

/// Writes a file below a project and loads it, with the project as the working directory.
fn load_in(project: &TempDir, path: &str, text: &str) -> Loaded {
    let file = project.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let options = LoadOptions::new().path(file).working_directory(project.path());
    load(&options).unwrap_or_else(|problems| panic!("{path}\n{}", problems.render(false)))
}

/// Returns a readable summary of the servers of a client's file, and of the remarks about it.
fn summary(path: &str, text: &str) -> String {
    let project = TempDir::new().unwrap();
    let loaded = load_in(&project, path, text);
    let mut summary = String::new();
    for server in &loaded.configuration.servers {
        let _ = write!(summary, "{}: ", server.name);
        transport(&mut summary, &server.transport);
        let list = |patterns: &[Pattern]| patterns.iter().map(|p| p.as_str().to_owned()).collect::<Vec<_>>();
        if let Some(include) = &server.include {
            let _ = write!(summary, "\n  include {:?}", list(include));
        }
        if !server.exclude.is_empty() {
            let _ = write!(summary, "\n  exclude {:?}", list(&server.exclude));
        }
        for (what, time) in [
            ("timeout", server.timeout),
            ("start timeout", server.start_timeout),
        ] {
            if let Some(time) = time {
                let _ = write!(summary, "\n  {what} {time:?}");
            }
        }
        for (what, is_so) in [
            ("disabled", server.disabled),
            ("required", server.required),
            ("sandbox", server.sandbox.is_some()),
        ] {
            if is_so {
                let _ = write!(summary, "\n  {what}");
            }
        }
        summary.push('\n');
    }
    for problem in &loaded.diagnostics {
        let place = problem.location.as_ref().map_or(0, |place| place.line);
        let _ = writeln!(
            summary,
            "{:?} line {place}: {}",
            problem.severity, problem.message
        );
    }
    let home = std::env::home_dir().unwrap();
    let summary = summary.replace(project.path().to_str().unwrap(), "[project]");
    summary.replace(home.to_str().unwrap(), "[home]")
}

fn transport(summary: &mut String, transport: &ServerTransport) {
    match transport {
        ServerTransport::Stdio {
            command,
            args,
            env,
            cwd,
            env_file,
            ..
        } => {
            let _ = write!(summary, "{}", written(command));
            for arg in args {
                let _ = write!(summary, " {}", written(arg));
            }
            for (name, value) in env {
                let _ = write!(summary, "\n  {name}={}", written(value));
            }
            for (what, path) in [("in", cwd), ("variables of", env_file)] {
                if let Some(path) = path {
                    let _ = write!(summary, "\n  {what} {}", written(path));
                }
            }
        }
        ServerTransport::Http {
            url,
            headers,
            transport,
        } => {
            let _ = write!(summary, "{}", written(url));
            if *transport != HttpTransportSpec::Either {
                let _ = write!(summary, " {transport:?}");
            }
            for (name, value) in headers {
                let _ = write!(summary, "\n  {name}: {}", written(value));
            }
        }
        ServerTransport::Refused { reason } => {
            let _ = write!(summary, "REFUSED: {reason}");
        }
    }
}

/// Writes a template with its references, and literal text in quotes.
fn written(template: &Template) -> String {
    let parts = template.parts().map(|part| match part {
        Ok(text) => text.to_owned(),
        Err(reference) => format!("<{reference}>"),
    });
    parts.collect()
}

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

/// One server that is wrong is refused alone, and an unknown restriction refuses its server.
#[test]
fn one_wrong_server_is_refused_alone() {
    insta::assert_snapshot!(summary(
        "mcp.json",
        r#"{
  "mcpServers": {
    "good": {"command": "x"},
    "empty": {},
    "typed": {"command": "x", "args": "y"},
    "odd": {"type": "carrier-pigeon", "url": "https://a.example.com"},
    "limited": {"command": "x", "toolFilter": ["a"]},
    "remark": {"command": "x", "colour": "red"},
    "nul": {"command": "x\u0000y"}
  }
}"#
    ));
}

/// A server that two files share is taken once, and another one of its name is not used.
#[test]
fn files_that_share_names() {
    let project = TempDir::new().unwrap();
    let write = |path: &str, text: &str| fs::write(project.path().join(path), text).unwrap();
    write(
        "a.json",
        r#"{"mcpServers": {"same": {"command": "x"}, "other": {"command": "y"}, "own": {"command": "z"}}}"#,
    );
    write(
        "b.json",
        r#"{"mcpServers": {"same": {"command": "x"}, "other": {"command": "y", "disabledTools": ["a"]}}}"#,
    );
    write(
        "all.yaml",
        "include: [a.json, b.json]\nservers: {own: {command: w}}\n",
    );
    let loaded = load(&LoadOptions::new().path(project.path().join("all.yaml"))).unwrap();
    let names: Vec<&str> = loaded
        .configuration
        .servers
        .iter()
        .map(|server| &*server.name)
        .collect();
    assert_eq!(names, ["own", "same", "other"]);
    let said: Vec<String> = loaded
        .diagnostics
        .iter()
        .map(|problem| {
            let place = problem.location.as_ref().unwrap();
            format!(
                "{}: {}",
                Path::new(&place.file).file_name().unwrap().display(),
                problem.message
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "a.json: this server `own` is not used: there is another one",
            "b.json: this server `other` is not used: there is another one",
        ]
    );
}

/// The settings of a server of a client are kept in our own form.
#[test]
fn settings_are_in_our_own_form() {
    let project = TempDir::new().unwrap();
    let text = "[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = 2\nenabled_tools = [\"t\"]\n[mcp_servers.a.env]\nK = \"$v\"\n";
    let loaded = load_in(&project, "config.toml", text);
    let settings = loaded.server_settings("a").unwrap();
    assert_eq!(
        settings.as_str(),
        r#"{"command":"x","env":{"K":"$$v"},"include":["t"],"timeout_ms":2000}"#
    );
    let place = loaded.locate_server("a", "/env/K").unwrap();
    assert_eq!((place.line, place.column), (6, 5));
}

/// Errors in TOML and in other files of clients have a place.
#[test]
fn broken_files_have_a_place() {
    let project = TempDir::new().unwrap();
    for (path, text, line) in [
        ("config.toml", "[mcp_servers.a]\ncommand = \n", 2),
        ("mcp.json", "{\"mcpServers\": {\n  \"a\": }}", 2),
    ] {
        let file = project.path().join(path);
        fs::write(&file, text).unwrap();
        let problems = load(&LoadOptions::new().path(file)).unwrap_err();
        let first = problems.iter().next().unwrap();
        assert_eq!(first.location.as_ref().unwrap().line, line, "{path}: {first}");
    }
}

/// Files of the clients, as JSON, with the keys below which their servers stand.
fn samples() -> Vec<(&'static str, &'static str, Value)> {
    let server = json!({
        "command": "x", "args": ["a", "${workspaceFolder}"], "env": {"A": "$B", "C": null}, "url": null, "headers": {"H": "v"},
        "cwd": ".", "envFile": ".env", "tools": ["t"], "excludeTools": ["u"], "disabled": false, "enabled": true, "timeout": 30,
        "type": "stdio", "sandboxEnabled": false, "oauth": false, "httpUrl": null
    });
    let opencode = json!({
        "type": "local", "command": ["x", "{env:A}"], "environment": {"B": "c"}, "enabled": true, "timeout": 5, "oauth": false
    });
    let zed = json!({"command": {"path": "x", "args": [], "env": {}}, "enabled": true, "timeout": 1, "source": "custom"});
    let continue_dev =
        json!({"name": "s", "command": "x", "requestOptions": {"headers": {"A": "b"}}, "apiKey": "k"});
    let rules = json!({"tools": {"s_*": false}, "permission": {"*": "ask", "s_a": {"x": "deny"}}, "mcp": {"s": opencode}});
    let gemini = json!({"mcp": {"allowed": ["s"], "excluded": []}, "tools": {"exclude": ["t"]}, "mcpServers": {"s": server}});
    let agent = json!({"default_profile": "p", "profiles": {"p": {"context_servers": {"s": {"tools": {"t": true}}}}},
        "tool_permissions": {"default": "deny", "tools": {"mcp:s:t": {"default": "allow", "always_deny": []}}}});
    vec![
        (
            "mcp.json",
            "mcpServers",
            json!({"mcpServers": {"s": server}, "inputs": [], "sandbox": {}}),
        ),
        (
            ".vscode/mcp.json",
            "servers",
            json!({"servers": {"s": server}, "inputs": [{"id": "i", "default": "d"}]}),
        ),
        (".gemini/settings.json", "mcpServers", gemini),
        ("opencode.json", "mcp", rules),
        (
            "zed.json",
            "context_servers",
            json!({"context_servers": {"s": zed}, "agent": agent}),
        ),
        (
            "continue.json",
            "mcpServers",
            json!({"mcpServers": [continue_dev]}),
        ),
    ]
}

/// Returns the pointers to all values below a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        pointers(value, &pointer, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| below(&index.to_string(), value)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(26),
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    })]

    /// A wrong value anywhere in a file leaves the file usable: another server of it is there.
    #[test]
    fn a_wrong_value_concerns_its_server_alone(
        sample in 0..6_usize,
        place in any::<prop::sample::Index>(),
        wrong in prop_oneof![
            Just(json!(null)), Just(json!(true)), Just(json!(-1)), Just(json!("")), Just(json!("${input:x}")),
            Just(json!("a\u{0}${")), Just(json!([[]])), Just(json!({"a": {"b": []}})), Just(json!(1e300)),
        ],
    ) {
        let (path, key, mut file) = samples().swap_remove(sample);
        let mut all = Vec::new();
        pointers(&file, "", &mut all);
        all.retain(|pointer| *pointer != format!("/{key}"));
        let pointer = &all[place.index(all.len())];
        *file.pointer_mut(pointer).unwrap() = wrong;
        match &mut file[key] {
            Value::Array(items) => items.push(json!({"name": "good", "command": "y"})),
            servers => servers["good"] = match path {
                "opencode.json" => json!({"type": "local", "command": ["y"]}),
                _ => json!({"command": "y"}),
            },
        }
        let options = LoadOptions::new().text(path, Syntax::Json, file.to_string());
        let loaded = load(&options).map_err(|problems| TestCaseError::fail(format!("{pointer}: {}", problems.render(false))))?;
        let good = loaded.configuration.servers.iter().find(|server| server.name == "good");
        let is_usable = good.is_some_and(|server| matches!(server.transport, ServerTransport::Stdio { .. }));
        prop_assert!(is_usable, "{pointer}: {file}");
    }
}

/// A file with keys of ours is ours, whatever else is in it: none of its tools is lost.
#[test]
fn files_with_our_keys_are_ours() {
    let tool = r#""tools": {"t": {"description": "T", "executor": {"kind": "mock", "result": 1}}}"#;
    for (path, text) in [
        (
            "a.json",
            format!(r#"{{"mcpServers": {{"a": {{"command": "x", "includeTools": ["y"]}}}}, {tool}}}"#),
        ),
        ("b.yaml", format!("{{servers: {{a: {{command: x}}}}, {tool}}}")),
    ] {
        let project = TempDir::new().unwrap();
        let loaded = load_in(&project, path, &text);
        assert_eq!(loaded.configuration.tools.len(), 1, "{path}");
        assert_eq!(loaded.configuration.servers.len(), 1, "{path}");
    }
    // Unknown keys in them are errors, and no other format.
    let project = TempDir::new().unwrap();
    for text in [
        format!(r#"{{"mcp": {{"a": {{"type": "local", "command": ["x"]}}}}, {tool}}}"#),
        format!(r#"{{"mcpServers": [{{"name": "a", "command": "x"}}], {tool}}}"#),
        format!(r#"{{"context_servers": {{"a": {{"command": "x"}}}}, {tool}}}"#),
        format!(r#"{{"extensions": {{"a": {{"type": "stdio", "cmd": "x"}}}}, {tool}}}"#),
    ] {
        let file = project.path().join("a.json");
        fs::write(&file, &text).unwrap();
        assert!(load(&LoadOptions::new().path(file)).is_err(), "{text}");
    }
}

/// Files of clients without a server are configurations without a server, and TOML that is not of Codex is told.
#[test]
fn files_without_servers() {
    for (path, text, said) in [
        (".claude.json", r#"{"numStartups": 3}"#, ""),
        (".gemini/settings.json", r#"{"theme": "dark"}"#, ""),
        ("opencode.json", r#"{"model": "a/b"}"#, ""),
        (
            "config.toml",
            "model = \"x\"\n",
            "Warning line 1: there is no table `mcp_servers`: TOML is read as a file of Codex\n",
        ),
    ] {
        assert_eq!(summary(path, text), said, "{path}");
    }
}

/// A client that is connected to the gateway has it in its file. The gateway reads the file and does not start itself.
#[test]
fn the_gateway_is_no_server_of_itself() {
    let project = TempDir::new().unwrap();
    let own = project.path().join("toolplane.yaml");
    fs::write(&own, "include: [mcp.json]\n").unwrap();
    fs::write(project.path().join("other.yaml"), "servers: {}\n").unwrap();
    let entry = |config: &Path| json!({"command": "/bin/toolplane", "args": ["--config", config, "serve", "--stdio"]});
    let file = json!({"mcpServers": {
        "toolplane": entry(&own),
        "inner": entry(&project.path().join("other.yaml")),
        "relative": {"command": "toolplane", "args": ["serve", "--config=toolplane.yaml"], "cwd": project.path()},
    }});
    fs::write(project.path().join("mcp.json"), file.to_string()).unwrap();
    let loaded = load(&LoadOptions::new().path(own)).unwrap();
    let mut refused: Vec<&str> = loaded
        .configuration
        .servers
        .iter()
        .filter(|server| matches!(server.transport, ServerTransport::Refused { .. }))
        .map(|server| &*server.name)
        .collect();
    refused.sort_unstable();
    assert_eq!(refused, ["relative", "toolplane"]);
    assert_eq!(loaded.diagnostics.len(), 2, "{:?}", loaded.diagnostics);
}
