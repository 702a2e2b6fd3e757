//! Runs the requirement sets for servers through the gateway, in front of the fixture.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::build::program::{build, executable};
use crate::support::console::say;
use crate::support::repository::Repository;

use super::suite::{Run, Side, Suite, Upstream};
use super::{REVISIONS, folder, start};

/// Runs the sets through `toolplane serve`, with the fixture behind it on both transports and in both eras.
pub(super) fn runs(repository: &Repository, suite: &Suite) -> Result<Vec<Run>> {
    let programs = Programs::build(repository)?;
    let mut runs = Vec::new();
    for revision in REVISIONS {
        for transport in ["HTTP", "stdio"] {
            for era in ["legacy", "modern"] {
                let upstream = Upstream {
                    transport,
                    era,
                    is_same_era: (era == "modern") == (revision >= "2026"),
                };
                say(format_args!(
                    "conformance: servers, {revision}, through the gateway to {transport}, {era} ..."
                ));
                runs.push(programs.run(suite, revision, upstream)?);
            }
        }
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

    fn run(&self, suite: &Suite, revision: &'static str, upstream: Upstream) -> Result<Run> {
        let listening = match upstream.transport {
            "HTTP" => Some(start(&self.fixture, &[], &self.folder.join("server.log"))?),
            _ => None,
        };
        let place = match &listening {
            Some((_, port)) => format!("url: http://127.0.0.1:{port}/mcp"),
            None => format!("command: {}\n    args: [--stdio]", quoted(&self.fixture)?),
        };
        let text = format!(
            "servers:\n  fixture:\n    {place}\n    prefix: \"\"\n    era: {}\n",
            upstream.era
        );
        let configuration = self.folder.join("gateway.yaml");
        fs::write(&configuration, text)
            .with_context(|| format!("failed to write `{}`", configuration.display()))?;
        let arguments = [
            OsStr::new("--config"),
            configuration.as_os_str(),
            OsStr::new("serve"),
            OsStr::new("--http"),
        ];
        let (gateway, port) = start(&self.gateway, &arguments, &self.folder.join("gateway.log"))?;
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
