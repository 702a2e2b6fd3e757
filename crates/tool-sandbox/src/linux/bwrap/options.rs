//! Command line of bubblewrap.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::prelude::{self, Prelude};
use super::staging::StagedPath;
use crate::linux::descriptors::{memory_file, pipe};
use crate::linux::seccomp::{self, Surroundings};
use crate::linux::{ETC_PATHS, NOBODY, base_environment};
use crate::{NetworkAccess, SandboxCommand, WORK_DIRECTORY};

/// Places of the program.
const PROGRAMS: [&str; 4] = [
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// Variables by which programs find their proxy.
const PROXY_VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/// Link in the root of the sandbox that no other root has.
pub(super) const MARK: &str = ".sandbox";

const PASSWD: &str = "nobody:x:65534:65534:nobody:/job:/usr/sbin/nologin\n";
const GROUP: &str = "nogroup:x:65534:\n";

/// Returns the path of bubblewrap.
pub(super) fn program() -> Option<PathBuf> {
    PROGRAMS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Command line of a sandbox, and the descriptors that it names.
pub(super) struct Invocation {
    /// Arguments of bubblewrap itself.
    pub(super) arguments: Vec<String>,
    /// Descriptors that the process inherits, under the same numbers.
    pub(super) inherited: Vec<OwnedFd>,
    /// Read end of a pipe on which bubblewrap reports its first process.
    pub(super) info: OwnedFd,
    /// Write end of a pipe whose first byte starts the program.
    pub(super) gate: OwnedFd,
    /// Paths to mount before the start, and to keep until the end.
    pub(super) staged: Vec<StagedPath>,
    /// Content of the link at [`MARK`], which says that the file systems of this sandbox are in place.
    pub(super) mark: String,
    /// First program, if the sandbox reaches hosts.
    pub(super) prelude: Option<Prelude>,
}

/// Creates the command line for `command`.
///
/// Everything but the program stands in an anonymous file: other users can read the arguments of a process, and variables
/// can be secret.
///
/// `wrapper` is a command line that starts the program, and `is_staged` says that granted paths are mounted for another user
/// first.
pub(super) fn invocation(
    command: &SandboxCommand,
    wrapper: Vec<String>,
    is_staged: bool,
) -> io::Result<Invocation> {
    let mut options = Options::default();
    options.isolate();
    options.system();
    options.temporary(command);
    let staged = options.grants(command, is_staged);
    options.work(command)?;
    let mark = format!("{:032x}", next_mark());
    options.add(&["--symlink", &mark, &format!("/{MARK}")]);
    // Both are file systems of their own without a limit of size.
    options.add(&["--remount-ro", "/dev", "--remount-ro", "/"]);
    let (info, info_writer) = pipe()?;
    options.with_descriptor("--info-fd", info_writer);
    let (gate_reader, gate) = pipe()?;
    options.with_descriptor("--block-fd", gate_reader);
    let surroundings = match command.network {
        NetworkAccess::Off => Surroundings::NetworkNamespace,
        NetworkAccess::Hosts(_) => Surroundings::Proxy,
    };
    let filter = seccomp::filter_bytes(surroundings)?;
    options.with_descriptor("--seccomp", memory_file(&filter)?);
    let mut before = Vec::new();
    let mut prelude = None;
    if surroundings == Surroundings::Proxy {
        let (made, arguments, descriptors) = Prelude::new()?;
        before = arguments;
        prelude = Some(made);
        options.inherited.extend(descriptors);
        let proxy = format!("http://127.0.0.1:{}", prelude::PORT);
        for name in PROXY_VARIABLES {
            options.add(&["--setenv", name, &proxy]);
        }
    }
    let Options { list, mut inherited } = options;
    let list = memory_file(list.join("\0").as_bytes())?;
    let mut arguments = vec!["--args".to_owned(), list.as_raw_fd().to_string()];
    inherited.push(list);
    arguments.extend(before);
    arguments.extend(wrapper);
    arguments.push(command.program.display().to_string());
    arguments.extend(command.args.iter().cloned());
    Ok(Invocation {
        arguments,
        inherited,
        info,
        gate,
        staged,
        mark,
        prelude,
    })
}

/// Options in the order in which bubblewrap applies them.
#[derive(Default)]
struct Options {
    list: Vec<String>,
    inherited: Vec<OwnedFd>,
}

impl Options {
    fn add(&mut self, options: &[&str]) {
        self.list.extend(options.iter().map(|&option| option.to_owned()));
    }

    fn with_descriptor(&mut self, option: &str, descriptor: OwnedFd) {
        let number = descriptor.as_raw_fd().to_string();
        self.add(&[option, &number]);
        self.inherited.push(descriptor);
    }

    fn isolate(&mut self) {
        let nobody = NOBODY.to_string();
        self.add(&[
            "--unshare-user",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
            "--uid",
            &nobody,
            "--gid",
            &nobody,
            "--hostname",
            "sandbox",
            "--disable-userns",
            "--cap-drop",
            "ALL",
            "--new-session",
            "--die-with-parent",
            "--clearenv",
        ]);
    }

    /// Adds the read-only system: programs, libraries and the parts of `/etc` that they need.
    fn system(&mut self) {
        self.add(&["--ro-bind", "/usr", "/usr"]);
        for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
            let path = format!("/{name}");
            match fs::read_link(&path) {
                Ok(target) => self.add(&["--symlink", &target.display().to_string(), &path]),
                Err(_) => self.add(&["--ro-bind-try", &path, &path]),
            }
        }
        for name in ETC_PATHS {
            let path = format!("/etc/{name}");
            self.add(&["--ro-bind-try", &path, &path]);
        }
        self.add(&["--proc", "/proc", "--dev", "/dev"]);
    }

    fn grants(&mut self, command: &SandboxCommand, is_staged: bool) -> Vec<StagedPath> {
        let mut staged = Vec::new();
        for grant in &command.grants {
            let option = if grant.is_writable { "--bind" } else { "--ro-bind" };
            let inside = grant.inside.display().to_string();
            if is_staged {
                let path = StagedPath::new(&grant.host);
                self.add(&[option, &path.place().display().to_string(), &inside]);
                staged.push(path);
            } else {
                self.add(&[option, &grant.host.display().to_string(), &inside]);
            }
        }
        staged
    }

    /// Adds the writable file systems. Granted paths may lie in them.
    fn temporary(&mut self, command: &SandboxCommand) {
        let size = command.limits.disk.to_string();
        for path in ["/tmp", "/dev/shm", WORK_DIRECTORY] {
            self.add(&["--size", &size, "--tmpfs", path]);
        }
    }

    /// Adds the files of the command, and the environment.
    fn work(&mut self, command: &SandboxCommand) -> io::Result<()> {
        for (path, content) in [("/etc/passwd", PASSWD), ("/etc/group", GROUP)] {
            self.data(path, content.as_bytes())?;
        }
        for file in &command.files {
            let path = Path::new(WORK_DIRECTORY).join(&file.path);
            self.data(&path.display().to_string(), &file.bytes)?;
        }
        self.add(&["--chdir", &command.directory.display().to_string()]);
        for (name, value) in base_environment(WORK_DIRECTORY, "/tmp") {
            self.add(&["--setenv", name, value]);
        }
        for (name, value) in &command.env {
            self.add(&["--setenv", name, value]);
        }
        Ok(())
    }

    fn data(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.add(&["--perms", "0555"]);
        let file = memory_file(bytes)?;
        let number = file.as_raw_fd().to_string();
        self.add(&["--ro-bind-data", &number, path]);
        self.inherited.push(file);
        Ok(())
    }
}

/// Returns a number that no sandbox of another process or of another time has.
fn next_mark() -> u128 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let seed = RandomState::new().hash_one(std::process::id());
    u128::from(seed) << 64 | u128::from(NUMBER.fetch_add(1, Ordering::Relaxed))
}
