use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout},
};

use serde_json::{Value, json};
use tool_testkit::PeerCommand;

use super::process::Process;

/// A collector built on third-party definitions, with the requests that it received.
pub(crate) struct Collector {
    pub(crate) http: String,
    pub(crate) grpc: String,
    lines: Lines<BufReader<ChildStdout>>,
    /// The collector ends with its input.
    stdin: ChildStdin,
    _process: Process,
}

/// Requests that a collector received.
#[derive(Debug)]
pub(crate) struct Received(Vec<Value>);

impl Collector {
    pub(crate) fn start(command: &PeerCommand) -> Self {
        let (process, stdin, stdout) = Process::spawn(&mut command.to_command());
        let mut lines = BufReader::new(stdout).lines();
        let addresses: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let address = |name: &str| addresses[name].as_str().unwrap().to_owned();
        Self {
            http: address("http"),
            grpc: address("grpc"),
            lines,
            stdin,
            _process: process,
        }
    }

    /// Ends it and returns the requests, all of which it must have understood.
    pub(crate) fn end(self) -> Received {
        drop(self.stdin);
        let lines = self
            .lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        let requests: Vec<Value> = lines.collect();
        let refused: Vec<_> = requests
            .iter()
            .filter(|line| line.get("refused").is_some())
            .collect();
        assert!(refused.is_empty(), "{refused:?}");
        Received(requests)
    }
}

impl Received {
    /// Returns the requests of a signal.
    pub(crate) fn of(&self, signal: &str) -> Vec<&Value> {
        let requests = self.0.iter().filter(|line| line["signal"] == signal);
        let requests: Vec<_> = requests.collect();
        assert!(!requests.is_empty(), "no {signal}: {self:?}");
        requests
    }

    /// Returns all spans, metrics or log records of a signal.
    pub(crate) fn items(&self, signal: &str) -> Vec<Value> {
        let (of_resource, of_scope, items) = match signal {
            "traces" => ("resourceSpans", "scopeSpans", "spans"),
            "metrics" => ("resourceMetrics", "scopeMetrics", "metrics"),
            _ => ("resourceLogs", "scopeLogs", "logRecords"),
        };
        let requests = self.of(signal).into_iter();
        let resources = requests.flat_map(|line| list(&line["request"][of_resource]));
        let scopes = resources.flat_map(|resource| list(&resource[of_scope]));
        scopes.flat_map(|scope| list(&scope[items])).collect()
    }

    /// Returns `true` if the text is anywhere in the requests.
    pub(crate) fn holds(&self, text: &str) -> bool {
        self.0
            .iter()
            .any(|line| line["request"].to_string().contains(text))
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Returns the value of an attribute, as JSON: 64-bit numbers are texts.
pub(crate) fn attribute(of: &Value, key: &str) -> Value {
    let attributes = list(&of["attributes"]);
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    let value = found.and_then(|attribute| attribute["value"].as_object()?.values().next());
    value.cloned().unwrap_or(json!(null))
}
