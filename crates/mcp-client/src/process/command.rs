use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::Spawner;

/// Environment variables that a child process inherits by default: the search path, home and locale, and nothing that
/// could be a secret.
pub const BASE_VARIABLES: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR"];

/// Values of the [`BASE_VARIABLES`] that are set. The only place where this crate reads the environment.
#[must_use]
pub fn base_environment() -> Vec<(OsString, OsString)> {
    BASE_VARIABLES
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect()
}

/// Mark of the process trees that this process belongs to. Ignored if it is too long, so that nesting stays bounded.
pub(super) fn inherited_mark(name: &str) -> Option<OsString> {
    const MAX: usize = 1024;
    std::env::var_os(name).filter(|mark| !mark.is_empty() && mark.len() <= MAX)
}

/// Program that speaks MCP over its standard input and output, or that answers one request and ends: see
/// [`run_once`](Self::run_once).
///
/// Its environment contains only what is set here, beginning with [`base_environment`] in [`new`](Self::new). In
/// addition, `MCP_CLIENT_TREE` contains a random number that marks its descendants.
///
/// # Descendants
/// When the connection ends, the program is ended with all its descendants: its process group, and on Linux also
/// processes that left the group, such as a daemon. They are found through `/proc`: by their parents while these live,
/// and by the mark in their environment. A process escapes if its parent has ended and it lacks the mark, because it
/// was started with another environment or overwrote it, or if it belongs to another user.
#[derive(Clone)]
pub struct Command {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) directory: Option<PathBuf>,
    pub(super) spawner: Option<Arc<dyn Spawner>>,
}

impl Command {
    /// Creates a command for a program, searched along `PATH` unless it is a path, with the base environment.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: base_environment(),
            directory: None,
            spawner: None,
        }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<I>(mut self, args: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(other, _)| *other != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Removes all environment variables, including the base environment.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.environment.clear();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Has the program started by `spawner`, for example in a sandbox, instead of as a child of this process. It is then ended
    /// by the spawner as well: after its stdin is closed it gets no SIGTERM, but is killed.
    #[must_use]
    pub fn spawner(mut self, spawner: Arc<dyn Spawner>) -> Self {
        self.spawner = Some(spawner);
        self
    }

    pub(crate) fn own_spawner(&self) -> Option<&dyn Spawner> {
        self.spawner.as_deref()
    }

    /// Program to run.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &OsStr> {
        self.args.iter().map(OsString::as_os_str)
    }

    /// Environment variables.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let variables = self.environment.iter();
        variables.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Working directory; that of this process, or of the spawner's choice, if absent.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }
}

/// Commands with a spawner are equal if it is the same one.
impl PartialEq for Command {
    fn eq(&self, other: &Self) -> bool {
        let is_same_spawner = match (&self.spawner, &other.spawner) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            _ => false,
        };
        is_same_spawner
            && self.program == other.program
            && self.args == other.args
            && self.environment == other.environment
            && self.directory == other.directory
    }
}

impl Eq for Command {}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and values may contain secrets.
        let names: Vec<&OsStr> = self
            .environment
            .iter()
            .map(|(name, _)| name.as_os_str())
            .collect();
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("environment", &names)
            .field("directory", &self.directory)
            .field("has_spawner", &self.spawner.is_some())
            .finish()
    }
}
