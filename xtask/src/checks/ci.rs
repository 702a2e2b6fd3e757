//! Runs every check, with the same steps on a developer's machine and in CI.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{deny, examples, features, layers, tidy};
use crate::api::api;
use crate::packages::package;
use crate::support::console::{refuse, say};
use crate::support::process::{cargo, run};
use crate::support::repository::Repository;
use crate::test::{TestOptions, test, tested_commit};
use crate::{conformance, docs};

/// Selection of the steps to run.
#[derive(Clone, Debug, Default)]
pub struct CiOptions {
    /// Steps to leave out.
    pub skip: Vec<String>,
    /// Steps to run. If empty, all steps are run.
    pub only: Vec<String>,
}

type Step = (&'static str, fn(&Repository) -> Result<()>);

/// All steps. Cheap checks come first; steps that compile come in an order in which each reuses the build of the step
/// before it.
const STEPS: [Step; 14] = [
    ("fmt", |repository| {
        run(cargo(repository.root()).args(["fmt", "--all", "--check"]))
    }),
    ("layers", |repository| {
        refuse("layers", layers::check_layers(repository.root())?)
    }),
    ("tidy", |repository| refuse("tidy", tidy::check_tidy(repository)?)),
    ("package", |repository| package(repository, false)),
    ("docs", |repository| docs::generate(repository, true, &[])),
    ("clippy", clippy),
    ("test", |repository| test(repository, &TestOptions::default())),
    ("examples", examples::examples),
    ("conformance", |repository| {
        conformance::conformance(repository, true)
    }),
    ("features", features::features),
    ("doc", doc),
    ("api", |repository| api(repository, false)),
    ("book", docs::book),
    ("deny", |repository| deny::deny(repository, false)),
];

/// Runs the steps and stops at the first that fails. Writes the commit to `target/ci-green` if all steps passed on a
/// clean tree.
///
/// # Errors
/// Returns an error if a step fails or an unknown step is named.
pub fn ci(repository: &Repository, options: &CiOptions) -> Result<()> {
    if let Some(unknown) = options
        .skip
        .iter()
        .chain(&options.only)
        .find(|name| !is_step(name))
    {
        bail!(
            "there is no step `{unknown}`; the steps are {}",
            STEPS.map(|(name, _)| name).join(", ")
        );
    }
    let commit = repository.clean_commit();
    let mut durations = Vec::new();
    for (name, step) in STEPS.iter().filter(|(name, _)| options.runs(name)) {
        say(format_args!("ci: {name}"));
        let (result, duration) = timed(|| step(repository));
        durations.push((*name, duration));
        if let Err(error) = result {
            say(table(&durations));
            return Err(error.context(format!("step `{name}` failed")));
        }
    }
    say(table(&durations));
    write_green(repository, options, commit)
}

impl CiOptions {
    fn runs(&self, step: &str) -> bool {
        let is_asked = self.only.is_empty() || self.only.iter().any(|name| name == step);
        is_asked && !self.skip.iter().any(|name| name == step)
    }
}

fn is_step(name: &str) -> bool {
    STEPS.iter().any(|(step, _)| *step == name)
}

fn clippy(repository: &Repository) -> Result<()> {
    run(cargo(repository.root()).args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))
}

fn doc(repository: &Repository) -> Result<()> {
    // Libraries only: the program `toolplane` and the crate `toolplane` would write to the same page.
    run(cargo(repository.root())
        .args(["doc", "--workspace", "--no-deps", "--lib"])
        .env("RUSTDOCFLAGS", "--deny warnings"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the time that a command takes on this machine is what is shown"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn table(durations: &[(&str, Duration)]) -> String {
    let total = ("total", durations.iter().map(|(_, duration)| *duration).sum());
    let lines: Vec<_> = durations
        .iter()
        .chain([&total])
        .map(|(name, duration): &(&str, Duration)| {
            format!("ci: {name:<11} {:>7.1} s", duration.as_secs_f64())
        })
        .collect();
    lines.join("\n")
}

/// Writes the mark that every step passed on this commit. The tests may have run just before, as in `.ci/run`.
fn write_green(repository: &Repository, options: &CiOptions, commit: Option<String>) -> Result<()> {
    let left_out = STEPS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name != "test" && !options.runs(name));
    let no_mark = |reason: &str| {
        say(format_args!(
            "ci: passed; `target/ci-green` is not written: {reason}"
        ));
        Ok(())
    };
    if let Some(name) = left_out {
        return no_mark(&format!("step `{name}` was left out"));
    }
    let Some(commit) = commit.filter(|commit| repository.clean_commit().as_ref() == Some(commit)) else {
        return no_mark("the tree differs from its commit");
    };
    if tested_commit(repository).as_ref() != Some(&commit) {
        return no_mark("not every test ran on this commit");
    }
    let mark = repository.target().join("ci-green");
    fs::write(&mark, format!("{commit}\n"))
        .with_context(|| format!("failed to write `{}`", mark.display()))?;
    say(format_args!("ci: passed on {commit}"));
    Ok(())
}
