//! Names of environment variables that a program gets.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use raw_json::{JsonKind, RawJson};
use tool_core::{
    Descriptor, ErrorKind, PrepareError, Provider, Reference, Secrets, Template, ToolError, Trust,
};

use crate::pointer;

/// Names that a shell, a loader or a runtime interprets, or that the sandbox sets.
const RESERVED: [&str; 43] = [
    "ALL_PROXY",
    "BASHOPTS",
    "CDPATH",
    "COLUMNS",
    "CURL_HOME",
    "EDITOR",
    "ENV",
    "EUID",
    "EXECIGNORE",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "FTP_PROXY",
    "FUNCNEST",
    "GCONV_PATH",
    "GLOBIGNORE",
    "GROUPS",
    "HISTFILE",
    "HOME",
    "HOSTALIASES",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "INPUTRC",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LOCALDOMAIN",
    "LOCPATH",
    "NLSPATH",
    "NO_PROXY",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PATH",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PWD",
    "SHELL",
    "SHELLOPTS",
    "SHLVL",
    "UID",
];
/// Beginnings of such names.
const RESERVED_PREFIXES: [&str; 18] = [
    "BASH_", "COMP_", "DYLD_", "GIT_", "GLIBC_", "JAVA_", "LC_", "LD_", "MALLOC_", "NODE_", "OPENSSL_",
    "PERL", "PIP_", "PYTHON", "RES_", "RUBY", "SSL_", "UV_",
];
/// Other names of their kind.
const RESERVED_TOO: [&str; 12] = [
    "BASH",
    "JDK_JAVA_OPTIONS",
    "PAGER",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "RANDOM",
    "TERM",
    "TMPDIR",
    "TZDIR",
    "VISUAL",
];
/// Maximum size of the value of a variable, in bytes. Linux refuses a program with a longer one than 128 KiB.
const MAX_VALUE: usize = 96 << 10;
/// Maximum size of all variables of a call, in bytes.
const MAX_TOTAL: usize = 512 << 10;

/// Reason for which a value cannot be an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VariableError {
    /// Invalid name.
    Name(String),
    /// Name that programs interpret.
    Reserved(String),
    /// Name of another variable.
    Taken(String),
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}` is no name of an environment variable"),
            Self::Reserved(name) => write!(f, "programs interpret the environment variable `{name}`"),
            Self::Taken(name) => write!(f, "there is another environment variable `{name}`"),
        }
    }
}

impl std::error::Error for VariableError {}

/// Checks the name of a variable.
///
/// # Errors
/// If it is no name, or one that a shell, a loader or a runtime interprets.
pub fn check_variable(name: &str) -> Result<(), VariableError> {
    let is_start = |first: char| first.is_ascii_alphabetic() || first == '_';
    let fits = name.starts_with(is_start)
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !fits {
        return Err(VariableError::Name(name.escape_debug().to_string()));
    }
    // Variables of proxies are also read in lower case.
    let upper = name.to_ascii_uppercase();
    let is_proxy = upper.ends_with("_PROXY");
    let is_reserved = name == "_"
        || is_proxy
        || RESERVED.contains(&name)
        || RESERVED_TOO.contains(&name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    match is_reserved {
        true => Err(VariableError::Reserved(name.to_owned())),
        false => Ok(()),
    }
}

/// Returns the name of the variable of a parameter: the one among `given`, or else its own, in which each character other than
/// ASCII letters, digits and `_` is `_`, after a `_` if it begins with a digit.
///
/// # Errors
/// As [`check_variable`].
pub fn parameter_variable(
    parameter: &str,
    given: &BTreeMap<String, String>,
) -> Result<String, VariableError> {
    if let Some(name) = given.get(parameter) {
        check_variable(name)?;
        return Ok(name.clone());
    }
    let mut name: String = parameter
        .chars()
        .map(|letter| match letter.is_ascii_alphanumeric() {
            true => letter,
            false => '_',
        })
        .collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    check_variable(&name)?;
    Ok(name)
}

/// Returns the variables of the arguments of a call: strings as they are, other values as JSON, and none for null. `taken` are
/// names of other variables, and `given` those that do not follow from their parameters.
///
/// # Errors
/// If an argument cannot be a variable: a message for the caller.
pub fn argument_variables<'a>(
    arguments: &RawJson,
    taken: impl Iterator<Item = &'a str>,
    given: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, String> {
    let mut names: BTreeSet<String> = taken.map(str::to_owned).collect();
    let mut variables = Vec::new();
    let mut n_bytes = 0;
    for (parameter, value) in arguments.members() {
        let shown = parameter.escape_debug();
        let refuse = |reason: String| {
            Err(format!(
                "the argument `{shown}` cannot be given to the program: {reason}"
            ))
        };
        let name = match parameter_variable(&parameter, given) {
            Ok(name) => name,
            Err(error) => return refuse(error.to_string()),
        };
        if !names.insert(name.clone()) {
            return refuse(VariableError::Taken(name).to_string());
        }
        let text = match value.kind() {
            JsonKind::Null => continue,
            JsonKind::String => value.string(),
            _ => Some(value.as_str().to_owned()),
        };
        let Some(text) = text.filter(|text| !text.contains('\0')) else {
            return refuse("it has a character that no environment variable can hold".to_owned());
        };
        n_bytes += text.len();
        if text.len() > MAX_VALUE || n_bytes > MAX_TOTAL {
            return refuse(format!(
                "arguments of a program have at most {MAX_VALUE} bytes each, and {MAX_TOTAL} bytes in all"
            ));
        }
        variables.push((name, text));
    }
    Ok(variables)
}

/// Reads the environment of a program from its settings, where it is the member `env`: templates by name. Only a file of the
/// operator may refer to variables and files of the gateway; a tool of a store refers to secrets alone, and one that an agent made
/// to what an operator granted it.
pub fn environment(
    descriptor: &Descriptor,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<PrepareError>,
) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, text) in env {
        let place = pointer("/env", name);
        if let Err(error) = check_variable(name) {
            let hint = "use letters, digits and `_`, and no name that a shell or a loader interprets";
            problems.push(PrepareError::at(place.as_str(), error.to_string()).with_hint(hint));
        }
        match Template::parse(text) {
            Ok(template) => {
                let is_foreign = |reference: &&Reference| reference.provider != Provider::Secret;
                if let Some(foreign) = template.references().find(is_foreign)
                    && descriptor.origin.is_stored
                    && descriptor.origin.trust != Trust::Agent
                {
                    let problem =
                        PrepareError::at(place, format!("a tool of a store may not use `{foreign}`"));
                    let hint = "use `${secret:NAME}`: the operator names the secrets under `secrets`";
                    problems.push(problem.with_hint(hint));
                }
                variables.push((name.clone(), template));
            }
            Err(error) => problems.push(PrepareError::at(place, error.to_string())),
        }
    }
    variables
}

/// Resolves the environment of a program: its variables with the present values of their references. What is written out in one
/// is learned, so that it is hidden like a secret.
///
/// # Errors
/// [`ErrorKind::Auth`] if a reference has no value.
///
/// # Cancellation
/// Dropping the future changes nothing.
pub async fn resolve_environment(
    env: &[(String, Template)],
    secrets: &dyn Secrets,
) -> Result<Vec<(String, String)>, ToolError> {
    let mut variables = Vec::with_capacity(env.len());
    for (name, template) in env {
        let value = template.resolve(secrets).await.map_err(|error| {
            ToolError::new(ErrorKind::Auth, format!("a configured value is missing: {error}")).with_no_retry()
        })?;
        secrets.learn_written(name, value.expose());
        variables.push((name.clone(), value.expose().to_owned()));
    }
    Ok(variables)
}

/// Checks that every parameter of a tool has a variable of its own. `given` are the names that the member `variables` of its
/// settings gives, and `env` is the environment from its settings.
pub fn check_parameters(
    descriptor: &Descriptor,
    given: &BTreeMap<String, String>,
    env: &[(String, Template)],
    problems: &mut Vec<PrepareError>,
) {
    for (parameter, variable) in given {
        if let Err(error) = check_variable(variable) {
            let hint = "use letters, digits and `_`, and no name that a shell or a loader interprets";
            let place = pointer("/variables", parameter);
            problems.push(PrepareError::at(place, error.to_string()).with_hint(hint));
        }
    }
    let properties = descriptor.input_schema.get("properties");
    let Some(properties) = properties.filter(|properties| properties.kind() == JsonKind::Object) else {
        return;
    };
    let parameters: BTreeSet<_> = properties.members().map(|(parameter, _)| parameter).collect();
    for parameter in given.keys().filter(|name| !parameters.contains(name.as_str())) {
        let message = format!("the tool has no parameter `{}`", parameter.escape_debug());
        let problem = PrepareError::at(pointer("/variables", parameter), message);
        problems.push(problem.with_hint("write the name of a parameter"));
    }
    let mut taken: BTreeSet<String> = env.iter().map(|(name, _)| name.clone()).collect();
    for parameter in parameters {
        let problem = match parameter_variable(&parameter, given) {
            Ok(variable) if taken.insert(variable.clone()) => continue,
            Ok(variable) => VariableError::Taken(variable),
            Err(error) => error,
        };
        let message = format!(
            "the parameter `{}` cannot be given to the program: {problem}",
            parameter.escape_debug()
        );
        problems.push(PrepareError::at("", message).with_hint("give the parameter another name"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use raw_json::RawJson;

    use super::{argument_variables, check_variable, parameter_variable};

    #[test]
    fn names() {
        for (parameter, expected) in [
            ("name", "name"),
            ("Name_2", "Name_2"),
            ("max-results", "max_results"),
            ("a.b c", "a_b_c"),
            ("2nd", "_2nd"),
            ("größe", "gr__e"),
        ] {
            let variable = parameter_variable(parameter, &BTreeMap::new());
            assert_eq!(variable.as_deref(), Ok(expected), "{parameter}");
        }
        for parameter in [
            "",
            "PATH",
            "LD_PRELOAD",
            "LD-PRELOAD",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "ENV",
            "IFS",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "https_proxy",
            "HTTPS_PROXY",
            "_",
            "-",
            "PS4",
            "LC_ALL",
        ] {
            assert!(
                parameter_variable(parameter, &BTreeMap::new()).is_err(),
                "{parameter}"
            );
        }
        assert!(check_variable("API_TOKEN").is_ok());
        assert!(check_variable("A-B").is_err());
    }

    #[test]
    fn values() {
        let variables = |arguments: &str| {
            let arguments = RawJson::parse(arguments.to_owned()).expect("JSON");
            argument_variables(&arguments, ["TOKEN"].into_iter(), &BTreeMap::new())
        };
        assert_eq!(
            variables(r#"{"a":"$(id) `x` \"q\" ; rm","b":1.50,"c":[1,"x"],"d":null,"e":true}"#),
            Ok(vec![
                ("a".to_owned(), "$(id) `x` \"q\" ; rm".to_owned()),
                ("b".to_owned(), "1.50".to_owned()),
                ("c".to_owned(), r#"[1,"x"]"#.to_owned()),
                ("e".to_owned(), "true".to_owned()),
            ])
        );
        for refused in [
            r#"{"a":"x\u0000y"}"#,
            r#"{"a-b":1,"a_b":2}"#,
            r#"{"TOKEN":"mine"}"#,
            r#"{"LD_PRELOAD":"x.so"}"#,
        ] {
            assert!(variables(refused).is_err(), "{refused}");
        }
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(200_000));
        assert!(variables(&long).unwrap_err().contains("at most"), "{long:.20}");
    }
}
