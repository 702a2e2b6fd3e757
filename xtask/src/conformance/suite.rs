//! Runs the suite as a program and parses its output.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::peers;
use crate::support::process::output;
use crate::support::repository::Repository;

/// Installed suite.
#[derive(Debug)]
pub(super) struct Suite {
    node: PathBuf,
    program: PathBuf,
    results: PathBuf,
}

/// Side of the protocol that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// Results of one requirement set.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) side: Side,
    pub(super) revision: &'static str,
    /// Server behind the gateway, if the set was run through it.
    pub(super) upstream: Option<Upstream>,
    /// Scenarios that count, in the order of the suite.
    pub(super) required: Vec<String>,
    /// Results of every scenario that was run.
    pub(super) results: BTreeMap<String, Checks>,
    /// `true` if the suite itself reports success.
    is_content: bool,
}

/// Server behind the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upstream {
    /// `HTTP` or `stdio`.
    pub(super) transport: &'static str,
    /// Protocol era used with the server: `legacy` or `modern`.
    pub(super) era: &'static str,
    /// `true` if the set is of the same era. The gateway must then lose no check.
    pub(super) is_same_era: bool,
}

/// Check results of one scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checks {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Suite {
    pub(super) fn new(repository: &Repository) -> Result<Self> {
        let modules = peers::folder(repository).join("node/node_modules");
        let program = modules.join("@modelcontextprotocol/conformance/dist/index.js");
        ensure!(
            program.is_file(),
            "the conformance suite is not installed: run `cargo xtask peers`"
        );
        Ok(Self {
            node: peers::node(&peers::folder(repository)),
            program,
            results: repository.target().join("conformance"),
        })
    }

    /// Runs the requirement set of one revision.
    pub(super) fn run(
        &self,
        side: Side,
        revision: &'static str,
        upstream: Option<Upstream>,
        arguments: &[&str],
    ) -> Result<Run> {
        let required = required(
            &output(self.command().args(["list", "--requirements", revision]))?,
            side,
        );
        ensure!(
            !required.is_empty(),
            "the suite names no scenarios for {} of {revision}",
            side.plural()
        );
        let mut name = format!("{}-{revision}", side.word());
        if let Some(upstream) = upstream {
            name += &format!("-{}-{}", upstream.transport, upstream.era);
        }
        let folder = self.results.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
        }
        let ran = self
            .command()
            .args([side.word(), "--requirements", revision, "--output-dir"])
            .arg(&folder)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("failed to start the conformance suite")?;
        let said = String::from_utf8_lossy(&ran.stdout);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("said.txt"), [&*ran.stdout, &*ran.stderr].concat())?;
        Ok(Run {
            side,
            revision,
            upstream,
            required,
            results: results(&said),
            is_content: ran.status.success(),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program);
        command
    }
}

impl Side {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Server => "servers",
            Self::Client => "clients",
        }
    }
}

impl Run {
    /// Returns the name of the run.
    pub(super) fn name(&self) -> String {
        let name = format!("{}, {}", self.side.plural(), self.revision);
        match self.upstream {
            Some(Upstream { transport, era, .. }) => {
                format!("{name}, through the gateway to {transport}, {era}")
            }
            None => name,
        }
    }

    /// Returns `true` if every scenario must pass. Between the eras, some features have no equivalent.
    pub(super) fn is_demanded(&self) -> bool {
        self.upstream.is_none_or(|upstream| upstream.is_same_era)
    }

    /// Returns the required scenarios that failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = &String> {
        self.required
            .iter()
            .filter(|scenario| !self.has_passed(scenario) && !self.is_expected_to_fail(scenario))
    }

    /// Returns `true` if a scenario passed. A scenario without checks has not passed.
    pub(super) fn has_passed(&self, scenario: &str) -> bool {
        let checks = self.results.get(scenario);
        checks.is_some_and(|checks| checks.failed == 0 && checks.passed > 0)
    }

    /// Returns `true` if a scenario may fail, because clients have no OAuth yet. The suite's own verdict covers other
    /// expected failures.
    pub(super) fn is_expected_to_fail(&self, scenario: &str) -> bool {
        self.side == Side::Client && scenario.starts_with("auth/")
    }

    /// Returns the messages of all unexpected failures.
    pub(super) fn failures(&self) -> Vec<String> {
        if !self.is_demanded() {
            return Vec::new();
        }
        let place = self.name();
        let mut failures: Vec<_> = self
            .failed()
            .map(|scenario| format!("{place}: `{scenario}` failed"))
            .collect();
        if failures.is_empty() && !self.is_content {
            failures.push(format!(
                "{place}: the suite is not content, see `said.txt` in `target/conformance`"
            ));
        }
        failures
    }
}

/// Returns the scenarios of which the gateway passes fewer checks than its upstream does alone, if both are of the
/// era of the set. The suite does not treat warnings or omitted checks as failures.
pub(super) fn lost_checks(runs: &[Run]) -> Vec<String> {
    let passed = |run: &Run, scenario: &str| run.results.get(scenario).map_or(0, |checks| checks.passed);
    let through = runs
        .iter()
        .filter(|run| run.upstream.is_some() && run.is_demanded());
    let mut lost = Vec::new();
    for run in through {
        let is_direct = |other: &&Run| {
            other.upstream.is_none() && (other.side, other.revision) == (run.side, run.revision)
        };
        let Some(direct) = runs.iter().find(is_direct) else {
            continue;
        };
        for scenario in &run.required {
            let (here, there) = (passed(run, scenario), passed(direct, scenario));
            if here < there {
                lost.push(format!(
                    "{}: `{scenario}` passed {here} checks, and {there} without the gateway",
                    run.name()
                ));
            }
        }
    }
    lost
}

/// Parses the scenarios that count for one side from the output of `list --requirements`.
pub(super) fn required(said: &str, side: Side) -> Vec<String> {
    let heading = match side {
        Side::Server => "Server scenarios",
        Side::Client => "Client scenarios",
    };
    said.lines()
        .skip_while(|line| !line.starts_with(heading))
        .skip(1)
        .map_while(|line| line.strip_prefix("  - "))
        .map(|scenario| scenario.trim().to_owned())
        .collect()
}

/// Parses the results at the end of a run's output: `✓ ping: 2 passed, 0 failed`.
pub(super) fn results(said: &str) -> BTreeMap<String, Checks> {
    said.lines().filter_map(result).collect()
}

fn result(line: &str) -> Option<(String, Checks)> {
    let line = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ "))?;
    let (scenario, counts) = line.rsplit_once(": ")?;
    let (passed, rest) = counts.split_once(" passed, ")?;
    let failed = rest.split_once(" failed")?.0;
    let checks = Checks {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
    };
    Some((scenario.to_owned(), checks))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "Required for 2025-11-25 (3 scenarios):\n\nServer scenarios (test against a server):\n  - ping\n  - tools-list\n\nClient scenarios (test against a client):\n  - initialize\n\nRun and reported, but never scored:\n  pending (1):\n    - server-sse-polling [server]\n";

    #[test]
    fn required_scenarios_are_those_of_one_side() {
        assert_eq!(required(LISTED, Side::Server), ["ping", "tools-list"]);
        assert_eq!(required(LISTED, Side::Client), ["initialize"]);
    }

    #[test]
    fn results_are_read_from_the_summary() {
        let said = "Running ping: 1 passed\n=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n✗ auth/x: 1 passed, 3 failed, 1 warnings\n\nTotal: 3 passed, 3 failed\n  ✓ later (pending)\n";
        let results = results(said);
        assert_eq!(
            results.into_iter().collect::<Vec<_>>(),
            [
                ("auth/x".to_owned(), Checks { passed: 1, failed: 3 }),
                ("ping".to_owned(), Checks { passed: 2, failed: 0 }),
            ]
        );
    }

    #[test]
    fn a_scenario_passes_by_a_check() {
        let run = |side, said: &str| Run {
            side,
            revision: "2025-11-25",
            upstream: None,
            required: vec!["a".to_owned(), "auth/b".to_owned()],
            results: results(said),
            is_content: true,
        };
        let both = "✓ a: 1 passed, 0 failed\n✓ auth/b: 1 passed, 0 failed\n";
        assert!(run(Side::Server, both).failures().is_empty());
        for said in [
            "",
            "✓ a: 0 passed, 0 failed\n✗ auth/b: 0 passed, 1 failed\n",
            "✗ a: 1 passed, 1 failed\n",
        ] {
            assert_eq!(run(Side::Server, said).failures().len(), 2, "{said}");
            // A client may fail the scenarios that need OAuth.
            assert_eq!(run(Side::Client, said).failures().len(), 1, "{said}");
        }
        let grumbling = Run {
            is_content: false,
            ..run(Side::Server, both)
        };
        assert_eq!(grumbling.failures().len(), 1);
    }
    #[test]
    fn the_gateway_passes_as_many_checks_as_its_upstream() {
        let run = |era: Option<&'static str>, said: &str| Run {
            side: Side::Server,
            revision: "2026-07-28",
            upstream: era.map(|era| Upstream {
                transport: "HTTP",
                era,
                is_same_era: era == "modern",
            }),
            required: vec!["a".to_owned(), "b".to_owned()],
            results: results(said),
            is_content: true,
        };
        let direct = "✓ a: 30 passed, 0 failed\n✓ b: 1 passed, 0 failed\n✓ beyond: 9 passed, 0 failed\n";
        let fewer = "✓ a: 28 passed, 0 failed, 2 warnings\n✓ b: 2 passed, 0 failed\n";
        let lost = |era, said| lost_checks(&[run(None, direct), run(Some(era), said)]);
        assert!(lost("modern", direct).is_empty());
        assert_eq!(
            lost("modern", fewer),
            [
                "servers, 2026-07-28, through the gateway to HTTP, modern: `a` passed 28 checks, and 30 without the gateway"
            ]
        );
        // Between the eras, some features have no equivalent.
        assert!(lost("legacy", fewer).is_empty());
    }
}
