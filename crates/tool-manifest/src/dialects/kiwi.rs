use std::collections::HashSet;

use raw_json::RawJson;
use serde::Deserialize;
use serde_json::Value;
use tool_core::{ExecutorSpec, Metadata, Overrides, Pattern};
use tool_settings::{Entries, Field, NodeId, Raw, Text};

use crate::{
    document::{node::Kind, place::Cx, suggest},
    loading::draft::{Draft, ServerDraft},
    servers::server::{self, ServerBody},
    tools::{
        examples::{self, ExampleField},
        metadata::texts,
        schema_field,
        tool::{self, Parts, Settings, WrittenAs},
    },
};

/// The types of Kiwi, and their executors.
const TYPES: [(&str, &str); 5] = [
    ("api", "http"),
    ("mcp", "mcp"),
    ("python", "python"),
    ("bash", "bash"),
    ("docker", "docker"),
];

/// Other words for the types of JSON Schema.
const WORDS: [(&str, &str); 7] = [
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("float", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("list", "array"),
];

/// A tool in the dialect of Kiwi.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KiwiBody {
    tool_id: Field<String>,
    tool_type: Field<String>,
    name: Field<String>,
    version: Field<Text>,
    description: Field<String>,
    executor_config: Raw,
    parameters: Raw,
    tags: Field<Vec<Field<String>>>,
    capabilities: Field<Vec<Field<String>>>,
    examples: Field<Vec<ExampleField>>,
    required_permissions: Field<Vec<Field<String>>>,
}

/// The `executor_config` of a tool that a server runs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct McpConfig {
    mcp_server: Field<String>,
    mcp_tool: Field<String>,
    transport: Field<String>,
    command: Field<String>,
    args: Field<Vec<Field<Text>>>,
    env: Field<Entries<Text>>,
    cwd: Field<String>,
    url: Field<String>,
    headers: Field<Entries<Text>>,
}

/// Takes a tool of Kiwi.
pub(crate) fn take(cx: Cx<'_>, at: NodeId, draft: &mut Draft) {
    let Some(body) = cx.read::<KiwiBody>(at) else {
        return;
    };
    let input_schema = body
        .parameters
        .0
        .and_then(|at| Some((Some(at), parameters(cx, at)?)));
    let executor = executor(cx, at, body.tool_type, body.executor_config, draft);
    let Some((named, name)) = body.tool_id.located() else {
        return;
    };
    let mut metadata = Metadata::default();
    metadata.tags = texts(body.tags);
    metadata.capabilities = texts(body.capabilities);
    metadata.required_permissions = texts(body.required_permissions);
    examples::read(cx, body.examples, &mut metadata);
    let parts = Parts {
        written_as: WrittenAs::Document,
        name,
        named,
        at,
        title: body.name.get(),
        description: body.description,
        version: body.version.get().map(|Text(version)| version),
        input_schema,
        output_schema: None,
        timeout: None,
        executor,
        metadata,
        overrides: Overrides::default(),
    };
    if let Some(tool) = tool::assemble(cx, parts) {
        draft.put_tool(cx.report, tool);
    }
}

fn executor(
    cx: Cx<'_>,
    at: NodeId,
    tool_type: Field<String>,
    config: Raw,
    draft: &mut Draft,
) -> Option<(ExecutorSpec, Settings)> {
    let is_wrong = tool_type.is_wrong();
    let names = TYPES.map(|(name, _)| name);
    let Some((type_at, tool_type)) = tool_type.located() else {
        if !is_wrong {
            cx.key_error(
                at,
                "the tool has no `tool_type`",
                format!("there are {}", suggest::list(&names)),
            );
        }
        return None;
    };
    let Some((_, kind)) = TYPES.into_iter().find(|(name, _)| *name == tool_type) else {
        let message = format!("unknown `tool_type` `{}`", suggest::shown(&tool_type));
        cx.error(type_at, message, suggest::value(&tool_type, &names));
        return None;
    };
    let config = config.0.filter(|at| !matches!(cx.document.kind(*at), Kind::Null));
    if config.is_some_and(|at| !cx.expect_map(at, "")) {
        return None;
    }
    let settings = match config {
        Some(config) if kind == "mcp" => routing(cx, config, draft)?,
        Some(config) => Settings {
            root: Some(config),
            entries: cx.document.entries(config).to_vec(),
        },
        None if kind == "mcp" => {
            cx.key_error(
                at,
                "an MCP tool has an `executor_config`",
                "add `mcp_server` and `mcp_tool`",
            );
            return None;
        }
        None => Settings::default(),
    };
    Some((tool::spec(cx, kind, &settings), settings))
}

/// Finds the tool and its server; a server that is written here is configured too.
fn routing(cx: Cx<'_>, at: NodeId, draft: &mut Draft) -> Option<Settings> {
    let config: McpConfig = cx.read(at)?;
    for (name, is_absent) in [
        ("mcp_server", config.mcp_server.is_absent()),
        ("mcp_tool", config.mcp_tool.is_absent()),
    ] {
        if is_absent {
            cx.key_error(
                at,
                format!("an MCP tool has a `{name}`"),
                "add `mcp_server` and `mcp_tool`",
            );
        }
    }
    let (server_at, server) = config.mcp_server.located()?;
    let (tool_at, _) = config.mcp_tool.located()?;
    if config.command.given().is_some() || config.url.given().is_some() {
        let body = ServerBody {
            command: config.command,
            args: config.args,
            env: config.env,
            cwd: config.cwd,
            url: config.url,
            headers: config.headers,
            transport: config.transport,
            ..ServerBody::default()
        };
        let mut spec = server::server(cx, &server, at, body)?;
        // Only the tools that are written out are offered: the server's others were not asked for.
        spec.include = Some(Vec::<Pattern>::new());
        let place = cx.place(at);
        let inline = true;
        let settings = None;
        draft.put_server(
            cx.report,
            ServerDraft {
                spec,
                place,
                settings,
                inline,
                is_of_client: false,
            },
        );
    }
    Some(Settings {
        root: Some(at),
        entries: vec![("server".to_owned(), server_at), ("tool".to_owned(), tool_at)],
    })
}

/// Makes a JSON Schema of Kiwi's parameters: a list of `{name, type, required, ..}`, or a map from names to schemas.
pub(crate) fn parameters(cx: Cx<'_>, at: NodeId) -> Option<RawJson> {
    let mut properties = Vec::new();
    let mut required = Vec::new();
    match cx.document.kind(at) {
        Kind::Null => return None,
        Kind::Map(_) if cx.document.get(at, "properties").is_some() => {
            let (_, schema) = schema_field::arguments(cx, Raw(Some(at)))?;
            return Some(schema);
        }
        Kind::Map(entries) => {
            for (name, schema) in entries {
                properties.push((name.as_str(), cx.document.to_json(*schema)));
            }
        }
        Kind::List(items) => {
            let mut seen = HashSet::new();
            for item in items {
                let (name, property, is_required) = parameter(cx, *item)?;
                if !seen.insert(name) {
                    cx.error(
                        *item,
                        format!("the parameter `{}` is given twice", suggest::shown(name)),
                        "",
                    );
                }
                if is_required {
                    required.push(Value::from(name).to_string());
                }
                properties.push((name, property));
            }
        }
        _ => {
            let found = cx.document.describe(at);
            cx.error(at, format!("expected a list of parameters, found {found}"), "");
            return None;
        }
    }
    let properties: Vec<String> = properties
        .into_iter()
        .map(|(name, schema)| format!("{}:{schema}", Value::from(name)))
        .collect();
    let mut schema = format!(r#"{{"type":"object","properties":{{{}}}"#, properties.join(","));
    if !required.is_empty() {
        schema.push_str(&format!(r#","required":[{}]"#, required.join(",")));
    }
    schema.push('}');
    RawJson::parse(schema).ok()
}

/// Reads a parameter: its name, its schema and whether it must be given.
fn parameter<'a>(cx: Cx<'a>, at: NodeId) -> Option<(&'a str, String, bool)> {
    let document = cx.document;
    let Some(name) = document.get(at, "name").and_then(|name| document.text(name)) else {
        cx.error(
            at,
            "a parameter has a `name`",
            "write `{name: .., type: .., required: ..}`",
        );
        return None;
    };
    let mut members = Vec::new();
    let mut is_required = false;
    for (key, value) in document.entries(at) {
        match (key.as_str(), document.kind(*value)) {
            ("name", _) => {}
            ("required", Kind::Bool(required)) => is_required = *required,
            ("required", _) => {
                let found = document.describe(*value);
                cx.error(*value, format!("expected true or false, found {found}"), "");
            }
            ("type", Kind::String(word)) => {
                if let Some(word) = type_word(cx, *value, word) {
                    members.push(format!(r#""type":"{word}""#));
                }
            }
            _ => members.push(format!(
                "{}:{}",
                Value::from(key.as_str()),
                document.to_json(*value)
            )),
        }
    }
    Some((name, format!("{{{}}}", members.join(",")), is_required))
}

/// Returns the word of JSON Schema for a type; `None` for any type, and for an unknown one, which is reported.
fn type_word<'a>(cx: Cx<'_>, at: NodeId, word: &'a str) -> Option<&'a str> {
    const KNOWN: [&str; 7] = [
        "string", "number", "integer", "boolean", "object", "array", "null",
    ];
    if word == "any" {
        return None;
    }
    if KNOWN.contains(&word) {
        return Some(word);
    }
    let other = WORDS.into_iter().find(|(other, _)| *other == word);
    if other.is_none() {
        let message = format!("unknown type `{}`", suggest::shown(word));
        cx.error(at, message, suggest::value(word, &KNOWN));
    }
    other.map(|(_, known)| known)
}
