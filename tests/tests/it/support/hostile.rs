use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{client::Era, process::Process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolplane-hostile-server");

/// What carries the messages of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Carrier {
    /// The lines of a process of its own.
    Stdio,
    /// HTTP bodies.
    Json,
    /// Streams of events over HTTP.
    Events,
}

/// Where servers are played that misbehave: all in one way of speaking.
pub(crate) struct Stage {
    pub(crate) carrier: Carrier,
    pub(crate) era: Era,
    /// What plays all of them over HTTP, and what its addresses begin with.
    http: Option<(Process, String)>,
    folder: TempDir,
}

impl Stage {
    pub(crate) fn new(carrier: Carrier, era: Era) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let form = match carrier {
            Carrier::Stdio => None,
            Carrier::Json => Some("json"),
            Carrier::Events => Some("events"),
        };
        let http = form.map(|form| {
            let mut command = Command::new(PROGRAM);
            let notes = folder.path().join("notes");
            let (process, _, output) = Process::spawn(command.arg("http").arg(notes));
            let mut output = BufReader::new(output);
            let mut address = String::new();
            output.read_line(&mut address).unwrap();
            thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
            (
                process,
                format!("http://{}/{}/{form}", address.trim_end(), era.name()),
            )
        });
        Self {
            carrier,
            era,
            http,
            folder,
        }
    }

    /// The settings of a server that misbehaves like this, with a time limit for each call.
    pub(crate) fn server(&self, mode: &str, timeout: Duration) -> Value {
        let mut server = match &self.http {
            Some((_, url)) => json!({"url": format!("{url}/{mode}")}),
            None => json!({
                "command": PROGRAM,
                "args": ["stdio", self.era.name(), mode, self.folder.path().join("notes")],
            }),
        };
        server["timeout_ms"] = json!(timeout.as_millis() as u64);
        server
    }

    /// How often a server has noted this.
    pub(crate) fn noted(&self, what: &str) -> usize {
        let notes = fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default();
        notes.lines().filter(|line| line.starts_with(what)).count()
    }
}

/// The settings of a server that does nothing wrong.
pub(crate) fn healthy_server() -> Value {
    json!({"command": PROGRAM, "args": ["stdio", "legacy", "healthy"]})
}

/// The program that plays servers that misbehave.
pub(crate) fn hostile_program() -> &'static str {
    PROGRAM
}

/// The arguments that make it a server over stdio that does nothing wrong, and notes what it does.
pub(crate) fn hostile_arguments(era: Era, notes: &Path) -> [&str; 4] {
    ["stdio", era.name(), "healthy", notes.to_str().unwrap()]
}
