//! Packages that each crate brings into a build. The page of the book records their number, which may only fall.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

use crate::support::console::Violation;
use crate::support::members::{Package, WorkspaceMembers};
use crate::support::process::{cargo, output};
use crate::support::repository::Repository;

/// Page with the table.
const PAGE: &str = "docs/src/reference/packages.md";
/// Platform whose packages are counted, so that the numbers do not depend on the machine.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Programs, which decide for themselves whether maps of `serde_json` keep the order of members.
const PROGRAMS: [&str; 1] = ["toolplane-cli"];
/// Number of `cargo tree` processes at a time.
const WORKERS: usize = 4;

/// Upper bounds: the counts of commit 6b47d277, when the crates began to list what they need. Those of the program and of two
/// features of the facade were raised for the stores on SQLite and PostgreSQL and for the search, that of the program for the
/// sandbox, those of the facade and the program for the client of container engines, and all three for the crate of command
/// endpoints; that of the program for catalogs and their signatures. All with `tool-manifest` were raised by the five packages of
/// `toml_edit`, for the files of Codex.
const BOUNDS: [(&str, &str, usize); 35] = [
    ("raw-json", DEFAULT, 33),
    ("tool-scan", DEFAULT, 63),
    ("tool-core", DEFAULT, 72),
    ("tool-schema", DEFAULT, 113),
    ("tool-settings", DEFAULT, 80),
    ("tool-manifest", DEFAULT, 131),
    ("mcp-wire", DEFAULT, 63),
    ("mcp-client", DEFAULT, 123),
    ("mcp-client", "websocket", 132),
    ("mcp-server", DEFAULT, 103),
    ("mcp-mock", DEFAULT, 116),
    ("tool-registry", DEFAULT, 135),
    ("tool-runtime", DEFAULT, 101),
    ("tool-chaos", DEFAULT, 85),
    ("tool-exec-mock", DEFAULT, 80),
    ("tool-exec-http", DEFAULT, 167),
    ("tool-exec-mcp", DEFAULT, 137),
    ("tool-exec-mcp", "websocket", 146),
    ("tool-policy", DEFAULT, 115),
    ("tool-observe", DEFAULT, 105),
    ("tool-observe", "otel", 108),
    ("toolplane", DEFAULT, 275),
    ("toolplane", NONE, 184),
    ("toolplane", "exec-http", 244),
    ("toolplane", "exec-mcp", 219),
    ("toolplane", "exec-mock", 186),
    ("toolplane", "full", 275),
    ("toolplane", "otel", 185),
    ("toolplane", "outbound", 232),
    ("toolplane", "websocket", 223),
    ("toolplane-gateway", DEFAULT, 199),
    // 366, the parser of expressions in workflows, the crates of mappings, routes and the agent's side, manual pages, and edits of
    // clients' files.
    ("toolplane-cli", DEFAULT, 385),
    ("tool-testkit", DEFAULT, 121),
    // 196, and workflows, routes and `toml_edit`.
    ("toolplane-sim", DEFAULT, 209),
    ("tp-fault", DEFAULT, 77),
];

/// Selection of the default features.
const DEFAULT: &str = "default";
/// Selection of no feature of a crate that has default features.
const NONE: &str = "none";

/// Packages of one crate with a selection of its features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageCount {
    /// Name of the crate.
    pub package: String,
    /// Selected features: `default`, `none`, or one feature alone.
    pub features: String,
    /// Number of packages, the crate itself included.
    pub n_packages: usize,
    /// `true` if the build has `serde_json` with `preserve_order`.
    pub keeps_order: bool,
}

/// Checks that no crate needs more packages than the page records, and that no library changes the maps of
/// `serde_json` for the whole program.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Violation>> {
    match repository.text(PAGE) {
        Some(page) => Ok(check_counts(&page, &count(repository)?)),
        // The index of the book refers to the page, so its links are broken.
        None => Ok(Vec::new()),
    }
}

/// Returns the table of the page.
pub(crate) fn table(repository: &Repository) -> Result<String> {
    let mut table = "| crate | features | before | packages |\n|---|---|---|---|\n".to_owned();
    for count in count(repository)? {
        let PackageCount {
            package,
            features,
            n_packages,
            ..
        } = &count;
        let bound = bound(package, features).map_or_else(|| "-".to_owned(), |bound| bound.to_string());
        writeln!(table, "| `{package}` | `{features}` | {bound} | {n_packages} |")?;
    }
    Ok(table)
}

/// Compares counts with the numbers that a page records.
#[must_use]
pub fn check_counts(page: &str, counts: &[PackageCount]) -> Vec<Violation> {
    let recorded = recorded(page);
    let mut problems = Vec::new();
    let mut report = |message: String| problems.push(Violation::in_file(PAGE, message));
    for count in counts {
        let (package, features, n) = (&count.package, &count.features, count.n_packages);
        let what = format!("`{package}` with the features `{features}` needs {n} packages");
        let advice = format!(
            "leave out what it does not need (`cargo tree -p {package} -e normal`), such as features of dependencies"
        );
        match recorded.get(&(package.clone(), features.clone())) {
            _ if bound(package, features).is_some_and(|bound| n > bound) => {
                report(format!(
                    "{what}, more than before the number was bounded; {advice}"
                ));
            }
            Some(recorded) if n > *recorded => report(format!(
                "{what}, and {recorded} are recorded; {advice}, or record the number by `cargo xtask docs packages` \
                 and give the reason in the commit"
            )),
            None => report(format!(
                "{what}, and no number is recorded: run `cargo xtask docs packages`"
            )),
            Some(_) => {}
        }
        if count.keeps_order && !PROGRAMS.contains(&package.as_str()) {
            report(format!(
                "`{package}` turns on `preserve_order` of serde_json, which changes the maps of the whole program that \
                 takes the crate; keep the order with `RawJson`"
            ));
        }
    }
    problems
}

fn bound(package: &str, features: &str) -> Option<usize> {
    let found = BOUNDS
        .iter()
        .find(|(name, of, _)| *name == package && *of == features);
    found.map(|(.., bound)| *bound)
}

/// Returns the numbers of a page's table by crate and features.
fn recorded(page: &str) -> BTreeMap<(String, String), usize> {
    let row = |line: &str| {
        let mut cells = line
            .strip_prefix("| `")?
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'));
        let (package, features, _) = (cells.next()?, cells.next()?, cells.next()?);
        Some((
            (package.to_owned(), features.to_owned()),
            cells.next()?.parse().ok()?,
        ))
    };
    page.lines().filter_map(row).collect()
}

/// Counts the packages of all crates, in the order of the member list.
fn count(repository: &Repository) -> Result<Vec<PackageCount>> {
    let members = WorkspaceMembers::load(repository.root())?;
    let selections: Vec<(&str, String)> = members
        .packages
        .iter()
        .filter(|package| members.folder(package).starts_with("crates"))
        .flat_map(|package| {
            selections(package)
                .into_iter()
                .map(|features| (package.name.as_str(), features))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let counted = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((package, features)) = selections.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = count_one(repository, package, features);
                    let mut counted = counted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    counted.insert((*package, features.as_str()), count);
                }
            });
        }
    });
    let mut counted = counted
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let counts = selections
        .iter()
        .filter_map(|(package, features)| counted.remove(&(*package, features.as_str())));
    counts.collect()
}

/// Returns the selections of features that are counted: the default ones, none, and each one alone.
fn selections(package: &Package) -> Vec<String> {
    let has_default = package
        .features
        .get(DEFAULT)
        .is_some_and(|features| !features.is_empty());
    let others = package.features.keys().filter(|name| *name != DEFAULT).cloned();
    let mut selections = vec![DEFAULT.to_owned()];
    selections.extend(has_default.then(|| NONE.to_owned()));
    selections.extend(others);
    selections
}

fn count_one(repository: &Repository, package: &str, features: &str) -> Result<PackageCount> {
    let mut command = cargo(repository.root());
    command.args([
        "tree",
        "--locked",
        "--offline",
        "--package",
        package,
        "--target",
        TARGET,
    ]);
    command.args(["--edges", "normal", "--prefix", "none", "--format", "{p}|{f}"]);
    if features != DEFAULT {
        command.arg("--no-default-features");
    }
    if features != DEFAULT && features != NONE {
        command.args(["--features", features]);
    }
    let tree = output(&mut command)?;
    // Repeated packages are marked.
    let packages: BTreeSet<&str> = tree
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    let keeps_order = packages
        .iter()
        .filter_map(|line| line.strip_prefix("serde_json v")?.split_once('|'))
        .any(|(_, features)| features.split(',').any(|feature| feature == "preserve_order"));
    Ok(PackageCount {
        package: package.to_owned(),
        features: features.to_owned(),
        n_packages: packages.len(),
        keeps_order,
    })
}
