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
        "extensions: *a\n",
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

#[track_caller]
fn replaced(text: &str, slot: Slot<'_>, entry: &Value) -> String {
    let edited = replace(text, slot, entry).unwrap_or_else(|error| panic!("{error}: {text:?}"));
    let root = read(&edited, slot.format).unwrap();
    assert_eq!(find(&root, slot), Some(entry), "{edited}");
    edited
}

/// Replaces the members of an entry that are given, and removes those that are null.
#[track_caller]
fn changed(text: &str, slot: Slot<'_>, members: &Value) -> String {
    let root = read(text, slot.format).unwrap();
    let mut entry = find(&root, slot).unwrap().clone();
    for (key, value) in members.as_object().unwrap() {
        let entry = entry.as_object_mut().unwrap();
        match value {
            Value::Null => drop(entry.shift_remove(key)),
            value => drop(entry.insert(key.clone(), value.clone())),
        }
    }
    replaced(text, slot, &entry)
}

/// Edit of an entry: the text before, the members that change, and the text after.
type Replacement = (&'static str, Value, &'static str);

#[track_caller]
fn all_changed(slot: Slot<'_>, replacements: &[Replacement]) {
    for (before, members, after) in replacements {
        assert_eq!(changed(before, slot, members), *after, "{before:?}");
    }
}

#[test]
fn toml_numbers_dates_and_tables_stay_when_an_entry_is_replaced() {
    let text = "# top\n[mcp_servers.toolplane] # ours\n# program\ncommand = \"old\" # c\nargs = [\n  \"a\", # first\n]\nstartup_timeout_sec = 30\nx = 1.5\nhex = 0x1E\nn = nan\nsince = 1979-05-27T07:32:00Z # day\nlist = [1, 2]\n\n[mcp_servers.toolplane.env]\nA = \"b\" # d\n\n[z]\ny = 1\n";
    let expected = text
        .replace("\"old\"", "\"/new\"")
        .replace("[\n  \"a\", # first\n]", "[\"serve\"]");
    let members = json!({"command": "/new", "args": ["serve"]});
    assert_eq!(changed(text, TOML, &members), expected);
    let url = changed(text, TOML, &json!({"command": null, "args": null, "url": "u"}));
    let expected = text
        .replace("command = \"old\" # c\nargs = [\n  \"a\", # first\n]\n", "")
        .replace("list = [1, 2]\n", "list = [1, 2]\nurl = \"u\"\n");
    assert_eq!(url, expected);
}

#[test]
fn toml_entries_are_replaced_in_every_form() {
    let url = || json!({"command": null, "url": "u"});
    all_changed(
        TOML,
        &[
            (
                "[mcp_servers]\ntoolplane = { command = \"x\", t = 3 } # c\na = { b = 1 }\n",
                url(),
                "[mcp_servers]\ntoolplane = { t = 3, url = \"u\" } # c\na = { b = 1 }\n",
            ),
            (
                "mcp_servers = {toolplane = {t = 3, command = \"x\"}, a = {}}\n",
                url(),
                "mcp_servers = {toolplane = {t = 3, url = \"u\"}, a = {}}\n",
            ),
            (
                "mcp_servers.toolplane.command = \"x\"\nmcp_servers.toolplane.env.A = \"b\"\nz = 1\n",
                url(),
                "mcp_servers.toolplane.env.A = \"b\"\nmcp_servers.toolplane.url = \"u\"\nz = 1\n",
            ),
            (
                "[mcp_servers]\r\n  toolplane.command = 'x'\r\n[z]\r\n",
                json!({"command": "y", "args": ["a"]}),
                "[mcp_servers]\r\n  toolplane.command = \"y\"\r\n  toolplane.args = [\"a\"]\r\n[z]\r\n",
            ),
            (
                "[mcp_servers.\"toolplane\"]\n\"command\" = \"x\"",
                url(),
                "[mcp_servers.\"toolplane\"]\nurl = \"u\"",
            ),
            (
                "[mcp_servers.toolplane]\nurl = \"u\"\n[mcp_servers.toolplane.command]\npath = \"x\"\n[z]\n",
                json!({"command": "y"}),
                "[mcp_servers.toolplane]\nurl = \"u\"\ncommand = \"y\"\n[z]\n",
            ),
        ],
    );
}

#[test]
fn toml_entries_are_removed_in_every_form() {
    for (before, after) in [
        (
            "[mcp_servers]\n# a\ntoolplane = {command = \"x\"} # c\nb = {}\n",
            "[mcp_servers]\n# a\nb = {}\n",
        ),
        (
            "mcp_servers = {a = {}, toolplane = {command = \"x\"}}\n",
            "mcp_servers = {a = {}}\n",
        ),
        (
            "a = 1\nmcp_servers.toolplane.command = \"x\"\nmcp_servers.toolplane.env.A = \"b\"\nz = 1\n",
            "a = 1\nz = 1\n",
        ),
    ] {
        assert_eq!(remove(before, TOML).unwrap(), after);
    }
}

#[test]
fn types_are_compared() {
    let slot = TOML;
    let expected = read("[mcp_servers.toolplane]\na = 30\n", Format::Toml).unwrap();
    for value in ["\"30\"", "\"integer: 30\"", "30.0", "1979-05-27", "[30]"] {
        let edited = format!("[mcp_servers.toolplane]\na = {value}\n");
        check(&edited, slot, &expected).unwrap_err();
    }
    let date = read("a = 1979-05-27\n", Format::Toml).unwrap();
    check("a = \"1979-05-27\"\n", slot, &date).unwrap_err();
    check("a = 1979-05-27\n", slot, &date).unwrap();
}

#[test]
fn values_of_toml_are_written_as_they_were_read() {
    let text = "a = 30\nb = 1.5\nc = 1979-05-27\nd = [1, \"x\"]\ne = { f = true, \"g h\" = inf }\n";
    let value = read(text, Format::Toml).unwrap();
    let written = insert("", TOML, &value).unwrap();
    assert_eq!(written, format!("[mcp_servers.toolplane]\n{text}"));
    let error = insert("", TOML, &json!({"a": [null]})).unwrap_err();
    assert_eq!(error.to_string(), "TOML has no null");
    let slot = Slot { name: "a.b", ..TOML };
    assert_eq!(
        insert("", slot, &json!({"u": 1})).unwrap(),
        "[mcp_servers.\"a.b\"]\nu = 1\n"
    );
}

#[test]
fn json_entries_are_replaced_in_place() {
    all_changed(
        JSON,
        &[
            (
                "{\n  \"mcpServers\": {\n    // ours\n    \"toolplane\": {\n      \"command\": \"x\", // c\n      \"args\": [\"a\"],\n      \"timeout\": 1e3 // t\n    },\n    \"b\": {}\n  }\n}\n",
                json!({"command": "y", "args": ["a", "b"]}),
                "{\n  \"mcpServers\": {\n    // ours\n    \"toolplane\": {\n      \"command\": \"y\", // c\n      \"args\": [\"a\", \"b\"],\n      \"timeout\": 1e3 // t\n    },\n    \"b\": {}\n  }\n}\n",
            ),
            (
                "{\r\n\t\"mcpServers\": {\r\n\t\t\"toolplane\": {\r\n\t\t\t\"args\": [\r\n\t\t\t\t\"a\"\r\n\t\t\t],\r\n\t\t\t\"x\": 1\r\n\t\t}\r\n\t}\r\n}",
                json!({"args": ["b", "c"]}),
                "{\r\n\t\"mcpServers\": {\r\n\t\t\"toolplane\": {\r\n\t\t\t\"args\": [\r\n\t\t\t\t\"b\",\r\n\t\t\t\t\"c\"\r\n\t\t\t],\r\n\t\t\t\"x\": 1\r\n\t\t}\r\n\t}\r\n}",
            ),
            (
                r#"{"mcpServers":{"toolplane":{"command":"x","args":[]},"b":{}}}"#,
                json!({"command": null, "args": null, "url": "u"}),
                r#"{"mcpServers":{"toolplane":{ "url": "u"},"b":{}}}"#,
            ),
            (
                "{\n  \"mcpServers\": {\n    \"toolplane\": {\n      \"url\": \"u\", // gone\n      \"env\": {} // e\n    }\n  }\n}",
                json!({"url": null, "command": "x"}),
                "{\n  \"mcpServers\": {\n    \"toolplane\": { // gone\n      \"env\": {}, // e\n      \"command\": \"x\"\n    }\n  }\n}",
            ),
        ],
    );
}

#[test]
fn null_is_an_empty_section_of_json() {
    assert_eq!(
        insert(
            "{\n  \"mcpServers\": null, // c\n  \"a\": 1\n}\n",
            JSON,
            &json!({"url": "u"})
        )
        .unwrap(),
        "{\n  \"mcpServers\": {\n    \"toolplane\": {\n      \"url\": \"u\"\n    }\n  }, // c\n  \"a\": 1\n}\n"
    );
    let nested = Slot {
        section: &["mcp", "servers"],
        ..JSON
    };
    for text in ["{\"mcp\": null}", "{\"mcp\": {\"servers\": null}}"] {
        let edited = insert(text, nested, &json!({"url": "u"})).unwrap();
        assert_eq!(
            read(&edited, Format::Json).unwrap(),
            json!({"mcp": {"servers": {"toolplane": {"url": "u"}}}})
        );
    }
}

#[test]
fn yaml_maps_are_replaced_in_place() {
    all_changed(
        GOOSE,
        &[
            (
                "extensions:\n  # ours\n  toolplane: # t\n    # program\n    cmd: x # c\n    args:\n      - a # first\n    timeout: 300 # s\n    note: |\n      # text\n\n    # end\n  b:\n    cmd: y\n",
                json!({"cmd": "t", "args": ["b"], "new": 1}),
                "extensions:\n  # ours\n  toolplane: # t\n    # program\n    cmd: t # c\n    args:\n      - b\n    timeout: 300 # s\n    note: |\n      # text\n    new: 1\n\n    # end\n  b:\n    cmd: y\n",
            ),
            (
                "extensions:\r\n    'toolplane' :\r\n        \"cmd\": 'it''s # x' # c\r\n        args: [a, \"b # c\"] # d\r\n        enabled: yes",
                json!({"cmd": "t", "args": ["a", "b: c"]}),
                "extensions:\r\n    'toolplane' :\r\n        \"cmd\": t # c\r\n        args: [\"a\", \"b: c\"] # d\r\n        enabled: yes",
            ),
            (
                "extensions:\n  a: {}\n  toolplane: {cmd: x, t: 1} # c\n  b: {}\n",
                json!({"cmd": null, "uri": "u"}),
                "extensions:\n  a: {}\n  toolplane: # c\n    t: 1\n    uri: u\n  b: {}\n",
            ),
        ],
    );
}

#[test]
fn yaml_lists_are_replaced_in_place() {
    all_changed(
        CONTINUE,
        &[
            (
                "mcpServers:\n  # ours\n  - command: x # c\n    # name\n    name: toolplane\n  - name: b\n",
                json!({"command": null, "url": "u"}),
                "mcpServers:\n  # ours\n    # name\n  - name: toolplane\n    url: u\n  - name: b\n",
            ),
            (
                "mcpServers:\n-\n  name: toolplane # n\n  command: x\n- name: b\n",
                json!({"command": "t"}),
                "mcpServers:\n-\n  name: toolplane # n\n  command: t\n- name: b\n",
            ),
            (
                "mcpServers:\n  - {name: toolplane, command: x}\n  - name: b\n",
                json!({"command": "t"}),
                "mcpServers:\n  - name: toolplane\n    command: t\n  - name: b\n",
            ),
        ],
    );
}

#[test]
fn a_comment_behind_the_key_of_a_yaml_section_stays() {
    let text = "extensions: # my extensions\n  toolplane:\n    cmd: x\nother: 1\n";
    let removed = remove(text, GOOSE).unwrap();
    assert_eq!(removed, "extensions: {} # my extensions\nother: 1\n");
    assert_eq!(insert(&removed, GOOSE, &json!({"cmd": "x"})).unwrap(), text);
    let list = "mcpServers:\t# mine\n  - name: toolplane\n";
    assert_eq!(remove(list, CONTINUE).unwrap(), "mcpServers: []\t# mine\n");
}

#[test]
fn yaml_sections_are_found_in_every_spelling() {
    for text in [
        "\"extensions\":\n  a: {}\n",
        "'extensions': # c\n  a: {}\n",
        "extensions :\n  a: {}\n",
        "extensions: &s\n  a: {}\nb: 1\n",
        "extensions: !!map # c\n  a: {}\n",
        "---\na: 1\nextensions:\n  b: {}\n...\n",
        "extensions:\n  a:\n    text: |\n      x\n      # no comment\n",
        "extensions:\n  a:\n    text: |2 # c\n        x\n      # no comment\nb: 1\n",
        "extensions:\n  a:\n    text: |+\n      x\n\n\n",
        "extensions:\n  a:\n    text: >-\n      x\n\nb: 1\n",
    ] {
        returns(text, GOOSE, &entry());
    }
    assert_eq!(
        insert("a: 1\n...\n", GOOSE, &json!({"cmd": "t"})).unwrap(),
        "a: 1\nextensions:\n  toolplane:\n    cmd: t\n...\n"
    );
}

#[test]
fn refusals_name_the_obstacle() {
    let inline = "write its entries as `[mcp_servers.NAME]` tables, or add the entry by hand";
    let lines = "write each entry on lines of its own below `extensions:`, or edit the entry by hand";
    let start = "write `extensions:` at the start of a line, or edit the entry by hand";
    let correct = "correct the file, or add the entry by hand";
    for (text, slot, message, hint) in [
        (
            "mcp_servers = {}\n",
            TOML,
            "`mcp_servers` is written inline, to which no table can be added",
            inline,
        ),
        (
            "extensions: {a: {}}\n",
            GOOSE,
            "`extensions` is not written in block style",
            lines,
        ),
        (
            "{extensions: {}}\n",
            GOOSE,
            "it is written in a style in which the lines of `extensions` are not found",
            start,
        ),
        (
            "? extensions\n: a: {}\n",
            GOOSE,
            "it is written in a style in which the lines of `extensions` are not found",
            start,
        ),
        (
            "a: 1\n---\nb: 2\n",
            GOOSE,
            "it has several YAML documents",
            "keep one document in the file, or edit the entry by hand",
        ),
        (
            "a: 1\na: 2\n",
            GOOSE,
            "it has the key `a` twice at line 2",
            correct,
        ),
        ("mcp_servers = 1\n", TOML, "`mcp_servers` is not a table", correct),
        (
            "a: .inf\n",
            GOOSE,
            "it has YAML that is not read: value `.inf` is not a finite number at line 1, column 4",
            "edit the entry by hand",
        ),
        (
            "a = 1\na = 2\n",
            TOML,
            "it is not valid TOML: duplicate key at line 2",
            correct,
        ),
    ] {
        let error = insert(text, slot, &json!({"name": "toolplane"})).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint()), (message, hint));
    }
    let error = read("a: [\n", Format::YamlMap).unwrap_err().to_string();
    assert!(error.starts_with("it is not valid YAML: "), "{error}");
    for word in ["Options", "from_str", "DuplicateKeyPolicy", "\n"] {
        assert!(!error.contains(word), "{error}");
    }
}

proptest::proptest! {
    /// A replacement never changes anything but the entry, and never panics.
    #[test]
    fn any_entry_is_replaced_exactly_or_refused(text in r##"(mcpServers|extensions|"extensions"): ?(&s)?\n(  a: \|\+?\n    # x\n\n?)?  (toolplane:|- name: toolplane|-) ?(\{a: 1\}|# c)?\n(    (name: toolplane|a: ('x'|"#" # c|\[1, 2\]|\|\n      # d|)|# e|"b" : 1)?\n){0,4}(  - b: 1|  b: 1|c: 1)?|(mcp_servers = ?\{ ?toolplane = \{(a = 1|b = \[\n1,\n\]|a.c = 1)?(, ?command = "x")?\}\}|\[mcp_servers(\.toolplane)?\]( # c)?\n((toolplane\.)?(a|b|command)(\.d)? = (1|"#"|\{\})( # c)?\r?\n){0,4}(\[mcp_servers\.toolplane\.(a|e)\]\nx = 1)?)"##, entry in 0..4_usize) {
        let entries = [
            json!({"name": "toolplane", "command": "t", "args": ["a"]}),
            json!({"name": "toolplane", "a": 1}),
            json!({"name": "toolplane", "b": {"c": ["d", "#"]}, "a": "x: y"}),
            json!({"name": "toolplane"}),
        ];
        for slot in [TOML, GOOSE, CONTINUE] {
            let Ok(edited) = replace(&text, slot, &entries[entry]) else { continue };
            let after = read(&edited, slot.format).unwrap();
            proptest::prop_assert_eq!(find(&after, slot), Some(&entries[entry]));
            let _ = remove(&text, slot);
        }
    }

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
