//! Paths of the host that a command may use under their own names.

use std::path::{Component, Path, PathBuf};

use crate::SandboxError;

/// Directories that show the processes and the devices of the host.
const NEVER_GRANTED: [&str; 2] = ["/proc", "/dev"];

/// Checks that a path of the host can be granted under its own name: it is absolute, has no `.` and `..`, and is neither the
/// root nor in `/proc` or `/dev`.
///
/// # Errors
/// Returns [`SandboxError::Refused`] with the rule that the path breaks.
pub fn check_grant(path: &Path) -> Result<(), SandboxError> {
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let shown = path.display();
    if !path.is_absolute() || !is_plain || path.to_str().is_none_or(|text| text.contains('\0')) {
        let rule = "it must be an absolute path without `..`";
        return Err(SandboxError::refused(format!("path `{shown}`"), rule));
    }
    if path.parent().is_none() {
        let rule = "the root of the sandbox stays its own";
        return Err(SandboxError::refused(format!("path `{shown}`"), rule));
    }
    if NEVER_GRANTED.iter().any(|never| path.starts_with(never)) {
        let rule = "the sandbox has its own `/proc` and `/dev`";
        return Err(SandboxError::refused(format!("path `{shown}`"), rule));
    }
    Ok(())
}

/// Returns the paths in the order in which a command is to grant them, each with `true` if it is writable: a path behind those
/// that it lies in. What is below a writable path is writable, at every level, so a readable path there is left out.
#[must_use]
pub fn ordered_grants(reads: &[PathBuf], writes: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    let is_writable = |path: &PathBuf| writes.iter().any(|write| path.starts_with(write));
    let reads = reads.iter().filter(|path| !is_writable(path));
    let reads = reads.map(|path| (path.clone(), false));
    let writes = writes.iter().map(|path| (path.clone(), true));
    let mut grants: Vec<_> = reads.chain(writes).collect();
    grants.sort_by_key(|(path, is_writable)| (path.components().count(), path.clone(), *is_writable));
    grants.dedup();
    grants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_absolute_paths_are_granted() {
        for path in ["/srv", "/srv/data", "/srv/.nvm", "/tmp"] {
            assert!(check_grant(Path::new(path)).is_ok(), "{path}");
        }
        for path in [
            "",
            "srv",
            "/",
            "/srv/../etc",
            "/proc",
            "/proc/1/environ",
            "/dev/sda",
            "/a\0b",
        ] {
            assert!(check_grant(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn paths_stand_behind_those_that_they_lie_in() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let grants = ordered_grants(
            &paths(&["/srv/app/lib", "/srv", "/data/old"]),
            &paths(&["/srv/app/out", "/data"]),
        );
        let shown: Vec<_> = grants
            .iter()
            .map(|(path, is_writable)| (path.to_str().unwrap_or_default(), *is_writable))
            .collect();
        assert_eq!(
            shown,
            [
                ("/data", true),
                ("/srv", false),
                ("/srv/app/lib", false),
                ("/srv/app/out", true)
            ]
        );
    }
}
