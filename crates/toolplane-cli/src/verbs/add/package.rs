//! Packages and images: their settings, and the version that ran.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use toolplane::catalog::{Bundle, BundleContent};

use super::settings::NewServer;
use crate::{clients::entry, config, error::CliError};

/// Version in the settings of a package until it is known.
const UNKNOWN: &str = "0.0.0";

/// Registry of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Npm,
    Pypi,
    Oci,
}

/// Package or image that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    kind: Kind,
    name: String,
    version: Option<String>,
}

impl Package {
    /// Reads `npm:PACKAGE[@VERSION]`, `pypi:PACKAGE[==VERSION]` or `oci:IMAGE[:TAG][@DIGEST]`. `None` if it is neither.
    pub(super) fn read(written: &str) -> Option<Self> {
        let (kind, rest) = written.split_once(':')?;
        let (kind, name, version) = match kind {
            "npm" => {
                // A scope begins with `@`.
                let at = rest
                    .char_indices()
                    .skip(1)
                    .find(|(_, c)| *c == '@')
                    .map(|(at, _)| at);
                let version = at.map(|at| &rest[at + 1..]);
                (Kind::Npm, &rest[..at.unwrap_or(rest.len())], version)
            }
            "pypi" => match rest.split_once("==").or_else(|| rest.split_once('@')) {
                Some((name, version)) => (Kind::Pypi, name, Some(version)),
                None => (Kind::Pypi, rest, None),
            },
            "oci" | "docker" => {
                let last = rest.rsplit('/').next().unwrap_or(rest);
                match (last.contains('@'), rest.strip_suffix(":latest")) {
                    (true, _) => (Kind::Oci, rest, Some("")),
                    (false, Some(name)) => (Kind::Oci, name, None),
                    (false, None) if last.contains(':') => (Kind::Oci, rest, Some("")),
                    (false, None) => (Kind::Oci, rest, None),
                }
            }
            _ => return None,
        };
        let version = version.filter(|version| *version != "latest").map(str::to_owned);
        Some(Self {
            kind,
            name: name.to_owned(),
            version,
        })
    }

    /// Makes the settings of a server, as those of a `server.json` are made. `env` are the names of its variables.
    ///
    /// # Errors
    /// If the name or the version is none of the registry.
    pub(super) fn settings(&self, env: &[&str]) -> Result<Value, CliError> {
        let kind = match self.kind {
            Kind::Npm => "npm",
            Kind::Pypi => "pypi",
            Kind::Oci => "oci",
        };
        let version = self.version.as_deref().unwrap_or(UNKNOWN);
        let variables: Vec<Value> = env
            .iter()
            .map(|name| json!({"name": name, "isRequired": true}))
            .collect();
        let mut package = json!({
            "registryType": kind,
            "identifier": self.name,
            "transport": {"type": "stdio"},
            "environmentVariables": variables,
        });
        if !version.is_empty() {
            package["version"] = version.into();
        }
        if self.kind == Kind::Oci && !has_program("docker") && has_program("podman") {
            package["runtimeHint"] = "podman".into();
        }
        let document = json!({
            "name": "local/server", "description": "Server of the command line.", "version": "1.0.0", "packages": [package],
        });
        let bundle = Bundle::parse("server.json", document.to_string().as_bytes())?;
        let BundleContent::McpServer(server) = bundle.content else {
            return Err(CliError::failed("the package cannot be described"));
        };
        let plan = server.plan(None, &BTreeMap::new()).map_err(|error| {
            // The description of the server is ours: only the reason about its package is of use.
            let message = error.to_string();
            let reason = message.split_once("): ").map_or(message.as_str(), |(_, reason)| reason);
            CliError::usage(format!("the package cannot be used: {reason}"))
                .with_hint("write a name as its registry has it, and one version or none: `npm:weather@1.2.3`, `pypi:weather==1.2.3`, `oci:weather:1.2.3`")
        })?;
        let settings = plan.settings.to::<Value>().unwrap_or_default();
        Ok(match &self.version {
            Some(_) => settings,
            None => replaced(settings, &self.with_version(UNKNOWN), &self.name),
        })
    }

    /// Returns the package with a version, as its program takes it.
    fn with_version(&self, version: &str) -> String {
        let separator = match self.kind {
            Kind::Npm => "@",
            Kind::Pypi => "==",
            Kind::Oci if version.starts_with("sha256:") => "@",
            Kind::Oci => ":",
        };
        format!("{}{separator}{version}", self.name)
    }

    /// Returns the command that prints the version that a start runs, and the reader of its output.
    fn version_command(&self, settings: &Value) -> (String, Vec<String>) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self.kind {
            Kind::Npm => ("npm".to_owned(), words(&["view", &self.name, "version"])),
            Kind::Pypi => {
                let script = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))";
                (
                    "uvx".to_owned(),
                    words(&["--from", &self.name, "python", "-c", script, &self.name]),
                )
            }
            Kind::Oci => {
                let command = settings["command"].as_str().unwrap_or("docker").to_owned();
                (
                    command,
                    words(&[
                        "image",
                        "inspect",
                        "--format",
                        "{{index .RepoDigests 0}}",
                        &self.name,
                    ]),
                )
            }
        }
    }

    /// Returns advice on what to install if the program that runs the package is not there.
    pub(super) fn install_hint(&self, settings: &Value) -> Option<&'static str> {
        if settings["command"].as_str().is_none_or(has_program) {
            return None;
        }
        Some(match self.kind {
            Kind::Npm => {
                "packages of npm run with `npx`, which comes with Node.js: install it (https://nodejs.org)"
            }
            Kind::Pypi => {
                "packages of PyPI run with `uvx`, which comes with uv: install it (https://docs.astral.sh/uv)"
            }
            Kind::Oci => {
                "images run with Docker or Podman: install one of them (https://docs.docker.com/get-docker)"
            }
        })
    }

    /// Reads the version in the output of the command.
    fn read_version(&self, output: &str) -> Option<String> {
        let line = output.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        let version = match self.kind {
            Kind::Oci => line.split_once('@')?.1,
            _ => line,
        };
        let is_version = |c: char| c.is_ascii_alphanumeric() || ".-+:!".contains(c);
        let begins_well = version.starts_with(|c: char| c.is_ascii_digit()) || version.starts_with("sha256:");
        (begins_well && version.chars().all(is_version)).then(|| version.to_owned())
    }
}

/// Pins the version of a package that the command line left open. Returns the settings, and what is pinned; `None` if the version
/// could not be found out.
pub(super) async fn pin(server: NewServer) -> (Value, Option<String>) {
    let NewServer { settings, package } = server;
    let Some(package) = package else {
        return (settings, Some("the command or URL".to_owned()));
    };
    if package.version.is_some() {
        return (settings, Some("the given version".to_owned()));
    }
    let (program, args) = package.version_command(&settings);
    let run = tokio::task::spawn_blocking(move || {
        Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
    });
    let output = run
        .await
        .ok()
        .and_then(Result::ok)
        .filter(|output| output.status.success());
    let version = output.and_then(|output| package.read_version(&String::from_utf8_lossy(&output.stdout)));
    match version {
        Some(version) => {
            let pinned = package.with_version(&version);
            (replaced(settings, &package.name, &pinned), Some(pinned))
        }
        None => (settings, None),
    }
}

/// Replaces an argument.
fn replaced(mut settings: Value, old: &str, new: &str) -> Value {
    let args = settings["args"].as_array_mut();
    if let Some(arg) = args.and_then(|args| args.iter_mut().find(|arg| arg.as_str() == Some(old))) {
        *arg = new.into();
    }
    settings
}

fn has_program(name: &str) -> bool {
    entry::find_program(name, config::variable("PATH").as_deref()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(written: &str) -> String {
        let package = Package::read(written).unwrap();
        match package.settings(&["API_KEY"]) {
            Ok(settings) => settings["args"].to_string(),
            Err(error) => error.message,
        }
    }

    #[test]
    fn packages_are_read_in_the_spelling_of_their_registry() {
        for (written, args) in [
            ("npm:@ada/weather", r#"["-y","@ada/weather"]"#),
            ("npm:@ada/weather@1.2.3", r#"["-y","@ada/weather@1.2.3"]"#),
            ("npm:weather@latest", r#"["-y","weather"]"#),
            ("pypi:mcp-server-time", r#"["mcp-server-time"]"#),
            ("pypi:mcp-server-time==2026.1", r#"["mcp-server-time==2026.1"]"#),
            (
                "oci:mcp/time:1.0",
                r#"["run","-i","--rm","-e","API_KEY","mcp/time:1.0"]"#,
            ),
            (
                "oci:localhost:5000/mcp/time",
                r#"["run","-i","--rm","-e","API_KEY","localhost:5000/mcp/time"]"#,
            ),
            (
                "oci:mcp/time:latest",
                r#"["run","-i","--rm","-e","API_KEY","mcp/time"]"#,
            ),
        ] {
            assert_eq!(settings(written), args, "{written}");
        }
        for written in [
            "npm:a b",
            "npm:",
            "npm:x@",
            "npm:x@^1",
            "pypi:-x",
            "oci:--privileged",
            "oci:x@sha256:12",
        ] {
            assert!(!settings(written).starts_with('['), "{written}");
        }
        assert_eq!(Package::read("cargo:x"), None);
        assert_eq!(Package::read("weather"), None);
    }

    #[test]
    fn versions_are_read_of_what_programs_print() {
        let read = |written: &str, output: &str| Package::read(written).unwrap().read_version(output);
        assert_eq!(read("npm:x", "1.2.3\n").as_deref(), Some("1.2.3"));
        assert_eq!(read("pypi:x", "note\n2026.1.14\n").as_deref(), Some("2026.1.14"));
        assert_eq!(
            read("oci:x", "docker.io/x@sha256:ab\n").as_deref(),
            Some("sha256:ab")
        );
        for output in ["", "npm error", "$(x)", "1.0; rm"] {
            assert_eq!(read("npm:x", output), None, "{output}");
        }
    }
}
