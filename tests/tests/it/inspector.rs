//! MCP Inspector, a third-party client, in front of the gateway: over both transports, in each era and with detection
//! of the era.

use std::{fs, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_testkit::{PeerCommand, Peers};
use toolplane_tests::own_directories;

use crate::support::{
    Configuration, Gateway, HttpGateway, base_environment, binary, example, installed, mock_server,
};

/// The Inspector's command line, with its own home folder.
struct Inspector {
    command: PeerCommand,
    home: TempDir,
    /// Arguments that address the gateway.
    target: Vec<String>,
}

impl Inspector {
    fn new(command: PeerCommand, target: &[&str]) -> Self {
        Self {
            command,
            home: tempfile::tempdir().unwrap(),
            target: target.iter().map(|&argument| argument.to_owned()).collect(),
        }
    }

    /// Lets the Inspector start the gateway.
    fn over_stdio(command: PeerCommand, configuration: &Configuration, era: &str) -> Self {
        let mut inspector = Self::new(command, &[]);
        let path = configuration.write(inspector.home.path());
        let gateway = json!({"mcpServers": {"gateway": {
            "command": binary().to_str().unwrap(),
            "args": ["serve", "--stdio", "--config", path.to_str().unwrap()],
        }}});
        let servers = inspector.home.path().join("inspector.json");
        fs::write(&servers, gateway.to_string()).unwrap();
        let servers = servers.to_str().unwrap();
        let target = ["--config", servers, "--server", "gateway", "--protocol-era", era];
        inspector.target = target.map(str::to_owned).to_vec();
        inspector
    }

    fn over_http(command: PeerCommand, gateway: &HttpGateway, era: &str) -> Self {
        let url = gateway.url();
        Self::new(
            command,
            &[url.as_str(), "--transport", "http", "--protocol-era", era],
        )
    }

    /// Runs it and returns the printed result; any complaint fails the test.
    fn run(&self, method: &str, args: &[&str]) -> Value {
        let mut command = Command::new(&self.command.program);
        command
            .env_clear()
            .envs(base_environment())
            .env("HOME", self.home.path())
            .args(&self.command.args)
            .args(&self.target)
            .args(["--format", "json", "-q", "--method", method])
            .args(args);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        let what = format!("{:?} {method} {args:?}", self.target);
        assert!(output.status.success(), "{what}: {text}{complaint}");
        assert_eq!(complaint, "", "{what}");
        let mut answer: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
        answer["result"].take()
    }

    /// Lists everything and uses one feature of each kind.
    fn look_around(&self) {
        let tools = self.run("tools/list", &[]);
        let names = column(&tools["tools"], "name");
        for name in ["fixed", "weather__forecast"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let fixed = self.run("tools/call", &["--tool-name", "fixed", "--tool-arg", "a=1"]);
        assert_eq!(fixed["structuredContent"], json!({"temperature": 72}));
        let forecast = ["--tool-name", "weather__forecast", "--tool-arg", "city=Oslo"];
        let forecast = self.run("tools/call", &forecast);
        assert_eq!(
            forecast["content"][0]["text"], "Sunny in Oslo (call 1)",
            "{forecast}"
        );

        let prompts = self.run("prompts/list", &[]);
        assert_eq!(column(&prompts["prompts"], "name"), ["weather__ask"]);
        let args = ["--prompt-name", "weather__ask", "--prompt-args", "city=Oslo"];
        let prompt = self.run("prompts/get", &args);
        assert_eq!(
            prompt["messages"][0]["content"]["text"],
            "What is the weather in Oslo?"
        );

        let resources = self.run("resources/list", &[]);
        assert_eq!(column(&resources["resources"], "uri"), ["weather://stations"]);
        let read = self.run("resources/read", &["--uri", "weather://stations/Oslo"]);
        assert_eq!(read["contents"][0]["text"], "Station Oslo");
    }
}

/// Returns one member of each item of a list.
fn column<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().map(|item| item[key].as_str().unwrap()).collect()
}

/// Returns a configuration with one of our own tools, and the shipped example server, which has a feature of each kind.
fn configuration() -> Configuration {
    let fixed = json!({
        "description": "Always the same.",
        "input_schema": {"type": "object"},
        "executor": {"kind": "mock", "result": {"temperature": 72}},
    });
    Configuration::default()
        .tool("fixed", fixed)
        .server("weather", mock_server(&example("mock-server.yaml")))
}

#[test]
fn over_stdio_in_the_legacy_era() {
    over_stdio("legacy");
}

#[test]
fn over_stdio_in_the_era_it_finds() {
    over_stdio("auto");
}

#[test]
fn over_stdio_in_the_modern_era() {
    over_stdio("modern");
}

fn over_stdio(era: &str) {
    let Some(inspector) = installed(Peers::inspector) else {
        return;
    };
    Inspector::over_stdio(inspector, &configuration(), era).look_around();
}

#[test]
fn over_http_in_the_legacy_era() {
    over_http("legacy");
}

#[test]
fn over_http_in_the_era_it_finds() {
    over_http("auto");
}

#[test]
fn over_http_in_the_modern_era() {
    over_http("modern");
}

fn over_http(era: &str) {
    let Some(inspector) = installed(Peers::inspector) else {
        return;
    };
    let gateway = Gateway::http(&configuration());
    Inspector::over_http(inspector, &gateway, era).look_around();
    assert_eq!(gateway.terminate().code(), Some(0));
}

/// HTTP+SSE, the transport of 2024-11-05, exists in the legacy era only.
#[test]
fn over_http_and_sse() {
    let Some(command) = installed(Peers::inspector) else {
        return;
    };
    let configuration = configuration().gateway(json!({"sse_path": "/sse"}));
    let gateway = Gateway::http(&configuration);
    let url = format!("http://{}/sse", gateway.address);
    let inspector = Inspector::new(command, &[url.as_str(), "--transport", "sse"]);
    inspector.look_around();
    assert_eq!(gateway.terminate().code(), Some(0));
}

/// Checks the definitions of the shipped examples and of `toolplane init`.
#[test]
fn our_own_definitions_suit_every_client() {
    let Some(command) = installed(Peers::inspector) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut init = Command::new(binary());
    own_directories(&mut init, folder.path());
    assert!(init.arg("init").current_dir(&folder).status().unwrap().success());
    let absent = [("TOOLPLANE_PEERS", "absent".to_owned())];
    for (configuration, own) in [
        (example("toolplane.yaml"), vec!["alert", "forecast", "stations"]),
        (folder.path().join("toolplane.yaml"), vec!["forecast", "greet"]),
    ] {
        let gateway = HttpGateway::of_file(&configuration, &absent);
        for era in ["legacy", "modern"] {
            let inspector = Inspector::over_http(command.clone(), &gateway, era);
            let tools = inspector.run("tools/list", &["--strict"]);
            assert_eq!(column(&tools["tools"], "name"), own);
        }
        assert_eq!(gateway.terminate().code(), Some(0));
    }
}
