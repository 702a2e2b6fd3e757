//! Runs the official conformance suite of MCP against our server and our client.

mod gateway;
mod report;
mod suite;

use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::build::program::{build, executable};
use crate::docs::replace_part;
use crate::peers;
use crate::support::console::{Violation, refuse, say};
use crate::support::repository::Repository;

use self::report::{is_beyond, summary, tables};
use self::suite::{Run, Side, Suite, lost_checks};

/// Revisions whose requirement sets are run.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Page that shows the results.
const PAGE: &str = "docs/src/reference/conformance.md";
/// Part of the page that is generated here.
const PART: &str = "results";
/// Client scenarios that are known to fail.
const EXPECTED: &str = "tests/conformance/expected-failures.yaml";

/// Runs the suite's requirement sets, and writes the results into the documentation, or with `check` rejects a page
/// that is out of date.
///
/// # Errors
/// Returns an error if a required scenario fails that is not a known failure, if a known failure passes, if the
/// gateway passes fewer checks of a scenario than its upstream does alone, or if the page cannot be written.
pub fn conformance(repository: &Repository, check: bool) -> Result<()> {
    peers::install_node(repository)?;
    let suite = Suite::new(repository)?;
    let mut runs = servers(repository, &suite)?;
    runs.extend(gateway::runs(repository, &suite)?);
    runs.extend(clients(repository, &suite)?);
    say(summary(&runs));
    let mut failures: Vec<_> = runs.iter().flat_map(Run::failures).collect();
    failures.extend(lost_checks(&runs));
    if !failures.is_empty() {
        bail!("the conformance suite has failures:\n{}", failures.join("\n"));
    }
    write_page(repository, &runs, check)
}

/// Runs the sets for servers against the fixture of `mcp-server`.
fn servers(repository: &Repository, suite: &Suite) -> Result<Vec<Run>> {
    let name = "conformance-server";
    let built = build(repository, &["--package", "mcp-server", "--example", name])?;
    let program = executable(&built, name)?;
    let mut runs = Vec::new();
    for revision in REVISIONS {
        let (server, port) = start(&program, &[], &folder(repository)?.join("server.log"))?;
        say(format_args!("conformance: servers, {revision} ..."));
        let url = format!("http://127.0.0.1:{port}/mcp");
        runs.push(suite.run(Side::Server, revision, None, &["--url", &url])?);
        drop(server);
    }
    Ok(runs)
}

/// Runs the sets for clients with the program of `mcp-client`.
fn clients(repository: &Repository, suite: &Suite) -> Result<Vec<Run>> {
    let name = "conformance-client";
    let example = Path::new("crates/mcp-client/examples").join(name);
    let is_there = |file: &Path| repository.files().iter().any(|known| known == file);
    if !is_there(&example.with_extension("rs")) && !is_there(&example.join("main.rs")) {
        say("conformance: clients are left out, there is no program to test");
        return Ok(Vec::new());
    }
    let built = build(repository, &["--package", "mcp-client", "--example", name])?;
    let program = executable(&built, name)?;
    let command = program.to_str().context("the path of the client is no text")?;
    let expected = repository.root().join(EXPECTED);
    let expected = expected.to_str().context("the path of the checkout is no text")?;
    let mut runs = Vec::new();
    for revision in REVISIONS {
        say(format_args!("conformance: clients, {revision} ..."));
        let arguments = ["--command", command, "--expected-failures", expected];
        runs.push(suite.run(Side::Client, revision, None, &arguments)?);
    }
    Ok(runs)
}

/// Returns the folder for the output of the suite and the servers.
fn folder(repository: &Repository) -> Result<PathBuf> {
    let folder = repository.target().join("conformance");
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    Ok(folder)
}

/// Process that is killed on drop.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free local port, which it receives as its last argument, and waits until it listens. Its
/// stderr goes into `log`.
fn start(program: &Path, arguments: &[&OsStr], log: &Path) -> Result<(Started, u16)> {
    // One at a time: a port that was found free stays so until the server listens.
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = STARTING.lock();
    // Each server has an empty home: it reads nothing that earlier runs kept, and leaves nothing in the user's.
    let home = log.with_extension("home");
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| format!("failed to clear `{}`", home.display()))?;
    }
    fs::create_dir_all(&home).with_context(|| format!("failed to make `{}`", home.display()))?;
    let log = fs::File::create(log).with_context(|| format!("failed to write `{}`", log.display()))?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let child = Command::new(program)
        .args(arguments)
        .arg(format!("127.0.0.1:{port}"))
        .env("HOME", home)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .with_context(|| format!("failed to start `{}`", program.display()))?;
    let mut started = Started(child);
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok((started, port));
        }
        if let Some(status) = started.0.try_wait()? {
            bail!("`{}` ended with {status} before it listened", program.display());
        }
        sleep(Duration::from_millis(50));
    }
    bail!("`{}` does not listen on port {port}", program.display())
}

fn write_page(repository: &Repository, runs: &[Run], check: bool) -> Result<()> {
    let text = repository
        .text(PAGE)
        .with_context(|| format!("failed to read `{PAGE}`"))?;
    let fresh = replace_part(&text, PART, &tables(runs))
        .with_context(|| format!("`{PAGE}` has no markers for the part `{PART}`"))?;
    if check {
        if demanded(&fresh, runs) == demanded(&text, runs) {
            return Ok(());
        }
        let message = "the results are out of date: run `cargo xtask conformance`";
        return refuse("conformance", vec![Violation::in_file(PAGE, message)]);
    }
    if fresh == text {
        return Ok(());
    }
    fs::write(repository.root().join(PAGE), fresh).with_context(|| format!("failed to write `{PAGE}`"))?;
    say(format_args!("conformance: wrote the results into `{PAGE}`"));
    Ok(())
}

/// Returns the lines of the page that must be up to date. Between the eras and outside of the sets, results may
/// depend on the speed of the machine.
fn demanded<'a>(page: &'a str, runs: &[Run]) -> Vec<&'a str> {
    let mixed: Vec<_> = runs
        .iter()
        .filter(|run| !run.is_demanded())
        .map(Run::name)
        .collect();
    let is_demanded = |line: &&str| {
        let scenario = line.strip_prefix("| `").unwrap_or_default();
        !is_beyond(scenario) && !mixed.iter().any(|name| line.contains(name))
    };
    page.lines().filter(is_demanded).collect()
}
