//! Rules for the manifests and the folders of published packages.

use std::path::Path;

use crate::support::console::Violation;
use crate::support::members::{DependencyKind, Package, WorkspaceMembers};
use crate::support::repository::Repository;

/// Licence texts that every package ships, because both licences ask for it.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
/// Maximum number of keywords and of categories that the package index accepts.
const MAX_WORDS: usize = 5;
/// Categories of the package index that fit our packages. The index ignores a word that it does not know.
const CATEGORIES: [&str; 22] = [
    "api-bindings",
    "asynchronous",
    "caching",
    "command-line-utilities",
    "concurrency",
    "config",
    "database",
    "data-structures",
    "development-tools",
    "development-tools::debugging",
    "development-tools::testing",
    "encoding",
    "network-programming",
    "os::linux-apis",
    "parser-implementations",
    "rust-patterns",
    "simulation",
    "template-engine",
    "text-processing",
    "web-programming",
    "web-programming::http-client",
    "web-programming::http-server",
];

pub(super) fn check(repository: &Repository, members: &WorkspaceMembers) -> Vec<Violation> {
    let mut problems = Vec::new();
    for package in &members.packages {
        let messages = if package.is_published() {
            let mut messages = described(package);
            messages.extend(shipped(repository, &members.folder(package), package));
            messages.extend(dependencies(members, package));
            messages
        } else if package.reason_unpublished().is_none() {
            vec![
                "is not published, and `unpublished` in `[package.metadata.toolplane]` does not say why"
                    .to_owned(),
            ]
        } else {
            Vec::new()
        };
        let manifest = members.manifest(package);
        problems.extend(
            messages
                .into_iter()
                .map(|message| Violation::in_file(&manifest, message)),
        );
    }
    problems
}

/// Checks the entries that the package index shows.
fn described(package: &Package) -> Vec<String> {
    let mut messages = Vec::new();
    for (key, words) in [
        ("keywords", &package.keywords),
        ("categories", &package.categories),
    ] {
        if words.is_empty() || words.len() > MAX_WORDS {
            messages.push(format!(
                "has {} `{key}`; a published package has 1 to {MAX_WORDS}",
                words.len()
            ));
        }
    }
    let unknown = package
        .categories
        .iter()
        .filter(|word| !CATEGORIES.contains(&word.as_str()));
    messages.extend(unknown.map(|word| format!("the category `{word}` is not in the list of `xtask`")));
    let is_keyword = |word: &&String| {
        word.len() <= 20
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
    };
    let refused = package.keywords.iter().filter(|word| !is_keyword(word));
    messages.extend(refused.map(|word| format!("the package index refuses the keyword `{word}`")));
    if package.documentation.is_none() {
        messages.push("no `documentation`".to_owned());
    }
    messages
}

/// Checks the README and the licence texts.
fn shipped(repository: &Repository, folder: &Path, package: &Package) -> Vec<String> {
    let mut messages = Vec::new();
    let has_readme = repository.text(folder.join("README.md")).is_some();
    if !has_readme || package.readme.as_deref() != Some(Path::new("README.md")) {
        messages.push("no `README.md` that `readme` names".to_owned());
    }
    let differs = |name: &&&str| {
        let original = repository.text(name);
        original.is_some() && repository.text(folder.join(name)) != original
    };
    let different = LICENCES.iter().filter(differs);
    messages
        .extend(different.map(|name| format!("`{name}` beside it is missing or is no copy of the root's")));
    messages
}

/// Checks that a published package needs published packages only, in the version of this workspace.
fn dependencies(members: &WorkspaceMembers, package: &Package) -> Vec<String> {
    let mut messages = Vec::new();
    for dependency in &package.dependencies {
        let Some(other) = members.get(&dependency.name) else {
            continue;
        };
        // A dependency of tests without a version is left out of the published package.
        let is_left_out = dependency.kind == Some(DependencyKind::Dev) && dependency.req == "*";
        if is_left_out {
            continue;
        }
        if !other.is_published() {
            messages.push(format!("depends on `{}`, which is not published", other.name));
        } else if dependency.req != format!("^{}", other.version) {
            messages.push(format!(
                "depends on `{}` {}: a path needs the version {}",
                other.name, dependency.req, other.version
            ));
        }
    }
    messages
}
