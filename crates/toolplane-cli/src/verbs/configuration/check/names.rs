//! Checks for clashing names, look-alikes and suspicious text in definitions.

use tool_scan::{Finding, scan, scan_text};
use toolplane::{
    Toolplane,
    core::{Descriptor, MAX_NAME, outward_name},
    manifest::{ConfigPart, Diagnostic, Loaded, ServerSpec},
};

use crate::output::text;

/// Reports prefixes of servers that contain each other, and tools named in the namespace of a server.
pub(super) fn namespaces(loaded: &Loaded, problems: &mut Vec<Diagnostic>) {
    let servers = loaded
        .configuration
        .servers
        .iter()
        .filter(|server| !server.disabled);
    let prefixes: Vec<_> = servers
        .map(|server| (server, prefix(server)))
        .filter(|(_, prefix)| !prefix.is_empty())
        .collect();
    for (index, (server, prefix)) in prefixes.iter().enumerate() {
        for (earlier, other) in &prefixes[..index] {
            let (longer, shorter) = match prefix.len() >= other.len() {
                true => ((server, prefix), (earlier, other)),
                false => ((earlier, other), (server, prefix)),
            };
            if longer.1.starts_with(shorter.1.as_str()) {
                problems.push(nested(loaded, longer, shorter));
            }
        }
    }
    for tool in &loaded.configuration.tools {
        let longest = prefixes
            .iter()
            .filter(|(_, prefix)| tool.name.starts_with(prefix.as_str()))
            .max_by_key(|(_, prefix)| prefix.len());
        if let Some((server, prefix)) = longest.filter(|(server, _)| !is_run_by(tool, &server.name)) {
            let message = format!(
                "the tool `{}` begins with `{prefix}`, the prefix of the server `{}`: it hides a tool of that name there",
                tool.name, server.name
            );
            let place = loaded.locate(&tool.name, ConfigPart::Tool, "");
            problems.push(
                Diagnostic::warning(message)
                    .with_location(place)
                    .with_hint("give the tool another name, or the server another `prefix`"),
            );
        }
    }
}

fn prefix(server: &ServerSpec) -> String {
    match server.prefix().as_str() {
        "" => String::new(),
        prefix => outward_name(prefix),
    }
}

fn is_run_by(tool: &Descriptor, server: &str) -> bool {
    tool.executor.config.get("server").and_then(|name| name.as_str()) == Some(server)
}

fn nested(
    loaded: &Loaded,
    (longer, longer_prefix): (&&ServerSpec, &String),
    (shorter, shorter_prefix): (&&ServerSpec, &String),
) -> Diagnostic {
    let message = if longer_prefix == shorter_prefix {
        format!(
            "the servers `{}` and `{}` have the same prefix, `{longer_prefix}`: of two tools with one name, the first is offered",
            shorter.name, longer.name
        )
    } else {
        format!(
            "tools of the server `{}` whose names begin with `{longer_prefix}` are not offered: these names belong to the \
             server `{}`",
            shorter.name, longer.name
        )
    };
    Diagnostic::warning(message)
        .with_location(loaded.locate_server(&longer.name, ""))
        .with_hint(format!(
            "give one of the two a `prefix` that does not begin with `{shorter_prefix}`"
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
