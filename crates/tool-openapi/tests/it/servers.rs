//! Servers of a document.

use serde_json::{Value, json};
use tool_openapi::{ImportOptions, import};

use crate::support::{document, imported, reasons};

fn url(servers: &Value, options: &ImportOptions) -> Result<String, String> {
    let mut document = document(&json!({"/a": {"get": {"operationId": "it", "responses": {}}}}));
    document["servers"] = servers.clone();
    let api = imported(&document, options);
    match api.tools.first() {
        Some(tool) => Ok(tool.descriptor.executor.config["url"]
            .as_str()
            .unwrap()
            .to_owned()),
        None => Err(reasons(&api)["GET /a"].clone()),
    }
}

#[test]
fn the_first_server_counts_with_the_defaults_of_its_variables() {
    let variables = json!({"region": {"default": "eu", "enum": ["us", "eu"]}, "port": {"enum": ["8443"]}});
    for (servers, expected) in [
        (
            json!([{"url": "https://a.example/v1/"}, {"url": "https://b.example"}]),
            "https://a.example/v1/a",
        ),
        (
            json!([{"url": "https://{region}.a.example:{port}/v1", "variables": variables}]),
            "https://eu.a.example:8443/v1/a",
        ),
        (json!([{"url": "http://a.example/$x"}]), "http://a.example/$$x/a"),
    ] {
        assert_eq!(url(&servers, &ImportOptions::new()).unwrap(), expected);
    }
}

#[test]
fn a_server_without_a_host_needs_the_option() {
    for (servers, reason) in [
        (json!([]), "the document names no server"),
        (json!(null), "the document names no server"),
        (json!([{"url": "/v1"}]), "the server `/v1` is relative"),
        (
            json!([{"url": "https://{region}.a.example"}]),
            "the variable `region` of the server has no default",
        ),
        (
            json!([{"url": "ftp://a.example"}]),
            "is neither `http` nor `https`",
        ),
        (
            json!([{"url": "https://user:pass@a.example"}]),
            "contains a user or a password",
        ),
        (
            json!([{"url": "https://a.example?x=1"}]),
            "contains a query or a fragment",
        ),
    ] {
        let said = url(&servers, &ImportOptions::new()).unwrap_err();
        assert!(said.contains(reason) && said.contains("--server"), "{said}");
        let options = ImportOptions::new().with_server("https://own.example/");
        assert_eq!(url(&servers, &options).unwrap(), "https://own.example/a");
    }
    let text = document(&json!({})).to_string();
    let error = import(text.as_bytes(), &ImportOptions::new().with_server("own.example")).unwrap_err();
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn a_private_server_is_reached_only_if_the_operator_permits_it() {
    let servers = json!([{"url": "http://localhost:8080"}]);
    let said = url(&servers, &ImportOptions::new()).unwrap_err();
    assert!(said.contains("leads to an address that is not public"), "{said}");
    let permitted = ImportOptions::new().with_allow_private(true);
    assert_eq!(url(&servers, &permitted).unwrap(), "http://localhost:8080/a");
}

#[test]
fn an_operation_or_a_path_has_its_own_server() {
    let operation = |server: &str| json!({"responses": {}, "servers": [{"url": server}]});
    let paths = json!({
        "/a": {"servers": [{"url": "https://path.example"}], "get": {"responses": {}}, "post": operation("https://op.example")},
    });
    let api = imported(&document(&paths), &ImportOptions::new());
    let mut urls: Vec<&Value> = api
        .tools
        .iter()
        .map(|tool| &tool.descriptor.executor.config["url"])
        .collect();
    urls.sort_by_key(ToString::to_string);
    assert_eq!(urls, ["https://op.example/a", "https://path.example/a"]);
}
