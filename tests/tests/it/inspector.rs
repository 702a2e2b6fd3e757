//! MCP Inspector, a client that nobody here wrote, in front of the gateway.

use std::{fs, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_testkit::{PeerCommand, Peers};

use crate::support::{Configuration, Gateway, base_environment, binary, healthy_server, installed};

/// The Inspector's command line. Its home is a folder of its own.
struct Inspector {
    command: PeerCommand,
    home: TempDir,
}

impl Inspector {
    fn find() -> Option<Self> {
        let command = installed(Peers::inspector)?;
        let home = tempfile::tempdir().unwrap();
        Some(Self { command, home })
    }

    /// Runs it and reads what it prints.
    fn run(&self, args: &[&str]) -> Value {
        let mut command = Command::new(&self.command.program);
        command
            .env_clear()
            .envs(base_environment())
            .env("HOME", self.home.path())
            .args(&self.command.args)
            .args(args)
            .args(["--format", "json", "-q"]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {text}{complaint}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{complaint}"))
    }

    /// Lists the tools and calls one of each kind.
    fn look_around(&self, target: &[&str]) {
        let list = self.run(&[target, &["--method", "tools/list"]].concat());
        let names: Vec<_> = list["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("no tools: {list}"))
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["fixed", "healthy__act", "healthy__echo"], "{target:?}");
        for (tool, argument, expected) in [
            ("fixed", "a=1", json!({"temperature": 72})),
            ("healthy__echo", "city=Oslo", Value::Null),
        ] {
            let call = [
                "--method",
                "tools/call",
                "--tool-name",
                tool,
                "--tool-arg",
                argument,
            ];
            let answer = self.run(&[target, &call].concat());
            let result = &answer["result"];
            assert_ne!(result["isError"], true, "{answer}");
            if expected.is_null() {
                assert_eq!(result["content"][0]["text"], r#"{"city":"Oslo"}"#, "{answer}");
            } else {
                assert_eq!(result["structuredContent"], expected, "{answer}");
            }
        }
    }
}

fn configuration() -> Configuration {
    let fixed = json!({
        "description": "Always the same.",
        "input_schema": {"type": "object"},
        "executor": {"kind": "mock", "result": {"temperature": 72}},
    });
    let healthy = healthy_server();
    Configuration::default()
        .tool("fixed", fixed)
        .server("healthy", healthy)
}

#[test]
fn over_stdio() {
    let Some(inspector) = Inspector::find() else {
        return;
    };
    let path = configuration().write(inspector.home.path());
    let gateway = json!({"mcpServers": {"gateway": {
        "command": binary().to_str().unwrap(),
        "args": ["serve", "--stdio", "--config", path.to_str().unwrap()],
    }}});
    let catalogue = inspector.home.path().join("inspector.json");
    fs::write(&catalogue, gateway.to_string()).unwrap();
    inspector.look_around(&["--config", catalogue.to_str().unwrap(), "--server", "gateway"]);
}

#[test]
fn over_http_in_the_legacy_era() {
    over_http("legacy");
}

#[test]
fn over_http_in_the_modern_era() {
    over_http("modern");
}

fn over_http(era: &str) {
    let Some(inspector) = Inspector::find() else {
        return;
    };
    let gateway = Gateway::http(&configuration());
    let url = gateway.url();
    inspector.look_around(&[url.as_str(), "--transport", "http", "--protocol-era", era]);
    assert_eq!(gateway.terminate().code(), Some(0));
}
