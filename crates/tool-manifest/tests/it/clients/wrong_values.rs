//! Wrong values at random places.

use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};
use toolplane::manifest::{LoadOptions, ServerTransport, Syntax, load};

/// Files of the clients, as JSON, with the keys below which their servers stand.
fn samples() -> Vec<(&'static str, &'static str, Value)> {
    let server = json!({
        "command": "x", "args": ["a", "${workspaceFolder}"], "env": {"A": "$B", "C": null}, "url": null, "headers": {"H": "v"},
        "cwd": ".", "envFile": ".env", "tools": ["t"], "excludeTools": ["u"], "disabled": false, "enabled": true, "timeout": 30,
        "type": "stdio", "sandboxEnabled": false, "oauth": false, "httpUrl": null
    });
    let opencode = json!({
        "type": "local", "command": ["x", "{env:A}"], "environment": {"B": "c"}, "enabled": true, "timeout": 5, "oauth": false
    });
    let zed = json!({"command": {"path": "x", "args": [], "env": {}}, "enabled": true, "timeout": 1, "source": "custom"});
    let continue_dev =
        json!({"name": "s", "command": "x", "requestOptions": {"headers": {"A": "b"}}, "apiKey": "k"});
    let rules = json!({"tools": {"s_*": false}, "permission": {"*": "ask", "s_a": {"x": "deny"}}, "mcp": {"s": opencode}});
    let gemini = json!({"mcp": {"allowed": ["s"], "excluded": []}, "tools": {"exclude": ["t"]}, "mcpServers": {"s": server}});
    let agent = json!({"default_profile": "p", "profiles": {"p": {"context_servers": {"s": {"tools": {"t": true}}}}},
        "tool_permissions": {"default": "deny", "tools": {"mcp:s:t": {"default": "allow", "always_deny": []}}}});
    vec![
        (
            "mcp.json",
            "mcpServers",
            json!({"mcpServers": {"s": server}, "inputs": [], "sandbox": {}}),
        ),
        (
            ".vscode/mcp.json",
            "servers",
            json!({"servers": {"s": server}, "inputs": [{"id": "i", "default": "d"}]}),
        ),
        (".gemini/settings.json", "mcpServers", gemini),
        ("opencode.json", "mcp", rules),
        (
            "zed.json",
            "context_servers",
            json!({"context_servers": {"s": zed}, "agent": agent}),
        ),
        (
            "continue.json",
            "mcpServers",
            json!({"mcpServers": [continue_dev]}),
        ),
    ]
}

/// Returns the pointers to all values below a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        pointers(value, &pointer, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| below(&index.to_string(), value)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(26),
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    })]

    /// A wrong value anywhere in a file leaves the file usable: another server of it is there.
    #[test]
    fn a_wrong_value_concerns_its_server_alone(
        sample in 0..6_usize,
        place in any::<prop::sample::Index>(),
        wrong in prop_oneof![
            Just(json!(null)), Just(json!(true)), Just(json!(-1)), Just(json!("")), Just(json!("${input:x}")),
            Just(json!("a\u{0}${")), Just(json!([[]])), Just(json!({"a": {"b": []}})), Just(json!(1e300)),
        ],
    ) {
        let (path, key, mut file) = samples().swap_remove(sample);
        let mut all = Vec::new();
        pointers(&file, "", &mut all);
        all.retain(|pointer| *pointer != format!("/{key}"));
        let pointer = &all[place.index(all.len())];
        *file.pointer_mut(pointer).unwrap() = wrong;
        match &mut file[key] {
            Value::Array(items) => items.push(json!({"name": "good", "command": "y"})),
            servers => servers["good"] = match path {
                "opencode.json" => json!({"type": "local", "command": ["y"]}),
                _ => json!({"command": "y"}),
            },
        }
        let options = LoadOptions::new().text(path, Syntax::Json, file.to_string());
        let loaded = load(&options).map_err(|problems| TestCaseError::fail(format!("{pointer}: {}", problems.render(false))))?;
        let good = loaded.configuration.servers.iter().find(|server| server.name == "good");
        let is_usable = good.is_some_and(|server| matches!(server.transport, ServerTransport::Stdio { .. }));
        prop_assert!(is_usable, "{pointer}: {file}");
    }
}
