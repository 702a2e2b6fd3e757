//! Settings of a tool, compiled and checked.

use std::collections::BTreeMap;

use tool_core::{Descriptor, PrepareError, Reference, Template};
use tool_settings::program::{ExitCodes, OutputFormat, ProgramLimits, check_parameters, environment};

use crate::{
    ContainerOptions,
    image::ImageReference,
    settings::{DockerBody, read},
};

/// User and group that own nothing.
const NOBODY: &str = "65534:65534";
/// Number of processors of a tool that asks for none.
const CPUS: f64 = 1.0;
/// Number of processors that no tool of a store may exceed.
const MAX_STORED_CPUS: f64 = 2.0;
/// Maximum size of a command, in bytes.
const MAX_COMMAND: usize = 64 << 10;

/// A container of a tool, ready to be made.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tool: String,
    pub(crate) image: ImageReference,
    /// Program and arguments instead of those of the image.
    pub(crate) command: Option<Vec<String>>,
    /// Arguments of the program of the image.
    pub(crate) args: Option<Vec<String>>,
    pub(crate) workdir: Option<String>,
    pub(crate) user: String,
    pub(crate) has_init: bool,
    pub(crate) output: OutputFormat,
    pub(crate) exit_codes: ExitCodes,
    pub(crate) limits: ProgramLimits,
    /// Processors, in billionths.
    pub(crate) nano_cpus: i64,
    pub(crate) env: Vec<(String, Template)>,
    /// `true` if the tool comes from a store.
    pub(crate) is_stored: bool,
}

impl Plan {
    /// Checks the settings of a tool and compiles them, or returns every problem.
    pub(crate) fn compile(
        descriptor: &Descriptor,
        options: &ContainerOptions,
    ) -> Result<Self, Vec<PrepareError>> {
        let mut problems = Vec::new();
        let body = read(&descriptor.executor.config, &mut problems);
        let image = image(&body, &problems)
            .map_err(|problem| problems.extend(problem))
            .ok();
        let exit_codes = ExitCodes::read(&body.exit_codes, &mut problems);
        let env = environment(descriptor, &body.env, &mut problems);
        check_parameters(descriptor, &BTreeMap::new(), &env, &mut problems);
        let (timeout, most) = (options.timeout, options.max_result_bytes);
        let limits = ProgramLimits::compile(&body.limits, descriptor, timeout, most, &mut problems);
        let nano_cpus = nano_cpus(descriptor, &body, &mut problems);
        check_memory(&limits, &mut problems);
        let user = user(&body, &mut problems);
        check_workdir(&body, &mut problems);
        let (command, args) = command(&body, &mut problems);
        let Some(image) = image.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        Ok(Self {
            tool: descriptor.name.to_string(),
            image,
            command,
            args,
            workdir: body.workdir,
            user,
            has_init: body.init.unwrap_or(true),
            output: body.output,
            exit_codes,
            limits,
            nano_cpus,
            env,
            is_stored: descriptor.origin.is_stored,
        })
    }

    /// Returns the references of the environment.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        self.env.iter().flat_map(|(_, template)| template.references())
    }
}

/// Returns the image, or the problem if it was not reported yet.
fn image(body: &DockerBody, problems: &[PrepareError]) -> Result<ImageReference, Option<PrepareError>> {
    let Some(text) = &body.image else {
        let is_reported = problems.iter().any(|problem| problem.pointer == "/image");
        let hint = "add `image: NAME@sha256:…`";
        let problem = PrepareError::at("", "the tool has no image").with_hint(hint);
        return Err((!is_reported).then_some(problem));
    };
    ImageReference::parse(text)
        .map_err(|(message, hint)| Some(PrepareError::at("/image", message).with_hint(hint)))
}

type Argv = Option<Vec<String>>;

/// Returns what runs instead of the program of the image, and else the arguments of that.
fn command(body: &DockerBody, problems: &mut Vec<PrepareError>) -> (Argv, Argv) {
    let args = body.args.clone().map(|args| args.0);
    let n_bytes = |list: &Argv| list.iter().flatten().map(String::len).sum::<usize>();
    let command = body.command.clone().map(|command| command.0);
    if command
        .as_ref()
        .is_some_and(|command| command.first().is_none_or(String::is_empty))
    {
        let problem = PrepareError::at("/command", "the command names no program");
        problems.push(problem.with_hint("leave it out for the program of the image"));
    }
    if n_bytes(&command) + n_bytes(&args) > MAX_COMMAND {
        let message = format!("a command has at most {MAX_COMMAND} bytes");
        problems.push(PrepareError::at("", message).with_hint("make it part of the image"));
    }
    match command {
        Some(mut command) => {
            command.extend(args.unwrap_or_default());
            (Some(command), None)
        }
        None => (None, args),
    }
}

fn nano_cpus(descriptor: &Descriptor, body: &DockerBody, problems: &mut Vec<PrepareError>) -> i64 {
    let cpus = body.cpus.unwrap_or(CPUS);
    if !(0.01..=1_024.0).contains(&cpus) {
        let problem = PrepareError::at("/cpus", "the number of processors is from 0.01 to 1024");
        problems.push(problem.with_hint("leave it out for 1"));
    } else if cpus > MAX_STORED_CPUS && descriptor.origin.is_stored {
        let message = format!("a tool of a store gets at most {MAX_STORED_CPUS} processors");
        problems.push(PrepareError::at("/cpus", message).with_hint("ask for less"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most 1024 billion")]
    let nano_cpus = (cpus * 1e9).round() as i64;
    nano_cpus
}

/// Checks that engines accept the limit of memory.
fn check_memory(limits: &ProgramLimits, problems: &mut Vec<PrepareError>) {
    const LEAST: u64 = 6 << 20;
    let is_there = |problem: &PrepareError| problem.pointer == "/limits/memory";
    if limits.memory < LEAST && !problems.iter().any(is_there) {
        let problem = PrepareError::at(
            "/limits/memory",
            "no container starts with less than 6MiB of memory",
        );
        problems.push(problem.with_hint("leave it out for 512MiB"));
    }
}

/// Returns user and group, which are numbers: a name would be looked up in the image, where it can be 0.
fn user(body: &DockerBody, problems: &mut Vec<PrepareError>) -> String {
    let Some(user) = &body.user else {
        return NOBODY.to_owned();
    };
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|id| (1..=i32::MAX as u32).contains(id))
    };
    let (id, group) = user.split_once(':').unwrap_or((user, user));
    match (number(id), number(group)) {
        (Some(id), Some(group)) => format!("{id}:{group}"),
        _ => {
            let message = format!("`{}` is no user of a container", user.escape_debug());
            let hint =
                "write a number above 0, such as `1000` or `1000:1000`; a name could be root in the image";
            problems.push(PrepareError::at("/user", message).with_hint(hint));
            NOBODY.to_owned()
        }
    }
}

fn check_workdir(body: &DockerBody, problems: &mut Vec<PrepareError>) {
    let is_usable = |path: &String| path.starts_with('/') && !path.contains('\0');
    if body.workdir.as_ref().is_some_and(|path| !is_usable(path)) {
        let problem = PrepareError::at(
            "/workdir",
            "the working directory is an absolute path in the image",
        );
        problems.push(problem.with_hint("write it from `/`"));
    }
}
