//! Checks that the facade and the crates below it compile without features, and with each feature alone.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::support::console::say;
use crate::support::members::{Package, WorkspaceMembers};
use crate::support::process::{cargo, output, run};
use crate::support::repository::Repository;

/// Crate whose features users choose.
const FACADE: &str = "toolplane";

/// Crates with features that are taken alone, each with the sets of features to build. The empty set is the crate without
/// features.
const PARTS: [(&str, &[&str]); 2] = [("mcp-wire", &[""]), ("mcp-client", &["", "stdio", "http", "tls"])];

/// Builds that promise to be small: a crate, its features, and packages that the build never contains.
const LEAN: [(&str, &str, &[&str]); 4] = [
    (
        "mcp-wire",
        "",
        &["icu_normalizer", "icu_properties", "unicode-security"],
    ),
    (
        "mcp-client",
        "stdio",
        &[
            "aws-lc-sys",
            "http",
            "hyper",
            "icu_normalizer",
            "rustls",
            "rustls-native-certs",
            "url",
            "webpki-root-certs",
        ],
    ),
    ("mcp-client", "http", &["aws-lc-sys", "h2", "rustls"]),
    ("tool-exec-endpoint", "", &["http", "hyper", "rustls"]),
];

/// Checks the crates below the facade without features and with each feature alone, and the facade without features. Every
/// other step builds them with all features. [`each_of_facade`] checks the features of the facade.
pub(crate) fn features(repository: &Repository) -> Result<()> {
    for (name, sets) in PARTS {
        for features in sets {
            check_part(repository, name, features)?;
        }
    }
    for (name, features, absent) in LEAN {
        let mut tree = with_features(repository, "tree", name, features);
        let tree = output(tree.args(["--edges", "normal", "--prefix", "none"]))?;
        if let Some(package) = first_of(&tree, absent) {
            bail!("`{name}` with the features `{features}` alone pulls `{package}`");
        }
    }
    facade_without_features(repository)
}

/// Checks a crate with these features alone, and runs its tests.
fn check_part(repository: &Repository, name: &str, features: &str) -> Result<()> {
    say(format_args!("features: `{name}` with {}", shown(features)));
    // The library by itself: development dependencies may enable features that it lacks.
    run(with_features(repository, "clippy", name, features).args(["--quiet", "--", "--deny", "warnings"]))?;
    let mut clippy = with_features(repository, "clippy", name, features);
    run(clippy.args(["--quiet", "--all-targets", "--", "--deny", "warnings"]))?;
    // Tests start servers that are examples.
    run(with_features(repository, "build", name, features).args(["--quiet", "--examples"]))?;
    run(with_features(repository, "test", name, features).args(["--quiet", "--lib", "--tests"]))
}

/// Returns a command of cargo about one crate with these features alone.
fn with_features(repository: &Repository, verb: &str, name: &str, features: &str) -> Command {
    let mut command = cargo(repository.root());
    command.args([
        verb,
        "--package",
        name,
        "--no-default-features",
        "--features",
        features,
    ]);
    command
}

fn shown(features: &str) -> &str {
    if features.is_empty() { "none" } else { features }
}

/// Returns the first of these packages in the lines of `cargo tree --prefix none`.
fn first_of<'a>(tree: &'a str, packages: &[&str]) -> Option<&'a str> {
    let mut names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.find(|name| packages.contains(name))
}

/// Checks the facade and its tests without features: each test of an optional part names its feature, and a test that does not
/// shows there.
fn facade_without_features(repository: &Repository) -> Result<()> {
    say(format_args!("features: `{FACADE}` with none"));
    check_facade(repository, "", "--lib")?;
    check_facade(repository, "", "--tests")
}

/// Checks the facade with each feature alone. Each build differs in its packages, so that all of them take long.
pub(crate) fn each_of_facade(repository: &Repository) -> Result<()> {
    let members = WorkspaceMembers::load(repository.root())?;
    let facade = members
        .get(FACADE)
        .with_context(|| format!("there is no member `{FACADE}`"))?;
    for feature in single(facade) {
        say(format_args!("features: `{FACADE}` with {feature}"));
        check_facade(repository, feature, "--lib")?;
    }
    Ok(())
}

fn check_facade(repository: &Repository, features: &str, target: &str) -> Result<()> {
    let mut clippy = with_features(repository, "clippy", FACADE, features);
    run(clippy.args(["--quiet", target, "--", "--deny", "warnings"]))
}

/// Returns the features that are not made of other features.
fn single(facade: &Package) -> impl Iterator<Item = &str> {
    let is_single = |parts: &[String]| !parts.iter().any(|part| facade.features.contains_key(part));
    let features = facade.features.iter();
    features
        .filter(move |(_, parts)| is_single(parts))
        .map(|(name, _)| name.as_str())
}
