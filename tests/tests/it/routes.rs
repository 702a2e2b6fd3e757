//! Routes through the gateway, to servers of both eras and for clients of both.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Client, Configuration, Era, Gateway, call_params, mock_server};

/// A server with one tool.
const SCENARIO: &str = "
tools:
  search:
    replies:
      - structured: {found: FROM}
";

fn scenario(folder: &std::path::Path, name: &str, era: Era) -> Value {
    let path = folder.join(format!("{name}-{}.yaml", era.name()));
    let text = SCENARIO.replace("FROM", name);
    fs::write(&path, format!("era: {}{text}", era.name())).unwrap();
    mock_server(&path)
}

/// Calls the route, and returns the server that answered, as its result and its `_meta` say.
fn found_by(way: &str, client: &mut dyn Client) -> String {
    let result = client.converse("tools/call", &call_params("find", "{}")).result();
    let result: Value = serde_json::from_str(&result).unwrap();
    let found = result["structuredContent"]["found"].as_str();
    let found = found.unwrap_or_else(|| panic!("{way}: {result}")).to_owned();
    let route = &result["_meta"]["dev.toolplane/route"];
    assert_eq!(route["tool"], format!("{found}__search"), "{way}: {result}");
    found
}

#[test]
fn a_route_reaches_servers_of_both_eras_for_clients_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let route = json!({
        "description": "Finds.",
        "route": {"tools": ["*__search"], "arguments": {"one__search": {}, "other__search": {}}},
    });
    let configuration = Configuration::default()
        .server("one", scenario(folder.path(), "one", Era::Modern))
        .server("other", scenario(folder.path(), "other", Era::Legacy))
        .tool("find", route);
    for era in [Era::Legacy, Era::Modern] {
        let mut gateway = Gateway::stdio_in(era, &configuration);
        let first = found_by("over stdio", &mut gateway.client);
        // The leading tool stays: one that is as good takes no turns with it.
        for _ in 0..5 {
            assert_eq!(found_by("over stdio", &mut gateway.client), first);
        }
        assert_eq!(gateway.end().code(), Some(0));
        let gateway = Gateway::http(&configuration);
        found_by("over HTTP", &mut gateway.client(era));
        assert_eq!(gateway.terminate().code(), Some(0));
    }
}
