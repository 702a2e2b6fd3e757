//! Parameters: their styles, compared with URI templates (RFC 6570), which define them.

use iri_string::{
    spec::UriSpec,
    template::{
        UriTemplateStr,
        simple_context::{SimpleContext, Value as TemplateValue},
    },
};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tool_openapi::{ImportOptions, ImportedApi};

use crate::support::{document, header, imported, reasons, request_of, schema_of, target_of, warnings_of};

/// Imports one operation with these parameters.
fn with_parameters(path: &str, parameters: &Value) -> ImportedApi {
    let operation = json!({"operationId": "it", "parameters": parameters, "responses": {}});
    imported(
        &document(&json!({path: {"get": operation}})),
        &ImportOptions::new(),
    )
}

fn string_list() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

#[tokio::test]
async fn each_style_that_can_be_sent_is_sent() {
    let cases = [
        (
            "/a/{x}",
            json!([{"name": "x", "in": "path", "required": true, "schema": {"type": "string"}}]),
            json!({"x": "b/c d"}),
            "/a/b%2Fc%20d",
        ),
        (
            "/a/{x}",
            json!([{"name": "x", "in": "path", "style": "label", "schema": {"type": "integer"}}]),
            json!({"x": 5}),
            "/a/.5",
        ),
        (
            "/a/{x}",
            json!([{"name": "x", "in": "path", "style": "matrix", "schema": {"type": "string"}}]),
            json!({"x": "é"}),
            "/a/;x=%C3%A9",
        ),
        (
            "/a/{x.y}/$count",
            json!([{"name": "x.y", "in": "path", "schema": {}}]),
            json!({"x_y": true}),
            "/a/true/$count",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "schema": string_list()}]),
            json!({"q": ["1", "&"]}),
            "/a?q=1&q=%26",
        ),
        (
            "/a",
            json!([{"name": "q[]", "in": "query", "schema": string_list()}]),
            json!({"q": ["1", "2"]}),
            "/a?q%5B%5D=1&q%5B%5D=2",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "explode": false, "schema": string_list()}]),
            json!({"q": ["1", "a,b"]}),
            "/a?q=1,a%2Cb",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "style": "spaceDelimited", "schema": string_list()}]),
            json!({"q": ["1", "2"]}),
            "/a?q=1%202",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "style": "pipeDelimited", "schema": string_list()}]),
            json!({"q": ["1", "2"]}),
            "/a?q=1%7C2",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "style": "pipeDelimited", "explode": true, "schema": string_list()}]),
            json!({"q": ["1", "2"]}),
            "/a?q=1&q=2",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "schema": {"type": "boolean"}}]),
            json!({"q": false}),
            "/a?q=false",
        ),
        (
            "/a",
            json!([{"name": "q", "in": "query", "schema": {"type": "boolean"}}]),
            json!({}),
            "/a",
        ),
        (
            "/a",
            json!([{"name": "f", "in": "query", "style": "deepObject",
                "schema": {"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}}]),
            json!({"f_s": "x", "f_n": 2}),
            "/a?f%5Bn%5D=2&f%5Bs%5D=x",
        ),
        (
            "/a",
            json!([{"name": "f", "in": "query", "schema": {"type": "object", "properties": {"s": {"type": "string"}}}}]),
            json!({"s": "x"}),
            "/a?s=x",
        ),
        (
            "/a",
            json!([{"name": "f", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}]),
            json!({"f": {"a": [1]}}),
            "/a?f=%7B%22a%22%3A%5B1%5D%7D",
        ),
    ];
    for (path, parameters, arguments, expected) in cases {
        let api = with_parameters(path, &parameters);
        let target = target_of(&api, "it", &arguments).await;
        assert_eq!(ordered(&target), ordered(expected), "{parameters}");
    }
}

/// Target with its query parameters in the order of their texts: a program decides whether maps keep their order.
fn ordered(target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut parameters: Vec<&str> = query.split('&').collect();
    parameters.sort_unstable();
    format!("{path}?{}", parameters.join("&"))
}

#[tokio::test]
async fn headers_and_cookies_are_sent() {
    let parameters = json!([
        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        {"name": "session", "in": "cookie", "required": true, "schema": {"type": "string"}},
        {"name": "region", "in": "cookie", "required": true, "schema": {"type": "string"}},
        {"name": "theme", "in": "cookie", "schema": {"type": "string"}},
        {"name": "Accept", "in": "header", "required": true, "schema": {"type": "string"}},
    ]);
    let api = with_parameters("/a", &parameters);
    let request = request_of(
        &api,
        "it",
        &json!({"X-Trace": "1", "session": "s", "region": "eu"}),
    )
    .await
    .unwrap();
    assert_eq!(header(&request, "x-trace"), Some("1"));
    let tool = &api.tools[0].descriptor;
    assert_eq!(
        tool.executor.config["headers"]["Cookie"],
        "session={session}; region={region}"
    );
    let warnings = warnings_of(&api, "it");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("`theme` is left out"), "{warnings:?}");
    assert!(warnings[1].contains("`Accept` is left out"), "{warnings:?}");
}

#[test]
fn a_parameter_that_cannot_be_sent_is_left_out_or_ends_the_tool() {
    let object = json!({"type": "object"});
    for (parameter, reason) in [
        (
            json!({"name": "x", "in": "query", "schema": {"type": "array", "items": object}}),
            "a list of objects or lists",
        ),
        (
            json!({"name": "x", "in": "query", "style": "deepObject", "schema": object}),
            "whose members are not known",
        ),
        (
            json!({"name": "x", "in": "header", "schema": string_list()}),
            "only single values can be sent there",
        ),
        (
            json!({"name": "Host", "in": "header", "schema": {"type": "string"}}),
            "only an HTTP client sets this header",
        ),
        (
            json!({"name": "x", "in": "cookie", "schema": object}),
            "only single values can be sent there",
        ),
        (
            json!({"name": "x", "in": "query", "content": {"application/xml": {}}}),
            "`application/xml`",
        ),
        (
            json!({"name": "x", "in": "querystring", "content": {}}),
            "`querystring`, which is not supported",
        ),
    ] {
        let api = with_parameters("/a", &json!([parameter]));
        let warnings = warnings_of(&api, "it");
        assert!(
            warnings.iter().any(|warning| warning.contains(reason)),
            "{parameter}: {warnings:?}"
        );
        assert_eq!(schema_of(&api, "it")["properties"], json!({}), "{parameter}");
        let mut required = parameter.clone();
        required["required"] = json!(true);
        let api = with_parameters("/a", &json!([required]));
        let said = &reasons(&api)["GET /a"];
        assert!(said.contains(reason), "{parameter}: {said}");
    }
    let path = with_parameters(
        "/a/{x}",
        &json!([{"name": "x", "in": "path", "schema": string_list()}]),
    );
    assert!(reasons(&path)["GET /a/{x}"].starts_with("the required path parameter `x` cannot be sent"));
}

#[test]
fn values_that_cannot_be_sent_are_excluded_by_the_schema() {
    let parameters = json!([
        {"name": "any", "in": "query", "schema": {}},
        {"name": "either", "in": "query", "schema": {"oneOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {"type": "string"}}]}},
        {"name": "id", "in": "path", "schema": {"type": ["integer", "null", "array"]}},
    ]);
    let api = with_parameters("/a/{id}", &parameters);
    let schema = schema_of(&api, "it");
    let compiled = tool_schema::Schema::compile_value(&schema).unwrap();
    for (arguments, fits) in [
        (json!({"id": 1}), true),
        (json!({"id": null}), false),
        (json!({"id": [1]}), false),
        (json!({"id": 1, "any": "x"}), true),
        (json!({"id": 1, "any": ["x", 1]}), true),
        (json!({"id": 1, "any": [{}]}), false),
        (json!({"id": 1, "any": {}}), false),
        (json!({"id": 1, "either": "x"}), true),
        (json!({"id": 1, "either": ["x"]}), true),
        (json!({"id": 1, "either": {}}), false),
        (json!({"id": 1, "unknown": 1}), false),
        (json!({}), false),
    ] {
        assert_eq!(compiled.check(&arguments).is_ok(), fits, "{arguments} {schema}");
    }
}

#[tokio::test]
async fn parameters_of_swagger_are_sent_by_their_collection_format() {
    let parameters = json!([
        {"name": "multi", "in": "query", "type": "array", "collectionFormat": "multi", "items": {"type": "string"}},
        {"name": "csv", "in": "query", "type": "array", "items": {"type": "string"}},
        {"name": "n", "in": "query", "type": "integer", "minimum": 1, "exclusiveMinimum": true},
        {"name": "id", "in": "path", "type": "string", "required": true},
    ]);
    let operation = json!({"operationId": "it", "parameters": parameters, "responses": {}});
    let document = json!({"swagger": "2.0", "info": {"title": "T", "version": "1"}, "host": "api.example.com",
        "basePath": "/v1", "paths": {"/a/{id}": {"get": operation}}});
    let api = imported(&document, &ImportOptions::new());
    let target = target_of(
        &api,
        "it",
        &json!({"multi": ["a", "b"], "csv": ["c", "d"], "n": 2, "id": "x"}),
    )
    .await;
    assert_eq!(ordered(&target), "/a/x?csv=c,d&multi=a&multi=b&n=2");
    assert_eq!(
        schema_of(&api, "it")["properties"]["n"],
        json!({"type": "integer", "exclusiveMinimum": 1})
    );
}

/// A parameter by the RFC that defines its style.
#[derive(Debug, Clone)]
enum Sent {
    Text(String),
    List(Vec<String>),
}

fn expanded(template: &str, value: &Sent) -> String {
    let mut context = SimpleContext::new();
    match value {
        Sent::Text(text) => context.insert("x", text.as_str()),
        Sent::List(list) => context.insert("x", TemplateValue::List(list.clone())),
    };
    let template = UriTemplateStr::new(template).unwrap();
    template.expand::<UriSpec, _>(&context).unwrap().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(22), cases: 128, ..ProptestConfig::default() })]

    /// OpenAPI defines the styles by templates of RFC 6570: `form` is `{?x*}`, and `{?x}` without `explode`, `simple` is `{x}`, `label` is `{.x}`.
    #[test]
    fn requests_equal_the_expansion_of_uri_templates(
        text in any::<String>(),
        list in prop::collection::vec(any::<String>(), 0..4),
        form in 0..5_usize,
    ) {
        let (path, template, place, style, value) = match form {
            0 => ("/a", "/a{?x}", "query", "form", Sent::Text(text)),
            1 => ("/a", "/a{?x*}", "query", "form", Sent::List(list)),
            4 => ("/a", "/a{?x}", "query", "form", Sent::List(list)),
            2 => ("/a/{x}", "/a/{x}", "path", "simple", Sent::Text(text)),
            _ => ("/a/{x}", "/a/{.x}", "path", "label", Sent::Text(text)),
        };
        let argument = match &value {
            Sent::Text(text) => json!(text),
            Sent::List(list) => json!(list),
        };
        let schema = if argument.is_array() { string_list() } else { json!({"type": "string"}) };
        let parameter = json!({"name": "x", "in": place, "style": style, "required": true, "schema": schema, "explode": form == 1});
        let api = with_parameters(path, &json!([parameter]));
        let runtime = Builder::new_current_thread().build().unwrap();
        let request = runtime.block_on(request_of(&api, "it", &json!({"x": argument})));
        let expected = expanded(template, &value);
        // An empty or dotted segment would be another path.
        let is_refused = place == "path" && matches!(expected.rsplit('/').next(), Some("" | "." | ".."));
        prop_assert_eq!(request.is_err(), is_refused, "{:?}", request);
        if let Ok(request) = request {
            prop_assert_eq!(&request["url"], &json!(format!("https://api.example.com/v1{expected}")));
        }
    }
}
