//! Runs all tests on a machine without prior setup.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tp_postgres::{PostgresServer, SERVER_VARIABLE};

use crate::peers::{DocPart, folder, install_peers};
use crate::support::console::say;
use crate::support::process::{cargo, run, run_quietly, succeeds};
use crate::support::repository::Repository;

/// Selection of the tests to run.
#[derive(Clone, Debug, Default)]
pub struct TestOptions {
    /// Text that the name of a test must contain to be run.
    pub filter: Option<String>,
}

/// Installs the peers, runs every test, and reports at the end which tests this machine could not run.
///
/// # Errors
/// Returns an error if a test fails or, in CI (`CI=true`), if one was skipped.
pub fn test(repository: &Repository, options: &TestOptions) -> Result<()> {
    let commit = repository.clean_commit();
    let parts = install_peers(repository)?;
    let skips = repository.target().join("skips.txt");
    fs::write(&skips, "").with_context(|| format!("failed to write `{}`", skips.display()))?;

    // One server for all tests, until the end of this function. Without it, the tests that need one are skipped and say
    // why.
    let postgres = PostgresServer::start().ok();
    let prepared = |mut command: Command| {
        // `CI` is removed: with it, the first skip would end the test run early. All skips are reported as a failure
        // below.
        command
            .env("TOOLPLANE_PEERS", folder(repository))
            .env("TOOLPLANE_SKIPS", &skips)
            .env_remove("CI");
        if let Some(postgres) = &postgres {
            command.env(SERVER_VARIABLE, postgres.variable());
        }
        command
    };
    if !has_nextest(repository) {
        // The command below builds no examples, and some tests start one as a server. nextest builds them.
        run(cargo(repository.root()).args(["build", "--quiet", "--workspace", "--examples"]))?;
    }
    let tested = run(&mut prepared(test_command(repository, options)));
    let documented = tested.and_then(|()| {
        say("test: examples in the documentation ...");
        run_quietly(&mut prepared(doc_test_command(repository, options)))
    });
    let n_skips = report_skips(&fs::read_to_string(&skips).unwrap_or_default(), &parts);
    documented?;
    if n_skips == 0 && options.filter.is_none() {
        mark_green(repository, commit)?;
    }
    let which = if options.filter.is_some() {
        "the tests asked for"
    } else {
        "all tests"
    };
    end(which, n_skips)
}

/// Returns the commit on which all tests last passed, on a clean tree and without a skip.
pub(crate) fn tested_commit(repository: &Repository) -> Option<String> {
    let commit = fs::read_to_string(mark(repository)).ok()?;
    Some(commit.trim().to_owned())
}

/// Records that all tests passed. `commit` is the one checked out when the tests began: later changes were not
/// tested.
fn mark_green(repository: &Repository, commit: Option<String>) -> Result<()> {
    match commit.filter(|commit| repository.clean_commit().as_ref() == Some(commit)) {
        Some(commit) => {
            fs::write(mark(repository), format!("{commit}\n")).context("failed to write `target/test-green`")
        }
        None => Ok(()),
    }
}

fn mark(repository: &Repository) -> PathBuf {
    repository.target().join("test-green")
}

fn test_command(repository: &Repository, options: &TestOptions) -> Command {
    let mut command = cargo(repository.root());
    if has_nextest(repository) {
        command.args(["nextest", "run", "--workspace"]);
        if in_ci() {
            command.args(["--profile", "ci"]);
        }
        command.args(&options.filter);
    } else {
        say("test: cargo-nextest is not installed, `cargo test` runs the tests (slower, same tests)");
        command.args([
            "test",
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ]);
        command.args(
            options
                .filter
                .as_ref()
                .map(|filter| ["--", filter])
                .iter()
                .flatten(),
        );
    }
    command
}

fn doc_test_command(repository: &Repository, options: &TestOptions) -> Command {
    let mut command = cargo(repository.root());
    command.args(["test", "--workspace", "--doc", "--quiet"]);
    command.args(
        options
            .filter
            .as_ref()
            .map(|filter| ["--", filter])
            .iter()
            .flatten(),
    );
    command
}

fn has_nextest(repository: &Repository) -> bool {
    succeeds(cargo(repository.root()).args(["nextest", "--version"]))
}

/// Returns `true` in CI (`CI=true`).
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn report_skips(skips: &str, parts: &[DocPart]) -> usize {
    let mut lines: Vec<_> = skips.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    for line in &lines {
        say(format_args!("test: skipped {line}"));
    }
    for part in parts {
        if let Some(reason) = &part.missing {
            say(format_args!("test: {} missing: {reason}", part.name));
        }
    }
    lines.len()
}

fn end(which: &str, n_skips: usize) -> Result<()> {
    match (n_skips, in_ci()) {
        (0, _) => say(format_args!("test: {which} ran and passed")),
        (_, false) => say(format_args!(
            "test: {which} passed, {n_skips} skipped as listed above"
        )),
        (_, true) => bail!("{n_skips} tests were skipped; in CI (`CI=true`) that is a failure"),
    }
    Ok(())
}
