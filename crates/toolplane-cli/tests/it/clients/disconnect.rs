//! `toolplane disconnect`.

use std::fs;

use super::connect::{FILES, ok, place};

/// Texts of a file in JSON, for the section that a client uses.
fn json_texts(section: &str) -> Vec<String> {
    let with = |text: &str| text.replace("SECTION", section);
    vec![
        String::new(),
        "\n".to_owned(),
        "{}".to_owned(),
        "{}\n".to_owned(),
        "{\r\n}\r\n".to_owned(),
        with("{\"SECTION\":{}}"),
        with("{\n  \"SECTION\": {\n  }\n}"),
        with("{\"SECTION\":{\"a\":{\"command\":\"x\"}},\"n\":1.50}"),
        with(
            "// my settings\n{\n\t// theme\n\t\"theme\": \"dark\",\n\t\"SECTION\": {\n\t\t\"a\": {\"command\": \"x\"}, // first\n\t\t\"b\": {\n\t\t\t\"url\": \"https://example.com/mcp\",\n\t\t}, /* last */\n\t},\n}",
        ),
        with(
            "{\r\n    \"SECTION\": {\r\n        \"a\": {\"args\": [\"//\", \"/*\"]}\r\n\r\n    },\r\n    \"z\": {\"deep\": {\"deeper\": [[], {}]}}\r\n}\r\n",
        ),
        with("\u{feff}{\n \"a\": {\"SECTION\": {}},\n \"SECTION\": {\"b\": {}} }"),
    ]
}

fn texts(client: &str) -> Vec<String> {
    let fixed = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match client {
        "codex" => fixed(&[
            "",
            "\n",
            "# mine\nmodel = \"o\"\n\n[mcp_servers.a]\ncommand = \"x\" # a\nargs = [\n  \"b\",\n]\n\n\n",
            "model = \"o\"\r\n[mcp_servers]\r\na = {command = 'x'}\r\n[tui]\r\ntheme = \"t\"\r\n",
            "model = \"o\"",
        ]),
        "goose" => fixed(&[
            "",
            "GOOSE_MODEL: m\n",
            "# mine\nextensions:\n  developer:\n    enabled: true # on\n    type: builtin\n\n# end\nGOOSE_MODE: auto\n",
            "extensions:\r\n    a: {type: builtin}\r\nx: 1",
            "extensions: {}\nx: 1\n",
        ]),
        "continue" => fixed(&[
            "",
            "name: n\nversion: 1.0.0\nschema: v1\n",
            "name: n\nmcpServers:\n- name: a\n  command: x # a\n\n# models\nmodels: []\n",
            "name: n\r\nmcpServers: []\r\nrules:\r\n  - b",
        ]),
        "vscode" => json_texts("servers"),
        "zed" => json_texts("context_servers"),
        "opencode" => json_texts("mcp"),
        _ => json_texts("mcpServers"),
    }
}

#[test]
fn connect_and_disconnect_leave_every_byte() {
    // Clients with the same section and form share a path through the code: one of each is enough.
    for client in [
        "cursor", "vscode", "zed", "opencode", "codex", "goose", "continue",
    ] {
        let (_, file) = FILES.into_iter().find(|(name, _)| *name == client).unwrap();
        for text in texts(client) {
            let place = place();
            let path = place.write(file, &text);
            ok(&place, &["connect", client, "--yes"]);
            assert_ne!(fs::read_to_string(&path).unwrap(), text);
            ok(&place, &["disconnect", client, "--yes"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{client}");
        }
    }
}

#[test]
fn a_file_that_connect_made_is_removed() {
    for (client, file) in FILES {
        let place = place();
        ok(&place, &["connect", client, "--yes"]);
        assert!(place.path().join(file).exists());
        ok(&place, &["disconnect", client, "--yes"]);
        assert!(!place.path().join(file).exists(), "{client}");
    }
}

#[test]
fn changes_that_were_made_since_stay() {
    let place = place();
    let file = place.write(
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
    );
    ok(&place, &["connect", "cursor", "--yes"]);
    let connected = fs::read_to_string(&file).unwrap();
    let edited = connected.replace("\"a\": {}", "\"a\": {}, // mine\n    \"b\": {\"url\": \"x\"}");
    assert_ne!(edited, connected);
    fs::write(&file, &edited).unwrap();
    let run = ok(&place, &["disconnect", "cursor", "--yes"]);
    assert!(run.stdout.contains("backup: `"), "{run:?}");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "{\n  \"mcpServers\": {\n    \"a\": {}, // mine\n    \"b\": {\"url\": \"x\"}\n  }\n}\n"
    );
    let backup = fs::read_to_string(place.path().join(".cursor/mcp.json.toolplane-backup.1")).unwrap();
    assert_eq!(backup, edited);
    let again = ok(&place, &["disconnect", "cursor"]);
    assert!(again.stdout.contains("not connected"), "{again:?}");
}

#[test]
fn the_printed_command_connects_again() {
    let place = place();
    place.write("my tools.yaml", "tools: {}\n");
    let file = place.path().join(".cursor/mcp.json");
    ok(
        &place,
        &[
            "-c",
            "my tools.yaml",
            "connect",
            "cursor",
            "--yes",
            "--name",
            "tp",
        ],
    );
    let before = fs::read(&file).unwrap();
    let undone = ok(
        &place,
        &["disconnect", "cursor", "--name", "tp", "-y", "-o", "json"],
    )
    .json();
    let undo = undone["undo"]
        .as_str()
        .unwrap()
        .strip_prefix("toolplane ")
        .unwrap();
    let words: Vec<&str> = undo
        .split('\'')
        .enumerate()
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        })
        .collect();
    ok(&place, &[&words[..], &["--yes"]].concat());
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn servers_of_others_are_never_taken_out() {
    let place = place();
    for text in [
        r#"{"mcpServers": {"toolplane": {"command": "other", "args": ["serve"]}}}"#,
        r#"{"mcpServers": {"toolplane": {"url": "http://127.0.0.1:9/mcp"}}}"#,
    ] {
        let file = place.write(".cursor/mcp.json", text);
        let run = place.run(&["disconnect", "cursor", "--yes"]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("is not this gateway"), "{run:?}");
        assert_eq!(fs::read_to_string(file).unwrap(), text);
    }
    ok(
        &place,
        &[
            "disconnect",
            "cursor",
            "--yes",
            "--http",
            "http://127.0.0.1:9/mcp",
        ],
    );
    let written = fs::read_to_string(place.path().join(".cursor/mcp.json")).unwrap();
    assert_eq!(written, r#"{"mcpServers": {}}"#);
}

#[test]
fn a_url_that_connect_wrote_is_taken_out_without_naming_it() {
    let place = place();
    let file = place.write(".codex/config.toml", "model = \"o\"\n");
    ok(
        &place,
        &["connect", "codex", "--yes", "--http", "http://127.0.0.1:9/mcp"],
    );
    let run = ok(&place, &["disconnect", "codex", "--yes"]);
    assert!(
        run.stdout
            .contains("undo: toolplane connect codex --http http://127.0.0.1:9/mcp"),
        "{run:?}"
    );
    assert_eq!(fs::read_to_string(file).unwrap(), "model = \"o\"\n");
}
