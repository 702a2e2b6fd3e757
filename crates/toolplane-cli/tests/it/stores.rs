//! Stores that are named in the configuration: tools in files, and verbs that read a store without a running gateway.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::json;
use toolplane::store_sqlite::{Database as _, SqliteOptions, sqlite_store};

use crate::{
    binary::{BINARY, Place, end_of, eventually, signal},
    operator::rude_api,
    serve::Served,
    versions::{ANY, Era, ask, call, configuration, done, first_slice, greet, publish},
};

#[test]
fn versions_are_published_called_side_by_side_and_rolled_back_in_files() {
    first_slice("{files: tools}");
}

/// An edit reaches a running gateway, and `check` finds damaged content.
#[test]
fn an_edit_of_the_files_reaches_a_running_gateway() {
    let place = Place::with(&configuration("{files: registry}"));
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    publish(&place, &greet(&place, "1.1.0", "hi", ANY));
    let served = Served::start(&place);
    assert_eq!(call(&served, Era::Modern, None), "hi");
    let document = place.path().join("registry/tools/greet/tool.json");
    let edited = fs::read_to_string(&document).unwrap();
    let edited = edited.replacen(r#""latest": "1.1.0""#, r#""latest": "1.0.0""#, 1);
    fs::write(&document, edited).unwrap();
    eventually("the edited version", || {
        call(&served, Era::Modern, None) == "hello"
    });
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    // The content of a version is not edited.
    let manifest = place.path().join("registry/tools/greet/1.0.0/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("Greets people.", "Greets everybody.")).unwrap();
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, 2, "{checked:?}");
    assert!(
        checked.stderr.contains("manifest.json") && checked.stderr.contains("never changes"),
        "{checked:?}"
    );
    let listed = place.run(&["tools", "ls", "--wide"]);
    assert!(
        listed.stdout.contains("own") && !listed.stdout.contains("greet@"),
        "{listed:?}"
    );
}

/// Tools, aliases and servers are files; everything else is in a database, which is not for version control.
#[test]
fn what_is_no_tool_is_kept_in_a_database_beside_the_files() {
    for (store, database) in [
        ("{files: registry}", "registry/.toolplane/state.db"),
        ("{files: registry, sqlite: data/state.db}", "data/state.db"),
    ] {
        let place = Place::with(&format!(
            "{}policy: {{principals: {{ada: {{}}}}}}\n",
            configuration(store)
        ));
        assert_eq!(place.run(&["tokens", "ls", "-o", "json"]).json(), json!([]));
        assert!(!place.path().join("registry").exists(), "reading creates nothing");
        done(&place.run(&["tokens", "create", "ada"]));
        let mode = place
            .path()
            .join(database)
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        publish(&place, &greet(&place, "1.0.0", "hello", ANY));
        done(&place.run(&["tools", "alias", "welcome", "greet@^1"]));
        let listed = place.run(&["tokens", "ls", "-o", "json"]).json();
        assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
        let registry = place.path().join("registry");
        let mut names: Vec<_> = fs::read_dir(&registry)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [".toolplane", "aliases.json", "store.json", "tools"]);
        assert_eq!(
            fs::read_to_string(registry.join(".toolplane/.gitignore")).unwrap(),
            "*\n"
        );
        assert_eq!(
            registry.join(".toolplane/state.db").exists(),
            database.starts_with("registry")
        );
    }
}

#[test]
fn a_place_of_a_store_is_read_strictly() {
    for (store, expected) in [
        ("{files: ''}", "the path of the directory is empty"),
        (
            "{files: a, sqlite: b, postgres: 'postgres://c/d'}",
            "a store is `sqlite` or `postgres`, not both",
        ),
        (
            "{files: a, enabled: false}",
            "a store that is not enabled has no place",
        ),
    ] {
        let checked = Place::with(&configuration(store)).run(&["check"]);
        assert_eq!(checked.code, 2, "{checked:?}");
        assert!(checked.stderr.contains(expected), "{expected}: {checked:?}");
    }
}

const GUARDED: &str = "
tools:
  pay: {description: Pays, approval: required, executor: {kind: mock, result: paid}}
";

/// Approvals are listed, shown and decided in the store while no gateway runs.
#[test]
fn approvals_are_decided_without_a_running_gateway() {
    for store in ["store: {files: registry}", "store: {sqlite: state.db}", ""] {
        let place = Place::with(&format!("{store}{GUARDED}"));
        let none = place.run(&["approvals", "ls"]);
        assert_eq!(
            (none.code, none.stderr.trim()),
            (0, "no call waits for approval"),
            "{none:?}"
        );
        let served = Served::start(&place);
        let handles: Vec<String> = (0..2)
            .map(|n| {
                let arguments = json!({"name": "pay", "arguments": {"n": n}});
                let pending = ask(&served, Era::Modern, "tools/call", arguments);
                let handle = pending["_meta"]["dev.toolplane/pending"]["handle"].as_str();
                handle.unwrap_or_else(|| panic!("{pending}")).to_owned()
            })
            .collect();
        signal(served.child.id(), Signal::KILL);
        drop(served);
        let listed = place.run(&["approvals", "ls", "-o", "json"]).json();
        let listed: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["handle"].clone())
            .collect();
        assert_eq!(listed, handles);
        let shown = place.run(&["approvals", "show", &handles[0][..12]]);
        assert!(shown.data().contains("Tool: pay"), "{shown:?}");
        done(&place.run(&["approvals", "approve", &handles[0], "--as", "boss"]));
        done(&place.run(&["approvals", "deny", &handles[1], "--reason", "too much"]));
        let twice = place.run(&["approvals", "deny", &handles[0]]);
        assert_eq!(twice.code, 1, "{twice:?}");
        assert!(twice.stderr.contains("is approved already"), "{twice:?}");
        assert_eq!(place.run(&["approvals", "show", "unknown"]).code, 3);
        let served = Served::start(&place);
        let with = |n: usize| {
            let meta = json!({"dev.toolplane/approval": handles[n]});
            let params = json!({"name": "pay", "arguments": {"n": n}, "_meta": meta});
            ask(&served, Era::Modern, "tools/call", params)
        };
        assert_eq!(with(0)["content"][0]["text"], "paid");
        let denied = with(1);
        assert!(denied.to_string().contains("too much"), "{denied}");
    }
    let elsewhere = Place::empty();
    assert_eq!(
        elsewhere.run(&["approvals", "ls"]).code,
        6,
        "neither a gateway nor a configuration"
    );
    let off = Place::with(&format!("store: {{enabled: false}}{GUARDED}"));
    for verb in ["approvals", "ledger"] {
        assert_eq!(off.run(&[verb, "ls"]).code, 6, "neither a gateway nor a store");
    }
}

/// Unknown outcomes are in the store, and are listed from there.
#[test]
fn unknown_outcomes_are_listed_without_a_running_gateway() {
    let pay = format!(
        "tools: {{pay: {{description: Pays, executor: {{kind: http, method: POST, url: '{}', allow_private: true}}}}}}",
        rude_api()
    );
    for store in ["store: {files: registry}", ""] {
        let place = Place::with(&format!("{store}\n{pay}\n"));
        let none = place.run(&["ledger", "ls"]);
        assert_eq!(
            (none.code, none.stderr.trim()),
            (0, "no calls with unknown outcome"),
            "{none:?}"
        );
        let mut served = Served::start(&place);
        let params = json!({"name": "pay", "arguments": {}});
        let answer = ask(&served, Era::Modern, "tools/call", params).to_string();
        let id = answer.split(r#""ledger_id":""#).nth(1).expect("an id");
        let id = id.split('"').next().unwrap();
        signal(served.child.id(), Signal::TERM);
        assert_eq!(end_of(&mut served.child), 0);
        let listed = place.run(&["ledger", "ls", "-o", "json"]).json();
        let found = &listed[0];
        assert_eq!(
            (&found["id"], &found["tool"], &found["state"]),
            (&json!(id), &json!("pay"), &json!("unknown"))
        );
        let shown = place.run(&["ledger", "show", id]);
        assert!(shown.data().contains("State: unknown"), "{shown:?}");
        let missing = place.run(&["ledger", "show", &"0".repeat(32)]);
        assert_eq!(missing.code, 3, "{missing:?}");
        assert!(
            missing.stderr.contains("nor the store of the configuration"),
            "{missing:?}"
        );
    }
}

/// The official servers and a tool of the seed, and what is known about servers of a store.
#[test]
fn official_servers_are_kept_with_their_settings_and_their_lists() {
    for store in ["{files: registry}", "{sqlite: state.db}"] {
        let place = Place::with(&format!("store: {store}\n"));
        place.write(
            "inner.yaml",
            "tools: {greet: {description: Greets, executor: {kind: mock, result: hello}}}",
        );
        let servers = json!({"mcpServers": {
            "github": {"command": "nothing-runs-here", "args": ["-y", "x"], "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}},
            "local": {"command": BINARY, "args": ["-c", "inner.yaml", "serve", "--stdio"]},
        }});
        place.write("servers.json", servers.to_string());
        let tool = "tool_id: supabase_execute_sql
tool_type: mcp
version: 1.0.0
description: Execute SQL on Supabase
executor_config:
  mcp_server: supabase
  mcp_tool: execute_sql
  transport: stdio
  command: nothing-runs-here
  args: ['-y', '@supabase/mcp-server']
  env: {SUPABASE_ACCESS_TOKEN: '${SUPABASE_ACCESS_TOKEN}'}
parameters: [{name: query, type: string, required: true}]
";
        place.write("supabase.yaml", tool);
        done(&place.run(&["import", "servers.json", "--publish"]));
        done(&place.run(&["import", "supabase.yaml", "--publish", "--official"]));
        let list = |arguments: &[&str]| {
            let listed = place
                .run(&[&["servers", "ls", "-o", "json"], arguments].concat())
                .json();
            let of = |name: &str| {
                let mut servers = listed.as_array().unwrap().iter();
                let found = servers.find(|server| server["name"] == name);
                found.unwrap_or_else(|| panic!("{name}: {listed}")).clone()
            };
            ["github", "local", "supabase"].map(of)
        };
        let [github, local, supabase] = list(&["--no-start"]);
        assert_eq!(
            [&github, &local, &supabase].map(|server| &server["official"]),
            [&json!(false), &json!(false), &json!(true)]
        );
        assert_eq!(local["lists_kept_at"], json!(null));
        let source = supabase["source"].as_str().unwrap();
        assert!(source.ends_with(": supabase"), "{source}");
        let called = place.run(&["call", "local__greet"]);
        assert_eq!(called.stdout.trim(), "hello", "{called:?}");
        let [_, local, supabase] = list(&["--no-start"]);
        assert_eq!(local["lists"], "kept");
        assert!(local["lists_kept_at"].as_str().unwrap().ends_with('Z'), "{local}");
        assert_eq!(supabase["lists_kept_at"], json!(null));
        let forgotten = place.run(&["servers", "forget", "local", "-o", "json"]).json();
        assert_eq!(forgotten["stored"]["forgotten"], 1, "{forgotten}");
        assert_eq!(list(&["--no-start"])[1]["lists_kept_at"], json!(null));
        if store.contains("files") {
            let document = fs::read_to_string(place.path().join("registry/servers/supabase.json")).unwrap();
            assert!(
                document.contains("\"is_official\": true") && document.contains("@supabase/mcp-server"),
                "{document}"
            );
        }
    }
}

/// Makes the accepted definitions in a database unreadable.
pub(crate) fn spoil_pins(place: &Place, database: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = sqlite_store(SqliteOptions::new(place.path().join(database)));
        let mut transaction = store.database().write().await.unwrap();
        let row =
            "INSERT INTO pins (source, feature, name, digest, is_exact) VALUES ('s', 'unheard of', 'n', '', 0)";
        transaction.execute(row, Vec::new()).await.unwrap();
        transaction.commit().await.unwrap();
    });
}

/// A gateway that does not know which definitions were accepted offers nothing: it does not start.
#[test]
fn a_gateway_without_the_accepted_definitions_does_not_start() {
    let place = Place::with(&configuration("{sqlite: tools.db}"));
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    spoil_pins(&place, "tools.db");
    let served = place.run(&["serve", "--stdio"]);
    assert_eq!((served.code, &*served.stdout), (6, ""), "{served:?}");
    let expected = ["accepted definitions cannot be read", "unknown kind `unheard of`"];
    for part in expected {
        assert!(served.stderr.contains(part), "{served:?}");
    }
}
