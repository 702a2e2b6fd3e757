//! Bodies of requests.

use serde_json::{Value, json};
use tool_openapi::{ImportOptions, ImportedApi};

use crate::support::{document, header, imported, reasons, request_of, schema_of, warnings_of};

fn with_body(method: &str, body: &Value) -> ImportedApi {
    let operation = json!({"operationId": "it", "requestBody": body, "responses": {}});
    imported(
        &document(&json!({"/a": {method: operation}})),
        &ImportOptions::new(),
    )
}

fn content(media: &str, schema: &Value) -> Value {
    json!({media: {"schema": schema}})
}

fn pet() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "tag": {"type": "string", "nullable": true}, "id": {"type": "integer", "readOnly": true}}})
}

#[tokio::test]
async fn members_of_a_plain_object_are_arguments() {
    let api = with_body(
        "post",
        &json!({"required": true, "content": content("application/json", &pet())}),
    );
    let schema = schema_of(&api, "it");
    assert_eq!(schema["required"], json!(["name"]));
    assert_eq!(
        schema["properties"],
        json!({"name": {"type": "string"}, "tag": {"type": ["string", "null"]}})
    );
    let request = request_of(&api, "it", &json!({"name": "Rex", "tag": null}))
        .await
        .unwrap();
    assert_eq!(request["method"], "POST");
    assert_eq!(request["body"], r#"{"name":"Rex","tag":null}"#);
    assert_eq!(header(&request, "content-type"), Some("application/json"));
}

#[tokio::test]
async fn any_other_body_is_one_argument() {
    for (schema, body, sent) in [
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!([1, 2]),
            "[1,2]",
        ),
        (json!({"allOf": [pet()]}), json!({"name": "x"}), r#"{"name":"x"}"#),
        (json!({"type": "string"}), json!("x"), r#""x""#),
        (json!({}), json!(5), "5"),
        (
            json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            json!({}),
            "{}",
        ),
    ] {
        let api = with_body(
            "put",
            &json!({"required": true, "content": content("application/json", &schema)}),
        );
        let request = request_of(&api, "it", &json!({"body": body})).await.unwrap();
        assert_eq!(request["body"], sent, "{schema}");
        assert_eq!(schema_of(&api, "it")["required"], json!(["body"]), "{schema}");
    }
}

#[tokio::test]
async fn an_optional_body_is_sent_or_not() {
    let optional = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let api = with_body(
        "post",
        &json!({"content": content("application/json", &optional)}),
    );
    assert!(schema_of(&api, "it").get("required").is_none());
    let request = request_of(&api, "it", &json!({})).await.unwrap();
    assert_eq!(request["body"], Value::Null);
    let request = request_of(&api, "it", &json!({"n": 1})).await.unwrap();
    assert_eq!(request["body"], r#"{"n":1}"#);
}

#[tokio::test]
async fn forms_texts_and_types_of_json_are_sent_as_such() {
    let form = json!({"required": true, "content": content("application/x-www-form-urlencoded",
        &json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}}}))});
    let api = with_body("post", &form);
    let request = request_of(&api, "it", &json!({"a": "x y&z", "l": ["1", "2"]}))
        .await
        .unwrap();
    assert_eq!(request["body"], "a=x%20y%26z&l=1&l=2");
    assert_eq!(
        header(&request, "content-type"),
        Some("application/x-www-form-urlencoded")
    );
    // The encoder of the URL standard reads the same pairs.
    let body = request["body"].as_str().unwrap();
    let pairs: Vec<_> = url::form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(pairs, [pair("a", "x y&z"), pair("l", "1"), pair("l", "2")]);

    let api = with_body(
        "post",
        &json!({"required": true, "content": content("text/plain", &json!({"type": "string"}))}),
    );
    let request = request_of(&api, "it", &json!({"body": "{plain}"})).await.unwrap();
    assert_eq!(request["body"], "{plain}");
    assert_eq!(header(&request, "content-type"), Some("text/plain"));

    let api = with_body(
        "patch",
        &json!({"required": true, "content": content("application/merge-patch+json", &pet())}),
    );
    let request = request_of(&api, "it", &json!({"name": "x"})).await.unwrap();
    assert_eq!(
        header(&request, "content-type"),
        Some("application/merge-patch+json")
    );
    assert_eq!(request["body"], r#"{"name":"x"}"#);

    let api = with_body(
        "delete",
        &json!({"required": true, "content": content("application/json", &pet())}),
    );
    let request = request_of(&api, "it", &json!({"body": {"name": "x"}}))
        .await
        .unwrap();
    assert_eq!(
        (&request["method"], &request["body"]),
        (&json!("DELETE"), &json!(r#"{"name":"x"}"#))
    );
}

#[test]
fn json_is_preferred_and_an_unknown_type_is_a_reason() {
    let both = json!({"multipart/form-data": {"schema": pet()}, "application/json": {"schema": pet()}});
    let api = with_body("post", &json!({"required": true, "content": both}));
    assert_eq!(api.tools.len(), 1);
    let file = content("multipart/form-data", &json!({"type": "object"}));
    let api = with_body("post", &json!({"required": true, "content": file}));
    assert_eq!(
        reasons(&api)["POST /a"],
        "its body cannot be sent: it is `multipart/form-data`"
    );
    let api = with_body("post", &json!({"content": file}));
    assert_eq!(
        warnings_of(&api, "it"),
        ["the body is left out: it is `multipart/form-data`"]
    );
    let api = with_body(
        "get",
        &json!({"required": true, "content": content("application/json", &pet())}),
    );
    assert_eq!(
        reasons(&api)["GET /a"],
        "its body cannot be sent: a `GET` request has none"
    );
}

#[tokio::test]
async fn a_parameter_gives_way_to_a_member_of_the_body() {
    let operation = json!({"operationId": "it", "responses": {},
        "parameters": [
            {"name": "name", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "name", "in": "query", "schema": {"type": "string"}}],
        "requestBody": {"required": true, "content": content("application/json", &pet())}});
    let api = imported(
        &document(&json!({"/a/{name}": {"put": operation}})),
        &ImportOptions::new(),
    );
    let arguments = json!({"name": "body", "name_path": "path", "name_query": "query"});
    let request = request_of(&api, "it", &arguments).await.unwrap();
    assert_eq!(request["url"], "https://api.example.com/v1/a/path?name=query");
    assert_eq!(request["body"], r#"{"name":"body"}"#);
}

#[tokio::test]
async fn bodies_of_swagger() {
    let operation = |parameters: Value, consumes: Value| json!({"operationId": "it", "parameters": parameters, "consumes": consumes, "responses": {}});
    let import = |operation: Value| {
        let document = json!({"swagger": "2.0", "info": {"title": "T", "version": "1"}, "host": "api.example.com",
            "paths": {"/a": {"post": operation}}, "definitions": {"Pet": pet()}});
        imported(&document, &ImportOptions::new())
    };
    let body =
        json!([{"name": "pet", "in": "body", "required": true, "schema": {"$ref": "#/definitions/Pet"}}]);
    let api = import(operation(body, json!(["application/json", "application/xml"])));
    let request = request_of(&api, "it", &json!({"name": "x"})).await.unwrap();
    assert_eq!(request["body"], r#"{"name":"x"}"#);
    let form = json!([
        {"name": "a", "in": "formData", "type": "string", "required": true},
        {"name": "n", "in": "formData", "type": "integer"},
    ]);
    let api = import(operation(form.clone(), json!([])));
    let request = request_of(&api, "it", &json!({"a": "x", "n": 1})).await.unwrap();
    assert_eq!(request["body"], "a=x&n=1");
    let mut file = form;
    file[1] = json!({"name": "f", "in": "formData", "type": "file"});
    let api = import(operation(file, json!(["multipart/form-data"])));
    assert_eq!(
        reasons(&api)["POST /a"],
        "its body cannot be sent: it is `multipart/form-data`"
    );
}
