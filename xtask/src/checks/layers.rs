//! Checks the dependencies between crates against the layer table of the architecture.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::support::console::Violation;
use crate::support::members::{DependencyKind, Package, WorkspaceMembers, member_lines};
use crate::support::process::{cargo, output};

/// Layers in the order of the member list, each with the layers that it may depend on.
const LAYERS: [(&str, &[&str]); 10] = [
    ("core", &["core"]),
    ("abstraction", &["core", "abstraction"]),
    ("execution", &["core"]),
    ("executor", &["core"]),
    ("policy", &["core"]),
    ("observability", &["core"]),
    ("agent", &["core"]),
    (
        "composition",
        &[
            "core",
            "abstraction",
            "execution",
            "executor",
            "policy",
            "observability",
            "agent",
        ],
    ),
    // The command line starts the gateway: the one edge between two crates of the same outer layer.
    ("surface", &["core", "composition", "surface"]),
    ("development", &[]),
];

/// Crates that promise to stay small, each with the dependencies that its build never contains.
const PURE: [(&str, &[&str]); 4] = [
    ("tool-check", &["tokio", "tool-core"]),
    ("tool-core", &["tokio"]),
    (
        "tool-schema",
        &["tokio", "tool-core", "base64", "secrecy", "httpdate"],
    ),
    ("tool-exec-mock", &["tokio"]),
];

/// Dependencies that the build of a small crate never contains: HTTP, TLS, SQL, MCP.
const HEAVY: [&str; 13] = [
    "axum",
    "http",
    "http-body",
    "hyper",
    "h2",
    "reqwest",
    "rustls",
    "native-tls",
    "openssl-sys",
    "ring",
    "rmcp",
    "rusqlite",
    "libsqlite3-sys",
];
const HEAVY_PREFIXES: [&str; 3] = ["mcp-", "sqlx", "tokio-"];

/// Checks all layer rules: the edges, the order of members, and the dependencies of the small crates.
///
/// # Errors
/// Returns an error if cargo cannot be run.
pub fn check_layers(root: &Path) -> Result<Vec<Violation>> {
    let members = WorkspaceMembers::load(root)?;
    let mut problems = check_edges(&members);
    problems.extend(check_order(
        &members,
        &std::fs::read_to_string(root.join("Cargo.toml"))?,
    ));
    for (name, also) in PURE {
        if members.get(name).is_some() {
            let tree = output(cargo(root).args([
                "tree",
                "--package",
                name,
                "--edges",
                "normal",
                "--prefix",
                "none",
            ]))?;
            problems.extend(check_purity(name, &tree, also));
        }
    }
    Ok(problems)
}

/// Checks every normal and build edge between members. Development dependencies are not restricted.
#[must_use]
pub fn check_edges(members: &WorkspaceMembers) -> Vec<Violation> {
    members
        .packages
        .iter()
        .flat_map(|package| check_package(members, package))
        .collect()
}

fn check_package(members: &WorkspaceMembers, package: &Package) -> Vec<Violation> {
    let manifest = members.manifest(package);
    let folder = members.folder(package);
    let mut problems = Vec::new();
    let mut report = |message: String| problems.push(Violation::in_file(&manifest, message));

    if folder.starts_with("crates") && folder != Path::new("crates").join(&package.name) {
        report(format!(
            "package `{}` is in the folder `{}`",
            package.name,
            folder.display()
        ));
    }
    let Some(layer) = package.layer() else {
        report("no `layer` in `[package.metadata.toolplane]`".to_owned());
        return problems;
    };
    let Some(allowed) = allowed(layer) else {
        report(format!("unknown layer `{layer}`; the layers are {}", names()));
        return problems;
    };
    for dependency in package
        .dependencies
        .iter()
        .filter(|it| it.kind != Some(DependencyKind::Dev))
    {
        let Some(other) = members.get(&dependency.name) else {
            continue;
        };
        if knows_no_tool(&package.name) && other.name.starts_with("tool") && !knows_no_tool(&other.name) {
            report(format!(
                "`{}` knows no tool, yet it depends on `{}`",
                package.name, other.name
            ));
        }
        let Some(below) = other.layer() else { continue };
        if layer != "development" && !allowed.contains(&below) {
            report(format!(
                "`{}` ({layer}) depends on `{}` ({below}); {layer} may depend on {} only",
                package.name,
                other.name,
                allowed.join(", "),
            ));
        }
    }
    problems
}

/// Checks that the root manifest lists the members in layer order.
#[must_use]
pub fn check_order(members: &WorkspaceMembers, root_manifest: &str) -> Vec<Violation> {
    let mut problems = Vec::new();
    let mut highest = 0;
    for (line, folder) in member_lines(root_manifest) {
        let package = members
            .packages
            .iter()
            .find(|package| members.folder(package) == Path::new(folder));
        let Some(rank) = package.and_then(Package::layer).and_then(rank) else {
            continue;
        };
        if rank < highest {
            let message = format!(
                "member `{folder}` ({}) stands after a member of layer {}",
                LAYERS[rank].0, LAYERS[highest].0
            );
            problems.push(Violation::on_line("Cargo.toml", line, message));
        }
        highest = highest.max(rank);
    }
    problems
}

/// Checks the dependencies in the build of one small crate, by the lines of `cargo tree --prefix none`.
#[must_use]
pub fn check_purity(name: &str, tree: &str, also: &[&str]) -> Vec<Violation> {
    let heavy: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|package| {
            HEAVY.contains(package)
                || also.contains(package)
                || HEAVY_PREFIXES.iter().any(|prefix| package.starts_with(prefix))
        })
        .collect();
    let manifest = Path::new("crates").join(name).join("Cargo.toml");
    heavy
        .into_iter()
        .map(|package| {
            let others = also.join(", ");
            let message =
                format!("`{name}` builds without HTTP, TLS, SQL, MCP and {others}, yet it pulls `{package}`");
            Violation::in_file(&manifest, message)
        })
        .collect()
}

/// Returns the position of a layer in the order of members.
fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|(name, _)| *name == layer)
}

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    rank(layer).map(|index| LAYERS[index].1)
}

fn names() -> String {
    LAYERS.map(|(name, _)| format!("`{name}`")).join(", ")
}

/// Returns `true` for crates that can be used alone: they depend on no product crate.
fn knows_no_tool(name: &str) -> bool {
    name.starts_with("mcp-") || matches!(name, "raw-json" | "tool-sandbox")
}
