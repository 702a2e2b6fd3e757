//! Interpreters of code.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Interpreters that every tool may name, with the places where they are looked for.
const USUAL: [(&str, &[&str]); 3] = [
    ("bash", &["/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash"]),
    ("python", &["/usr/local/bin/python3", "/usr/bin/python3"]),
    ("sh", &["/usr/bin/sh", "/bin/sh"]),
];
/// Directories that every sandbox shows.
const SHOWN: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32"];

/// An interpreter that the operator allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Interpreter {
    pub(crate) name: String,
    candidates: Vec<PathBuf>,
}

/// An interpreter that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundInterpreter {
    pub(crate) path: PathBuf,
    /// Directory that a sandbox has to show, since it does not do so by itself.
    pub(crate) directory: Option<PathBuf>,
}

impl Interpreter {
    /// Returns the interpreter with this name; the known names if there is none.
    pub(crate) fn named(name: &str, operator: &BTreeMap<String, PathBuf>) -> Result<Self, String> {
        if let Some(path) = operator.get(name) {
            return Ok(Self {
                name: name.to_owned(),
                candidates: vec![path.clone()],
            });
        }
        let usual = USUAL.into_iter().find(|(known, _)| *known == name);
        if let Some((_, candidates)) = usual {
            return Ok(Self {
                name: name.to_owned(),
                candidates: candidates.iter().map(PathBuf::from).collect(),
            });
        }
        let mut known: Vec<&str> = USUAL.iter().map(|(name, _)| *name).collect();
        known.extend(operator.keys().map(String::as_str));
        known.sort_unstable();
        known.dedup();
        Err(known
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "))
    }

    /// Finds the interpreter on this machine.
    ///
    /// # Errors
    /// If it is not installed: what was looked for.
    pub(crate) fn find(&self) -> Result<FoundInterpreter, String> {
        let found = self.candidates.iter().find(|path| path.is_file());
        let Some(path) = found else {
            let tried: Vec<_> = self
                .candidates
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            return Err(format!(
                "the interpreter `{}` is not installed (looked for {})",
                self.name,
                tried.join(", ")
            ));
        };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_shown = |path: &Path| SHOWN.iter().any(|directory| path.starts_with(directory));
        // The installation of `/opt/python/bin/python3` is `/opt/python`.
        let directory = real.parent().and_then(Path::parent);
        let directory = directory.filter(|directory| !is_shown(&real) && directory.parent().is_some());
        Ok(FoundInterpreter {
            path: if directory.is_some() {
                real.clone()
            } else {
                path.clone()
            },
            directory: directory.map(Path::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Interpreter;

    #[test]
    fn only_allowed_interpreters_are_found() {
        let operator = BTreeMap::from([("perl".to_owned(), "/usr/bin/env".into())]);
        assert!(Interpreter::named("bash", &operator).is_ok());
        let known = Interpreter::named("/bin/bash", &operator).unwrap_err();
        assert_eq!(known, "`bash`, `perl`, `python`, `sh`");
        let found = Interpreter::named("perl", &operator).unwrap().find().unwrap();
        assert_eq!(found.path.to_str(), Some("/usr/bin/env"));
        assert_eq!(found.directory, None);
        let missing = BTreeMap::from([("x".to_owned(), "/nowhere/bin/x".into())]);
        let reason = Interpreter::named("x", &missing).unwrap().find().unwrap_err();
        assert!(reason.contains("/nowhere/bin/x"), "{reason}");
    }

    #[test]
    fn an_installation_of_its_own_is_shown() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("bin")).unwrap();
        std::fs::write(root.join("bin/python3"), "").unwrap();
        let operator = BTreeMap::from([("python".to_owned(), root.join("bin/python3"))]);
        let found = Interpreter::named("python", &operator).unwrap().find().unwrap();
        assert_eq!(found.directory.as_deref(), Some(root.as_path()));
    }
}
