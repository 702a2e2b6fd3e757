use raw_json::RawJson;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use tool_settings::Sections;

use crate::{
    config::policy::PolicyBody,
    dialects::{
        file::FileBody,
        manifest::{API_VERSION, KINDS, Manifest},
    },
    servers::server::ServerBody,
    tools::{
        tool::{self, ToolBody},
        workflow::{self, WorkflowBody},
    },
};

/// Prefix of references to definitions.
const DEFINITIONS: &str = "#/$defs/";

/// Other accepted spellings: the definition, the other spelling, and ours. Derived schemas know nothing of them. The
/// spellings of sections come where theirs are empty.
const SPELLINGS: [(&str, &str, &str); 25] = [
    ("Tool", "inputSchema", "input_schema"),
    ("Tool", "outputSchema", "output_schema"),
    ("Tool", "estimated_latency", "latency"),
    ("Tool", "estimatedLatency", "latency"),
    ("Tool", "", ""),
    ("Tool", "costPerCall", "cost_per_call"),
    ("Tool", "readOnly", "read_only"),
    ("Tool", "requiredPermissions", "required_permissions"),
    ("Tool", "dataClassification", "data_classification"),
    ("Tool", "piiHandling", "pii_handling"),
    ("Tool", "healthCheckEndpoint", "health_check_endpoint"),
    ("Workflow", "inputSchema", "input_schema"),
    ("Workflow", "outputSchema", "output_schema"),
    ("Workflow", "errorHandling", "on_error"),
    ("Workflow", "", ""),
    ("Workflow", "readOnly", "read_only"),
    ("Workflow", "requiredPermissions", "required_permissions"),
    ("Server", "", ""),
    ("Server", "serverUrl", "url"),
    ("Server", "httpUrl", "url"),
    ("Server", "transport", "type"),
    ("Server", "includeTools", "include"),
    ("Server", "excludeTools", "exclude"),
    ("Server", "disabledTools", "exclude"),
    ("Endpoint", "", ""),
];

/// Anchors of sections in each definition.
const ANCHORS: [(&str, [&str; 2]); 6] = [
    ("Tool", ["$tool", "$tool-late"]),
    ("Workflow", ["$tool", "$tool-late"]),
    ("Server", ["$server", "$server-late"]),
    ("Endpoint", ["$server", "$server-late"]),
    ("Defaults", ["$defaults", "$defaults-late"]),
    ("Policy", ["$policy", "$policy-late"]),
];

/// Returns the JSON Schema (2020-12) of a configuration file, for editors and for the reference: the short form and
/// our own manifests, with the keys of these sections and the settings of these executors, each given by its kind and
/// its [`config_schema`](tool_core::Executor::config_schema).
///
/// # Examples
/// ```
/// use raw_json::RawJson;
/// use tool_manifest::config_schema;
/// use tool_settings::Sections;
///
/// let mock = RawJson::parse(r#"{"type": "object", "properties": {"result": true}}"#)?;
/// let schema = config_schema(&[("mock", mock)], &Sections::default());
/// assert!(schema.as_str().contains("call_timeout"));
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[must_use]
pub fn config_schema(executors: &[(&str, RawJson)], sections: &Sections) -> RawJson {
    let mut generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let short = generator.subschema_for::<FileBody>().to_value();
    let manifests = [
        manifest::<ToolBody>(&mut generator, "Tool"),
        manifest::<ServerBody>(&mut generator, "McpServer"),
        manifest::<PolicyBody>(&mut generator, "Policy"),
        manifest::<WorkflowBody>(&mut generator, "Workflow"),
    ];
    let properties = ANCHORS.map(|(_, anchors)| {
        anchors.map(|anchor| sections.properties(anchor, &mut generator).unwrap_or_default())
    });
    let mut definitions = generator.take_definitions(true);
    add_sections(&mut definitions, properties);
    let mut definitions = in_order(definitions, &[&short, &Value::from(manifests.to_vec())]);
    add_spellings(&mut definitions, sections);
    add_executors(&mut definitions, executors);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolplane configuration",
        "type": "object",
        // Not `anyOf`: editors then complain about the one form that is meant.
        "if": {"required": ["apiVersion"]},
        "then": {"allOf": manifests},
        "else": short,
        "$defs": definitions,
    });
    RawJson::from(&schema)
}

/// Returns the schema of documents of this kind.
fn manifest<S>(generator: &mut SchemaGenerator, kind: &str) -> Value
where
    S: schemars::JsonSchema + Default,
{
    let content = generator.subschema_for::<Manifest<S>>().to_value();
    json!({
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"enum": KINDS},
        },
        "if": {"properties": {"kind": {"const": kind}}},
        "then": content,
    })
}

/// Puts the keys of sections where their anchors stand.
fn add_sections(definitions: &mut Map<String, Value>, properties: [[Map<String, Value>; 2]; ANCHORS.len()]) {
    for ((definition, anchors), mut own) in ANCHORS.into_iter().zip(properties) {
        let known = definitions
            .get_mut(definition)
            .and_then(|schema| schema.get_mut("properties"))
            .and_then(Value::as_object_mut);
        let Some(known) = known else { continue };
        for (key, schema) in std::mem::take(known) {
            match anchors.iter().position(|anchor| *anchor == key) {
                Some(place) => known.extend(std::mem::take(&mut own[place])),
                None => drop(known.insert(key, schema)),
            }
        }
    }
}

/// Sorts definitions into the order in which these schemas lead to them.
fn in_order(mut definitions: Map<String, Value>, roots: &[&Value]) -> Map<String, Value> {
    let mut sorted = Vec::new();
    for root in roots {
        follow(root, &mut definitions, &mut sorted);
    }
    sorted.into_iter().chain(definitions).collect()
}

fn follow(schema: &Value, left: &mut Map<String, Value>, sorted: &mut Vec<(String, Value)>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                let name = value.as_str().filter(|_| key == "$ref");
                let name = name.and_then(|target| target.strip_prefix(DEFINITIONS));
                if let Some((name, definition)) = name.and_then(|name| left.remove_entry(name)) {
                    let place = sorted.len();
                    sorted.push((name, Value::Null));
                    follow(&definition, left, sorted);
                    sorted[place].1 = definition;
                } else {
                    follow(value, left, sorted);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| follow(item, left, sorted)),
        _ => {}
    }
}

/// Adds the other spellings, marked so that editors offer ours.
fn add_spellings(definitions: &mut Map<String, Value>, sections: &Sections) {
    let of_sections = |definition: &str| {
        let anchors = ANCHORS.into_iter().find(|(name, _)| *name == definition);
        let anchors = anchors.map(|(_, anchors)| anchors).into_iter().flatten();
        let keys = anchors.flat_map(|anchor| sections.keys(anchor).unwrap_or_default());
        let others = keys.filter(|key| key.name != key.key);
        others.map(|key| (key.name, key.key)).collect::<Vec<_>>()
    };
    let spellings = SPELLINGS.into_iter().flat_map(|(definition, other, ours)| {
        let pairs = if other.is_empty() {
            of_sections(definition)
        } else {
            vec![(other, ours)]
        };
        pairs
            .into_iter()
            .map(move |(other, ours)| (definition, other, ours))
    });
    for (definition, other, ours) in spellings {
        let properties = definitions
            .get_mut(definition)
            .and_then(|schema| schema.get_mut("properties"));
        let Some(Value::Object(properties)) = properties else {
            continue;
        };
        let mut schema = properties.get(ours).cloned().unwrap_or(Value::Bool(true));
        if let Value::Object(schema) = &mut schema {
            schema.insert(
                "description".to_owned(),
                Value::from(format!("Another spelling of `{ours}`.")),
            );
            schema.insert("deprecated".to_owned(), Value::Bool(true));
        }
        properties.insert(other.to_owned(), schema);
    }
}

/// Puts the settings of each kind of executor where tools refer to.
fn add_executors(definitions: &mut Map<String, Value>, executors: &[(&str, RawJson)]) {
    let mut choices = Vec::new();
    for (kind, schema) in executors {
        let mut schema: Value = schema.to().unwrap_or(Value::Bool(true));
        rename_references(&mut schema, kind);
        let Value::Object(mut object) = schema else {
            choices.push(json!({"properties": {"kind": {"const": kind}}, "required": ["kind"]}));
            continue;
        };
        object.remove("$schema");
        for (name, definition) in take_definitions(&mut object) {
            definitions.insert(format!("{kind}.{name}"), definition);
        }
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert("kind".to_owned(), json!({"const": kind}));
        }
        let required = object.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            required.push(Value::from("kind"));
        }
        if *kind == workflow::KIND {
            describe_workflow(definitions, &object);
        }
        if *kind == tool::ROUTE_KIND {
            describe_route(definitions, &object);
        }
        let name = format!("executor.{kind}");
        choices.push(json!({"$ref": format!("{DEFINITIONS}{name}")}));
        definitions.insert(name, Value::Object(object));
    }
    if let Some(Value::Object(executor)) = definitions.get_mut("Executor")
        && !choices.is_empty()
    {
        executor.insert("oneOf".to_owned(), Value::Array(choices));
    }
}

/// Describes the settings of a workflow, which stand beside those of any tool, as its executor does.
fn describe_workflow(definitions: &mut Map<String, Value>, executor: &Map<String, Value>) {
    let properties = definitions
        .get_mut("Workflow")
        .and_then(|schema| schema.get_mut("properties"));
    if let (Some(Value::Object(known)), Some(Value::Object(own))) = (properties, executor.get("properties")) {
        for key in workflow::SETTINGS {
            if let Some(schema) = own.get(key) {
                known.insert(key.to_owned(), schema.clone());
            }
        }
    }
}

/// Describes the settings of a route in the short form as its executor does.
fn describe_route(definitions: &mut Map<String, Value>, executor: &Map<String, Value>) {
    let route = definitions
        .get_mut("Tool")
        .and_then(|schema| schema.pointer_mut("/properties/route"));
    if let (Some(Value::Object(route)), Some(Value::Object(own))) = (route, executor.get("properties")) {
        let mut own = own.clone();
        own.remove("kind");
        route.insert("properties".to_owned(), Value::Object(own));
        route.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

fn take_definitions(schema: &mut Map<String, Value>) -> Map<String, Value> {
    match schema.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    }
}

/// Makes references to a schema's own definitions fit the names that they get among all definitions.
fn rename_references(schema: &mut Value, kind: &str) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(target) if key == "$ref" => {
                        if let Some(name) = target.strip_prefix(DEFINITIONS) {
                            *target = format!("{DEFINITIONS}{kind}.{name}");
                        }
                    }
                    other => rename_references(other, kind),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_references(item, kind)),
        _ => {}
    }
}
