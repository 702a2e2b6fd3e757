//! Security schemes as references to secrets.

use serde_json::{Value, json};
use tool_openapi::{ImportOptions, ImportedApi, import};

use crate::support::{document, imported, reasons, warnings_of};

fn with_security(schemes: &Value, security: &Value, options: &ImportOptions) -> ImportedApi {
    let operation = json!({"operationId": "it", "security": security, "responses": {}});
    let mut document = document(&json!({"/a": {"get": operation}}));
    document["components"] = json!({"securitySchemes": schemes});
    imported(&document, options)
}

#[test]
fn each_scheme_is_a_reference_to_a_secret() {
    for (scheme, config) in [
        (
            json!({"type": "http", "scheme": "Bearer"}),
            json!({"headers": {"Authorization": "Bearer ${secret:my_key}"}}),
        ),
        (
            json!({"type": "http", "scheme": "basic"}),
            json!({"headers": {"Authorization": "Basic ${secret:my_key}"}}),
        ),
        (
            json!({"type": "oauth2", "flows": {}}),
            json!({"headers": {"Authorization": "Bearer ${secret:my_key}"}}),
        ),
        (
            json!({"type": "apiKey", "in": "header", "name": "X-Key"}),
            json!({"headers": {"X-Key": "${secret:my_key}"}}),
        ),
        (
            json!({"type": "apiKey", "in": "query", "name": "key"}),
            json!({"query": {"key": "${secret:my_key}"}}),
        ),
        (
            json!({"type": "apiKey", "in": "cookie", "name": "sid"}),
            json!({"headers": {"Cookie": "sid=${secret:my_key}"}}),
        ),
    ] {
        let api = with_security(
            &json!({"myKey": scheme}),
            &json!([{"myKey": []}]),
            &ImportOptions::new(),
        );
        let tool = &api.tools[0].descriptor.executor.config;
        for (key, value) in config.as_object().unwrap() {
            assert_eq!(&tool[key], value, "{scheme}");
        }
        assert_eq!(
            api.configuration()["secrets"],
            json!({"my_key": "${MY_KEY}"}),
            "{scheme}"
        );
    }
}

#[test]
fn the_first_requirement_that_can_be_sent_counts() {
    let schemes = json!({
        "cert": {"type": "mutualTLS"},
        "digest": {"type": "http", "scheme": "digest"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "app": {"type": "apiKey", "in": "query", "name": "app"},
        "other": {"type": "apiKey", "in": "header", "name": "x-key"},
    });
    let import = |security: Value| with_security(&schemes, &security, &ImportOptions::new());
    let api = import(json!([{"cert": []}, {"key": [], "app": []}]));
    let config = &api.tools[0].descriptor.executor.config;
    assert_eq!(config["headers"], json!({"X-Key": "${secret:key}"}));
    assert_eq!(config["query"], json!({"app": "${secret:app}"}));
    let api = import(json!([{}, {"key": []}]));
    assert_eq!(api.tools[0].descriptor.executor.config.get("headers"), None);
    assert!(api.configuration().get("secrets").is_none());
    for (security, reason) in [
        (json!([{"cert": []}]), "uses client certificates"),
        (json!([{"digest": []}]), "uses HTTP authentication `digest`"),
        (json!([{"none": []}]), "`none` is not defined"),
        (
            json!([{"key": [], "other": []}]),
            "two security schemes set `x-key`",
        ),
    ] {
        let api = import(security);
        let said = reasons(&api)["GET /a"].to_lowercase();
        assert!(said.contains(&reason.to_lowercase()), "{said}");
    }
}

#[test]
fn a_credential_replaces_a_parameter_of_its_name() {
    let operation = json!({"operationId": "it", "security": [{"key": []}], "responses": {},
        "parameters": [{"name": "x-key", "in": "header", "schema": {"type": "string"}}]});
    let mut document = document(&json!({"/a": {"get": operation}}));
    document["components"] =
        json!({"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}});
    let api = imported(&document, &ImportOptions::new());
    assert_eq!(
        api.tools[0].descriptor.executor.config["headers"],
        json!({"X-Key": "${secret:key}"})
    );
    assert!(warnings_of(&api, "it")[0].contains("`x-key` is left out"));
}

#[test]
fn the_operator_names_the_scheme_and_the_prefix() {
    let schemes = json!({"bearerAuth": {"type": "http", "scheme": "bearer"}});
    let options = ImportOptions::new()
        .with_security("bearerAuth")
        .with_prefix("notes_");
    let api = with_security(&schemes, &json!([]), &options);
    let tool = &api.tools[0].descriptor;
    assert_eq!(&*tool.name, "notes_it");
    assert_eq!(
        tool.executor.config["headers"]["Authorization"],
        "Bearer ${secret:notes_bearer_auth}"
    );
    let unknown = ImportOptions::new().with_security("none");
    let text = document(&json!({})).to_string();
    let error = import(text.as_bytes(), &unknown).unwrap_err();
    assert_eq!(error.to_string(), "the document has no security scheme `none`");
}

#[test]
fn schemes_whose_secrets_would_have_one_name_have_two() {
    let schemes = json!({
        "apiKey": {"type": "apiKey", "in": "header", "name": "A"},
        "api_key": {"type": "apiKey", "in": "header", "name": "B"},
    });
    let api = with_security(
        &schemes,
        &json!([{"apiKey": [], "api_key": []}]),
        &ImportOptions::new(),
    );
    let headers = &api.tools[0].descriptor.executor.config["headers"];
    assert_ne!(headers["A"], headers["B"]);
    assert_eq!(api.secrets.len(), 2);
}
