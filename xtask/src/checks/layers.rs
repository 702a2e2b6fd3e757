//! Which crate may depend on which: the table of the architecture, checked.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::support::console::Violation;
use crate::support::members::{DependencyKind, Package, WorkspaceMembers, member_lines};
use crate::support::process::{cargo, output};

/// The layers in the order of the member list, and what each may depend on.
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

/// Crates that promise to stay small, and what a build of them never contains.
const PURE: [(&str, &[&str]); 3] = [
    ("tool-core", &["tokio"]),
    ("tool-schema", &["tokio"]),
    ("tool-exec-mock", &["tokio"]),
];

/// What a build of a small crate never contains: HTTP, TLS, SQL, MCP.
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

/// Checks everything about layers: the edges, the order of members, what the small crates pull in.
///
/// # Errors
/// When cargo cannot be asked.
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

/// Checks every normal and build edge between members; edges for tests are free.
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

/// Checks that the members stand in layer order in the root manifest.
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

/// Checks what a build of one small crate contains, by the lines of `cargo tree --prefix none`.
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
            let message =
                format!("`{name}` builds without HTTP, TLS, SQL, MCP and tokio, yet it pulls `{package}`");
            Violation::in_file(&manifest, message)
        })
        .collect()
}

/// Returns the place of a layer in the order of members.
fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|(name, _)| *name == layer)
}

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    rank(layer).map(|index| LAYERS[index].1)
}

fn names() -> String {
    LAYERS.map(|(name, _)| format!("`{name}`")).join(", ")
}

/// A team takes these alone: nothing of the product reaches them.
fn knows_no_tool(name: &str) -> bool {
    name.starts_with("mcp-") || matches!(name, "raw-json" | "tool-sandbox")
}
