//! Licences of the crates that are linked into the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::support::process::{cargo, output};
use crate::support::repository::Repository;

/// Name of the document.
pub(super) const FILE: &str = "THIRD-PARTY-LICENSES.txt";
/// Openings of the names of files with the text of a licence, in lower case.
const TEXTS: [&str; 5] = ["license", "licence", "copying", "notice", "copyright"];

/// Answer of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    /// Registry of the package. `None` for a member of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDependency>,
}

#[derive(Deserialize)]
struct NodeDependency {
    pkg: String,
    dep_kinds: Vec<NodeKind>,
}

#[derive(Deserialize)]
struct NodeKind {
    kind: Option<String>,
}

/// Returns the list of the third-party crates in the program for a target, followed by the texts of their licences. Equal
/// texts are written once.
///
/// # Errors
/// Returns an error if cargo does not answer.
pub(super) fn third_party(repository: &Repository, target: &str) -> Result<String> {
    let manifest = repository.root().join("crates/toolplane-cli/Cargo.toml");
    let said = output(
        cargo(repository.root())
            .args([
                "metadata",
                "--locked",
                "--format-version",
                "1",
                "--filter-platform",
                target,
            ])
            .arg("--manifest-path")
            .arg(&manifest),
    )?;
    let metadata: Metadata =
        serde_json::from_str(&said).context("failed to read the answer of `cargo metadata`")?;
    write(&linked(&metadata, "toolplane-cli"))
}

/// Returns the third-party packages that a member is linked with: without those of build scripts, tests and macros.
fn linked<'a>(metadata: &'a Metadata, member: &str) -> Vec<&'a Package> {
    let packages: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package))
        .collect();
    let nodes: BTreeMap<_, _> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (&node.id, node))
        .collect();
    let mut open: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| package.name == member && package.source.is_none())
        .map(|package| &package.id)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        let is_macro = packages.get(id).is_some_and(|package| package.is_macro());
        if is_macro || !seen.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).into_iter().flat_map(|node| &node.deps);
        let linked =
            dependencies.filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()));
        open.extend(linked.map(|dependency| &dependency.pkg));
    }
    let mut found: Vec<_> = seen
        .into_iter()
        .filter_map(|id| packages.get(id).copied())
        .filter(|package| package.source.is_some())
        .collect();
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    found
}

impl Package {
    fn is_macro(&self) -> bool {
        let mut kinds = self.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|kind| kind == "proc-macro")
    }

    /// Returns the texts of licences in the folder of the package, sorted by the names of their files.
    fn texts(&self) -> Result<Vec<String>> {
        let folder = self.manifest_path.parent().unwrap_or(Path::new(""));
        let listed =
            fs::read_dir(folder).with_context(|| format!("failed to list the files of `{}`", self.name))?;
        let mut files: Vec<_> = listed
            .filter_map(Result::ok)
            .filter(|file| {
                let name = file.file_name().to_string_lossy().to_lowercase();
                TEXTS.iter().any(|start| name.starts_with(start))
            })
            .map(|file| file.path())
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        let texts = files.iter().map(|path| {
            let text =
                fs::read(path).with_context(|| format!("failed to read a licence of `{}`", self.name))?;
            Ok(String::from_utf8_lossy(&text)
                .replace("\r\n", "\n")
                .trim()
                .to_owned())
        });
        texts.collect()
    }
}

fn write(packages: &[&Package]) -> Result<String> {
    let mut document = format!(
        "The program contains {} crates of others. Each stands here with its licence, followed by the texts that it brings.\n\n",
        packages.len()
    );
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for package in packages {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("see its text");
        let repository = package.repository.as_deref().unwrap_or("no address");
        let _ = writeln!(document, "{name}: {licence} ({repository})");
        for text in package.texts()? {
            match texts.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(name.clone()),
                None => texts.push((text, vec![name.clone()])),
            }
        }
    }
    for (text, names) in texts {
        let line = "-".repeat(80);
        let _ = write!(document, "\n{line}\n{}\n{line}\n\n{text}\n", names.join(", "));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_linked_crates_and_their_texts() {
        let repository = Repository::open().unwrap();
        let document = third_party(&repository, "x86_64-unknown-linux-gnu").unwrap();
        let has = |name: &str| {
            document
                .lines()
                .any(|line| line.starts_with(name) && line.contains(": "))
        };
        assert!(has("tokio ") && has("rustls ") && has("libc "));
        // Macros, tools of builds and crates of tests are not in the program.
        assert!(!has("syn ") && !has("cc ") && !has("insta ") && !has("tool-core "));
        assert!(document.contains("Permission is hereby granted, free of charge"));
        assert!(document.contains("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"));
    }
}
