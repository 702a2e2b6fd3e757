//! Runs the requirement sets for servers through the gateway, in front of the fixture.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::build::program::{build, executable};
use crate::support::console::say;
use crate::support::repository::Repository;

use super::suite::{Run, Side, Suite, Upstream};
use super::{REVISIONS, folder, start};

/// Number of runs at a time. They mostly wait.
const AT_ONCE: usize = 4;

/// Runs the sets through `toolplane serve`, with the fixture behind it on both transports and in both eras.
pub(super) fn runs(repository: &Repository, suite: &Suite) -> Result<Vec<Run>> {
    let programs = Programs::build(repository)?;
    let mut planned = Vec::new();
    for revision in REVISIONS {
        for transport in ["HTTP", "stdio"] {
            for era in ["legacy", "modern"] {
                let upstream = Upstream {
                    transport,
                    era,
                    is_same_era: (era == "modern") == (revision >= "2026"),
                };
                planned.push((revision, upstream));
            }
        }
    }
    let mut runs = Vec::new();
    for some in planned.chunks(AT_ONCE) {
        runs.extend(programs.run_all(suite, some)?);
    }
    Ok(runs)
}

/// Programs and folder that the runs use.
struct Programs {
    gateway: PathBuf,
    fixture: PathBuf,
    /// Folder for the gateway's configuration and its output.
    folder: PathBuf,
}

impl Programs {
    fn build(repository: &Repository) -> Result<Self> {
        let (gateway, fixture) = ("toolplane", "conformance-server");
        let built = build(repository, &["--package", "toolplane-cli", "--bin", gateway])?;
        let gateway = executable(&built, gateway)?;
        let built = build(repository, &["--package", "mcp-server", "--example", fixture])?;
        let fixture = executable(&built, fixture)?;
        Ok(Self {
            gateway,
            fixture,
            folder: folder(repository)?,
        })
    }

    /// Runs sets at the same time.
    fn run_all(&self, suite: &Suite, planned: &[(&'static str, Upstream)]) -> Result<Vec<Run>> {
        thread::scope(|scope| {
            let started: Vec<_> = planned
                .iter()
                .map(|&(revision, upstream)| scope.spawn(move || self.run(suite, revision, upstream)))
                .collect();
            let ended = started
                .into_iter()
                .map(|run| run.join().map_err(|_| anyhow!("a run panicked"))?);
            ended.collect()
        })
    }

    fn run(&self, suite: &Suite, revision: &'static str, upstream: Upstream) -> Result<Run> {
        let Upstream { transport, era, .. } = upstream;
        say(format_args!(
            "conformance: servers, {revision}, through the gateway to {transport}, {era} ..."
        ));
        let file = |name: &str, ending: &str| {
            let name = format!("{name}-{revision}-{transport}-{era}.{ending}");
            self.folder.join(name)
        };
        let listening = match transport {
            "HTTP" => Some(start(&self.fixture, &[], &file("server", "log"))?),
            _ => None,
        };
        let place = match &listening {
            Some((_, port)) => format!("url: http://127.0.0.1:{port}/mcp"),
            None => format!("command: {}\n    args: [--stdio]", quoted(&self.fixture)?),
        };
        let text = format!("servers:\n  fixture:\n    {place}\n    prefix: \"\"\n    era: {era}\n");
        let configuration = file("gateway", "yaml");
        fs::write(&configuration, text)
            .with_context(|| format!("failed to write `{}`", configuration.display()))?;
        let arguments = [
            OsStr::new("--config"),
            configuration.as_os_str(),
            OsStr::new("serve"),
            OsStr::new("--http"),
        ];
        let (gateway, port) = start(&self.gateway, &arguments, &file("gateway", "log"))?;
        let url = format!("http://127.0.0.1:{port}/mcp");
        let run = suite.run(Side::Server, revision, Some(upstream), &["--url", &url])?;
        drop((gateway, listening));
        Ok(run)
    }
}

/// Formats a path as a YAML string.
fn quoted(path: &Path) -> Result<String> {
    let path = path.to_str().context("the path of a program is no text")?;
    Ok(serde_json::Value::from(path).to_string())
}
