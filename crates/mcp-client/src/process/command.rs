use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
};

/// The variables of our own environment that a child sees unless told otherwise: what a program needs to find other
/// programs, its home and its language, and nothing that could be a secret.
pub const BASE_VARIABLES: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR"];

/// The values of [`BASE_VARIABLES`] that are set. The one place where this crate reads the environment.
#[must_use]
pub fn base_environment() -> Vec<(OsString, OsString)> {
    BASE_VARIABLES
        .iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect()
}

/// What our own environment says of the trees that we are in. Who wrote too much there is not passed on.
pub(super) fn inherited_mark(name: &str) -> Option<OsString> {
    const MAX: usize = 1024;
    std::env::var_os(name).filter(|mark| !mark.is_empty() && mark.len() <= MAX)
}

/// A program that speaks MCP on its standard input and output.
///
/// Its environment holds what is set here and nothing else: [`new`](Self::new) begins with [`base_environment`]. Beside
/// that, `MCP_CLIENT_TREE` holds a random number, by which the processes that it starts are found.
///
/// # What it has started
/// When the connection ends, the program ends with everything that it has started: its process group, and on Linux also
/// what left the group, such as a daemon. That is found by `/proc`: by its parents as long as they live, and by the number
/// in its environment. It stays behind if it has neither: if its parent has ended, and it was started with another
/// environment or wrote over it, or if it belongs to another user.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) directory: Option<PathBuf>,
}

impl Command {
    /// A program, found along `PATH` unless it is a path, with the base environment.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: base_environment(),
            directory: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I>(mut self, args: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(other, _)| *other != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Takes all variables away, the base environment too.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.environment.clear();
        self
    }

    /// Sets the directory that the program runs in.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and values may hold secrets.
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
            .finish()
    }
}
