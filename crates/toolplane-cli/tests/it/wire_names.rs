//! Snapshot of names that others read: they stay when our own words change.
//!
//! The snapshot contains names only, not the texts around them. A line that is removed or respelled breaks its readers:
//! dashboards, scripts, clients. A new line is fine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};
use toolplane::core::ErrorKind;

use crate::{
    binary::{BINARY, Place, Run},
    serve::{Served, call},
};

const TOOLS: &str = "
gateway: {metrics: true}
defaults: {cache: {ttl: 1m}, retry: {max_attempts: 2}}
policy:
  approval: {required: [pay]}
  limits: {calls_per_conversation: 50}
tools:
  greet:
    description: Greets
    read_only: true
    tags: [t]
    cache: {ttl: 1m}
    input_schema: {type: object, properties: {name: {type: string}}}
    executor: {kind: mock, result: {said: hello}}
  pay:
    description: Pays
    executor: {kind: mock, result: 1}
  fail:
    description: Fails
    executor: {kind: mock, error: {kind: upstream_error, message: broken}}
  rescued:
    description: Has a fallback
    read_only: true
    on_failure: [{fallback: greet}]
    executor: {kind: mock, error: {kind: unavailable, message: away}}
  api:
    description: Is an API
    executor: {kind: http, url: 'https://127.0.0.1:1/x'}
";

/// Beginnings of names in the code: keys of `_meta`, metrics, span attributes.
const BEGINNINGS: [&str; 10] = [
    "dev.toolplane/",
    "toolplane_",
    "toolplane.",
    "mcp.",
    "gen_ai.",
    "error.",
    "rpc.",
    "jsonrpc.",
    "network.",
    "server.",
];

/// Names by the place where they are read.
#[derive(Default)]
struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    fn add(&mut self, place: &str, name: impl Into<String>) {
        self.0.entry(place.to_owned()).or_default().insert(name.into());
    }

    /// Adds the path of every member of a JSON value; entries of lists have one path.
    fn add_members(&mut self, place: &str, value: &Value) {
        self.walk(place, value, "");
    }

    fn walk(&mut self, place: &str, value: &Value, path: &str) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let path = format!("{path}/{key}");
                    self.walk(place, value, &path);
                    self.add(place, path);
                }
            }
            Value::Array(entries) => {
                for entry in entries {
                    self.walk(place, entry, &format!("{path}/*"));
                }
            }
            _ => {}
        }
    }

    fn add_output(&mut self, verb: &str, run: &Run) {
        let text = if run.stdout.is_empty() {
            &run.stderr
        } else {
            &run.stdout
        };
        let value: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{verb}: {error}: {run:?}"));
        self.add_members(&format!("output of `{verb}`"), &value);
    }

    fn shown(&self) -> String {
        let part = |(place, names): (&String, &BTreeSet<String>)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("## {place}\n{}\n", names.join("\n"))
        };
        self.0.iter().map(part).collect::<Vec<_>>().join("\n")
    }
}

/// Adds the verbs and options, from the page that the program prints of itself.
fn command_line(names: &mut Names, page: &str) {
    let mut verb = String::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            verb = heading.trim_matches('`').to_owned();
            names.add("command line", &*verb);
        }
        if let Some(cell) = line.strip_prefix("| `").and_then(|line| line.split_once(" | ")) {
            names.add("command line", format!("{verb}: `{}", cell.0));
        }
    }
    for exit in toolplane_cli::Exit::ALL {
        names.add("exit codes", format!("{:>3}", exit.code()));
    }
}

/// Adds the keys and the words of the configuration, from its JSON Schema.
fn configuration(names: &mut Names, schema: &Value) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                if let ("properties", Value::Object(properties)) = (key.as_str(), value) {
                    for name in properties.keys() {
                        names.add("keys of the configuration", name);
                    }
                }
                if let ("enum", Value::Array(words)) = (key.as_str(), value) {
                    let words = words.iter().filter_map(Value::as_str);
                    words.for_each(|word| names.add("words of the configuration", word));
                }
                if let ("const", Value::String(word)) = (key.as_str(), value) {
                    names.add("words of the configuration", word);
                }
                configuration(names, value);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| configuration(names, entry)),
        _ => {}
    }
}

/// Adds the texts in the code that are names on a wire.
fn sources(names: &mut Names, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(names, &path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for name in text.split('"').filter(|name| is_name(name)) {
                names.add("names in the code", name);
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_file = [".yaml", ".json", ".com", ".dev"]
        .iter()
        .any(|end| text.ends_with(end));
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    BEGINNINGS
        .iter()
        .any(|start| text.starts_with(start) && text.len() > start.len())
        && text.chars().all(is_word)
        && !is_file
}

/// Adds the metrics with their labels, from the page of a gateway.
fn metrics(names: &mut Names, page: &str) {
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            names.add("metrics", kind);
        } else if let Some((name, rest)) = line.split_once('{').filter(|_| !line.starts_with('#')) {
            let labels = rest.split('"').step_by(2);
            let labels = labels.map(|label| label.trim_start_matches(',').trim_end_matches('='));
            let labels: Vec<&str> = labels.filter(|label| !label.starts_with('}')).collect();
            names.add("metrics", format!("{name} by {}", labels.join(" ")));
        }
    }
}

/// Adds the members of log lines, which are JSON.
fn log(names: &mut Names, lines: &str) {
    for line in lines.lines() {
        if let Ok(Value::Object(line)) = serde_json::from_str(line) {
            line.keys().for_each(|key| names.add("members of the log", key));
        }
    }
}

/// Adds the answers of a gateway over HTTP: results, health and metrics.
fn gateway(names: &mut Names, place: &Place) {
    let served = Served::start(place);
    let ask = ["health", "--address", &served.address, "-o", "json"];
    for tool in ["greet", "greet", "pay", "fail", "rescued", "api", "inner__greet"] {
        let answer = served.post("localhost", &call(1, tool, &json!({})));
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        names.add_members("results of calls", &body);
    }
    names.add_output("health", &place.run(&ask));
    names.add_output("approvals ls", &place.run(&["approvals", "ls", "-o", "json"]));
    names.add_output(
        "tools disable",
        &place.run(&["tools", "disable", "greet", "-o", "json"]),
    );
    names.add_output(
        "servers ls --gateway",
        &place.run(&["servers", "ls", "--gateway", "-o", "json"]),
    );
    metrics(names, &served.page("/metrics").1);
}

#[test]
fn names_that_others_read() {
    let run_directory = tempfile::Builder::new().prefix("tp").tempdir().unwrap();
    let place = Place::with(&format!(
        "{TOOLS}servers:\n  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}\n"
    ))
    .variable("XDG_RUNTIME_DIR", run_directory.path().to_str().unwrap());
    place.write(
        "inner.yaml",
        "tools: {greet: {description: Greets, executor: {kind: mock, result: hello}}}",
    );
    place.write("bad.yaml", "tools: {a: {descriptio: Greets}}");
    let mut names = Names::default();
    command_line(&mut names, place.run(&["docs", "cli"]).data());
    configuration(&mut names, &place.run(&["schema"]).json());
    for &kind in ErrorKind::ALL {
        names.add("kinds of errors", kind.to_string());
    }
    for arguments in [
        &["tools", "ls"][..],
        &["tools", "show", "greet"],
        &["servers", "ls"],
        &["servers", "forget"],
        &["check"],
        &["check", "bad.yaml"],
        &["doctor"],
        &["call", "greet", "--explain"],
        &["call", "fail"],
        &["call", "missing"],
        &["call", "api", "--dry-run"],
        &["health", "--direct"],
        &["version"],
    ] {
        let run = place.run(&[arguments, &["-o", "json"]].concat());
        names.add_output(&arguments.join(" "), &run);
    }
    let run = place.run(&["call", "rescued", "-vv", "--log-format", "json"]);
    log(&mut names, &run.stderr);
    let run = place.run(&["call", "inner__greet", "-vv", "--log-format", "json"]);
    log(&mut names, &run.stderr);
    gateway(&mut names, &place);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for member in fs::read_dir(crates).unwrap() {
        let folder = member.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&mut names, &folder);
        }
    }
    insta::assert_snapshot!(names.shown());
}
