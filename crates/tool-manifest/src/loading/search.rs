use std::path::{Path, PathBuf};

use crate::secrets::process_secrets::process_variable;

/// Finds the configuration file to use if none is named: `$TOOLPLANE_CONFIG`, `toolplane.yaml` in the working
/// directory, or `toolplane/toolplane.yaml` in `$XDG_CONFIG_HOME` (`~/.config` if that is not set). Returns `None` if
/// there is none.
///
/// The file that `$TOOLPLANE_CONFIG` names is returned even if it does not exist, so that its absence is reported.
#[must_use]
pub fn find_configuration(directory: &Path) -> Option<PathBuf> {
    search(directory, |name| process_variable(name).ok())
}

/// Returns the user's cache directory: `$XDG_CACHE_HOME`, else `~/.cache`. Returns `None` if neither names a directory.
#[must_use]
pub fn cache_directory() -> Option<PathBuf> {
    let directory = |name: &str| {
        let path = process_variable(name).ok().map(PathBuf::from);
        // The base directory specification: a relative path is to be ignored.
        path.filter(|path| path.is_absolute())
    };
    directory("XDG_CACHE_HOME").or_else(|| Some(directory("HOME")?.join(".cache")))
}

/// Finds it with these variables.
pub(crate) fn search(directory: &Path, variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(named) = set("TOOLPLANE_CONFIG") {
        return Some(named.into());
    }
    let home = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        // The base directory specification: a relative path is to be ignored.
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")));
    let local = Some(directory.join("toolplane.yaml"));
    let global = home.map(|home| home.join("toolplane").join("toolplane.yaml"));
    [local, global].into_iter().flatten().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(directory: &Path, variables: &[(&str, &str)]) -> Option<PathBuf> {
        search(directory, |name| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        })
    }

    #[test]
    fn the_named_file_wins_over_the_near_and_the_near_over_the_far() {
        let root = tempfile::tempdir().unwrap();
        let (near, far) = (root.path().join("near"), root.path().join("far"));
        std::fs::create_dir_all(far.join("toolplane")).unwrap();
        std::fs::create_dir_all(&near).unwrap();
        let home = [("XDG_CONFIG_HOME", far.to_str().unwrap())];
        assert_eq!(find(&near, &home), None);

        std::fs::write(far.join("toolplane/toolplane.yaml"), "").unwrap();
        assert_eq!(find(&near, &home), Some(far.join("toolplane/toolplane.yaml")));
        std::fs::write(near.join("toolplane.yaml"), "").unwrap();
        assert_eq!(find(&near, &home), Some(near.join("toolplane.yaml")));
        let named = [("TOOLPLANE_CONFIG", "/no/such.yaml"), home[0]];
        assert_eq!(find(&near, &named), Some("/no/such.yaml".into()));
        assert_eq!(
            find(&near, &[("TOOLPLANE_CONFIG", "")]),
            Some(near.join("toolplane.yaml"))
        );
    }
}
