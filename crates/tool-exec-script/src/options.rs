use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::InstallerVariables;

/// Options of the executors of code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptOptions {
    /// Time limit of tools that set none: 30 s.
    pub timeout: Duration,
    /// Maximum size of a result, in bytes: 16 MiB.
    pub max_result_bytes: usize,
    /// Interpreters that tools may name, in addition to `bash`, `sh` and `python`, or instead of them.
    pub interpreters: BTreeMap<String, PathBuf>,
    /// Directory in which packages are installed. Without one, tools that require packages fail.
    pub package_cache: Option<PathBuf>,
    /// Variables for the installers of packages.
    pub installer_variables: InstallerVariables,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_result_bytes: 16 << 20,
            interpreters: BTreeMap::new(),
            package_cache: None,
            installer_variables: InstallerVariables::default(),
        }
    }
}

impl ScriptOptions {
    /// Sets the time limit of tools that set none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of a result, in bytes.
    #[must_use]
    pub fn with_max_result_bytes(mut self, max_result_bytes: usize) -> Self {
        self.max_result_bytes = max_result_bytes;
        self
    }

    /// Sets the interpreters that tools may name, by name.
    #[must_use]
    pub fn with_interpreters(mut self, interpreters: BTreeMap<String, PathBuf>) -> Self {
        self.interpreters = interpreters;
        self
    }

    /// Sets the directory in which packages are installed.
    #[must_use]
    pub fn with_package_cache(mut self, package_cache: Option<PathBuf>) -> Self {
        self.package_cache = package_cache;
        self
    }

    /// Sets the variables for the installers of packages.
    #[must_use]
    pub fn with_installer_variables(mut self, installer_variables: InstallerVariables) -> Self {
        self.installer_variables = installer_variables;
        self
    }
}
