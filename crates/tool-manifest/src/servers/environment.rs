//! Environment variables of servers: impossible names, and names that change which programs run.

use tool_core::{Provider, Reference, Template};
use tool_settings::{Entries, Field, NodeId, Text};

use crate::document::{lists::items, place::Cx, suggest};

/// Variables that make a program load or run something, by their names.
const DANGEROUS: [&str; 41] = [
    "PATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "npm_config_node_options",
    "npm_config_script_shell",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONBREAKPOINT",
    "PYTHONINSPECT",
    "PYTHONWARNINGS",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "IFS",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "DOTNET_STARTUP_HOOKS",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "R_PROFILE",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "SSH_ASKPASS",
    "OPENSSL_CONF",
];
/// Prefixes of such names.
const DANGEROUS_BEGINNINGS: [&str; 4] = ["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG"];
/// Variables that every server receives and that hold no secret.
const BASE: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR"];

/// Checks the variables of a server.
pub(crate) fn check(cx: Cx<'_>, env: &Field<Entries<Text>>) {
    for (name, value) in env.as_ref().into_iter().flat_map(Entries::iter) {
        let Some(at) = value.place() else { continue };
        if check_name(cx, at, name) {
            warn_of(cx, at, name);
        }
        if let Some(Text(text)) = value.as_ref() {
            no_nul(cx, at, text);
        }
    }
}

/// Reads the names of variables that are handed down.
pub(crate) fn inherited(cx: Cx<'_>, field: Field<Vec<Field<String>>>) -> Option<Vec<String>> {
    field.given()?;
    let mut names = Vec::new();
    for (at, name) in items(field).filter_map(Field::located) {
        if !check_name(cx, at, &name) {
            continue;
        }
        if name.contains(['*', '?']) {
            cx.error(
                at,
                format!("`{}` is no exact name", suggest::shown(&name)),
                "write each name",
            );
            continue;
        }
        if !BASE.contains(&name.as_str()) {
            warn_of(cx, at, &name);
        }
        names.push(name);
    }
    Some(names)
}

/// Refuses a name that no variable can have.
fn check_name(cx: Cx<'_>, at: NodeId, name: &str) -> bool {
    if !name.is_empty() && !name.contains(['=', '\0']) {
        return true;
    }
    cx.key_error(
        at,
        format!(
            "`{}` cannot be the name of an environment variable",
            suggest::shown(name)
        ),
        "write a name without `=` and NUL",
    );
    false
}

/// Warns of a variable that makes a program run another one.
fn warn_of(cx: Cx<'_>, at: NodeId, name: &str) {
    let begins = |beginning: &&str| name.starts_with(*beginning);
    let is_npm = |other: &&str| other.starts_with("npm_") && other.eq_ignore_ascii_case(name);
    if DANGEROUS.contains(&name) || DANGEROUS.iter().any(is_npm) || DANGEROUS_BEGINNINGS.iter().any(begins) {
        cx.warning(
            at,
            format!("`{}` decides which code the server runs", suggest::shown(name)),
            "remove it unless everyone who may write this file may also run programs here",
        );
    }
}

/// Refuses a text with NUL, which no program can receive.
pub(crate) fn no_nul(cx: Cx<'_>, at: NodeId, text: &str) {
    if text.contains('\0') {
        cx.error(
            at,
            "a text for a program cannot hold the character NUL",
            "remove `\\0` or `\\u0000`",
        );
    }
}

/// Warns of values in the command line of a server, which everyone on the machine can read.
pub(crate) fn warn_of_visible(cx: Cx<'_>, at: NodeId, template: &Template, part: &str) {
    let is_base = |reference: &Reference| {
        reference.provider == Provider::Environment && BASE.contains(&reference.name.as_str())
    };
    let references: Vec<&Reference> = template
        .references()
        .filter(|reference| !is_base(reference))
        .collect();
    let message = if references.iter().any(|reference| reference.is_secret()) {
        format!("a secret in {part} can be seen by everyone on this machine")
    } else if let Some(reference) = references.first() {
        let name = suggest::shown(&reference.name);
        format!("the value of `{name}` in {part} can be seen by everyone on this machine")
    } else {
        return;
    };
    cx.warning(at, message, "hand it to the server by `env`");
}
