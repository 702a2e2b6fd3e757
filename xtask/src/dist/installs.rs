//! Installs each package in a folder of its own, and runs the installed program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use tp_containers::{EngineKind, TestEngine};

use super::Packages;
use super::release::NAME;
use crate::support::console::say;
use crate::support::process::{find, output, run_quietly, succeeds};
use crate::test::in_ci;

/// Number of the user in the image.
const USER: &str = "65532";

/// Kind of package, with what its check needs.
struct Check {
    title: &'static str,
    /// Programs that must be on `PATH`.
    needs: &'static [&'static str],
    run: fn(&Packages, &Trial) -> Result<()>,
}

/// All checks, in the order of the page about installation.
const CHECKS: [Check; 5] = [
    Check {
        title: "the tarball is unpacked, and its digest is right",
        needs: &["tar", "sha256sum"],
        run: |packages, trial| {
            let program = tarball(&packages.tarball, &trial.folder("tarball")?)?;
            trial.check(|| Command::new(&program))
        },
    },
    Check {
        title: "the Debian package is installed by dpkg into a root of its own",
        needs: &["dpkg", "dpkg-deb", "apt-get"],
        run: |packages, trial| {
            let package = packages
                .debian
                .as_ref()
                .map_err(|reason| anyhow::anyhow!("{reason}"))?;
            // apt resolves the dependencies with the packages of this machine, and installs nothing.
            run_quietly(
                Command::new("apt-get")
                    .args(["install", "--simulate", "--no-install-recommends"])
                    .arg(package),
            )?;
            let program = debian(package, &trial.folder("debian")?)?;
            trial.check(|| Command::new(&program))
        },
    },
    Check {
        title: "the npm packages are installed without a network, and run by npx",
        needs: &["npm", "npx", "node"],
        run: |packages, trial| {
            let folder = trial.folder("npm")?;
            npm(&packages.npm, &folder)?;
            trial.check(|| {
                let mut command = Command::new("npx");
                command.current_dir(&folder).args(["--offline", NAME]);
                command
            })
        },
    },
    Check {
        title: "the wheel is installed by pip into a virtual environment",
        needs: &["python3"],
        run: |packages, trial| {
            let program = wheel(&packages.wheel, &trial.folder("wheel")?)?;
            trial.check(|| Command::new(&program))
        },
    },
    Check {
        title: "the image is built from the recipe, and run by podman with a mounted configuration",
        needs: &["podman"],
        run: image,
    },
];

/// Installs and runs all packages. A check whose programs are missing is skipped with the reason; in CI, it fails.
pub(crate) fn check_each(packages: &Packages, version: &str) -> Result<()> {
    let trial = Trial::new(packages, version)?;
    let mut skipped = Vec::new();
    for check in &CHECKS {
        if let Some(missing) = check.needs.iter().find(|program| find(program).is_none()) {
            say(format_args!(
                "installs: skipped: {}: `{missing}` is not installed",
                check.title
            ));
            skipped.push(*missing);
            continue;
        }
        say(format_args!("installs: {} ...", check.title));
        (check.run)(packages, &trial).with_context(|| format!("failed to check that {}", check.title))?;
    }
    if in_ci() && !skipped.is_empty() {
        bail!(
            "in CI, every package is installed: install `{}`",
            skipped.join("`, `")
        );
    }
    say(format_args!(
        "installs: {} of {} packages were installed and run",
        CHECKS.len() - skipped.len(),
        CHECKS.len()
    ));
    Ok(())
}

/// Folder of all installations, and what the program must answer.
struct Trial {
    root: tempfile::TempDir,
    version: String,
    configuration: PathBuf,
}

impl Trial {
    /// Makes a folder and the example configuration in it.
    fn new(packages: &Packages, version: &str) -> Result<Self> {
        let root = tempfile::tempdir().context("failed to make a temporary folder")?;
        let configuration = root.path().join("toolplane.yaml");
        run_quietly(Command::new(&packages.program).arg("init").arg(&configuration))?;
        Ok(Self {
            root,
            version: version.to_owned(),
            configuration,
        })
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.root.path().join(name);
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        Ok(folder)
    }

    /// Asks the installed program for its version, and calls a tool of the example.
    fn check(&self, program: impl Fn() -> Command) -> Result<()> {
        let ask = |arguments: &[&str]| {
            let mut command = program();
            command
                .env("HOME", self.root.path())
                .env("TOOLPLANE_CONFIG", &self.configuration)
                .args(arguments);
            output(&mut command)
        };
        let version = ask(&["--version"])?;
        ensure!(
            version.trim() == format!("{NAME} {}", self.version),
            "the installed program is `{}`, not version {}",
            version.trim(),
            self.version
        );
        let greeting = ask(&["call", "greet", "name=Ada"])?;
        ensure!(
            greeting.contains("Hello, Ada!"),
            "the installed program answered `{greeting}`"
        );
        say(format_args!("installs:   `{}` answers", version.trim()));
        Ok(())
    }
}

/// Unpacks a tarball and returns the program.
pub(super) fn tarball(archive: &Path, folder: &Path) -> Result<PathBuf> {
    let name = archive
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let beside = archive.parent().unwrap_or(Path::new("."));
    run_quietly(
        Command::new("sha256sum")
            .current_dir(beside)
            .arg("--check")
            .arg(format!("{name}.sha256")),
    )?;
    run_quietly(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))?;
    Ok(folder
        .join(name.trim_end_matches(".tar.gz"))
        .join("bin")
        .join(NAME))
}

/// Installs a Debian package into an empty root, without its dependencies, and returns the program.
pub(super) fn debian(package: &Path, root: &Path) -> Result<PathBuf> {
    let state = root.join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        fs::create_dir_all(state.join(folder)).context("failed to make the folder of dpkg")?;
    }
    fs::write(state.join("status"), "").context("failed to write the state of dpkg")?;
    let mut option = std::ffi::OsString::from("--root=");
    option.push(root);
    run_quietly(
        Command::new("dpkg")
            .arg(&option)
            .args([
                "--force-depends",
                "--force-not-root",
                "--log=/dev/null",
                "--install",
            ])
            .arg(package),
    )?;
    let installed = output(Command::new("dpkg").arg(option).args(["--listfiles", NAME]))?;
    ensure!(
        installed.contains("/usr/share/man/man1/"),
        "the package has no manual pages"
    );
    Ok(root.join("usr/bin").join(NAME))
}

/// Installs the packages into a project without a network, and returns the program.
pub(super) fn npm(packages: &[PathBuf; 2], folder: &Path) -> Result<PathBuf> {
    fs::write(folder.join("package.json"), "{\"private\": true}\n").context("failed to write a project")?;
    run_quietly(
        Command::new("npm")
            .current_dir(folder)
            .args([
                "install",
                "--offline",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ])
            .args(packages),
    )?;
    Ok(folder.join("node_modules/.bin").join(NAME))
}

/// Installs a wheel into a virtual environment without a network, and returns the program.
pub(super) fn wheel(wheel: &Path, folder: &Path) -> Result<PathBuf> {
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
        bail!("`python3` has no `venv`; install it (Debian: `apt-get install python3-venv`)");
    }
    run_quietly(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    run_quietly(
        Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-index",
            ])
            .arg(wheel),
    )?;
    Ok(folder.join("bin").join(NAME))
}

/// Builds the image and runs it: without a network, with a file system that cannot be written, and as no user with rights.
fn image(packages: &Packages, trial: &Trial) -> Result<()> {
    let engine = TestEngine::start(EngineKind::Podman).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut build = engine.command(["build", "--quiet", "--tag", NAME]);
    run_quietly(build.arg(&packages.container))?;
    let user = output(&mut engine.command(["image", "inspect", "--format", "{{.Config.User}}", NAME]))?;
    ensure!(
        user.trim().starts_with(USER),
        "the image runs as `{}`, not as {USER}",
        user.trim()
    );
    let size = output(&mut engine.command(["image", "inspect", "--format", "{{.Size}}", NAME]))?;
    say(format_args!("installs:   the image has {} bytes", size.trim()));
    let mount = format!(
        "{}:/etc/toolplane/toolplane.yaml:ro",
        trial.configuration.display()
    );
    trial.check(|| {
        engine.command([
            "run",
            "--rm",
            "--network",
            "none",
            "--read-only",
            "--volume",
            &mount,
            NAME,
        ])
    })
}
