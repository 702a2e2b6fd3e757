//! Documents that are broken or meant to harm: each is read or refused, and no operation is lost.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};
use tool_openapi::{ImportOptions, import};

use crate::support::{document, executor, imported, loaded, reasons};

#[test]
fn circles_and_depth_end() {
    let operation =
        json!({"operationId": "it", "responses": {}, "parameters": [{"$ref": "#/components/parameters/a"}]});
    let mut circle = document(&json!({"/a": {"get": operation}, "/b": {"$ref": "#/paths/~1b"}}));
    circle["components"] = json!({"parameters": {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}});
    let api = imported(&circle, &ImportOptions::new());
    let reasons = reasons(&api);
    assert_eq!(reasons["GET /a"], "its references lead in a circle");
    assert_eq!(reasons["* /b"], "the path item: its references lead in a circle");
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!(
            "{{\"openapi\": \"3.0.0\", \"x\": {}{}{}}}",
            open.repeat(100_000),
            1,
            close.repeat(100_000)
        );
        assert!(import(deep.as_bytes(), &ImportOptions::new()).is_err());
    }
    let yaml = format!("openapi: 3.0.0\nx: {}", "[".repeat(100_000));
    assert!(import(yaml.as_bytes(), &ImportOptions::new()).is_err());
    let aliases = "openapi: 3.0.0\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                   d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                   g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    assert!(import(aliases.as_bytes(), &ImportOptions::new()).is_err());
}

#[test]
fn a_file_that_unpacks_to_too_much_is_refused() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..40 {
        packed.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let error = import(&packed.finish().unwrap(), &ImportOptions::new()).unwrap_err();
    assert!(
        error.to_string().starts_with("the document is larger than"),
        "{error}"
    );
}

#[test]
fn texts_of_the_document_are_no_templates() {
    let operation = json!({"operationId": "it", "description": "${HOME} {x}", "responses": {}, "parameters": [
        {"name": "${HOME}", "in": "query", "schema": {"type": "string"}},
        {"name": "X-${HOME}", "in": "header", "schema": {"type": "string"}},
        {"name": "c{x}", "in": "cookie", "schema": {"type": "string"}},
    ]});
    let mut document = document(&json!({"/a${HOME}/{x}/$y": {"get": operation}}));
    document["servers"] = json!([{"url": "https://api.example.com/${secret:key}"}]);
    assert!(imported(&document, &ImportOptions::new()).tools.is_empty());
    document["servers"] = json!([{"url": "https://api.example.com/$v"}]);
    let api = imported(&document, &ImportOptions::new());
    // The path has a parameter `HOME`, which is not declared.
    let config = &api.tools[0].descriptor.executor.config;
    assert_eq!(
        config["url"],
        "https://api.example.com/$$v/a$${HOME_path}/{x}/$$y"
    );
    assert_eq!(config["query"], json!({"${HOME}": "{HOME}"}));
    assert_eq!(config.get("headers"), None);
}

/// Returns the places of a value, as JSON Pointers.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(key, value)| pointers(value, &format!("{at}/{}", escaped(key)), out)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| pointers(value, &format!("{at}/{index}"), out)),
        _ => {}
    }
}

fn operations(document: &Value) -> usize {
    let paths = document["paths"].as_object();
    let items = paths
        .into_iter()
        .flatten()
        .filter(|(path, _)| !path.starts_with("x-"));
    let methods = [
        "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
    ];
    items
        .map(|(_, item)| match item {
            Value::Object(item) => item.keys().filter(|key| methods.contains(&key.as_str())).count(),
            _ => 1,
        })
        .sum()
}

fn junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(7)),
        Just(json!([])),
        Just(json!({})),
        Just(json!("")),
        Just(json!({"$ref": "#/info"})),
        Just(json!({"$ref": "other.yaml"})),
        Just(json!([{"name": "x", "in": "query"}, 5, null])),
        Just(json!("../{a}?b=${secret:c}#d")),
        Just(json!({"type": "object", "properties": {"body": {}}})),
        any::<String>().prop_map(|text| json!(text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(22), cases: 300, ..ProptestConfig::default() })]

    /// A value anywhere in a real document is replaced: each operation is a tool that the executor takes, or is listed.
    #[test]
    fn a_broken_document_loses_no_operation(
        name in prop::sample::select(vec!["oai-v3.1-tictactoe.json", "oai-v2.0-petstore-expanded.json", "oai-v3.0-link-example.json"]),
        places in prop::collection::vec((any::<prop::sample::Index>(), junk()), 1..4),
    ) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let mut document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        for (place, value) in places {
            let mut all = Vec::new();
            pointers(&document, "", &mut all);
            let pointer = &all[place.index(all.len())];
            *document.pointer_mut(pointer).unwrap() = value;
        }
        let options = ImportOptions::new().with_server("https://api.example.com");
        if let Ok(mut api) = import(document.to_string().as_bytes(), &options) {
            api.check_with(&executor());
            let n_listed = api.tools.len() + api.skipped.len();
            // A path item that is a reference has the operations of its target.
            let n_operations = operations(&document);
            let refers = document["paths"].as_object().into_iter().flatten().any(|(_, item)| item.get("$ref").is_some());
            prop_assert!(refers || n_listed == n_operations, "{} of {}", n_listed, n_operations);
            prop_assert_eq!(loaded(&api).configuration.tools.len(), api.tools.len());
        }
    }
}
