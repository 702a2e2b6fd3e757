//! Cold `cargo check` of crates that are taken alone, beside their peers: what a first build costs a user.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::support::console::say;
use crate::support::process::{cargo, output, run_quietly};
use crate::support::repository::Repository;

/// A dependency of an otherwise empty crate.
struct Subject {
    name: &'static str,
    /// Value of the dependency in `Cargo.toml`. `{root}` is replaced by the checkout.
    dependency: &'static str,
    /// Description of its features.
    features: &'static str,
}

impl Subject {
    fn is_ours(&self) -> bool {
        self.dependency.contains("{root}")
    }
}

/// Pairs of ours and a peer. Versions of the peers are those of `examples/peers/Cargo.lock`.
const PAIRS: [[Subject; 2]; 3] = [
    [
        Subject {
            name: "tool-schema",
            dependency: r#"{ path = "{root}/crates/tool-schema" }"#,
            features: "with jsonschema inside",
        },
        Subject {
            name: "jsonschema",
            dependency: r#"{ version = "*", default-features = false }"#,
            features: "without remote references",
        },
    ],
    [
        Subject {
            name: "mcp-client",
            dependency: r#"{ path = "{root}/crates/mcp-client", default-features = false, features = ["stdio"] }"#,
            features: "stdio",
        },
        Subject {
            name: "rmcp",
            dependency: r#"{ version = "*", default-features = false, features = ["client", "transport-child-process"] }"#,
            features: "client on stdio",
        },
    ],
    [
        Subject {
            name: "mcp-client",
            dependency: r#"{ path = "{root}/crates/mcp-client" }"#,
            features: "stdio, HTTP, TLS",
        },
        Subject {
            name: "rmcp",
            dependency: r#"{ version = "*", default-features = false, features = ["client", "transport-child-process", "transport-streamable-http-client-reqwest", "reqwest"] }"#,
            features: "client on stdio, HTTP, TLS",
        },
    ],
];

/// Checks each subject in a crate of its own, with one job and an empty target folder, and prints the CPU time and the
/// number of packages.
pub(super) fn cold(repository: &Repository) -> Result<()> {
    say("bench: cold `cargo check` in an empty crate, one job");
    say(format_args!("bench: {:<12} {:>8} {:>8}", "", "CPU", "packages"));
    for (index, pair) in PAIRS.iter().enumerate() {
        for subject in pair {
            let folder = repository
                .target()
                .join("cold")
                .join(format!("{}-{index}", subject.name));
            prepare(repository, subject, &folder)?;
            let n_packages = count_packages(&folder)?;
            let before = cpu_of_children()?;
            run_quietly(
                cargo(&folder)
                    .args(["check", "--offline", "--jobs", "1", "--target-dir", "target"])
                    .env_remove("RUSTC_WRAPPER"),
            )?;
            say(format_args!(
                "bench: {:<12} {:>6.1} s {n_packages:>8}  {}",
                subject.name,
                cpu_of_children()? - before,
                subject.features
            ));
            fs::remove_dir_all(&folder)
                .with_context(|| format!("failed to remove `{}`", folder.display()))?;
        }
    }
    Ok(())
}

/// Makes the crate and downloads what it needs, so that neither is measured.
fn prepare(repository: &Repository, subject: &Subject, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        let parent = path.parent().map(fs::create_dir_all).transpose();
        parent
            .and_then(|_| fs::write(&path, text))
            .with_context(|| format!("failed to write `{}`", path.display()))
    };
    let root = repository.root().display().to_string();
    let dependency = subject.dependency.replace("{root}", &root);
    let manifest = format!(
        "[workspace]\n[package]\nname = \"cold\"\nedition = \"2024\"\n[dependencies]\n{} = {dependency}\n",
        subject.name
    );
    write("Cargo.toml", &manifest)?;
    write("src/lib.rs", "")?;
    let lock = if subject.is_ours() {
        PathBuf::from("Cargo.lock")
    } else {
        PathBuf::from("examples/peers/Cargo.lock")
    };
    let lock = repository
        .text(&lock)
        .with_context(|| format!("failed to read `{}`", lock.display()))?;
    write("Cargo.lock", &lock)?;
    run_quietly(cargo(folder).args(["fetch"]))
}

/// Counts the packages in the build, without the empty crate.
fn count_packages(folder: &Path) -> Result<usize> {
    let tree = output(cargo(folder).args(["tree", "--offline", "--edges", "normal", "--prefix", "none"]))?;
    let packages: BTreeSet<_> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.is_empty())
        .collect();
    Ok(packages.len() - 1)
}

/// Returns the CPU time of all children that have ended, in seconds: user and system time in `/proc/self/stat`.
fn cpu_of_children() -> Result<f64> {
    /// Linux counts in hundredths of a second, whatever its own clock does (proc(5), `sysconf(_SC_CLK_TCK)`).
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").context("the CPU time is only known on Linux")?;
    // The name of the program may contain blanks, and ends with the last parenthesis.
    let (_, fields) = stat
        .rsplit_once(')')
        .context("`/proc/self/stat` has an unknown form")?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |index: usize| {
        let field = fields
            .get(index)
            .context("`/proc/self/stat` has an unknown form")?;
        field
            .parse::<f64>()
            .context("`/proc/self/stat` has an unknown form")
    };
    Ok((ticks(13)? + ticks(14)?) / TICKS_PER_SECOND)
}
