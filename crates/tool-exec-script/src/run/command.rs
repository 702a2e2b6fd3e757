use std::path::Path;

use raw_json::RawJson;
use tool_sandbox::SandboxCommand;

use crate::{
    ScriptLanguage,
    interpreter::FoundInterpreter,
    plan::{OWN_DIRECTORY, Plan},
};

/// Code that calls the function of a Python tool, and reports its exceptions.
const RUN_PY: &str = include_str!("../python/run.py");

/// Place of installed packages in a sandbox. A level without a file system of its own replaces it by the one on the host.
const PACKAGES: &str = "/opt/toolplane/packages";

/// Everything that one run needs besides its plan.
pub(crate) struct Job<'a> {
    pub(crate) interpreter: &'a FoundInterpreter,
    /// Installed packages.
    pub(crate) packages: Option<&'a Path>,
    /// Variables of the arguments and of the settings.
    pub(crate) variables: Vec<(String, String)>,
    /// Arguments; `None` if they are written later.
    pub(crate) arguments: Option<&'a RawJson>,
}

/// Returns the command of a run. Arguments are data: variables and standard input, never part of code or of the command line.
pub(crate) fn command(plan: &Plan, job: Job<'_>) -> SandboxCommand {
    let mut command = SandboxCommand::new(&job.interpreter.path);
    command = match plan.language {
        // A path with a slash is never looked for in `PATH`.
        ScriptLanguage::Bash if plan.interpreter.name == "bash" => command
            .args(["--noprofile", "--norc", "--"])
            .arg(format!("./{}", plan.entry)),
        ScriptLanguage::Bash => command.arg(format!("./{}", plan.entry)),
        ScriptLanguage::Python => {
            let run = format!("{OWN_DIRECTORY}/run.py");
            let mode = match (plan.is_stateless, plan.stream.is_some()) {
                (true, true) => "function+stream",
                (true, false) => "function",
                (false, true) => "auto+stream",
                (false, false) => "auto",
            };
            command = command.file(&run, RUN_PY).args(["-I", "-B"]);
            if plan.stream.is_some() {
                // Lines arrive when they are written, not when a buffer is full.
                command = command.arg("-u");
            }
            command = command.args([run.as_str(), mode, plan.entry.as_str()]);
            match job.packages {
                Some(_) => command.arg(PACKAGES),
                None => command,
            }
        }
    };
    for (path, content) in &plan.files {
        command = command.file(path, content.to_vec());
    }
    if let Some(directory) = &job.interpreter.directory {
        command = command.read_only(directory, directory);
    }
    for (path, is_writable) in &plan.paths {
        command = match is_writable {
            true => command.writable(path, path),
            false => command.read_only(path, path),
        };
    }
    if let Some(packages) = job.packages {
        command = command.read_only(packages, PACKAGES);
    }
    for (name, value) in job.variables {
        command = command.env(name, value);
    }
    if let Some(arguments) = job.arguments {
        command = command.stdin(arguments.as_str());
    }
    command.limits(plan.limits.clone()).network(plan.network.clone())
}
