//! Settings of a tool, compiled and checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use raw_json::JsonKind;
use sha2::{Digest, Sha256};
use tool_core::{Descriptor, ErrorKind, Provider, Reference, Template, is_relative_path};
use tool_sandbox::{NetworkAccess, SandboxLimits};
use tool_settings::pointer;

use crate::{
    ScriptLanguage, ScriptOptions,
    interpreter::Interpreter,
    requirements::LockedRequirements,
    settings::{Body, Files, Network, Problems, SandboxChoice, ScriptOutput, read},
    variables::{VariableError, check_variable, variable_of},
};

/// File in which a version keeps its locked requirements.
pub(crate) const LOCK_FILE: &str = "requirements.lock";
/// Directory of the runner's own files in the working directory of a tool.
pub(crate) const OWN_DIRECTORY: &str = ".toolplane";
/// Permissions that name network access.
const NETWORK_PERMISSIONS: [&str; 2] = ["network.external", "network.internal"];

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
    /// Names of the variables of arguments that do not follow from their parameters.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) exit_codes: BTreeMap<i32, ErrorKind>,
    pub(crate) limits: SandboxLimits,
    pub(crate) network: NetworkAccess,
    pub(crate) env: Vec<(String, Template)>,
    pub(crate) sandbox: SandboxChoice,
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
        let exit_codes = exit_codes(&body, &mut problems);
        let env = environment(descriptor, &body, &mut problems);
        if language == ScriptLanguage::Bash {
            check_parameters(descriptor, &body, &env, &mut problems);
        }
        let limits = limits(descriptor, &body, options, &mut problems);
        check_authority(descriptor, &body, &mut problems);
        let requirements = requirements(descriptor, &body, &mut problems);
        if body.stateless && body.sandbox == SandboxChoice::None {
            problems.add(
                "/stateless",
                "an interpreter without a sandbox does not wait for calls",
                "remove `stateless`, or `sandbox: none`",
            );
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
            output: body.output,
            variables: body.variables,
            exit_codes,
            limits,
            network: match body.network {
                Network::Off => NetworkAccess::Off,
                Network::Hosts(hosts) => NetworkAccess::Hosts(hosts),
            },
            env,
            sandbox: body.sandbox,
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

fn exit_codes(body: &Body, problems: &mut Problems) -> BTreeMap<i32, ErrorKind> {
    let mut kinds = BTreeMap::new();
    for (code, kind) in &body.exit_codes {
        let place = pointer("/exit_codes", code);
        let number = code.parse().ok().filter(|code| (1..=255).contains(code));
        match (number, ErrorKind::named(kind)) {
            (Some(number), Some(kind)) => drop(kinds.insert(number, kind)),
            (None, _) => problems.add(
                place,
                format!("`{code}` is no exit code of a failure"),
                "use 1 to 255",
            ),
            (_, None) => {
                let names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
                problems.add(
                    place,
                    format!("unknown kind of error `{kind}`"),
                    format!("there are {}", names.join(", ")),
                );
            }
        }
    }
    kinds
}

/// Returns the variables of the settings. Only a file of the operator may name environment variables and files of the gateway.
fn environment(descriptor: &Descriptor, body: &Body, problems: &mut Problems) -> Vec<(String, Template)> {
    let mut env = Vec::new();
    for (name, text) in &body.env {
        let place = pointer("/env", name);
        if let Err(error) = check_variable(name) {
            let hint = "use letters, digits and `_`, and no name that a shell or a loader interprets";
            problems.add(place.as_str(), error.to_string(), hint);
        }
        match Template::parse(text) {
            Ok(template) => {
                let is_foreign = |reference: &&Reference| reference.provider != Provider::Secret;
                if let Some(foreign) = template.references().find(is_foreign)
                    && descriptor.origin.is_stored
                {
                    problems.add(
                        place,
                        format!("a tool of a store may not use `{foreign}`"),
                        "use `${secret:NAME}`: the operator names the secrets under `secrets`",
                    );
                }
                env.push((name.clone(), template));
            }
            Err(error) => problems.add(place, error.to_string(), ""),
        }
    }
    env
}

/// Checks that every parameter of a script has a variable of its own.
fn check_parameters(
    descriptor: &Descriptor,
    body: &Body,
    env: &[(String, Template)],
    problems: &mut Problems,
) {
    for (parameter, variable) in &body.variables {
        if let Err(error) = check_variable(variable) {
            let hint = "use letters, digits and `_`, and no name that a shell or a loader interprets";
            problems.add(pointer("/variables", parameter), error.to_string(), hint);
        }
    }
    let properties = descriptor.input_schema.get("properties");
    let Some(properties) = properties.filter(|properties| properties.kind() == JsonKind::Object) else {
        return;
    };
    let parameters: BTreeSet<_> = properties.members().map(|(parameter, _)| parameter).collect();
    for parameter in body
        .variables
        .keys()
        .filter(|name| !parameters.contains(name.as_str()))
    {
        let message = format!("the tool has no parameter `{}`", parameter.escape_debug());
        problems.add(
            pointer("/variables", parameter),
            message,
            "write the name of a parameter",
        );
    }
    let mut taken: BTreeSet<String> = env.iter().map(|(name, _)| name.clone()).collect();
    for parameter in parameters {
        let problem = match variable_of(&parameter, &body.variables) {
            Ok(variable) if taken.insert(variable.clone()) => continue,
            Ok(variable) => VariableError::Taken(variable),
            Err(error) => error,
        };
        let message = format!(
            "the parameter `{}` cannot be given to a script: {problem}",
            parameter.escape_debug()
        );
        problems.add("", message, "give the parameter another name");
    }
}

/// Limits that no tool of a store may exceed.
const MAX_STORED: [(&str, u64, &str); 5] = [
    ("memory", 2 << 30, "2GiB"),
    ("processes", 256, "256"),
    ("open_files", 4_096, "4096"),
    ("disk", 1 << 30, "1GiB"),
    ("output", 16 << 20, "16MiB"),
];

fn limits(
    descriptor: &Descriptor,
    body: &Body,
    options: &ScriptOptions,
    problems: &mut Problems,
) -> SandboxLimits {
    let written = &body.limits;
    let attempt = descriptor.timeout.unwrap_or(options.timeout);
    let wall_time = written.wall_time.map(|period| period.0);
    let mut limits = SandboxLimits::default();
    // A longer time never has an effect: the attempt ends before.
    limits.wall_time = wall_time.map_or(attempt, |own| own.min(attempt));
    limits.cpu_time = written.cpu_time.map_or(limits.cpu_time, |period| period.0);
    limits.memory = written.memory.map_or(limits.memory, |size| size.0 as u64);
    limits.processes = written.processes.unwrap_or(limits.processes);
    limits.open_files = written.open_files.unwrap_or(limits.open_files);
    limits.disk = written.disk.map_or(limits.disk, |size| size.0 as u64);
    limits.output = written.output.map_or(limits.output, |size| size.0 as u64);
    limits.output = limits.output.min(options.max_result_bytes as u64);
    for (key, limit) in [("wall_time", limits.wall_time), ("cpu_time", limits.cpu_time)] {
        if limit < Duration::from_millis(1) {
            problems.add(format!("/limits/{key}"), "a time limit must be longer than 0", "");
        }
    }
    let sizes = [
        limits.memory,
        limits.processes.into(),
        limits.open_files.into(),
        limits.disk,
        limits.output,
    ];
    for ((key, most, shown), value) in MAX_STORED.into_iter().zip(sizes) {
        let place = format!("/limits/{key}");
        if value == 0 {
            problems.add(
                place,
                "nothing can run within a limit of 0",
                "leave it out for the default",
            );
        } else if value > most && descriptor.origin.is_stored {
            problems.add(
                place,
                format!("a tool of a store gets at most {shown}"),
                "ask for less",
            );
        }
    }
    limits
}

/// Checks what only the operator may allow.
fn check_authority(descriptor: &Descriptor, body: &Body, problems: &mut Problems) {
    if body.sandbox == SandboxChoice::None && descriptor.origin.is_stored {
        problems.add(
            "/sandbox",
            "a tool of a store does not run without a sandbox",
            "remove it; `sandbox: none` is for a file of the operator",
        );
    }
    if let Network::Hosts(_) = &body.network {
        let required = &descriptor.metadata.required_permissions;
        let is_named = required
            .iter()
            .any(|known| NETWORK_PERMISSIONS.contains(&known.as_str()));
        if descriptor.origin.is_stored && !is_named {
            problems.add(
                "/network",
                "a tool of a store that uses the network requires the permission for it",
                "add `required_permissions: [network.external]` to the tool",
            );
        }
        if body.sandbox == SandboxChoice::None {
            let hint = "without a sandbox the code reaches every host: remove `network`, or `sandbox: none`";
            problems.add("/network", "hosts are only allowed one by one in a sandbox", hint);
        }
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
