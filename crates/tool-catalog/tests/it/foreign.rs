//! Foreign input never panics, and no text of a `server.json` becomes a reference.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tool_catalog::{Bundle, BundleContent, CatalogIndex, CatalogKey, CatalogNeeds};
use tool_core::{
    RawJson,
    serde_json::{Value, json},
};

/// JSON with the keys of the formats, and any values.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z0-9/@.:$\\{\\}_ -]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "npm",
            "pypi",
            "oci",
            "stdio",
            "sse",
            "streamable-http",
            "named",
            "positional",
            "1.0.0",
            "tool"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = prop::sample::select(vec![
            "catalogVersion",
            "entries",
            "kind",
            "name",
            "version",
            "bundle",
            "digest",
            "bundleVersion",
            "manifest",
            "settings",
            "files",
            "text",
            "base64",
            "packages",
            "remotes",
            "registryType",
            "identifier",
            "transport",
            "type",
            "url",
            "headers",
            "variables",
            "value",
            "default",
            "isRequired",
            "isSecret",
            "packageArguments",
            "runtimeArguments",
            "environmentVariables",
            "server",
            "description",
            "needs",
            "secrets",
            "signature",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..8).prop_map(Value::from_iter),
        ]
    })
}

fn read_all(bytes: &[u8]) {
    let _ = CatalogIndex::parse("index.json", bytes);
    if let Ok(bundle) = Bundle::parse("a.json", bytes) {
        let _ = bundle.to_text();
        let _ = bundle.check(&bundle.entry());
        if let BundleContent::McpServer(server) = &bundle.content {
            let _ = server.choices();
            let _ = server.plan(None, &BTreeMap::new());
            let _ = server.plan(Some("1"), &BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = text.parse::<CatalogKey>();
        }
    }

    #[test]
    fn no_document_panics(document in document()) {
        read_all(document.to_string().as_bytes());
        let _ = CatalogNeeds::of_settings(&RawJson::from(document));
    }

    /// Whatever a document says, the settings refer only to what it asks for.
    #[test]
    fn no_foreign_text_becomes_a_reference(
        value in "[a-z${}:/]{0,20}",
        default in "[a-z${}:/]{0,20}",
        name in "[A-Z_]{1,8}",
        argument in "[a-z${}:/]{0,20}",
    ) {
        let document = json!({
            "name": "a/b", "description": value, "version": "1.0.0",
            "packages": [{
                "registryType": "npm", "identifier": "b", "version": "1.0.0", "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": argument, "variables": {"x": {"default": default}}}],
                "environmentVariables": [
                    {"name": name, "value": value},
                    {"name": "LAST", "default": default},
                ],
            }],
        });
        let bundle = Bundle::parse("server.json", document.to_string().as_bytes()).unwrap();
        let BundleContent::McpServer(server) = bundle.content else {
            return Err(TestCaseError::fail("it is a server"));
        };
        let plan = server.plan(None, &BTreeMap::new()).unwrap();
        let needs = CatalogNeeds::of_settings(&plan.settings).unwrap();
        prop_assert!(needs.secrets.is_empty(), "{}", plan.settings.as_str());
        prop_assert!(plan.asked.is_empty());
    }
}
