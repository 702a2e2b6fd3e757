//! Programs of the page "Connect an SDK": each is run as it stands there.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use tool_testkit::{BookPage, PeerCommand, Peers};

use super::{ADDRESS, Home};
use crate::support::installed;

/// Output of the programs that print a list of Python.
const PYTHON: &str = "['forecast', 'greet']\nHello, Ada!\n";
/// Output of the programs that print a list of JavaScript.
const NODE: &str = "[ 'forecast', 'greet' ]\nHello, Ada!\n";
/// Output of the programs that print the text of a result.
const TEXT: &str = "['forecast', 'greet']\n{\"greeting\": \"Hello, Ada!\"}\n";

/// Interpreter of a language.
struct Interpreter {
    command: PeerCommand,
    language: &'static str,
    file: &'static str,
    /// Folder of the packages from npm.
    modules: Option<PathBuf>,
}

impl Interpreter {
    fn python(find: fn(&Peers) -> Result<PeerCommand, tool_testkit::Skip>) -> Option<Self> {
        Some(Self {
            command: installed(find)?,
            language: "python",
            file: "agent.py",
            modules: None,
        })
    }

    fn node() -> Option<Self> {
        let (command, modules) = installed(Peers::client_node)?;
        Some(Self {
            command,
            language: "js",
            file: "agent.mjs",
            modules: Some(modules),
        })
    }

    /// Runs the programs below a heading and compares what they print. `over_http` says for each whether it connects
    /// to a gateway that is running.
    fn run(&self, heading: &str, over_http: &[bool], expected: &str) {
        let page = BookPage::read("connect/sdks.md");
        let programs = page.below(heading, self.language);
        let uses_http: Vec<_> = programs
            .iter()
            .map(|program| program.text.contains(ADDRESS))
            .collect();
        assert_eq!(uses_http, over_http, "{heading}");
        let home = Home::with_configuration();
        if let Some(modules) = &self.modules {
            symlink(modules, home.path().join("node_modules")).unwrap();
        }
        let running = over_http.contains(&true).then(|| home.serve());
        for program in programs {
            let mut text = program.text.clone();
            let mut command = home.command(&self.command.program);
            // Pydantic AI's model for tests, which calls every tool once.
            command.env("MODEL", "test");
            if let Some(running) = &running {
                text = text.replace(ADDRESS, &running.gateway.address.to_string());
                command.env("TOOLPLANE_TOKEN", &running.token);
            }
            let file = home.path().join(self.file);
            fs::write(&file, text).unwrap();
            let output = command.args(&self.command.args).arg(&file).output().unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{heading}: {complaint}");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed, expected, "{heading}: {complaint}");
        }
        if let Some(running) = running {
            assert_eq!(running.gateway.terminate().code(), Some(0));
        }
    }
}

#[test]
fn python_sdk() {
    if let Some(python) = Interpreter::python(Peers::client_python) {
        python.run("Python SDK", &[false, true], PYTHON);
    }
}

#[test]
fn python_sdk_of_version_1() {
    if let Some(python) = Interpreter::python(Peers::langchain_python) {
        python.run("Python SDK, version 1", &[false], PYTHON);
    }
}

#[test]
fn typescript_sdk() {
    if let Some(node) = Interpreter::node() {
        node.run("TypeScript SDK", &[false, true], NODE);
    }
}

#[test]
fn fastmcp() {
    if let Some(python) = Interpreter::python(Peers::client_python) {
        python.run("FastMCP", &[false, true], PYTHON);
    }
}

#[test]
fn langchain() {
    if let Some(python) = Interpreter::python(Peers::langchain_python) {
        python.run("LangChain", &[false, true], TEXT);
    }
}

#[test]
fn openai_agents() {
    if let Some(python) = Interpreter::python(Peers::client_python) {
        python.run("OpenAI Agents", &[false, true], TEXT);
    }
}

#[test]
fn pydantic_ai() {
    let expected = concat!(
        r#"{"forecast":{"sky":"clear","temperature":21.5},"greet":{"greeting":"Hello, a!"}}"#,
        "\n"
    );
    if let Some(python) = Interpreter::python(Peers::client_python) {
        python.run("Pydantic AI", &[false, true], expected);
    }
}

#[test]
fn vercel_ai_sdk() {
    if let Some(node) = Interpreter::node() {
        node.run("Vercel AI SDK", &[false, true], NODE);
    }
}
