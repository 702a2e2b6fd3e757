//! Rules for every text file: no trailing white space, no name of a registry, no absolute path of a machine.

use std::path::Path;

use super::is_fixture;
use crate::support::console::Violation;

/// Lock files, which are written by their tools.
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "package-lock.json"];

pub(super) fn check(path: &Path, text: &str) -> Vec<Violation> {
    let is_lock = LOCK_FILES.iter().any(|name| path.ends_with(name));
    if is_lock || is_fixture(path) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let hosts = registry_hosts();
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    for (index, line) in text.lines().enumerate() {
        let mut report = |message: String| problems.push(Violation::on_line(path, index + 1, message));
        if line.ends_with([' ', '\t', '\r']) {
            report("white space at the end of the line".to_owned());
        }
        if is_rust && is_ignored_example(line) {
            report(
                "an example that is not compiled goes stale: `no_run`, or `text` if it is no Rust".to_owned(),
            );
        }
        for host in hosts.iter().filter(|host| line.contains(host.as_str())) {
            report(format!(
                "names the package registry `{host}`; a mirror may stand in its place"
            ));
        }
        for folder in machine_folders(path).filter(|folder| has_path(line, folder)) {
            report(format!("names `{folder}`, a folder of one machine"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(Violation::in_file(path, "no line end at the end of the file"));
    }
    problems
}

fn is_ignored_example(line: &str) -> bool {
    let line = line.trim_start();
    let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
    comment
        .and_then(|text| text.trim_start().strip_prefix("```"))
        .is_some_and(|words| words.split([',', ' ']).any(|word| word.starts_with("ignore")))
}

/// Returns the host names of registries. They are put together here because this file would otherwise break its own
/// rule.
fn registry_hosts() -> [String; 7] {
    let host = |name: &str, domain: &str| format!("{name}.{domain}");
    [
        host("crates", "io"),
        host("npmjs", "org"),
        host("npmjs", "com"),
        host("pypi", "org"),
        host("pythonhosted", "org"),
        host("yarnpkg", "com"),
        host("golang", "org"),
    ]
}

fn machine_folders(path: &Path) -> impl Iterator<Item = String> {
    let is_program = path
        .extension()
        .is_some_and(|extension| extension == "rs" || extension == "sh")
        || path.starts_with(".ci");
    let temporary = is_program.then_some("tmp");
    ["work", "root", "home"]
        .into_iter()
        .chain(temporary)
        .map(|name| format!("/{name}/"))
}

/// Returns `true` if `folder` starts an absolute path in the line. `a/work/b` and `https://host/work/` do not count.
fn has_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(offset, _)| {
        let before = line[..offset].chars().next_back();
        let after = line[offset + folder.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}$~*".contains(c))
            && after.is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_')
    })
}
