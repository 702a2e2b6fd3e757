//! Checks for clashing names, look-alikes and suspicious text in definitions.

use tool_scan::{Finding, scan, scan_text};
use toolplane::{
    Toolplane,
    core::{Descriptor, MAX_NAME, outward_name},
    manifest::{ConfigPart, Diagnostic, Loaded},
};

use crate::output::text;

/// Server or endpoint, and the prefix of the names of its tools.
struct Namespace<'a> {
    /// The word for it: `server` or `endpoint`.
    kind: &'static str,
    name: &'a str,
    prefix: String,
}

/// Reports prefixes of servers and endpoints that contain each other, and tools named in the namespace of one.
pub(super) fn namespaces(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    let configuration = &loaded.configuration;
    let servers = configuration.servers.iter().filter(|server| !server.disabled);
    let servers = servers.map(|server| ("server", &server.name, server.prefix()));
    let endpoints = configuration.endpoints.iter();
    let endpoints = endpoints.filter(|endpoint| !endpoint.disabled);
    let endpoints = endpoints.map(|endpoint| ("endpoint", &endpoint.name, endpoint.prefix()));
    let namespaces = servers.chain(endpoints).filter(|(.., prefix)| !prefix.is_empty());
    let namespaces: Vec<_> = namespaces
        .map(|(kind, name, prefix)| Namespace {
            kind,
            name,
            prefix: outward_name(&prefix),
        })
        .collect();
    for (index, namespace) in namespaces.iter().enumerate() {
        for earlier in &namespaces[..index] {
            let (longer, shorter) = match namespace.prefix.len() >= earlier.prefix.len() {
                true => (namespace, earlier),
                false => (earlier, namespace),
            };
            if longer.prefix.starts_with(shorter.prefix.as_str()) {
                problems.push(nested(loaded, longer, shorter));
            }
        }
    }
    for tool in &configuration.tools {
        let longest = namespaces
            .iter()
            .filter(|namespace| tool.name.starts_with(namespace.prefix.as_str()))
            .max_by_key(|namespace| namespace.prefix.len());
        if let Some(Namespace { kind, name, prefix }) =
            longest.filter(|namespace| !is_run_by(tool, namespace))
        {
            let message = format!(
                "the tool `{}` begins with `{prefix}`, the prefix of the {kind} `{name}`: it hides a tool of that name there",
                tool.name
            );
            let place = loaded.locate(&tool.name, ConfigPart::Tool, "");
            problems.push(
                Diagnostic::warning(message)
                    .with_location(place)
                    .with_hint(format!(
                        "give the tool another name, or the {kind} another `prefix`"
                    )),
            );
        }
    }
}

fn is_run_by(tool: &Descriptor, namespace: &Namespace<'_>) -> bool {
    let named = tool.executor.config.get(namespace.kind);
    named.and_then(|name| name.as_str()) == Some(namespace.name)
}

fn nested(loaded: &Loaded, longer: &Namespace<'_>, shorter: &Namespace<'_>) -> Diagnostic {
    let message = match longer.prefix == shorter.prefix {
        true if longer.kind == shorter.kind => format!(
            "the {}s `{}` and `{}` have the same prefix, `{}`: of two tools with one name, the first is offered",
            longer.kind, shorter.name, longer.name, longer.prefix
        ),
        true => format!(
            "the {} `{}` and the {} `{}` have the same prefix, `{}`: of two tools with one name, the first is offered",
            shorter.kind, shorter.name, longer.kind, longer.name, longer.prefix
        ),
        false => format!(
            "tools of the {} `{}` whose names begin with `{}` are not offered: these names belong to the \
             {} `{}`",
            shorter.kind, shorter.name, longer.prefix, longer.kind, longer.name
        ),
    };
    Diagnostic::warning(message)
        .with_location(loaded.locate_server(longer.name, ""))
        .with_hint(format!(
            "give one of the two a `prefix` that does not begin with `{}`",
            shorter.prefix
        ))
}

/// Prefix that a client adds to tool names if it knows the gateway as `toolplane`.
const CLIENT_PREFIX: &str = "mcp__toolplane__";

/// Reports names that become too long with the prefix of a client.
pub(super) fn too_long(plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    let longest = MAX_NAME - CLIENT_PREFIX.len();
    let known = plane.cached_view(&plane.local_caller());
    let long: Vec<&str> = known
        .tools()
        .iter()
        .map(|tool| &**tool.name())
        .filter(|name| name.len() > longest)
        .collect();
    let Some(first) = long.first() else { return };
    let message = format!(
        "{} longer than {longest} characters, such as `{first}`: with a prefix that clients add, such as \
         `{CLIENT_PREFIX}`, more than the {MAX_NAME} that most models take",
        match long.len() {
            1 => "the name of 1 tool is".to_owned(),
            n => format!("the names of {n} tools are"),
        }
    );
    let hint = "give the server a shorter `prefix`, or rename the tool";
    problems.push(Diagnostic::warning(text::line(&message)).with_hint(hint));
}

/// Reports suspicious text in the definitions of the configuration's own tools.
pub(super) fn definitions(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    for tool in &loaded.configuration.tools {
        let mut report = |part: ConfigPart, what: &str, findings: Vec<Finding>| {
            for finding in findings {
                let message = format!("the {what} of `{}`: {finding}", tool.name);
                let place = loaded.locate(&tool.name, part, "");
                problems.push(
                    Diagnostic::warning(message)
                        .with_location(place)
                        .with_hint("remove it: models read text that people do not see"),
                );
            }
        };
        report(ConfigPart::Tool, "description", scan_text(&tool.description));
        report(
            ConfigPart::Tool,
            "title",
            tool.title.as_deref().map(scan_text).unwrap_or_default(),
        );
        report(ConfigPart::InputSchema, "input schema", scan(&tool.input_schema));
        let output = tool.output_schema.as_ref().map(scan).unwrap_or_default();
        report(ConfigPart::OutputSchema, "output schema", output);
    }
}

/// Reports warnings about all names and definitions that are known without starting a server.
pub(super) fn listed(loaded: &Loaded, plane: &Toolplane, problems: &mut Vec<Diagnostic>) {
    for (source, warning) in plane.list_warnings() {
        let name = warning.name.as_deref().unwrap_or_default();
        let place = loaded
            .locate(name, ConfigPart::Tool, "")
            .or_else(|| loaded.locate_server(&source, ""));
        let message = format!("`{}`: {}", text::line(&source), text::line(&warning.to_string()));
        problems.push(Diagnostic::warning(message).with_location(place));
    }
}
