//! Texts of a server that reach the gateway's clients: its instructions, and its errors verbatim.

use serde_json::{Value, json};

use crate::{
    binary::{Place, eventually},
    serve::Served,
};

/// A server in a few lines of shell. Its prompt answers with an error with members beyond JSON-RPC.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case $line in
    *'"method":"initialize"'*) answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"sh","version":"1"},"instructions":"Be kind. The key is '$KEY'."}' ;;
    *'"method":"tools/list"'*) answer='"result":{"tools":[]}' ;;
    *'"method":"prompts/list"'*) answer='"result":{"prompts":[{"name":"p"}]}' ;;
    *'"method":"prompts/get"'*) answer='"error":{"code":-32050,"message":"busy","data":{"a":1e2},"retryAfter":1.50,"hint":"not '$KEY'","retryAfter":7}' ;;
    *) answer='"result":{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

fn place(gateway: &str, server: &str) -> Place {
    let place = Place::with(&format!(
        "
gateway: {{{gateway}}}
secrets: {{key: '${{env:KEY}}'}}
servers:
  kind: {{command: sh, args: [server.sh], era: legacy, env: {{KEY: '${{secret:key}}'}}{server}}}
"
    ));
    place.write("server.sh", SERVER);
    place.variable("KEY", "s3cr3t-k3y-of-the-server")
}

fn initialize(served: &Served) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    answer(&served.post("localhost", &request))
}

fn answer(text: &str) -> Value {
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(body.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn instructions_of_servers_come_after_those_of_the_gateway() {
    for (gateway, server, expected) in [
        (
            "instructions: Ask first.",
            "",
            "Ask first.\n\n# Instructions of the server `kind`\n\nBe kind. The key is [redacted].",
        ),
        (
            "",
            ", instructions: Be quick.",
            "# Instructions of the server `kind`\n\nBe quick.",
        ),
        ("instructions: Ask first.", ", instructions: ''", "Ask first."),
    ] {
        // Its folder must outlive the server, which may start later.
        let place = place(gateway, server);
        let served = Served::start(&place);
        let mut seen = Value::Null;
        eventually("the instructions", || {
            seen = initialize(&served)["result"]["instructions"].clone();
            seen == expected
        });
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let discover =
            json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": meta}});
        let discovered = answer(&served.post_modern(&discover));
        assert_eq!(discovered["result"]["instructions"], expected, "{discovered}");
    }
}

#[test]
fn members_of_an_error_are_relayed_without_secrets() {
    let place = place("", "");
    let served = Served::start(&place);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "kind__p"}});
    let text = served.post("localhost", &request);
    let error = &answer(&text)["error"];
    assert_eq!(error["code"], -32050, "{text}");
    assert_eq!(error["message"], "busy");
    assert!(
        text.contains(r#""data":{"a":1e2}"#) && text.contains(r#""retryAfter":1.50"#),
        "{text}"
    );
    assert_eq!(error["hint"], "not [redacted]");
    assert!(!text.contains("s3cr3t"), "{text}");
}

#[test]
fn instructions_from_kept_lists_are_there_before_the_server_starts() {
    let place = place("", ", start: lazy");
    place.write("server.sh", format!("echo started >> starts\n{SERVER}"));
    let listed = place.run(&["servers", "ls"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    let starts = || {
        std::fs::read_to_string(place.path().join("starts"))
            .unwrap()
            .lines()
            .count()
    };
    let before = starts();
    let served = Served::start(&place);
    let instructions = initialize(&served)["result"]["instructions"].clone();
    assert_eq!(
        instructions,
        "# Instructions of the server `kind`\n\nBe kind. The key is [redacted]."
    );
    assert_eq!(starts(), before, "nobody has needed the server");
}

/// A tool from a kept list shows the state of its server, whose start failed.
#[test]
fn the_list_of_tools_shows_the_state_of_their_servers() {
    let place = Place::with("servers: {kind: {command: sh, args: [server.sh], era: legacy}}");
    let tools = r#"{"tools":[{"name":"t","description":"Greets.","inputSchema":{"type":"object"}}]}"#;
    place.write("server.sh", SERVER.replace(r#"{"tools":[]}"#, tools));
    let ready = place.run(&["tools", "ls"]);
    assert!(
        ready.data().contains("kind__t") && !ready.data().contains("STATE"),
        "{ready:?}"
    );
    place.write("server.sh", "exit 3");
    let failed = place.run(&["tools", "ls"]);
    let lines: Vec<Vec<&str>> = failed
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        vec!["NAME", "STATE", "SOURCE", "DESCRIPTION"],
        vec!["kind__t", "failed", "kind", "Greets."],
    ];
    assert_eq!(lines, expected, "{failed:?}");
    let rows: Value = serde_json::from_str(&place.run(&["tools", "ls", "-o", "json"]).stdout).unwrap();
    assert_eq!(rows[0]["server_state"]["state"], "failed", "{rows}");
    assert!(rows[0]["server_state"]["attempts"].as_u64() >= Some(1), "{rows}");
}
