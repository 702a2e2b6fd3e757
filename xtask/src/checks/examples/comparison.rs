//! The example programs that stand beside the same program of a peer, and their table.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::lines::count_lines;
use crate::support::console::say;
use crate::support::repository::Repository;

/// Folder of our programs.
const PROGRAMS: &str = "examples/programs";
/// Workspace of the peers' programs.
pub(super) const PEERS: &str = "examples/peers";

/// A program of ours, and the one that does the same job with other crates.
pub(super) struct Program {
    /// Name of both programs.
    pub(super) name: &'static str,
    /// The job.
    task: &'static str,
    /// Maximum number of lines of ours.
    max_lines: Option<usize>,
    /// Crates of the peer.
    peer: &'static str,
    /// Data or code besides the program, of ours and of the peer.
    more: Option<[&'static str; 2]>,
    /// How the programs are run.
    pub(super) run: Run,
}

/// How a program is run.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// Without arguments.
    Alone,
    /// With the path of this example as its argument.
    With(&'static str),
    /// As the argument of this example.
    By(&'static str),
    /// As a test.
    Test,
}

pub(super) const COMPARED: [Program; 9] = [
    Program {
        name: "facade",
        task: "tools from data: list, call, three calls in one turn, four kinds of errors, events",
        max_lines: Some(25),
        peer: "rmcp, tower, jsonschema",
        more: Some([
            "examples/data/facade.yaml",
            "examples/peers/src/bin/facade/tools.rs",
        ]),
        run: Run::Alone,
    },
    Program {
        name: "own_executor",
        task: "a kind of tool, a layer and an observer of the program itself",
        max_lines: Some(45),
        peer: "tower",
        more: None,
        run: Run::Alone,
    },
    Program {
        name: "mcp_client",
        task: "starts a server, lists its tools, calls one, shows progress, answers a question",
        max_lines: Some(20),
        peer: "rmcp",
        more: None,
        run: Run::With("desk-server"),
    },
    Program {
        name: "mcp_server",
        task: "two tools with schemas and progress, on stdio and over HTTP",
        max_lines: Some(25),
        peer: "rmcp, axum",
        more: None,
        run: Run::By("visit-server"),
    },
    Program {
        name: "schema",
        task: "compiles a JSON Schema, checks texts against it, prints the problems",
        max_lines: Some(10),
        peer: "jsonschema",
        more: None,
        run: Run::Alone,
    },
    Program {
        name: "policy_stack",
        task: "a deadline, retries, a circuit breaker, a rate limit and a timeout around a closure",
        max_lines: Some(30),
        peer: "tower, tower-resilience",
        more: None,
        run: Run::Alone,
    },
    Program {
        name: "http_tool",
        task: "one GET with arguments, a credential, a path into the response, and retries",
        max_lines: Some(20),
        peer: "reqwest, backon",
        more: None,
        run: Run::Alone,
    },
    Program {
        name: "embedded_gateway",
        task: "tools at a route of an axum router, behind the login of the program, for one host name",
        max_lines: Some(25),
        peer: "rmcp, axum",
        more: Some([
            "examples/data/greeting.yaml",
            "examples/peers/src/bin/embedded_gateway/tools.rs",
        ]),
        run: Run::Alone,
    },
    Program {
        name: "mock_in_a_test",
        task: "tests of one's own MCP client against servers that fail",
        max_lines: None,
        peer: "rmcp, wiremock",
        more: None,
        run: Run::Test,
    },
];

/// Lengths of both programs, in lines.
struct Lengths {
    ours: Length,
    peers: Length,
}

struct Length {
    program: usize,
    more: Option<usize>,
}

impl Program {
    /// Returns the name of cargo's target for ours.
    pub(super) fn target(&self) -> String {
        self.name.replace('_', "-")
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(PROGRAMS).join(self.name).with_extension("rs")
    }

    fn peer_path(&self, repository: &Repository) -> PathBuf {
        let folder = match self.run {
            Run::Test => "tests",
            _ => "src/bin",
        };
        let path = PathBuf::from(PEERS).join(folder).join(self.name);
        if repository.root().join(&path).is_dir() {
            path.join("main.rs")
        } else {
            path.with_extension("rs")
        }
    }

    fn lengths(&self, repository: &Repository) -> Result<Lengths> {
        let count = |path: &PathBuf| {
            let text = repository.text(path);
            let text = text.with_context(|| format!("failed to read `{}`", path.display()))?;
            anyhow::Ok(count_lines(&text))
        };
        let more = |side: usize| self.more.map(|more| count(&more[side].into())).transpose();
        Ok(Lengths {
            ours: Length {
                program: count(&self.path())?,
                more: more(0)?,
            },
            peers: Length {
                program: count(&self.peer_path(repository))?,
                more: more(1)?,
            },
        })
    }

    fn max_lines(&self) -> String {
        self.max_lines.map(|lines| lines.to_string()).unwrap_or_default()
    }
}

impl Length {
    fn shown(&self) -> String {
        match self.more {
            Some(more) => format!("{} + {more}", self.program),
            None => self.program.to_string(),
        }
    }
}

/// Prints the lengths of all programs.
///
/// # Errors
/// Returns an error if a program of ours is longer than it may be.
pub(super) fn print_lengths(repository: &Repository) -> Result<()> {
    say(format_args!(
        "examples: {:<17} {:>8} {:>8} {:>9}",
        "lines of", "ours", "at most", "peer"
    ));
    let mut too_long = Vec::new();
    for program in &COMPARED {
        let Lengths { ours, peers } = program.lengths(repository)?;
        say(format_args!(
            "examples: {:<17} {:>8} {:>8} {:>9}  {}",
            program.name,
            ours.shown(),
            program.max_lines(),
            peers.shown(),
            program.peer
        ));
        if program.max_lines.is_some_and(|max| ours.program > max) {
            too_long.push(program.name);
        }
    }
    if !too_long.is_empty() {
        bail!("too long: {}", too_long.join(", "));
    }
    Ok(())
}

/// Writes the lengths of all programs as a table for the book.
pub(crate) fn comparison_table(repository: &Repository) -> Result<String> {
    let mut table =
        "| program | job | lines | at most | lines of the peer | peer |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for program in &COMPARED {
        let Lengths { ours, peers } = program.lengths(repository)?;
        let link = |path: PathBuf, text: &str| format!("[{text}](../../../{})", path.display());
        table += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            link(program.path(), &format!("`{}`", program.name)),
            program.task,
            ours.shown(),
            program.max_lines(),
            peers.shown(),
            link(program.peer_path(repository), program.peer),
        );
    }
    Ok(table)
}
