//! Real documents: each operation is a tool that the executor takes, or is listed with the reason.

use std::{fs, path::Path};

use tool_openapi::{ImportOptions, import};

use crate::support::{executor, loaded};

/// Name, number of operations, and number of tools. Documents without a server get one.
const DOCUMENTS: [(&str, usize, usize); 12] = [
    ("discord-openapi.json.gz", 242, 239),
    ("notion-openapi.json", 24, 24),
    ("oai-v2.0-petstore-expanded.json", 4, 4),
    ("oai-v2.0-petstore.json", 3, 3),
    ("oai-v3.0-api-with-examples.json", 2, 2),
    ("oai-v3.0-callback-example.json", 1, 1),
    ("oai-v3.0-link-example.json", 6, 6),
    ("oai-v3.0-petstore-expanded.json", 4, 4),
    ("oai-v3.0-petstore.yaml", 3, 3),
    ("oai-v3.1-non-oauth-scopes.json", 1, 1),
    ("oai-v3.1-tictactoe.json", 3, 3),
    ("oai-v3.2-3.2-tags-example.json", 4, 4),
];

fn bytes(name: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name),
    )
    .unwrap()
}

#[test]
fn each_operation_is_a_tool_that_the_executor_takes_or_has_a_reason() {
    let mut wrong = Vec::new();
    for (name, n_operations, n_tools) in DOCUMENTS {
        let bytes = bytes(name);
        let mut api = import(&bytes, &ImportOptions::new()).unwrap();
        if api
            .skipped
            .iter()
            .any(|skipped| skipped.reason.contains("--server"))
        {
            let options = ImportOptions::new().with_server("https://api.example.com/v1");
            api = import(&bytes, &options).unwrap();
        }
        api.check_with(&executor());
        for skipped in &api.skipped {
            println!("{name}: {skipped}");
        }
        for tool in &api.tools {
            for warning in &tool.warnings {
                println!("{name}: {}: {warning}", tool.operation);
            }
        }
        if (api.tools.len() + api.skipped.len(), api.tools.len()) != (n_operations, n_tools) {
            wrong.push(format!(
                "{name}: {} tools, {} skipped",
                api.tools.len(),
                api.skipped.len()
            ));
        }
        assert_eq!(loaded(&api).configuration.tools.len(), api.tools.len(), "{name}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
