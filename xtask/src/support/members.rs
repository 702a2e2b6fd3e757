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
    /// Folder of everything that is built.
    #[serde(default)]
    pub target_directory: PathBuf,
}

/// Package of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    #[serde(default)]
    pub version: String,
    /// Description in the manifest.
    pub description: Option<String>,
    /// Registries to which the package may be published: every one if it is `None`, none if it is empty.
    #[serde(default)]
    pub publish: Option<Vec<String>>,
    /// Words under which the package is found.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Categories in which the package is listed.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Address of the documentation.
    #[serde(default)]
    pub documentation: Option<String>,
    /// Page that introduces the package, relative to its folder.
    #[serde(default)]
    pub readme: Option<PathBuf>,
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
    /// Required version: `*` for a dependency that has only a path.
    #[serde(default)]
    pub req: String,
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
    #[serde(default)]
    unpublished: Option<String>,
    #[serde(default)]
    program: bool,
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

    /// Returns the published packages in the order in which they can be published: a package stands after the packages
    /// that it needs, and otherwise in the order of the member list.
    pub fn published(&self) -> impl Iterator<Item = &Package> {
        let mut open: Vec<_> = self
            .packages
            .iter()
            .filter(|package| package.is_published())
            .collect();
        let mut ordered: Vec<&Package> = Vec::new();
        while !open.is_empty() {
            let is_next = |package: &&Package| !open.iter().any(|other| package.needs(&other.name));
            // A circle, which cargo refuses, ends the order.
            let index = open.iter().position(is_next).unwrap_or_default();
            ordered.push(open.remove(index));
        }
        ordered.into_iter()
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

    /// Returns `true` if the package may be published.
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.publish
            .as_ref()
            .is_none_or(|registries| !registries.is_empty())
    }

    /// Returns the reason for which the package is not published: `package.metadata.toolplane.unpublished`.
    #[must_use]
    pub fn reason_unpublished(&self) -> Option<&str> {
        self.metadata.as_ref()?.toolplane.as_ref()?.unpublished.as_deref()
    }

    /// Returns `true` if the package is a library that programs of others depend on. The library of our program
    /// (`package.metadata.toolplane.program`) is for its own tests.
    #[must_use]
    pub fn is_library(&self) -> bool {
        let own = self
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.toolplane.as_ref());
        self.targets_of("lib").next().is_some() && !own.is_some_and(|own| own.program)
    }

    /// Returns the name of the library in code, which may differ from the name of the package.
    #[must_use]
    pub fn crate_name(&self) -> String {
        let library = self.targets_of("lib").next();
        library.unwrap_or(&self.name).replace('-', "_")
    }

    /// Returns `true` if a published version of the package depends on `name`. Cargo removes dependencies of tests
    /// that have no version.
    fn needs(&self, name: &str) -> bool {
        let mut dependencies = self.dependencies.iter();
        dependencies.any(|dependency| dependency.name == name && dependency.req != "*")
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
