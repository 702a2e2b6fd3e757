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

/// Transport of a server's messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Carrier {
    /// Lines of a process.
    Stdio,
    /// HTTP bodies.
    Json,
    /// Event streams over HTTP.
    Events,
}

/// A group of misbehaving servers with the same era and transport.
pub(crate) struct Stage {
    pub(crate) carrier: Carrier,
    pub(crate) era: Era,
    /// Process that plays all of them over HTTP, and the beginning of their URLs.
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

    /// Returns the settings of a server with this mode, with a time limit for each call.
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

    /// Returns how often servers have recorded this.
    pub(crate) fn noted(&self, what: &str) -> usize {
        let notes = fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default();
        notes.lines().filter(|line| line.starts_with(what)).count()
    }
}

/// Returns the settings of a healthy server.
pub(crate) fn healthy_server() -> Value {
    json!({"command": PROGRAM, "args": ["stdio", "legacy", "healthy"]})
}

/// Returns the hostile server program.
pub(crate) fn hostile_program() -> &'static str {
    PROGRAM
}

/// Returns the arguments for a healthy server over stdio that records its messages.
pub(crate) fn hostile_arguments(era: Era, notes: &Path) -> [&str; 4] {
    ["stdio", era.name(), "healthy", notes.to_str().unwrap()]
}
