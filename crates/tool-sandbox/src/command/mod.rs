//! Commands: a program, its arguments and files, and what it may reach.

mod grants;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub use self::grants::{check_grant, ordered_grants};
use crate::event::{EventObserver, OutputObserver, StdoutObserver};
#[cfg(target_os = "linux")]
use crate::network::HostRules;
use crate::{SandboxError, SandboxEvent, SandboxLimits};

/// Path of the work directory inside the sandbox.
pub const WORK_DIRECTORY: &str = "/job";

/// Maximum number of files that a command brings along: each takes a descriptor and a mount.
const MAX_FILES: usize = 128;

/// Hosts that a sandboxed process may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkAccess {
    /// No network at all.
    #[default]
    Off,
    /// HTTP and HTTPS to these hosts through a proxy: `api.example.com`, `*.example.com`, each optionally with `:port`.
    Hosts(Vec<String>),
}

#[cfg(target_os = "linux")]
impl NetworkAccess {
    /// Checks that each host is written in a known form, as a run does before it starts anything.
    ///
    /// # Errors
    /// Returns [`SandboxError::Refused`] for the first host that is not.
    pub fn check(&self) -> Result<(), SandboxError> {
        match self {
            Self::Off => Ok(()),
            Self::Hosts(hosts) => HostRules::new(hosts).map(drop),
        }
    }
}

/// Bind mount of a path of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathGrant {
    pub(crate) host: PathBuf,
    pub(crate) inside: PathBuf,
    pub(crate) is_writable: bool,
}

/// File of the work directory.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CommandFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// Files of the work directory that a run returns.
///
/// Only regular files are returned, and no link is followed. Files that exceed a limit are named in
/// [`SandboxOutput::skipped_files`](crate::SandboxOutput::skipped_files).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxCollect {
    /// Paths relative to the work directory. A directory stands for the files in it, at any depth.
    pub paths: Vec<PathBuf>,
    /// Maximum number of files.
    pub max_files: usize,
    /// Maximum size of one file, in bytes.
    pub max_file_bytes: u64,
    /// Maximum size of all files, in bytes.
    pub max_total_bytes: u64,
}

impl SandboxCollect {
    /// Creates a collection of the files at `paths`, which are relative to the work directory.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
            max_files: 32,
            max_file_bytes: 1024 * 1024,
            max_total_bytes: 8 * 1024 * 1024,
        }
    }

    /// Sets the maximum number of files.
    #[must_use]
    pub fn with_max_files(mut self, max_files: usize) -> Self {
        self.max_files = max_files;
        self
    }

    /// Sets the maximum size of one file, in bytes.
    #[must_use]
    pub fn with_max_file_bytes(mut self, max_file_bytes: u64) -> Self {
        self.max_file_bytes = max_file_bytes;
        self
    }

    /// Sets the maximum size of all files, in bytes.
    #[must_use]
    pub fn with_max_total_bytes(mut self, max_total_bytes: u64) -> Self {
        self.max_total_bytes = max_total_bytes;
        self
    }
}

/// Program to run in a sandbox, and everything that it may see.
///
/// The program starts in [`WORK_DIRECTORY`], a fresh and empty file system of limited size, unless
/// [`current_dir`](Self::current_dir) names another one, and sees the host's `/usr` read-only. Its environment has `PATH`, `HOME`, `LANG`, `TMPDIR` and the variables of [`env`](Self::env).
///
/// # Examples
///
/// ```
/// use tool_sandbox::{SandboxCommand, SandboxLimits};
///
/// let command = SandboxCommand::new("/usr/bin/python3")
///     .args(["-I", "/job/main.py"])
///     .file("main.py", "print(input())")
///     .stdin("hello")
///     .limits(SandboxLimits::default().with_processes(8));
/// ```
#[derive(Clone)]
pub struct SandboxCommand {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// Directory inside in which the program starts.
    pub(crate) directory: PathBuf,
    pub(crate) stdin: Vec<u8>,
    pub(crate) files: Vec<CommandFile>,
    pub(crate) grants: Vec<PathGrant>,
    pub(crate) limits: SandboxLimits,
    pub(crate) network: NetworkAccess,
    pub(crate) collect: Option<SandboxCollect>,
    pub(crate) observer: Option<EventObserver>,
    /// Receives the standard output of a run.
    pub(crate) on_stdout: Option<StdoutObserver>,
}

impl SandboxCommand {
    /// Creates a command for `program`, an absolute path inside the sandbox.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            directory: PathBuf::from(WORK_DIRECTORY),
            stdin: Vec::new(),
            files: Vec::new(),
            grants: Vec::new(),
            limits: SandboxLimits::default(),
            network: NetworkAccess::Off,
            collect: None,
            observer: None,
            on_stdout: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the directory in which the program starts: [`WORK_DIRECTORY`] by default, or a path that is granted.
    #[must_use]
    pub fn current_dir(mut self, inside: impl Into<PathBuf>) -> Self {
        self.directory = inside.into();
        self
    }

    /// Sets the bytes that [`Sandbox::run`](crate::Sandbox::run) writes to the standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Adds a file of the work directory. The program sees exactly these bytes and cannot change them. At the levels without
    /// namespaces the file is a link to one that the program cannot write.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push(CommandFile {
            path: path.into(),
            bytes: bytes.into(),
        });
        self
    }

    /// Makes a path of the host readable at `inside`, for example a Python environment.
    #[must_use]
    pub fn read_only(self, host: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        self.grant(host.into(), inside.into(), false)
    }

    /// Makes a path of the host readable and writable at `inside`. Its size is not limited. Of two grants, the later one counts
    /// where both apply.
    #[must_use]
    pub fn writable(self, host: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        self.grant(host.into(), inside.into(), true)
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: SandboxLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the hosts that the program may reach.
    #[must_use]
    pub fn network(mut self, network: NetworkAccess) -> Self {
        self.network = network;
        self
    }

    /// Sets the files of the work directory that a run returns.
    #[must_use]
    pub fn collect(mut self, collect: SandboxCollect) -> Self {
        self.collect = Some(collect);
        self
    }

    /// Sets the observer of the accesses that the sandbox decides. It must not block.
    #[must_use]
    pub fn on_event(mut self, observer: Arc<dyn Fn(SandboxEvent) + Send + Sync>) -> Self {
        self.observer = Some(EventObserver(observer));
        self
    }

    /// Sets the observer of the standard output, which receives it while it is read, as far as it is kept. It must not block.
    /// [`Sandbox::spawn`](crate::Sandbox::spawn) does not use it.
    #[must_use]
    pub fn on_stdout(mut self, observer: OutputObserver) -> Self {
        self.on_stdout = Some(StdoutObserver(observer));
        self
    }

    fn grant(mut self, host: PathBuf, inside: PathBuf, is_writable: bool) -> Self {
        self.grants.push(PathGrant {
            host,
            inside,
            is_writable,
        });
        self
    }

    /// Checks the parts that no level accepts when they are wrong.
    pub(crate) fn check(&self) -> Result<(), SandboxError> {
        check_absolute("program", &self.program)?;
        check_absolute("directory", &self.directory)?;
        for arg in &self.args {
            check_nul("an argument", arg)?;
        }
        for (name, value) in &self.env {
            check_variable(name, value)?;
        }
        if self.files.len() > MAX_FILES {
            return Err(SandboxError::refused(
                format!("{} files", self.files.len()),
                format!("a command brings at most {MAX_FILES}; use `read_only` for a directory"),
            ));
        }
        for file in &self.files {
            check_relative("file", &file.path)?;
        }
        for path in self.collect.iter().flat_map(|collect| &collect.paths) {
            check_relative("collected path", path)?;
        }
        for grant in &self.grants {
            check_absolute("path of the host", &grant.host)?;
            check_absolute("path inside the sandbox", &grant.inside)?;
            if grant.inside.components().count() < 2 {
                return Err(SandboxError::refused(
                    format!("a mount at `{}`", grant.inside.display()),
                    "the root of the sandbox stays its own",
                ));
            }
        }
        self.check_limits()
    }

    fn check_limits(&self) -> Result<(), SandboxError> {
        let limits = &self.limits;
        let smallest = [
            ("memory", limits.memory, 1024 * 1024),
            ("processes", u64::from(limits.processes), 1),
            ("open_files", u64::from(limits.open_files), 8),
            ("disk", limits.disk, 4096),
            (
                "cpu_time",
                limits.cpu_time.as_nanos().min(1).try_into().unwrap_or(1),
                1,
            ),
        ];
        for (name, value, minimum) in smallest {
            if value < minimum {
                return Err(SandboxError::refused(
                    format!("limit `{name}` of {value}"),
                    format!("no program runs with less than {minimum}"),
                ));
            }
        }
        Ok(())
    }
}

/// Shows no value that could be secret: of variables the names, of input and files the sizes.
impl fmt::Debug for SandboxCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        let files: Vec<_> = self
            .files
            .iter()
            .map(|file| (&file.path, file.bytes.len()))
            .collect();
        formatter
            .debug_struct("SandboxCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &env)
            .field("directory", &self.directory)
            .field("stdin", &self.stdin.len())
            .field("files", &files)
            .field("grants", &self.grants)
            .field("limits", &self.limits)
            .field("network", &self.network)
            .field("collect", &self.collect)
            .finish_non_exhaustive()
    }
}

fn check_absolute(what: &str, path: &Path) -> Result<(), SandboxError> {
    let text = utf8(what, path)?;
    check_nul(what, text)?;
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && is_plain {
        return Ok(());
    }
    Err(SandboxError::refused(
        format!("{what} `{text}`"),
        "it must be an absolute path without `..`",
    ))
}

fn check_relative(what: &str, path: &Path) -> Result<(), SandboxError> {
    let text = utf8(what, path)?;
    check_nul(what, text)?;
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_plain && !text.is_empty() {
        return Ok(());
    }
    Err(SandboxError::refused(
        format!("{what} `{text}`"),
        "it must be a path relative to the work directory, without `.` and `..`",
    ))
}

fn utf8<'a>(what: &str, path: &'a Path) -> Result<&'a str, SandboxError> {
    path.to_str()
        .ok_or_else(|| SandboxError::refused(format!("{what} `{}`", path.display()), "it must be UTF-8"))
}

fn check_nul(what: &str, text: &str) -> Result<(), SandboxError> {
    if text.contains('\0') {
        return Err(SandboxError::refused(what, "it must not contain a NUL byte"));
    }
    Ok(())
}

fn check_variable(name: &str, value: &str) -> Result<(), SandboxError> {
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if !is_name {
        return Err(SandboxError::refused(
            format!("variable `{}`", name.escape_debug()),
            "its name must have letters, digits and `_` alone, and not begin with a digit",
        ));
    }
    check_nul(&format!("the value of variable `{name}`"), value)
}
