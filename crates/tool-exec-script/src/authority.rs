//! Authority of a tool: what only the operator may allow, and what permissions stand for.
//!
//! A tool in a file of the operator reaches what its settings name. A tool of a store was written by somebody else: each reach
//! of its settings needs the permission for it among its `required_permissions`, so that only callers who hold that permission
//! can call it. Paths of the machine have no name that a permission could limit, so a tool of a store has none.

use std::path::PathBuf;

use tool_core::Descriptor;
use tool_sandbox::SandboxLimits;
use tool_settings::{NetworkHosts, SandboxChoice, program::MAX_STORED_PROCESSES};

use crate::settings::{Body, Problems};

/// Checks what the settings of a tool reach for.
pub(crate) fn check(descriptor: &Descriptor, body: &Body, problems: &mut Problems) {
    if descriptor.origin.is_stored {
        check_stored(descriptor, body, problems);
    }
    if body.sandbox == SandboxChoice::None {
        let reaches = [
            (
                "/network",
                !body.network.hosts().is_empty(),
                "hosts are only allowed one by one in a sandbox",
            ),
            (
                "/reads",
                !body.reads.is_empty(),
                "paths are only allowed one by one in a sandbox",
            ),
            (
                "/writes",
                !body.writes.is_empty(),
                "paths are only allowed one by one in a sandbox",
            ),
        ];
        for (pointer, is_given, message) in reaches {
            if is_given {
                let hint =
                    "without a sandbox the code reaches all of them: remove this line, or `sandbox: none`";
                problems.add(pointer, message, hint);
            }
        }
    }
}

/// Checks what a tool of a store may reach for.
fn check_stored(descriptor: &Descriptor, body: &Body, problems: &mut Problems) {
    if body.sandbox == SandboxChoice::None {
        problems.add(
            "/sandbox",
            "a tool of a store does not run without a sandbox",
            "remove it; `sandbox: none` is for a file of the operator",
        );
    }
    for (pointer, paths) in [("/reads", &body.reads), ("/writes", &body.writes)] {
        if !paths.is_empty() {
            problems.add(
                pointer,
                "a tool of a store sees no path of this machine",
                "remove it; paths are for a file of the operator, whoever may call the tool",
            );
        }
    }
    let required = &descriptor.metadata.required_permissions;
    let is_named = |permission: &str| required.iter().any(|known| known == permission);
    for (index, host) in body.network.hosts().iter().enumerate() {
        let permission = match NetworkHosts::is_internal(host) {
            true => "network.internal",
            false => "network.external",
        };
        if !is_named(permission) {
            problems.add(
                format!("/network/{index}"),
                format!("a tool of a store that reaches `{host}` requires the permission `{permission}`"),
                format!("add `required_permissions: [{permission}]` to the tool: its callers must hold it"),
            );
        }
    }
    let most = SandboxLimits::default().processes;
    // More than the maximum is refused whatever the tool requires.
    let is_more = |processes| processes > most && processes <= MAX_STORED_PROCESSES;
    if body.limits.processes.is_some_and(is_more) && !is_named("process") {
        problems.add(
            "/limits/processes",
            format!(
                "a tool of a store that runs more than {most} processes requires the permission `process`"
            ),
            "add `required_permissions: [process]` to the tool: its callers must hold it",
        );
    }
}

/// Returns the paths of the machine that the code may use, and whether it may write there: those that lie in others behind
/// them.
pub(crate) fn paths(body: &Body, problems: &mut Problems) -> Vec<(PathBuf, bool)> {
    for (pointer, paths) in [("/reads", &body.reads), ("/writes", &body.writes)] {
        for (index, path) in paths.iter().enumerate() {
            if let Err(error) = tool_sandbox::check_grant(path) {
                let hint = "write an absolute path without `..`, such as `/srv/data`";
                problems.add(format!("{pointer}/{index}"), error.to_string(), hint);
            }
        }
    }
    tool_sandbox::ordered_grants(&body.reads, &body.writes)
}
