use serde_json::json;

use super::*;

const JSON: Slot<'static> = Slot {
    format: Format::Json,
    section: &["mcpServers"],
    name: "toolplane",
};
const TOML: Slot<'static> = Slot {
    format: Format::Toml,
    section: &["mcp_servers"],
    name: "toolplane",
};
const GOOSE: Slot<'static> = Slot {
    format: Format::YamlMap,
    section: &["extensions"],
    name: "toolplane",
};
const CONTINUE: Slot<'static> = Slot {
    format: Format::YamlList,
    section: &["mcpServers"],
    name: "toolplane",
};

fn entry() -> Value {
    json!({"command": "/opt/tool plane", "args": ["--config", "C:\\a \"b\".yaml", "serve"]})
}

/// Inserts and removes the entry, and compares with the text before.
#[track_caller]
fn returns(text: &str, slot: Slot<'_>, entry: &Value) -> String {
    let edited = insert(text, slot, entry).unwrap_or_else(|error| panic!("{error}: {text:?}"));
    let root = read(&edited, slot.format).unwrap();
    assert_eq!(find(&root, slot), Some(entry), "{edited}");
    assert_eq!(remove(&edited, slot).unwrap(), text, "{edited:?}");
    edited
}

#[test]
fn json_gets_one_entry_and_loses_it_again() {
    for text in [
        "{\n  \"mcpServers\": {\n    \"time\": {\"command\": \"uvx\"}\n  }\n}\n",
        // Comments, a trailing comma, tabs, and no line break at the end.
        "// mine\n{\n\t\"mcpServers\": {\n\t\t\"time\": {\"command\": \"uvx\"}, // the clock\n\t\t/* last */\n\t},\n\t\"x\": [1, 2,],\n}",
        "{\r\n    \"theme\": \"dark\",\r\n    \"mcpServers\": {\r\n        \"a\": {},\r\n        \"b\": {\"url\": \"http://h/\"} // b\r\n    }\r\n}\r\n",
        r#"{"mcpServers":{"a":{"command":"x"}},"n":1e3,"big":12345678901234567890}"#,
        r#"{"mcpServers":{"a":{"command":"x"},},}"#,
        "{\"mcpServers\": {}, \"x\": \"}{//\\\"\"}",
        "\u{feff}{\n  \"mcpServers\": {\n    \"a\": {\"args\": [\"/*\", \"//\"]}\n\n  }\n}\n",
    ] {
        returns(text, JSON, &entry());
    }
}

#[test]
fn json_keeps_its_style() {
    let tabs = returns(
        "{\n\t\"mcpServers\": {\n\t\t\"a\": {} // a\n\t}\n}",
        JSON,
        &json!({"url": "u"}),
    );
    assert_eq!(
        tabs,
        "{\n\t\"mcpServers\": {\n\t\t\"a\": {}, // a\n\t\t\"toolplane\": {\n\t\t\t\"url\": \"u\"\n\t\t}\n\t}\n}"
    );
    let one_line = returns(r#"{"mcpServers":{"a":{}}}"#, JSON, &json!({"url": "u"}));
    assert_eq!(one_line, r#"{"mcpServers":{"a":{}, "toolplane": {"url":"u"}}}"#);
}

#[test]
fn an_absent_section_is_added() {
    let expected = "{\n  \"mcpServers\": {\n    \"toolplane\": {\n      \"url\": \"u\"\n    }\n  }\n}";
    for (text, end) in [("", "\n"), ("{}", ""), ("{}\n", "\n")] {
        assert_eq!(
            insert(text, JSON, &json!({"url": "u"})).unwrap(),
            format!("{expected}{end}"),
            "{text:?}"
        );
    }
    let nested = Slot {
        section: &["mcp", "servers"],
        ..JSON
    };
    let edited = insert("{\n  \"mcp\": {}\n}", nested, &json!({"url": "u"})).unwrap();
    assert_eq!(
        read(&edited, Format::Json).unwrap(),
        json!({"mcp": {"servers": {"toolplane": {"url": "u"}}}})
    );
    let commented = insert("// settings\n", JSON, &json!({"url": "u"})).unwrap();
    assert!(commented.starts_with("// settings\n"), "{commented}");
}

#[test]
fn entries_are_removed_from_every_position() {
    for text in [
        "{\n  \"mcpServers\": {\n    \"toolplane\": {},\n    // b\n    \"b\": {}\n  }\n}",
        "{\"mcpServers\": {\"a\": {}, \"toolplane\": {}, \"b\": {}}}",
        "{\"mcpServers\": {\"toolplane\": {} /* c */ , \"b\": {}}}",
        "{\"mcpServers\": {\"a\": {} // a\n, \"toolplane\": {}}}",
        "{\"mcpServers\": {\"toolplane\": {},}}",
    ] {
        let removed = remove(text, JSON).unwrap();
        assert!(!removed.contains("toolplane"), "{removed}");
        for comment in ["// b", "// a"] {
            assert_eq!(text.contains(comment), removed.contains(comment), "{removed}");
        }
    }
}

#[test]
fn files_that_cannot_be_changed_safely_are_refused() {
    for (text, reason) in [
        ("{\"mcpServers\": []}", "`mcpServers` is not an object"),
        ("[]", "its content is not an object"),
        (
            "{\"mcpServers\": {\"toolplane\": 1}}",
            "it has an entry `toolplane`",
        ),
        (
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "it has the key `mcpServers` twice",
        ),
    ] {
        assert_eq!(insert(text, JSON, &entry()).unwrap_err().to_string(), reason);
    }
    for text in [
        "{",
        "{'a': 1}",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": 1} x",
        "{\"a\": \"\n\"}",
    ] {
        let error = insert(text, JSON, &entry()).unwrap_err().to_string();
        assert!(error.starts_with("it is not valid JSON"), "{error}");
    }
    assert_eq!(
        remove("{}", JSON).unwrap_err().to_string(),
        "it has no entry `toolplane`"
    );
    for text in [
        "mcp_servers = {a = {command = \"x\"}}\n",
        "mcp_servers = 1\n",
        "a = \n",
    ] {
        insert(text, TOML, &entry()).unwrap_err();
    }
    for text in [
        "extensions: {a: {type: stdio}}\n",
        "extensions: &a\n  b: 1\n",
        "- a\n",
        "a: 1\n---\nb: 2\n",
        "a: [\n",
    ] {
        insert(text, GOOSE, &entry()).unwrap_err();
    }
}

#[test]
fn toml_gets_a_table_and_loses_it_again() {
    for text in [
        "",
        "model = \"o\" # mine\n\n[mcp_servers.time]\ncommand = \"uvx\"\nargs = [\n  \"a\", # b\n]\n",
        "a = 1\r\n[mcp_servers.x]\r\ncommand = 'y'\r\n[mcp_servers.x.env]\r\nK = \"v\"\r\n",
        "a = 1",
        "a = \"\"\"\n[mcp_servers.toolplane]\n\"\"\"\n# end\n",
        "# nothing\n\n",
    ] {
        returns(text, TOML, &entry());
    }
    assert_eq!(
        insert(
            "a = 1\n",
            TOML,
            &json!({"command": "/t", "args": ["serve"], "enabled": true})
        )
        .unwrap(),
        "a = 1\n\n[mcp_servers.toolplane]\ncommand = \"/t\"\nargs = [\"serve\"]\nenabled = true\n"
    );
}

#[test]
fn a_toml_table_goes_with_the_tables_in_it() {
    let text = "a = 1\n\n[mcp_servers.toolplane] # ours\ncommand = \"t\"\n[mcp_servers.toolplane.env]\nA = \"b\" # c\n\n# next\n[z]\nb = 2\n";
    assert_eq!(remove(text, TOML).unwrap(), "a = 1\n\n# next\n[z]\nb = 2\n");
}

#[test]
fn yaml_maps_and_lists_get_an_entry_and_lose_it_again() {
    for text in [
        "GOOSE_MODEL: x # mine\nextensions:\n  developer:\n    enabled: true\n    # last\n\n# next\nother: [1]\n",
        "extensions:\r\n    a:\r\n        type: builtin\r\n",
        "extensions:\n  a: {type: builtin}",
        "extensions:\n  a:\n    text: |\n      toolplane:\n\n      b\nz: 1\n",
    ] {
        returns(text, GOOSE, &entry());
    }
    let named = json!({"name": "toolplane", "command": "/t", "args": ["serve"]});
    for text in [
        "name: n\nmcpServers:\n  - name: a\n    command: x\n    # c\nmodels: []\n",
        "name: n\nmcpServers:\n- command: x\n  name: a\n-\n  name: b\n  command: y\n",
    ] {
        returns(text, CONTINUE, &named);
    }
}

#[test]
fn yaml_sections_are_opened_and_closed() {
    let opened = insert("a: 1\nextensions: {} # none\nb: 2\n", GOOSE, &json!({"cmd": "t"})).unwrap();
    assert_eq!(
        opened,
        "a: 1\nextensions: # none\n  toolplane:\n    cmd: t\nb: 2\n"
    );
    let added = insert("# c\na: 1\n", GOOSE, &json!({"cmd": "t"})).unwrap();
    assert_eq!(added, "# c\na: 1\nextensions:\n  toolplane:\n    cmd: t\n");
    assert_eq!(remove(&added, GOOSE).unwrap(), "# c\na: 1\nextensions: {}\n");
    let list = "mcpServers:\n  - command: t\n    name: toolplane\n  # b\n  - name: b\n";
    assert_eq!(
        remove(list, CONTINUE).unwrap(),
        "mcpServers:\n  # b\n  - name: b\n"
    );
}

proptest::proptest! {
    /// An edit never changes anything but the entry, and never panics.
    #[test]
    fn any_text_is_edited_exactly_or_refused(text in r#"[{}\[\],:"'/*\\\n\r\t a-c#=\-]{0,30}|\{("[a-c]":(1|\{\}|"//"),?(/\*x\*/|//y\n|\r?\n)?){0,4}("mcpServers": ?\{("[a-c]": ?1,? ?\n?){0,3}\})?,?\}"#) {
        for slot in [JSON, TOML, GOOSE, CONTINUE] {
            let entry = json!({"name": "toolplane", "command": "t"});
            if let Ok(edited) = insert(&text, slot, &entry) {
                let (before, after) = (read(&text, slot.format).unwrap(), read(&edited, slot.format).unwrap());
                proptest::prop_assert_eq!(find(&after, slot), Some(&entry));
                let after = value::without_entry(after, slot).unwrap();
                proptest::prop_assert_eq!(
                    value::without_empty(before.clone(), slot.section),
                    value::without_empty(after, slot.section)
                );
                if let Ok(removed) = remove(&edited, slot) {
                    let removed = read(&removed, slot.format).unwrap();
                    proptest::prop_assert_eq!(
                        value::without_empty(before, slot.section),
                        value::without_empty(removed, slot.section)
                    );
                }
            }
            let _ = remove(&text, slot);
        }
    }
}
