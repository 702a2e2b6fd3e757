//! Restrictions of clients, and words that mean different things to them: nothing is offered here that the client would not offer, and no
//! server starts with other values.

use super::summary;

/// Compares the summaries of files with what is expected, a line for each.
fn check(path: &str, cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        let summary = summary(path, text);
        let lines: Vec<&str> = summary.lines().map(str::trim_start).collect();
        assert_eq!(&lines, expected, "{path}\n{text}");
    }
}

/// Source: `packages/core/src/config/mcp.ts`, `packages/opencode/src/permission` and `src/mcp` of OpenCode's public source.
#[test]
fn opencode() {
    check(
        "opencode.json",
        &[
            (
                r#"{"mcp": {"servers": {"a": {"type": "remote", "url": "https://a.example.com", "disabled": true}}}}"#,
                &["a: https://a.example.com", "disabled"],
            ),
            (
                r#"{"mcp": {"a": {"type": "remote", "url": "https://a.example.com", "disabled": "yes"}}}"#,
                &[
                    "a: REFUSED: `mcp.a.disabled`: expected true or false, found a text",
                    "Warning line 1: the server `a` cannot be used: expected true or false, found a text",
                ],
            ),
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}},
 "permissions": [{"action": "web_*", "resource": "*", "effect": "deny"}, {"action": "web_read", "resource": "*", "effect": "allow"},
  {"action": "web_list", "resource": "/srv", "effect": "allow"}]}"#,
                &["web: https://a.example.com", r#"include ["read"]"#],
            ),
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}}, "permissions": {"web_*": "deny"}}"#,
                &["web: https://a.example.com", "include []"],
            ),
            // Each list can deny.
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}}, "permission": "allow",
 "permissions": [{"action": "web_*", "resource": "*", "effect": "deny"}]}"#,
                &["web: https://a.example.com", "include []"],
            ),
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}}, "agent": {"build": {"tools": {"web_drop": false}}, "plan": {"tools": {"*": false}}}}"#,
                &["web: https://a.example.com", r#"exclude ["drop"]"#],
            ),
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}}, "default_agent": "plan", "agent": {"plan": {"permission": "deny"}}}"#,
                &["web: https://a.example.com", "include []"],
            ),
            // A bare name is no pattern of the tools that it allows.
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}}, "permission": {"*": "deny", "web": "allow"}}"#,
                &["web: https://a.example.com", "include []"],
            ),
            // The name of the tool may be `files.delete`.
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com"}}, "permission": {"web_files_delete": "deny"}}"#,
                &["web: https://a.example.com", r#"exclude ["files*delete"]"#],
            ),
            (
                r#"{"mcp": {"web": {"type": "remote", "url": "https://a.example.com", "timeout": {"startup": 5000, "execution": 60000}}}}"#,
                &["web: https://a.example.com", "timeout 60s", "start timeout 5s"],
            ),
        ],
    );
}

/// Source: `mcp`, `tools.exclude` and the tool names in `packages/core/src/policy` and `src/tools` of Gemini CLI's public source.
#[test]
fn gemini() {
    let url = r#""url": "https://a.example.com""#;
    check(
        ".gemini/settings.json",
        &[
            (
                &format!(r#"{{"tools": {{"exclude": ["mcp_*"]}}, "mcpServers": {{"a": {{{url}}}}}}}"#),
                &["a: https://a.example.com", r#"exclude ["*"]"#],
            ),
            (
                &format!(
                    r#"{{"mcp": {{"excluded": ["*"]}}, "mcpServers": {{"a": {{{url}, "disabled": false}}}}}}"#
                ),
                &["a: https://a.example.com", "disabled"],
            ),
            (
                &format!(r#"{{"mcp": {{"excluded": [" GitHub"]}}, "mcpServers": {{"github": {{{url}}}}}}}"#),
                &["github: https://a.example.com", "disabled"],
            ),
            (
                &format!(
                    r#"{{"tools": {{"exclude": ["mcp_my_server_drop"]}}, "mcpServers": {{"my server": {{{url}}}}}}}"#
                ),
                &["my server: https://a.example.com", r#"exclude ["drop"]"#],
            ),
            (
                &format!(r#"{{"mcpServers": {{"a": {{{url}, "includeTools": ["*", "read"]}}}}}}"#),
                &[
                    "a: https://a.example.com",
                    r#"include ["read"]"#,
                    "Warning line 1: a name with `*` allows no tool: this client has no patterns here",
                ],
            ),
            (
                r#"{"mcpServers": {"a": {"httpUrl": "https://a.example.com", "type": "sse", "command": "x", "authProviderType": "dynamic_discovery"}}}"#,
                &[
                    "a: https://a.example.com Streamable",
                    "Warning line 1: `command` is ignored: the server has a URL",
                ],
            ),
        ],
    );
}

/// Source: `codex-rs/config/src/mcp_types.rs` of Codex's public source.
#[test]
fn codex() {
    check(
        ".codex/config.toml",
        &[
            (
                "[mcp_servers.a]\nurl = \"https://a.example.com\"\nenabled_tools = [\"read_*\"]\nomit_tools_from = []\n",
                &[
                    "a: https://a.example.com Streamable",
                    "include []",
                    "Warning line 3: a name with `*` allows no tool: this client has no patterns here",
                ],
            ),
            (
                "[mcp_servers.a]\nurl = \"https://a.example.com\"\nhttp_headers_helper = \"x\"\n",
                &[
                    "a: REFUSED: `http_headers_helper` is a program that makes headers, which is not run here",
                    "Warning line 3: the server `a` cannot be used: `http_headers_helper` is a program that makes headers, which is not run here",
                ],
            ),
            (
                "[mcp_servers.a]\nurl = \"https://a.example.com\"\nauth = \"oauth\"\n",
                &["a: https://a.example.com Streamable"],
            ),
            (
                "[mcp_servers.a]\nurl = \"https://a.example.com\"\nauth = \"chatgpt\"\n",
                &[
                    "a: REFUSED: `auth` asks for OAuth, which the gateway does not do for servers",
                    "Warning line 3: the server `a` cannot be used: `auth` asks for OAuth, which the gateway does not do for servers",
                ],
            ),
            (
                "[mcp_servers.a]\nurl = \"https://a.example.com\"\nscopes = [\"x\"]\nbearer_token_env_var = \"T\"\n",
                &[
                    "a: https://a.example.com Streamable",
                    "Authorization: Bearer <${T}>",
                ],
            ),
        ],
    );
}

/// Source: `ai_disabled` in `crates/project/src/context_server_store.rs` of Zed, and `ExtensionEntry` in
/// `crates/goose/src/config/extensions.rs` of Goose.
#[test]
fn zed_and_goose() {
    check(
        "zed/settings.json",
        &[(
            r#"{"disable_ai": true, "context_servers": {"a": {"url": "https://a.example.com", "enabled": true}}}"#,
            &["a: https://a.example.com", "disabled"],
        )],
    );
    check(
        "goose/config.yaml",
        &[(
            "extensions:\n  a: {type: streamable_http, name: a, uri: 'https://a.example.com'}\n",
            &[
                "a: https://a.example.com Streamable",
                "disabled",
                "Warning line 2: it is not used: Goose uses no extension without `enabled`",
            ],
        )],
    );
}

/// Source: code.visualstudio.com/docs/copilot/reference/copilot-settings (`chat.mcp.access`, `chat.disableAIFeatures`).
#[test]
fn settings_of_vscode_that_switch_servers_off() {
    let servers = r#""mcp": {"servers": {"a": {"type": "http", "url": "https://a.example.com"}}}"#;
    for (setting, key) in [
        (r#""chat.mcp.access": "none""#, "chat.mcp.access"),
        (r#""chat.mcp.access": "registry""#, "chat.mcp.access"),
        (r#""chat.disableAIFeatures": true"#, "chat.disableAIFeatures"),
    ] {
        let said = format!("Warning line 1: `{key}` switches all servers of this file off");
        check(
            "Code/User/settings.json",
            &[(
                &format!("{{{setting}, {servers}}}"),
                &["a: https://a.example.com", "disabled", &said],
            )],
        );
    }
    check(
        "Code/User/settings.json",
        &[(
            &format!(r#"{{"chat.mcp.access": "all", {servers}}}"#),
            &["a: https://a.example.com"],
        )],
    );
}

/// Source: docs.github.com, "GitHub Copilot CLI command reference", and docs.cline.bot/mcp.
#[test]
fn copilot_and_cline() {
    let copilot = r#"{"mcpServers": {"a": {"type": "local", "command": "x", "env": {"A": "$KEY", "B": "${B:-b}", "C": "pa$$"},
 "tools": ["*"], "deferTools": true, "filterMapping": {"a": "markdown"}, "timeout": 3000}}}"#;
    for path in [".copilot/mcp-config.json", ".github/mcp.json"] {
        let summary = summary(path, copilot);
        for line in [
            "a: x",
            "A=<${KEY}>",
            "B=<${B}>",
            "C=pa$$",
            "include [\"*\"]",
            "timeout 3s",
        ] {
            assert!(
                summary.lines().any(|known| known.trim_start() == line),
                "{path}: {line}\n{summary}"
            );
        }
    }
    check(
        ".copilot/mcp-config.json",
        &[(
            r#"{"mcpServers": {"a": {"type": "http", "url": "https://a.example.com", "tools": ["*"], "oauthClientId": "x"}}}"#,
            &[
                "a: REFUSED: `oauthClientId` asks for OAuth, which the gateway does not do for servers",
                "Warning line 1: the server `a` cannot be used: `oauthClientId` asks for OAuth, which the gateway does not do for servers",
            ],
        )],
    );
    check(
        "cline_mcp_settings.json",
        &[
            (
                r#"{"mcpServers": {"a": {"transport": {"type": "stdio", "command": "x", "args": ["y"]}, "disabled": false}}}"#,
                &["a: x y"],
            ),
            (
                r#"{"mcpServers": {"a": {"url": "https://a.example.com", "env": {}, "headers": {"A": "${env:A}", "B": "${B}"}}}}"#,
                &[
                    "a: https://a.example.com",
                    "A: <${A}>",
                    "B: ${B}",
                    "Warning line 1: `env` is ignored: the server has a URL",
                ],
            ),
        ],
    );
}

/// Texts outside of references are those of the file.
///
/// Source: docs.claude.com/en/docs/claude-code/mcp (only `${VAR}` and `${VAR:-default}` are replaced).
#[test]
fn dollars_are_literal() {
    let text = r#"{"mcpServers": {"a": {"command": "bash", "args": ["-c", "echo $$ ${X%.*}"], "env": {"PW": "pa$$word"}}}}"#;
    let summary = summary(".mcp.json", text);
    assert!(summary.contains("bash -c echo $$ ${X%.*}\n"), "{summary}");
    assert!(summary.contains("PW=pa$$word\n"), "{summary}");
    assert!(!summary.contains("REFUSED"), "{summary}");
}

/// Source: docs.continue.dev/reference, and `core/context/mcp/MCPConnection.ts` of Continue's public source.
#[test]
fn continue_dev() {
    check(
        ".continue/config.yaml",
        &[
            (
                "requestOptions: {headers: {X: file, Y: file}, timeout: 5}\nmcpServers:\n  - name: a\n    url: https://a.example.com\n    apiKey: k\n    requestOptions: {headers: {X: own, authorization: other}}\n",
                &[
                    "a: https://a.example.com",
                    "Authorization: Bearer k",
                    "X: own",
                    "Y: file",
                ],
            ),
            (
                "requestOptions: {proxy: http://p}\nmcpServers:\n  - {name: a, url: 'https://a.example.com'}\n",
                &[
                    "a: REFUSED: `proxy` has no counterpart here",
                    "Warning line 1: the server `a` cannot be used: `proxy` has no counterpart here",
                ],
            ),
        ],
    );
}

/// Returns the sandbox of a server of a workspace's file, or why it has none.
fn sandbox(server: &str, file: &str) -> String {
    let project = tempfile::TempDir::new().unwrap();
    let text = format!(r#"{{"servers": {{"a": {{"command": "x", "sandboxEnabled": true{server}}}}}{file}}}"#);
    let loaded = super::load_in(&project, ".vscode/mcp.json", &text);
    let written = match loaded.server_settings("a") {
        Some(settings) => settings.get("sandbox").map(|sandbox| sandbox.to_string()),
        None => None,
    };
    let text = match &loaded.configuration.servers[0].transport {
        toolplane::manifest::ServerTransport::Refused { reason } => reason.clone(),
        _ => written.unwrap_or_else(|| "none".to_owned()),
    };
    text.replace(project.path().to_str().unwrap(), "[project]")
}

/// Source: code.visualstudio.com/docs/copilot/reference/mcp-configuration ("Sandbox configuration"), and
/// `contrib/mcp/common/mcpSandboxService.ts` of its public source.
#[test]
fn sandboxes_of_vscode() {
    let own = |rules: &str| sandbox(&format!(r#", "sandbox": {rules}"#), "");
    let files = |rules: &str| own(&format!(r#"{{"filesystem": {rules}}}"#));
    assert_eq!(own("{}"), r#""auto""#);
    assert_eq!(
        own(r#"{"level": "none"}"#),
        "`sandbox` is in a form that the client does not know"
    );
    assert_eq!(sandbox("", ""), r#""auto""#);
    assert_eq!(
        own(
            r#"{"filesystem": {"allowWrite": ["${workspaceFolder}/out", "./a/../b"], "denyRead": ["${userHome}/.ssh"]}, "network": {"allowedDomains": ["api.example.com"]}}"#
        ),
        r#"{"writes":["[project]/out","[project]/b"],"network":["api.example.com"]}"#
    );
    // Relative ones begin in the working directory of the program.
    assert_eq!(
        sandbox(
            r#", "cwd": "${workspaceFolder}/server", "sandbox": {"filesystem": {"allowWrite": ["../out"]}}"#,
            ""
        ),
        r#"{"writes":["[project]/out"]}"#
    );
    // Those of the server go before those of the file.
    assert_eq!(
        sandbox(
            r#", "sandbox": {"filesystem": {"allowWrite": ["/a"]}}"#,
            r#", "sandbox": {"filesystem": {"allowWrite": ["/b"]}}"#
        ),
        r#"{"writes":["/a"]}"#
    );
    for (rules, reason) in [
        (
            r#"{"denyRead": [".env"]}"#,
            "the sandbox cannot deny `.env`: the program can read `[project]`",
        ),
        (
            r#"{"denyRead": ["/usr/local"]}"#,
            "the sandbox cannot deny `/usr/local`: the program can read `/usr`",
        ),
        (
            r#"{"allowWrite": ["."], "denyWrite": ["secrets"]}"#,
            "the sandbox cannot deny `secrets` within the allowed `.`",
        ),
        (
            r#"{"allowWrite": ["./data"], "denyWrite": ["data/x"]}"#,
            "the sandbox cannot deny `data/x` within the allowed `./data`",
        ),
        (
            r#"{"allowWrite": ["/srv/p/../q"], "denyWrite": ["/srv"]}"#,
            "the sandbox cannot deny `/srv` around the allowed `/srv/p/../q`",
        ),
        (
            r#"{"allowWrite": ["/srv"], "denyWrite": ["/srv/**/*.key"]}"#,
            "the sandbox cannot deny `/srv/**/*.key` within the allowed `/srv`",
        ),
        (
            r#"{"allowWrite": ["/srv"], "denyWrite": ["${env:SECRETS}"]}"#,
            "the sandbox cannot deny `${env:SECRETS}` beside the allowed `/srv`",
        ),
        (
            r#"{"allowWrite": ["${userHome}/p"], "denyRead": ["~/p/.env"]}"#,
            "the sandbox cannot deny `~/p/.env` within the allowed `${userHome}/p`",
        ),
        (r#"{"allowWrite": "x"}"#, "`allowWrite` is no list of texts"),
        (
            r#"{"allowExec": ["x"]}"#,
            "`allowExec` of the sandbox is not understood",
        ),
    ] {
        assert_eq!(files(rules), reason, "{rules}");
    }
    // Nothing in common.
    assert_eq!(
        files(r#"{"allowWrite": ["/srv/data"], "denyWrite": ["/srv/dat", "/mnt/ada/*.key"]}"#),
        r#"{"writes":["/srv/data"]}"#
    );
}

/// A symbolic link leads to what the sandbox allows.
#[test]
fn links_are_followed() {
    let project = tempfile::TempDir::new().unwrap();
    std::fs::create_dir_all(project.path().join("sub/in")).unwrap();
    std::os::unix::fs::symlink("sub/in", project.path().join("link")).unwrap();
    let text = r#"{"servers": {"a": {"command": "x", "sandboxEnabled": true,
        "sandbox": {"filesystem": {"allowWrite": ["sub"], "denyWrite": ["link"]}}}}}"#;
    let loaded = super::load_in(&project, ".vscode/mcp.json", text);
    let transport = &loaded.configuration.servers[0].transport;
    let toolplane::manifest::ServerTransport::Refused { reason } = transport else {
        panic!("{transport:?}");
    };
    assert_eq!(reason, "the sandbox cannot deny `link` beside the allowed `sub`");
}
