//! Names of tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tool_openapi::{ImportOptions, OperationFilter};

use crate::support::{document, imported, reasons};

fn names(paths: &Value, options: &ImportOptions) -> BTreeMap<String, String> {
    let api = imported(&document(paths), options);
    let tools = api.tools.iter();
    tools
        .map(|tool| (tool.operation.to_string(), tool.descriptor.name.to_string()))
        .collect()
}

fn operation(id: &str) -> Value {
    json!({"operationId": id, "tags": ["t"], "responses": {}})
}

#[test]
fn an_operation_without_an_id_is_named_by_method_and_path() {
    let paths = json!({
        "/": {"get": {"responses": {}}},
        "/pets/{petId}/photos": {"get": {"responses": {}}, "delete": {"operationId": "  ", "responses": {}}},
        "/a-b/c.d": {"post": {"responses": {}}},
    });
    let names = names(&paths, &ImportOptions::new());
    assert_eq!(names["GET /"], "get");
    assert_eq!(names["GET /pets/{petId}/photos"], "get_pets_petId_photos");
    assert_eq!(names["DELETE /pets/{petId}/photos"], "delete_pets_petId_photos");
    assert_eq!(names["POST /a-b/c.d"], "post_a-b_c_d");
}

#[test]
fn operations_with_one_name_are_named_by_method_and_path_whatever_is_selected() {
    let paths = json!({
        "/a": {"get": operation("list items")},
        "/b": {"get": operation("list_items")},
        "/c": {"get": operation("other")},
    });
    let all = names(&paths, &ImportOptions::new());
    assert_eq!(all["GET /a"], "get_a");
    assert_eq!(all["GET /b"], "get_b");
    assert_eq!(all["GET /c"], "other");
    let one = OperationFilter::new().with_path("/a");
    assert_eq!(
        names(&paths, &ImportOptions::new().with_filter(one))["GET /a"],
        "get_a"
    );
}

#[test]
fn a_name_that_nothing_tells_apart_is_a_reason() {
    let paths = json!({"/a.b": {"get": {"responses": {}}}, "/a_b": {"get": {"responses": {}}}});
    let api = imported(&document(&paths), &ImportOptions::new());
    assert_eq!(api.tools.len(), 1);
    assert_eq!(
        reasons(&api)["GET /a_b"],
        "its name would be `get_a_b`, which another operation has"
    );
}

#[test]
fn a_long_name_is_shortened_as_all_names_are() {
    let id = "aVeryLongOperationIdentifier".repeat(4);
    let paths = json!({"/a": {"get": operation(&id)}, "/b": {"get": operation(&format!("{id}2"))}});
    let names = names(&paths, &ImportOptions::new());
    assert_eq!(names["GET /a"], tool_core::outward_name(&id));
    assert_eq!(names["GET /a"].len(), 64);
    assert_ne!(names["GET /a"], names["GET /b"]);
}
