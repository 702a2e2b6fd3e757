//! Entries of the page "Connect your client": a test starts exactly what an entry says, and Gemini CLI reads its own.

use std::fs;

use serde_json::{Value, json};
use tool_testkit::{BookPage, Peers};

use super::{ADDRESS, Home, TokenGateway};
use crate::support::{Client, Era, HttpClient, StdioClient, call_params, installed, members};

/// Configuration file of a client.
struct ClientFile {
    /// Heading on the page.
    heading: &'static str,
    language: &'static str,
    /// Key of the servers.
    servers: &'static str,
    /// Keys of an entry that the documentation of the client has, required ones first.
    stdio: &'static [&'static str],
    /// Keys of an entry over HTTP, with those of the address and of the headers first; empty if it has none.
    http: &'static [&'static str],
    /// Spelling of the token in a header.
    token: &'static str,
}

/// See <https://modelcontextprotocol.io/docs/develop/connect-local-servers>.
const CLAUDE_DESKTOP: ClientFile = ClientFile {
    heading: "Claude Desktop",
    language: "json",
    servers: "mcpServers",
    stdio: &["command", "args", "env"],
    http: &[],
    token: "",
};

/// See <https://code.claude.com/docs/en/mcp>.
const CLAUDE_CODE: ClientFile = ClientFile {
    heading: "Claude Code",
    language: "json",
    servers: "mcpServers",
    stdio: &["command", "args", "env", "type"],
    http: &["url", "headers", "type"],
    token: "${TOOLPLANE_TOKEN}",
};

/// See <https://cursor.com/docs/mcp>.
const CURSOR: ClientFile = ClientFile {
    heading: "Cursor",
    language: "json",
    servers: "mcpServers",
    stdio: &["command", "args", "env", "type", "envFile"],
    http: &["url", "headers"],
    token: "${env:TOOLPLANE_TOKEN}",
};

/// See <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>.
const VS_CODE: ClientFile = ClientFile {
    heading: "VS Code",
    language: "json",
    servers: "servers",
    stdio: &["command", "args", "type", "env", "envFile"],
    http: &["url", "headers", "type"],
    token: "${input:toolplane-token}",
};

/// See <https://developers.openai.com/codex/mcp>.
const CODEX: ClientFile = ClientFile {
    heading: "Codex",
    language: "toml",
    servers: "mcp_servers",
    stdio: &["command", "args", "env", "cwd"],
    http: &["url", "http_headers", "bearer_token_env_var"],
    token: "",
};

/// See <https://geminicli.com/docs/tools/mcp-server/>.
const GEMINI: ClientFile = ClientFile {
    heading: "Gemini CLI",
    language: "json",
    servers: "mcpServers",
    stdio: &["command", "args", "env", "cwd", "timeout", "trust"],
    http: &["httpUrl", "headers", "timeout", "trust"],
    token: "${TOOLPLANE_TOKEN}",
};

/// See <https://zed.dev/docs/ai/mcp>.
const ZED: ClientFile = ClientFile {
    heading: "Zed",
    language: "json",
    servers: "context_servers",
    stdio: &["command", "args", "env", "source"],
    http: &["url", "headers"],
    token: "YOUR_TOKEN",
};

/// See <https://block.github.io/goose/docs/guides/config-files>.
const GOOSE: ClientFile = ClientFile {
    heading: "Goose",
    language: "yaml",
    servers: "extensions",
    stdio: &[
        "cmd",
        "args",
        "envs",
        "type",
        "name",
        "description",
        "enabled",
        "timeout",
    ],
    http: &[
        "uri",
        "headers",
        "type",
        "name",
        "description",
        "enabled",
        "timeout",
    ],
    token: "YOUR_TOKEN",
};

impl ClientFile {
    /// Reads the entries on the page by the syntax of the client: the one for stdio, and the one for HTTP.
    fn entries(&self, home: &Home) -> Vec<Value> {
        let page = BookPage::read("connect/clients.md");
        let blocks = page.below(self.heading, self.language);
        assert_eq!(blocks.len(), if self.http.is_empty() { 1 } else { 2 });
        let configuration = home.configuration();
        blocks
            .iter()
            .map(|block| {
                let text = block
                    .text
                    .replace("/path/to/toolplane.yaml", configuration.to_str().unwrap());
                let file: Value = match self.language {
                    "toml" => toml_edit::de::from_str(&text).unwrap(),
                    "yaml" => serde_saphyr::from_str(&text).unwrap(),
                    _ => serde_json::from_str(&text).unwrap(),
                };
                file[self.servers]["toolplane"].clone()
            })
            .collect()
    }

    fn check(&self) {
        let home = Home::with_configuration();
        let entries = self.entries(&home);
        only_has(&entries[0], self.stdio);
        self.start(&home, &entries[0]);
        if let Some(entry) = entries.get(1) {
            only_has(entry, self.http);
            let running = home.serve();
            self.connect(&running, entry);
            assert_eq!(running.gateway.terminate().code(), Some(0));
        }
    }

    /// Starts the command of an entry.
    fn start(&self, home: &Home, entry: &Value) {
        let mut command = home.command(entry[self.stdio[0]].as_str().unwrap());
        command.args(
            entry["args"]
                .as_array()
                .unwrap()
                .iter()
                .map(|arg| arg.as_str().unwrap()),
        );
        let mut client = StdioClient::start(&mut command, Era::Legacy);
        look_around(&mut client);
        client.close();
        assert_eq!(client.process.wait().code(), Some(0));
    }

    /// Sends requests to the address of an entry, with its headers.
    fn connect(&self, running: &TokenGateway, entry: &Value) {
        assert_eq!(entry[self.http[0]], format!("http://{ADDRESS}/mcp"));
        let header = match entry["bearer_token_env_var"].as_str() {
            Some(variable) => {
                assert_eq!(variable, "TOOLPLANE_TOKEN");
                format!("Authorization: Bearer {}\r\n", running.token)
            }
            None => {
                let header = entry[self.http[1]]["Authorization"].as_str().unwrap();
                assert_eq!(header.matches(self.token).count(), 1, "{header}");
                let header = header.replace(self.token, &running.token);
                format!("Authorization: {header}\r\n")
            }
        };
        let mut client = HttpClient::open_with(running.gateway.address, Era::Legacy, &header);
        look_around(&mut client);
    }
}

/// Checks that an entry has no keys beyond these.
fn only_has(entry: &Value, keys: &[&str]) {
    for key in entry.as_object().unwrap().keys() {
        assert!(keys.contains(&key.as_str()), "`{key}` in {entry}");
    }
}

/// Lists the tools and calls one.
fn look_around(client: &mut impl Client) {
    let tools: Value = serde_json::from_str(&client.request("tools/list", "{}").result()).unwrap();
    let mut names: Vec<_> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["forecast", "greet"]);
    let params = call_params("greet", r#"{"name":"Ada"}"#);
    let result = client.request("tools/call", &params).result();
    let content: Value = serde_json::from_str(&members(&result)["structuredContent"]).unwrap();
    assert_eq!(content, json!({"greeting": "Hello, Ada!"}));
}

#[test]
fn claude_desktop() {
    CLAUDE_DESKTOP.check();
}

#[test]
fn claude_code() {
    CLAUDE_CODE.check();
}

#[test]
fn cursor() {
    CURSOR.check();
}

#[test]
fn vs_code() {
    VS_CODE.check();
}

#[test]
fn codex() {
    CODEX.check();
}

#[test]
fn gemini() {
    GEMINI.check();
}

#[test]
fn zed() {
    ZED.check();
}

#[test]
fn goose() {
    GOOSE.check();
}

/// Gemini CLI itself connects by both of its entries.
#[test]
fn gemini_cli_reads_its_entries() {
    let Some(gemini) = installed(Peers::gemini) else {
        return;
    };
    let home = Home::with_configuration();
    let running = home.serve();
    let folder = home.path().join(".gemini");
    fs::create_dir(&folder).unwrap();
    for entry in GEMINI.entries(&home) {
        let settings = json!({
            "mcpServers": {"toolplane": entry},
            "general": {"enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false},
            "security": {"folderTrust": {"enabled": false}},
        });
        let settings = settings
            .to_string()
            .replace(ADDRESS, &running.gateway.address.to_string());
        fs::write(folder.join("settings.json"), settings).unwrap();
        let output = home
            .command(&gemini.program)
            .args(&gemini.args)
            .args(["mcp", "list"])
            .env("TOOLPLANE_TOKEN", &running.token)
            // Nothing is sent beyond this machine: nobody listens at the port of the proxy.
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1")
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let printed =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let line = printed.lines().find(|line| line.contains("toolplane:"));
        assert!(
            line.is_some_and(|line| line.ends_with(" - Connected")),
            "{printed}"
        );
    }
    assert_eq!(running.gateway.terminate().code(), Some(0));
}
