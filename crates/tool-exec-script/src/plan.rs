//! Settings of a tool, compiled and checked.

use std::{collections::BTreeMap, path::PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tool_core::{Descriptor, Reference, Template, is_relative_path};
use tool_sandbox::{NetworkAccess, SandboxLevel, SandboxLimits};
use tool_settings::{
    NetworkHosts, SandboxChoice, pointer,
    program::{ExitCodes, ProgramLimits, check_parameters, environment},
};

use crate::{
    ScriptLanguage, ScriptOptions, authority,
    interpreter::Interpreter,
    requirements::LockedRequirements,
    settings::{Body, Files, Problems, ScriptOutput, ScriptStream, read},
};

/// File in which a version keeps its locked requirements.
pub(crate) const LOCK_FILE: &str = "requirements.lock";
/// Directory of the runner's own files in the working directory of a tool.
pub(crate) const OWN_DIRECTORY: &str = ".toolplane";

/// A tool with code, ready to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tool: String,
    pub(crate) language: ScriptLanguage,
    /// Path of the file to run.
    pub(crate) entry: String,
    /// Files in the working directory, by path: exactly these bytes are run.
    pub(crate) files: BTreeMap<String, Bytes>,
    pub(crate) interpreter: Interpreter,
    pub(crate) output: ScriptOutput,
    /// Form in which lines of standard output are reported while the code runs.
    pub(crate) stream: Option<ScriptStream>,
    /// Names of the variables of arguments that do not follow from their parameters.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) exit_codes: ExitCodes,
    pub(crate) limits: SandboxLimits,
    pub(crate) network: NetworkAccess,
    pub(crate) env: Vec<(String, Template)>,
    /// Paths of this machine that the code may use, and whether it may write there.
    pub(crate) paths: Vec<(PathBuf, bool)>,
    /// Level of the sandbox; the strongest one if absent.
    pub(crate) level: Option<SandboxLevel>,
    pub(crate) requirements: Option<LockedRequirements>,
    pub(crate) is_stateless: bool,
}

impl Plan {
    /// Checks the settings of a tool and compiles them, or returns every problem.
    pub(crate) fn compile(
        language: ScriptLanguage,
        descriptor: &Descriptor,
        options: &ScriptOptions,
    ) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let body = read(language, &descriptor.executor.config, &mut problems);
        let (entry, files) = code(language, descriptor, &body, &mut problems);
        let interpreter = interpreter(language, &body, options, &mut problems);
        let exit_codes = ExitCodes::read(&body.exit_codes, &mut problems.0);
        let env = environment(descriptor, &body.env, &mut problems.0);
        if language == ScriptLanguage::Bash {
            check_parameters(descriptor, &body.variables, &env, &mut problems.0);
        }
        let (timeout, most) = (options.timeout, options.max_result_bytes);
        let limits = ProgramLimits::compile(&body.limits, descriptor, timeout, most, &mut problems.0);
        let limits = sandbox_limits(&limits);
        authority::check(descriptor, &body, &mut problems);
        let paths = authority::paths(&body, &mut problems);
        let requirements = requirements(descriptor, &body, &mut problems);
        if body.stateless && body.sandbox == SandboxChoice::None {
            problems.add(
                "/stateless",
                "an interpreter without a sandbox does not wait for calls",
                "remove `stateless`, or `sandbox: none`",
            );
        }
        if body.stream == Some(ScriptStream::Ndjson) && body.output.is_some() {
            let message = "with `stream: ndjson`, the result is the list of the lines";
            problems.add("/output", message, "remove `output`, or write `stream: text`");
        }
        if !problems.0.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            tool: descriptor.name.to_string(),
            language,
            entry,
            files,
            interpreter,
            output: body.output.unwrap_or_default(),
            stream: body.stream,
            variables: body.variables,
            exit_codes,
            limits,
            network: match body.network {
                NetworkHosts::Hosts(hosts) => NetworkAccess::Hosts(hosts),
                _ => NetworkAccess::Off,
            },
            env,
            paths,
            level: level(body.sandbox),
            requirements,
            is_stateless: body.stateless,
        })
    }

    /// Returns the references of the environment.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.env.iter().flat_map(|(_, template)| template.references())
    }

    /// Returns the SHA-256 of each file, by path.
    pub(crate) fn digests(&self) -> BTreeMap<&str, String> {
        let files = self.files.iter();
        files
            .map(|(path, content)| (path.as_str(), raw_json::hex(&Sha256::digest(content))))
            .collect()
    }
}

/// Returns the file to run, and all files.
fn code(
    language: ScriptLanguage,
    descriptor: &Descriptor,
    body: &Body,
    problems: &mut Problems,
) -> (String, BTreeMap<String, Bytes>) {
    let mut files = descriptor.files.clone();
    files.remove(LOCK_FILE);
    if let Some(Files::Written(texts)) = &body.files {
        for (path, text) in texts {
            if files.contains_key(path) {
                let message = format!("the tool has two files `{path}`");
                problems.add(pointer("/files", path), message, "remove one of them");
            }
            files.insert(path.clone(), text.clone().into());
        }
    }
    for path in files.keys() {
        let is_own = path.split('/').next() == Some(OWN_DIRECTORY);
        if is_own || !is_relative_path(path) {
            let message = format!("`{}` is no path of a tool's file", path.escape_debug());
            let hint = "write a relative path with `/`, without `.` and `..`, and outside of `.toolplane`";
            problems.add("/files", message, hint);
        }
    }
    let given: Vec<(&str, &String)> = [
        ("code", &body.code),
        ("script", &body.script),
        ("file", &body.file),
        ("entrypoint", &body.entrypoint),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value.as_ref()?)))
    .collect();
    let usual = language.entry_file();
    let entry = match given.as_slice() {
        [("code" | "script", text)] => {
            if files.contains_key(usual) {
                let message = format!("the code is written here, and there is a file `{usual}`");
                problems.add("", message, "remove one of them");
            }
            files.insert(usual.to_owned(), (*text).clone().into());
            usual.to_owned()
        }
        [(key, path)] => {
            if !files.contains_key(path.as_str()) {
                let message = format!("the tool has no file `{}`", path.escape_debug());
                problems.add(format!("/{key}"), message, listed(&files));
            }
            (*path).clone()
        }
        [] if files.contains_key(usual) => usual.to_owned(),
        [] => {
            let hint = "add `code: ..` with the text, or `file: ..` with a path beside this file";
            problems.add("", "the tool has no code", hint);
            usual.to_owned()
        }
        [(first, _), (second, _), ..] => {
            let message = format!("`{second}` and `{first}` exclude each other");
            problems.add(format!("/{second}"), message, "");
            usual.to_owned()
        }
    };
    (entry, files)
}

fn listed(files: &BTreeMap<String, Bytes>) -> String {
    let names: Vec<_> = files.keys().take(8).map(|path| format!("`{path}`")).collect();
    match names.is_empty() {
        true => {
            "a tool in a store has the files that it was published with; in a file, paths begin beside it"
                .to_owned()
        }
        false => format!("its files are {}", names.join(", ")),
    }
}

fn interpreter(
    language: ScriptLanguage,
    body: &Body,
    options: &ScriptOptions,
    problems: &mut Problems,
) -> Interpreter {
    let name = body.interpreter.as_deref().unwrap_or(language.interpreter());
    Interpreter::named(name, &options.interpreters).unwrap_or_else(|known| {
        let message = format!("the interpreter `{}` is not allowed here", name.escape_debug());
        let hint = format!("there are {known}; the operator adds others under `interpreters` in `defaults`");
        problems.add("/interpreter", message, hint);
        Interpreter::default()
    })
}

/// Returns the limits as those of a sandbox.
fn sandbox_limits(limits: &ProgramLimits) -> SandboxLimits {
    SandboxLimits::default()
        .with_wall_time(limits.wall_time)
        .with_cpu_time(limits.cpu_time)
        .with_memory(limits.memory)
        .with_processes(limits.processes)
        .with_open_files(limits.open_files)
        .with_disk(limits.disk)
        .with_output(limits.output)
}

/// Returns the level of a choice; `None` for the strongest one.
fn level(choice: SandboxChoice) -> Option<SandboxLevel> {
    match choice {
        SandboxChoice::Bwrap => Some(SandboxLevel::Bwrap),
        SandboxChoice::Landlock => Some(SandboxLevel::Landlock),
        SandboxChoice::None => Some(SandboxLevel::Unsandboxed),
        _ => None,
    }
}

fn requirements(descriptor: &Descriptor, body: &Body, problems: &mut Problems) -> Option<LockedRequirements> {
    if body.requires.is_empty() {
        return None;
    }
    // Also in the message, since a call shows no hints.
    let command = match descriptor.origin.is_stored {
        true => "toolplane tools publish",
        false => "toolplane lock",
    };
    let hint = format!("`{command}` resolves them once, and keeps their versions and hashes");
    let Some(lock) = descriptor.files.get(LOCK_FILE) else {
        let message = format!("the required packages are not locked: run `{command}`");
        problems.add("/requires", message, hint);
        return None;
    };
    match LockedRequirements::parse(lock, &body.requires) {
        Ok(requirements) => Some(requirements),
        Err(reason) => {
            problems.add(
                "/requires",
                format!("the locked packages cannot be used, run `{command}`: {reason}"),
                hint,
            );
            None
        }
    }
}
