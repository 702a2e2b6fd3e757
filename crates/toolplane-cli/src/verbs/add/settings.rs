//! Settings of a new server, of what the command line names.

use serde_json::{Map, Value, json};

use super::package::Package;
use crate::{command::Add, error::CliError, output::text};

/// Server to add.
#[derive(Debug)]
pub(super) struct NewServer {
    /// Settings: an entry of `servers` in a configuration.
    pub(super) settings: Value,
    /// Package whose version is still to be pinned.
    pub(super) package: Option<Package>,
}

/// Makes the settings of the server that a command line describes.
///
/// # Errors
/// If it describes none, or in an unknown form.
pub(super) fn new_server(add: &Add) -> Result<NewServer, CliError> {
    let env = pairs("--env", &add.env, '=')?;
    let headers = pairs("--header", &add.headers, ':')?;
    let written = add.source.as_deref();
    let is_url = written.is_some_and(is_url);
    if !headers.is_empty() && !is_url {
        return Err(CliError::usage("`--header` belongs to a URL")
            .with_hint("a program gets its values with `--env`"));
    }
    let Some(written) = written else {
        let [command, args @ ..] = add.command.as_slice() else {
            return Err(CliError::usage("no server is named").with_hint(HINT));
        };
        let mut settings = json!({"command": command, "args": args});
        with_env(&mut settings, env);
        return Ok(NewServer {
            settings,
            package: None,
        });
    };
    if is_url {
        if !env.is_empty() || !add.command.is_empty() {
            return Err(
                CliError::usage("`--env` and arguments belong to a program, and this is a URL")
                    .with_hint("a URL gets its values with `--header`"),
            );
        }
        let mut settings = json!({"url": written});
        if !headers.is_empty() {
            settings["headers"] = Value::Object(headers);
        }
        return Ok(NewServer {
            settings,
            package: None,
        });
    }
    let Some(package) = Package::read(written) else {
        let message = format!("`{}` is neither a package nor a URL", text::line(written));
        return Err(CliError::usage(message).with_hint(HINT));
    };
    let names: Vec<&str> = env.keys().map(String::as_str).collect();
    let mut settings = package.settings(&names)?;
    if let Some(args) = settings["args"].as_array_mut() {
        args.extend(add.command.iter().map(|arg| Value::from(arg.as_str())));
    }
    with_env(&mut settings, env);
    Ok(NewServer {
        settings,
        package: Some(package),
    })
}

/// Returns `true` for a URL of HTTP. Schemes are case-insensitive (RFC 3986, section 3.1).
fn is_url(written: &str) -> bool {
    let scheme = written.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["http", "https"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

const HINT: &str = "write `npm:PACKAGE`, `pypi:PACKAGE`, `oci:IMAGE`, a URL, or `-- COMMAND ARGS`";

fn with_env(settings: &mut Value, env: Map<String, Value>) {
    if !env.is_empty() {
        settings["env"] = Value::Object(env);
    }
}

/// Reads `KEY=VALUE` or `Name: value`.
fn pairs(option: &str, written: &[String], separator: char) -> Result<Map<String, Value>, CliError> {
    let mut pairs = Map::new();
    for pair in written {
        let split = pair.split_once(separator).map(|(key, value)| (key.trim(), value));
        let Some((key, value)) = split.filter(|(key, _)| !key.is_empty()) else {
            let form = if separator == '=' {
                "KEY=VALUE"
            } else {
                "'NAME: VALUE'"
            };
            // The text may be a secret.
            return Err(
                CliError::usage(format!("a value of `{option}` has no `{separator}`"))
                    .with_hint(format!("write `{option} {form}`")),
            );
        };
        let value = if separator == ':' {
            value.trim_start()
        } else {
            value
        };
        if pairs.insert(key.to_owned(), value.into()).is_some() {
            return Err(CliError::usage(format!(
                "`{option}` gives `{}` twice",
                text::line(key)
            )));
        }
    }
    Ok(pairs)
}
