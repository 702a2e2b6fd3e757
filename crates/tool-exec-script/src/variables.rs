//! Names of environment variables that a tool gets.

use std::collections::{BTreeMap, BTreeSet};

use raw_json::{JsonKind, RawJson};

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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VariableError {
    /// Invalid name.
    #[error("`{0}` is no name of an environment variable")]
    Name(String),
    /// Name that programs interpret.
    #[error("programs interpret the environment variable `{0}`")]
    Reserved(String),
    /// Name of another variable.
    #[error("there is another environment variable `{0}`")]
    Taken(String),
}

/// Checks the name of a variable.
pub(crate) fn check_variable(name: &str) -> Result<(), VariableError> {
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

/// Returns the name of the variable of a parameter: the one among `names`, or else its own, in which each character other than
/// ASCII letters, digits and `_` is `_`, after a `_` if it begins with a digit.
pub(crate) fn variable_of(
    parameter: &str,
    names: &BTreeMap<String, String>,
) -> Result<String, VariableError> {
    if let Some(name) = names.get(parameter) {
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
pub(crate) fn of_arguments<'a>(
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
                "the argument `{shown}` cannot be given to a script: {reason}"
            ))
        };
        let name = match variable_of(&parameter, given) {
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
                "arguments of a script have at most {MAX_VALUE} bytes each, and {MAX_TOTAL} bytes in all"
            ));
        }
        variables.push((name, text));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use raw_json::RawJson;

    use super::{check_variable, of_arguments, variable_of};

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
            let variable = variable_of(parameter, &BTreeMap::new());
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
            assert!(variable_of(parameter, &BTreeMap::new()).is_err(), "{parameter}");
        }
        assert!(check_variable("API_TOKEN").is_ok());
        assert!(check_variable("A-B").is_err());
    }

    #[test]
    fn values() {
        let variables = |arguments: &str| {
            let arguments = RawJson::parse(arguments.to_owned()).expect("JSON");
            of_arguments(&arguments, ["TOKEN"].into_iter(), &BTreeMap::new())
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
