//! Packages: programs that npx, uvx or docker fetches and starts.

use raw_json::RawJson;

use super::{
    Made,
    document::{Argument, Package},
    input::{Answers, escaped},
    unusable,
    words::{is_exact_version, is_image, is_npm, is_pypi},
};
use crate::{CatalogError, foreign::shown};

/// Registries that npx and uvx use without further settings. A document is compared with them; whether a mirror stands in their
/// place is a setting of these programs.
const NPM: &[&str] = &[concat!("https://registry.npmjs", ".org")];
const PYPI: &[&str] = &[
    concat!("https://pypi", ".org"),
    concat!("https://pypi", ".org/simple"),
];

/// Options of docker by which a container reaches more than its own files.
const REACHING: &[&str] = &[
    "-v",
    "--volume",
    "--mount",
    "--network",
    "--net",
    "--privileged",
    "--pid",
    "--ipc",
    "--device",
    "--cap-add",
    "--security-opt",
    "--volumes-from",
    "--userns",
    "-p",
    "--publish",
    "--env-file",
];

/// Makes the settings of a package.
pub(super) fn settings(package: &Package, answers: &mut Answers) -> Result<Made, CatalogError> {
    let place = &package.identifier;
    let transport = package
        .transport
        .as_ref()
        .map_or("stdio", |transport| transport.kind.as_str());
    if transport != "stdio" {
        let problem = format!(
            "its program listens by `{}`, and programs of servers are reached by stdio",
            shown(transport)
        );
        return Err(unusable(place, problem));
    }
    if package.file_sha256.is_some() && package.registry_type != "mcpb" {
        let problem = "it states `fileSha256`, which the program that fetches it does not check";
        return Err(unusable(place, problem));
    }
    match package.registry_type.as_str() {
        "npm" => npm(package, answers),
        "pypi" => pypi(package, answers),
        "oci" => oci(package, answers),
        "mcpb" => Err(unusable(place, "bundles of the form MCPB are not unpacked here")
            .with_hint("unpack it, and write its command under `servers` of the configuration")),
        "nuget" => Err(unusable(place, "packages of NuGet are not started here")
            .with_hint("install it, and write its command under `servers` of the configuration")),
        other => {
            let problem = format!("packages of the type `{}` are not known", shown(other));
            Err(unusable(place, problem).with_hint("there are `npm`, `pypi` and `oci`"))
        }
    }
}

fn npm(package: &Package, answers: &mut Answers) -> Result<Made, CatalogError> {
    let command = runtime(package, &["npx"])?;
    base_url(package, NPM)?;
    if !is_npm(&package.identifier) {
        return Err(unusable(&package.identifier, "it is no name of a package on npm"));
    }
    let version = version(package)?;
    let mut args = vec!["-y".to_owned()];
    let own = arguments(&package.runtime_arguments, answers)?;
    args.extend(own.into_iter().filter(|own| own != "-y" && own != "--yes"));
    args.push(format!("{}@{version}", package.identifier));
    args.extend(arguments(&package.package_arguments, answers)?);
    program(
        command,
        &args,
        package,
        answers,
        format!("the version {version}, not its content"),
    )
}

fn pypi(package: &Package, answers: &mut Answers) -> Result<Made, CatalogError> {
    let command = runtime(package, &["uvx"])?;
    base_url(package, PYPI)?;
    if !is_pypi(&package.identifier) {
        return Err(unusable(&package.identifier, "it is no name of a distribution"));
    }
    let version = version(package)?;
    let mut args = arguments(&package.runtime_arguments, answers)?;
    args.push(format!("{}=={version}", package.identifier));
    args.extend(arguments(&package.package_arguments, answers)?);
    program(
        command,
        &args,
        package,
        answers,
        format!("the version {version}, not its content"),
    )
}

fn oci(package: &Package, answers: &mut Answers) -> Result<Made, CatalogError> {
    let command = runtime(package, &["docker", "podman"])?;
    let (image, pinned) = image(package)?;
    let mut args: Vec<String> = ["run", "-i", "--rm"].map(str::to_owned).into();
    let mut own = arguments(&package.runtime_arguments, answers)?;
    if own.first().is_some_and(|first| first == "run") {
        own.remove(0);
    }
    own.retain(|own| !matches!(own.as_str(), "-i" | "--interactive" | "--rm"));
    let warnings = own.iter().filter_map(|own| {
        let option = own.split('=').next().unwrap_or_default();
        REACHING.contains(&option).then(|| {
            format!("the container reaches more than its own files: `{option}`; look at the whole command")
        })
    });
    let warnings: Vec<String> = warnings.collect();
    let mut made = Vec::new();
    for variable in &package.environment_variables {
        if let Some(value) = environment(variable, answers)? {
            // The value is in the environment of docker, and not in its arguments, which everybody sees.
            args.extend(["-e".to_owned(), variable.name.clone()]);
            made.push((variable.name.as_str(), RawJson::from(value.as_str())));
        }
    }
    args.extend(own);
    args.push(image);
    args.extend(arguments(&package.package_arguments, answers)?);
    Ok(Made {
        settings: written(command, &args, &made),
        pinned,
        warnings,
    })
}

/// Returns the image with its tag or digest, and what that pins.
fn image(package: &Package) -> Result<(String, String), CatalogError> {
    let mut image = package.identifier.clone();
    if let Some(base) = &package.registry_base_url {
        let host = base.trim_start_matches("https://").trim_end_matches('/');
        let first = image.split('/').next().unwrap_or_default();
        let has_host = image.contains('/') && (first.contains(['.', ':']) || first == "localhost");
        if !has_host {
            image = format!("{host}/{image}");
        }
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    if let (false, Some(version)) = (name.contains([':', '@']), &package.version) {
        image = format!("{image}:{version}");
    }
    if !is_image(&image) {
        return Err(unusable(&package.identifier, "it is no reference to an image"));
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    let tag = name.split('@').next().unwrap_or_default().split_once(':');
    let pinned = match (image.split_once("@sha256:"), tag) {
        (Some((_, digest)), _) if digest.len() == 64 => "the content of the image, by its digest".to_owned(),
        (None, Some((_, "latest")) | None) => {
            return Err(unusable(&package.identifier, "it names no version of the image")
                .with_hint("an image needs a tag other than `latest`, or a digest"));
        }
        (None, Some((_, tag))) => format!("the tag {tag}, which may move"),
        (Some(_), _) => return Err(unusable(&package.identifier, "its digest has not 64 digits")),
    };
    Ok((image, pinned))
}

fn program(
    command: &str,
    args: &[String],
    package: &Package,
    answers: &mut Answers,
    pinned: String,
) -> Result<Made, CatalogError> {
    let mut env = Vec::new();
    for variable in &package.environment_variables {
        if let Some(value) = environment(variable, answers)? {
            env.push((variable.name.as_str(), RawJson::from(value.as_str())));
        }
    }
    Ok(Made {
        settings: written(command, args, &env),
        pinned,
        warnings: Vec::new(),
    })
}

fn written(command: &str, args: &[String], env: &[(&str, RawJson)]) -> RawJson {
    let args: Vec<RawJson> = args.iter().map(|arg| RawJson::from(arg.as_str())).collect();
    let mut members = vec![
        ("command", RawJson::from(command)),
        ("args", RawJson::from_items(&args)),
    ];
    if !env.is_empty() {
        members.push(("env", RawJson::from_members(env)));
    }
    RawJson::from_members(&members)
}

/// Returns the value of an environment variable.
fn environment(
    variable: &super::document::NamedInput,
    answers: &mut Answers,
) -> Result<Option<String>, CatalogError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let name = &variable.name;
    if name.is_empty()
        || name.starts_with(|first: char| first.is_ascii_digit())
        || !name.bytes().all(is_plain)
    {
        return Err(unusable(name, "it is no name of an environment variable"));
    }
    answers.text(name, &variable.input)
}

/// Returns the arguments of a list, in their order.
fn arguments(list: &[Argument], answers: &mut Answers) -> Result<Vec<String>, CatalogError> {
    let mut arguments = Vec::new();
    for (index, argument) in list.iter().enumerate() {
        match (argument.kind.as_str(), argument.name.as_deref()) {
            ("positional", _) => {
                let hint = argument.value_hint.clone().or_else(|| argument.name.clone());
                let name = hint.unwrap_or_else(|| format!("argument_{}", index + 1));
                arguments.extend(answers.text(&name, &argument.input)?);
            }
            ("named", Some(name)) if name.starts_with('-') => {
                let label = name.trim_start_matches('-');
                match answers.text(label, &argument.input)? {
                    None => {}
                    Some(value) if value.is_empty() => arguments.push(escaped(name)),
                    // As the schema says: `--flag={value}`. A short option has no such form.
                    Some(value) if name.starts_with("--") => {
                        arguments.push(format!("{}={value}", escaped(name)));
                    }
                    Some(value) => arguments.extend([escaped(name), value]),
                }
            }
            ("named", name) => {
                let problem = format!("`{}` is no name of an option", shown(name.unwrap_or_default()));
                return Err(unusable("arguments", problem));
            }
            (other, _) => {
                let problem = format!(
                    "an argument is of the type `{}`: there are `named` and `positional`",
                    shown(other)
                );
                return Err(unusable("arguments", problem));
            }
        }
    }
    Ok(arguments)
}

/// Returns the program that fetches and starts the package. A hint is not a free choice: it would start any program.
fn runtime(package: &Package, known: &[&'static str]) -> Result<&'static str, CatalogError> {
    let hint = package.runtime_hint.as_deref();
    let found = known.iter().find(|known| hint.is_none_or(|hint| hint == **known));
    match (found, package.runtime_arguments.is_empty()) {
        (Some(found), _) => Ok(found),
        // Arguments of another program mean nothing to this one; without them the hint may be left aside.
        (None, true) => Ok(known[0]),
        (None, false) => {
            let problem = format!(
                "it is to be started by `{}`, with arguments of that program",
                shown(hint.unwrap_or_default())
            );
            Err(unusable(&package.identifier, problem).with_hint(format!(
                "packages of this type are started by {}",
                tool_settings::suggest::list(known)
            )))
        }
    }
}

fn base_url(package: &Package, known: &[&str]) -> Result<(), CatalogError> {
    match package
        .registry_base_url
        .as_deref()
        .map(|url| url.trim_end_matches('/'))
    {
        Some(url) if !known.contains(&url) => {
            let problem = format!(
                "it is in the registry `{}`, and would be fetched from another one",
                shown(url)
            );
            Err(unusable(&package.identifier, problem)
                .with_hint("write the command under `servers` of the configuration"))
        }
        _ => Ok(()),
    }
}

fn version(package: &Package) -> Result<&str, CatalogError> {
    match package.version.as_deref() {
        Some(version) if is_exact_version(version) => Ok(version),
        Some(version) => {
            let problem = format!("`{}` is not one version", shown(version));
            Err(unusable(&package.identifier, problem))
        }
        None => Err(unusable(&package.identifier, "it states no version")),
    }
}
