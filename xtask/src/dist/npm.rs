//! npm packages: a small one that users name, and one for each platform that contains the program.
//!
//! npm installs of the optional dependencies only the one whose `os`, `cpu` and `libc` match (npm's documentation,
//! "package.json").

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::elf::{Binary, Machine};
use super::entry::{Entry, tar_gz, write_archive};
use super::release::{LICENCE, NAME, REPOSITORY, Release, SUMMARY};

/// Program that starts the one of the platform.
const LAUNCHER: &str = include_str!("launcher.js");
/// Platforms that releases are built for.
const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// Writes the package of the program's platform, then the package that users install.
pub(super) fn packages(release: &Release, folder: &Path) -> Result<[PathBuf; 2]> {
    let platform = platform(&release.binary);
    let texts: Vec<Entry> = release.licences().cloned().collect();
    let mut program = vec![
        manifest(&platform_manifest(release, &platform))?,
        Entry::program(format!("bin/{NAME}"), release.program.clone()),
        Entry::file(
            "README.md",
            format!("# {platform}\n\nThe program of the npm package `{NAME}` for one platform.\n"),
        ),
    ];
    program.extend(texts.iter().cloned());
    let mut main = vec![
        manifest(&main_manifest(release))?,
        Entry::program(format!("bin/{NAME}.js"), LAUNCHER),
        Entry::file("README.md", release.document("README.md")?),
    ];
    main.extend(texts);
    let write = |name: &str, entries: &[Entry]| {
        let packed = tar_gz("package", entries, release.mtime)?;
        // The name that `npm pack` gives.
        let file = folder.join("npm").join(format!("{name}-{}.tgz", release.version));
        write_archive(file, &packed)
    };
    Ok([write(&package_name(&platform), &program)?, write(NAME, &main)?])
}

/// Returns the part of the package's name that tells the platform. The program is named by the launcher in the same way.
fn platform(binary: &Binary) -> String {
    let suffix = if binary.is_gnu() { "" } else { "-musl" };
    format!("linux-{}{suffix}", binary.machine.node())
}

fn package_name(platform: &str) -> String {
    format!("{NAME}-{platform}")
}

fn manifest(manifest: &Value) -> Result<Entry> {
    let text = serde_json::to_string_pretty(manifest).context("failed to write a manifest")?;
    Ok(Entry::file("package.json", format!("{text}\n")))
}

fn platform_manifest(release: &Release, platform: &str) -> Value {
    let library = match release.binary.interpreter {
        // A static program needs no library.
        None => json!(["glibc", "musl"]),
        Some(_) if release.binary.is_gnu() => json!(["glibc"]),
        Some(_) => json!(["musl"]),
    };
    json!({
        "name": package_name(platform),
        "version": release.version,
        "description": format!("The program of the package `{NAME}` for {platform}"),
        "license": LICENCE,
        "repository": {"type": "git", "url": format!("git+{REPOSITORY}.git")},
        "os": ["linux"],
        "cpu": [release.binary.machine.node()],
        "libc": library,
        "preferUnplugged": true,
    })
}

fn main_manifest(release: &Release) -> Value {
    let platforms = MACHINES.map(|machine| {
        let platform = platform(&Binary {
            machine,
            ..release.binary.clone()
        });
        (package_name(&platform), Value::from(release.version.clone()))
    });
    json!({
        "name": NAME,
        "version": release.version,
        "description": SUMMARY,
        "keywords": ["mcp", "gateway", "llm", "tools"],
        "license": LICENCE,
        "homepage": REPOSITORY,
        "repository": {"type": "git", "url": format!("git+{REPOSITORY}.git")},
        "bin": {NAME: format!("bin/{NAME}.js")},
        "engines": {"node": ">=18"},
        "optionalDependencies": serde_json::Map::from_iter(platforms),
    })
}
