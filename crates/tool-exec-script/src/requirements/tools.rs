use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{io::AsyncWriteExt, process::Command, time::timeout};
use tool_core::hide_credentials;

/// Time limit of one command of an installer.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Maximum size of the end of an installer's message, in bytes.
const MAX_MESSAGE: usize = 2_000;
/// Variables that installers get where they are set.
const HANDED_DOWN: [&str; 19] = [
    "ALL_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "NETRC",
    "NO_PROXY",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "all_proxy",
    "https_proxy",
    "no_proxy",
];

/// Environment variables for uv and pip, with which the operator configures their index, proxies and certificates.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct InstallerVariables(BTreeMap<OsString, OsString>);

impl InstallerVariables {
    /// Selects the variables that uv and pip use from those of a process: `PIP_*`, `UV_*`, and those of paths, proxies and
    /// certificates.
    #[must_use]
    pub fn select(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let is_used = |name: &OsStr| {
            let name = name.to_str().unwrap_or_default();
            name.starts_with("PIP_") || name.starts_with("UV_") || HANDED_DOWN.contains(&name)
        };
        let used = variables.into_iter().filter(|(name, _)| is_used(name));
        Self(used.collect())
    }

    /// Finds a program in `PATH`.
    fn find(&self, program: &str) -> Option<PathBuf> {
        let path = self.0.get(OsStr::new("PATH"))?;
        let candidates = std::env::split_paths(path).map(|directory| directory.join(program));
        candidates.into_iter().find(|candidate| candidate.is_file())
    }
}

impl std::fmt::Debug for InstallerVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values may hold passwords of an index.
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Installer of Python packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Installer {
    /// uv.
    Uv(PathBuf),
    /// pip, as a module of this interpreter.
    Pip(PathBuf),
}

impl Installer {
    /// Finds uv, else pip of this interpreter, else makes an environment with pip in an empty directory.
    pub(super) async fn find(
        python: &Path,
        variables: &InstallerVariables,
        directory: &Path,
    ) -> Result<Self, String> {
        if let Some(uv) = variables.find("uv") {
            return Ok(Self::Uv(uv));
        }
        let has_pip = run(python, &["-m", "pip", "--version"], None, variables).await;
        if has_pip.is_ok() {
            return Ok(Self::Pip(python.to_owned()));
        }
        let environment = directory.join("installer");
        let args = ["-m", "venv", &*environment.to_string_lossy()];
        match run(python, &args, None, variables).await {
            Ok(_) => Ok(Self::Pip(environment.join("bin/python"))),
            Err(reason) => Err(format!(
                "there is neither uv nor pip for `{}`; install uv, or the packages `python3-pip` or `python3-venv` ({reason})",
                python.display()
            )),
        }
    }
}

/// Runs a command of an installer and returns its standard output.
///
/// # Errors
/// Failure of a command, with the end of what it said.
pub(super) async fn run(
    program: &Path,
    args: &[&str],
    input: Option<String>,
    variables: &InstallerVariables,
) -> Result<Vec<u8>, String> {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(&variables.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let name = program.display();
    let mut child = command
        .spawn()
        .map_err(|error| format!("`{name}` cannot be started: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that ends without reading says why.
        let _ = stdin.write_all(input.unwrap_or_default().as_bytes()).await;
    }
    let output = timeout(TIME_LIMIT, child.wait_with_output()).await;
    let output = output
        .map_err(|_| format!("`{name}` did not end within {} s", TIME_LIMIT.as_secs()))?
        .map_err(|error| format!("`{name}` failed: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let start = said.ceil_char_boundary(said.len().saturating_sub(MAX_MESSAGE));
    Err(hide_credentials(&said[start..]).into_owned())
}
