//! Members of the workspace, as reported by `cargo metadata`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::support::process::{cargo, output};

/// Packages of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct WorkspaceMembers {
    /// Packages, in the order of the member list.
    pub packages: Vec<Package>,
    /// Root of the workspace.
    pub workspace_root: PathBuf,
}

/// Package of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Name of the package.
    pub name: String,
    /// Description in the manifest.
    pub description: Option<String>,
    /// Path of the `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// Dependencies of all kinds.
    pub dependencies: Vec<Dependency>,
    /// Features of the package.
    #[serde(default)]
    pub features: BTreeMap<String, Vec<String>>,
    /// Targets that the package builds.
    #[serde(default)]
    pub targets: Vec<CargoTarget>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

/// Target that a package builds.
#[derive(Clone, Debug, Deserialize)]
pub struct CargoTarget {
    /// Name of the target.
    pub name: String,
    /// Kinds of the target: `lib`, `bin`, `example`, `bench`, `test` and others.
    pub kind: Vec<String>,
}

/// Dependency of a package on another.
#[derive(Clone, Debug, Deserialize)]
pub struct Dependency {
    /// Name of the package that is depended on.
    pub name: String,
    /// Kind of the dependency. `None` for a normal one, for which cargo writes `null`.
    #[serde(default)]
    pub kind: Option<DependencyKind>,
}

/// Kinds of dependencies other than normal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// Dependency of tests, examples and benchmarks.
    Dev,
    /// Dependency of a build script.
    Build,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    toolplane: Option<Toolplane>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Toolplane {
    #[serde(default)]
    layer: Option<String>,
    #[serde(default)]
    run: Vec<String>,
}

impl WorkspaceMembers {
    /// Loads the members with `cargo metadata`.
    ///
    /// # Errors
    /// Returns an error if a manifest cannot be read.
    pub fn load(root: &Path) -> Result<Self> {
        let text = output(cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let mut members = Self::parse(&text)?;
        let manifest = fs::read_to_string(root.join("Cargo.toml")).context("failed to read `Cargo.toml`")?;
        let listed: Vec<_> = member_lines(&manifest)
            .map(|(_, folder)| Path::new(folder))
            .collect();
        let order: BTreeMap<_, _> = members
            .packages
            .iter()
            .map(|package| {
                let folder = members.folder(package);
                (
                    package.name.clone(),
                    listed.iter().position(|listed| *listed == folder),
                )
            })
            .collect();
        members.packages.sort_by_key(|package| order[&package.name]);
        Ok(members)
    }

    /// Parses the output of `cargo metadata --no-deps --format-version 1`.
    ///
    /// # Errors
    /// Returns an error if the text does not have that form.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("failed to read the answer of `cargo metadata`")
    }

    /// Finds a member by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// Returns the manifest of a member, relative to the root.
    #[must_use]
    pub fn manifest(&self, package: &Package) -> PathBuf {
        package
            .manifest_path
            .strip_prefix(&self.workspace_root)
            .unwrap_or(&package.manifest_path)
            .to_path_buf()
    }

    /// Returns the folder of a member, relative to the root.
    #[must_use]
    pub fn folder(&self, package: &Package) -> PathBuf {
        self.manifest(package)
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default()
    }
}

impl Package {
    /// Returns the layer that the package declares in `package.metadata.toolplane.layer`.
    #[must_use]
    pub fn layer(&self) -> Option<&str> {
        self.metadata.as_ref()?.toolplane.as_ref()?.layer.as_deref()
    }

    /// Returns the examples and programs that CI runs: `package.metadata.toolplane.run`.
    #[must_use]
    pub fn runnable(&self) -> &[String] {
        self.metadata
            .as_ref()
            .and_then(|metadata| metadata.toolplane.as_ref())
            .map_or(&[], |own| &own.run)
    }

    /// Returns the names of the targets of one kind.
    pub fn targets_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.targets
            .iter()
            .filter(move |target| target.kind.iter().any(|own| own == kind))
            .map(|target| target.name.as_str())
    }
}

/// Returns the line number and folder of each member. The list has one member a line.
pub(crate) fn member_lines(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    manifest
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !line.starts_with("members"))
        .skip(1)
        .take_while(|(_, line)| !line.starts_with(']'))
        .filter_map(|(index, line)| {
            let folder = line.trim().strip_prefix('"')?.split('"').next()?;
            Some((index + 1, folder))
        })
}
