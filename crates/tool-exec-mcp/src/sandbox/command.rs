//! Command of a server in a sandbox.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use mcp_client::{Command, base_environment};
use tool_sandbox::{
    EnforcementScope, NetworkAccess, Sandbox, SandboxCommand, SandboxLimits, check_grant, ordered_grants,
};

use super::ServerSandbox;

/// Directories that every sandbox shows.
const SHOWN: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"];

/// Search path in a sandbox, behind the directory of the program.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Default of the number of open files.
const OPEN_FILES: u32 = 1024;
/// Default of the memory where it is counted for the tree.
const TREE_MEMORY: u64 = 1 << 30;
/// Default of the address space of each process where memory is not counted for the tree.
const ADDRESS_SPACE: u64 = 8 << 30;
/// CPU time that no server reaches.
const NO_CPU_LIMIT: Duration = Duration::from_secs(u32::MAX as u64);

/// Returns the command for the sandbox.
///
/// # Errors
/// The reason why the program cannot run there, with what to change.
pub(super) fn sandbox_command(
    description: &ServerSandbox,
    command: &Command,
    reads: &[PathBuf],
    writes: &[PathBuf],
    sandbox: &Sandbox,
) -> Result<SandboxCommand, String> {
    let all = |paths: &[PathBuf]| {
        paths
            .iter()
            .map(|path| absolute(path))
            .collect::<Result<Vec<_>, _>>()
    };
    let (mut reads, writes) = (all(reads)?, all(writes)?);
    // The operator named it; what it holds is a part of the server.
    let directory = command.directory().map(absolute).transpose()?;
    reads.extend(directory.clone());
    for path in reads.iter().chain(&writes) {
        check_grant(path).map_err(|error| error.to_string())?;
        if let Err(error) = fs::metadata(path) {
            let shown = path.display();
            return Err(format!("the sandbox cannot show `{shown}`: {error}"));
        }
    }
    let visible = Visible::new(&reads, &writes);
    let program = find_program(command, directory.as_deref(), &visible)?;
    let mut prepared = SandboxCommand::new(&program)
        .limits(limits(description, sandbox))
        .network(match description.network.is_empty() {
            true => NetworkAccess::Off,
            false => NetworkAccess::Hosts(description.network.clone()),
        });
    for argument in command.arguments() {
        prepared = prepared.arg(utf8("an argument", argument)?);
    }
    if let Some(path) = search_path(&program) {
        prepared = prepared.env("PATH", path);
    }
    for (name, value) in command.variables() {
        prepared = prepared.env(utf8("a variable", name)?, utf8("the value of a variable", value)?);
    }
    for (path, is_writable) in ordered_grants(&reads, &writes) {
        prepared = match is_writable {
            true => prepared.writable(&path, &path),
            false => prepared.read_only(&path, &path),
        };
    }
    if let Some(directory) = directory {
        prepared = prepared.current_dir(directory);
    }
    Ok(prepared)
}

fn limits(description: &ServerSandbox, sandbox: &Sandbox) -> SandboxLimits {
    let memory = match sandbox.enforcement().memory {
        EnforcementScope::Tree => TREE_MEMORY,
        _ => ADDRESS_SPACE,
    };
    let defaults = SandboxLimits::default();
    let processes = description.processes.unwrap_or(defaults.processes);
    let disk = description.disk.unwrap_or(defaults.disk);
    defaults
        .with_cpu_time(description.cpu_time.unwrap_or(NO_CPU_LIMIT))
        .with_memory(description.memory.unwrap_or(memory))
        .with_processes(processes)
        .with_open_files(description.open_files.unwrap_or(OPEN_FILES))
        .with_disk(disk)
}

/// Finds the program: below the working directory, or along the search path of the command or of this process, as a shell in the
/// sandbox would.
fn find_program(
    command: &Command,
    directory: Option<&Path>,
    visible: &Visible<'_>,
) -> Result<PathBuf, String> {
    let name = command.program();
    let shown = name.to_string_lossy();
    if shown.contains('/') {
        let path = match directory {
            Some(directory) => directory.join(name),
            None => absolute(Path::new(name))?,
        };
        let path = plain(&path);
        return match is_program(&path) {
            true => visible.check(&path).map(|()| path),
            false => Err(format!("cannot run `{shown}`: there is no such program")),
        };
    }
    let own = command.variables().find(|(name, _)| *name == "PATH");
    let own = own.map(|(_, value)| value.to_owned());
    let inherited = || {
        let mut base = base_environment().into_iter();
        base.find(|(name, _)| name == "PATH").map(|(_, value)| value)
    };
    let path = own.or_else(inherited).unwrap_or_else(|| SEARCH_PATH.into());
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    let candidates = candidates.filter(|candidate| candidate.is_absolute() && is_program(candidate));
    let mut first_problem = None;
    for candidate in candidates {
        match visible.check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(problem) => drop(first_problem.get_or_insert(problem)),
        }
    }
    Err(first_problem.unwrap_or_else(|| format!("cannot run `{shown}`: there is no such program in `PATH`")))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Directories that the sandbox shows.
struct Visible<'a>(Vec<&'a Path>);

impl<'a> Visible<'a> {
    fn new(reads: &'a [PathBuf], writes: &'a [PathBuf]) -> Self {
        let granted = reads.iter().chain(writes).map(PathBuf::as_path);
        Self(SHOWN.iter().map(Path::new).chain(granted).collect())
    }

    /// Checks that the sandbox shows a program, and the file that a link leads to.
    fn check(&self, program: &Path) -> Result<(), String> {
        let target = program.canonicalize().unwrap_or_else(|_| program.to_path_buf());
        let is_shown = |path: &&Path| self.0.iter().any(|folder| path.starts_with(folder));
        let hidden = [program, &target].into_iter().find(|path| !is_shown(path));
        match hidden {
            None => Ok(()),
            Some(path) => Err(format!(
                "the sandbox does not show the program `{}`: add `{}` to `reads` in `sandbox` of the server",
                path.display(),
                installation(path).display()
            )),
        }
    }
}

/// Returns the directory of an installation: that of `/opt/node/bin/node` is `/opt/node`.
fn installation(program: &Path) -> &Path {
    let folder = program.parent().unwrap_or(program);
    match (folder.file_name(), folder.parent()) {
        (Some(name), Some(parent)) if name == "bin" && parent.parent().is_some() => parent,
        _ => folder,
    }
}

/// Returns the search path for a program outside of the usual directories: programs beside it, such as `node` beside `npx`, come
/// first.
fn search_path(program: &Path) -> Option<String> {
    let folder = program.parent()?.to_str()?;
    let is_usual = SEARCH_PATH.split(':').any(|usual| usual == folder);
    (!is_usual && !folder.contains(':')).then(|| format!("{folder}:{SEARCH_PATH}"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    match std::path::absolute(path) {
        Ok(path) => Ok(plain(&path)),
        Err(error) => Err(format!("the path `{}` cannot be used: {error}", path.display())),
    }
}

/// Removes `.` and `..`, as a shell does.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn utf8<'a>(what: &str, text: &'a OsStr) -> Result<&'a str, String> {
    let text = text.to_str();
    text.ok_or_else(|| format!("the sandbox takes UTF-8 alone, and {what} is none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_outside_is_named_with_its_installation() {
        for (program, folder) in [
            ("/opt/node/bin/node", "/opt/node"),
            ("/srv/own/server", "/srv/own"),
            ("/bin/x", "/bin"),
        ] {
            assert_eq!(installation(Path::new(program)), Path::new(folder));
        }
        let reads = [PathBuf::from("/opt/node")];
        let visible = Visible::new(&reads, &[]);
        assert_eq!(visible.check(Path::new("/opt/node/bin/node")), Ok(()));
        let refused = visible.check(Path::new("/opt/nodes/bin/node")).unwrap_err();
        assert!(refused.contains("add `/opt/nodes` to `reads`"), "{refused}");
    }

    #[test]
    fn programs_beside_an_unusual_one_are_found_first() {
        assert_eq!(search_path(Path::new("/usr/bin/node")), None);
        let path = search_path(Path::new("/opt/node/bin/npx"));
        assert_eq!(
            path.as_deref(),
            Some("/opt/node/bin:/usr/local/bin:/usr/bin:/bin")
        );
    }
}
