//! Tools with versions: published on the command line, and listed and called over MCP in both eras while the gateway runs.

use std::io::Read;

use rustix::process::Signal;
use serde_json::{Value, json};
use tp_postgres::{PostgresServer, TestDatabase};

use crate::{
    binary::{Place, Run, end_of, eventually, signal},
    serve::Served,
};

/// Configuration with this store, and a tool of its own.
pub(crate) fn configuration(store: &str) -> String {
    format!(
        "store: {store}\ntools: {{own: {{description: Of the file, executor: {{kind: mock, result: own}}}}}}\n"
    )
}

/// File with the tool `greet` in this version, which returns its text.
pub(crate) fn greet(place: &Place, version: &str, result: &str, input: &str) -> String {
    let text = format!(
        "apiVersion: toolplane.dev/v1\nkind: Tool\nmetadata: {{name: greet}}\nspec:\n  description: Greets people.\n  \
         version: {version}\n  input_schema: {input}\n  executor: {{kind: mock, result: {result}}}\n"
    );
    let file = place.write(&format!("greet-{version}.yaml"), text);
    file.to_str().unwrap().to_owned()
}

pub(crate) const ANY: &str = "{type: object, properties: {name: {type: string}}}";
const REQUIRED: &str = "{type: object, properties: {name: {type: string}}, required: [name]}";

#[track_caller]
pub(crate) fn publish(place: &Place, file: &str) -> Value {
    let run = place.run(&["tools", "publish", file, "-o", "json"]);
    run.data();
    run.json()[0].clone()
}

/// Protocol era of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Sends a request in an era and returns its result.
pub(crate) fn ask(served: &Served, era: Era, method: &str, params: Value) -> Value {
    ask_with(served, era, "", method, params)
}

/// Sends a request with further headers, as [`ask`] does.
pub(crate) fn ask_with(served: &Served, era: Era, headers: &str, method: &str, mut params: Value) -> Value {
    let mut headers = headers.to_owned();
    if let Era::Modern = era {
        headers.push_str(&format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"
        ));
        if let Some(name) = params["name"].as_str() {
            headers.push_str(&format!("Mcp-Name: {name}\r\n"));
        }
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (key, value) in meta.as_object().unwrap() {
            params["_meta"][key] = value.clone();
        }
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut answer = String::new();
    served
        .begin(&served.address, &headers, &message)
        .read_to_string(&mut answer)
        .unwrap();
    let body = answer
        .split_once("\r\n\r\n")
        .map_or_else(|| panic!("{answer}"), |(_, body)| body);
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    match body.get("result") {
        Some(result) => result.clone(),
        None => body,
    }
}

/// Names of the listed tools.
fn listed(served: &Served, era: Era) -> Vec<String> {
    let result = ask(served, era, "tools/list", json!({}));
    let tools = result["tools"].as_array().unwrap_or_else(|| panic!("{result}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Text of the result of `greet`, in a version if one is given.
pub(crate) fn call(served: &Served, era: Era, version: Option<&str>) -> String {
    let mut params = json!({"name": "greet", "arguments": {"name": "Ada"}});
    if let Some(version) = version {
        params["_meta"] = json!({"dev.toolplane/version": version});
    }
    let result = ask(served, era, "tools/call", params);
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// Finds `greet` through the meta-tools of another gateway on the same store, and calls what was found.
fn found_and_called(place: &Place) {
    let served = Served::start_with(place, &["--mode", "search"]);
    for era in ERAS {
        let text = |name: &str, arguments: Value| {
            let result = ask(
                &served,
                era,
                "tools/call",
                json!({"name": name, "arguments": arguments}),
            );
            let text = result["content"][0]["text"].as_str();
            text.unwrap_or_else(|| panic!("{result}")).to_owned()
        };
        eventually("the published tool is found", || {
            text("tool_search", json!({"query": "greet people"})).starts_with("greet(")
        });
        let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
        assert_eq!(text("tool_call", call), "hello", "{era:?}");
    }
}

#[test]
fn a_store_needs_no_configuration() {
    let place = Place::empty();
    let without = place.run(&["tools", "ls"]);
    assert_ne!(without.code, 0, "{without:?}");
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    let origin = place.run(&["tools", "ls", "--wide"]);
    assert!(origin.data().contains("greet"), "{origin:?}");
    assert_eq!(place.run(&["call", "greet", "name=Ada"]).data().trim(), "hello");
    let served = Served::start(&place);
    assert_eq!(listed(&served, Era::Modern), ["greet"]);
}

#[track_caller]
pub(crate) fn done(run: &Run) {
    assert_eq!(run.code, 0, "{run:?}");
}

/// Publish, find, call, update, pin, deprecate, withdraw, roll back; a gateway that is restarted, and one that is killed.
pub(crate) fn first_slice(store: &str) {
    let place = Place::with(&configuration(store));
    let served = Served::start(&place);
    for era in ERAS {
        assert_eq!(listed(&served, era), ["own"]);
    }
    let published = publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    assert_eq!(
        (&published["new"], &published["latest"]),
        (&json!(true), &json!("1.0.0"))
    );
    for era in ERAS {
        eventually("the published tool", || listed(&served, era) == ["greet", "own"]);
        assert_eq!(call(&served, era, None), "hello", "{era:?}");
    }
    found_and_called(&place);
    // A second version beside the first; a breaking one needs a major number.
    publish(&place, &greet(&place, "1.1.0", "hi", ANY));
    let breaking = place.run(&["tools", "publish", &greet(&place, "1.2.0", "no", REQUIRED)]);
    assert_eq!(breaking.code, 1, "{breaking:?}");
    assert!(breaking.stderr.contains("must be at least 2.0.0"), "{breaking:?}");
    publish(&place, &greet(&place, "2.0.0", "good_day", REQUIRED));
    for era in ERAS {
        eventually("the latest version", || call(&served, era, None) == "good_day");
        for (version, expected) in [("1.0.0", "hello"), ("^1", "hi"), ("latest", "good_day")] {
            assert_eq!(call(&served, era, Some(version)), expected, "{era:?} {version}");
        }
        let missing = ask(
            &served,
            era,
            "tools/call",
            json!({
                "name": "greet", "arguments": {}, "_meta": {"dev.toolplane/version": "3.0.0"},
            }),
        );
        assert!(missing.to_string().contains("no version `3.0.0`"), "{missing}");
    }
    // A killed gateway loses nothing, and another one beside it sees the same.
    signal(served.child.id(), Signal::KILL);
    drop(served);
    let mut restarted = Served::start(&place);
    for era in ERAS {
        assert_eq!(call(&restarted, era, Some("1.0.0")), "hello");
    }
    let digest = place.run(&["tools", "versions", "greet", "-o", "json"]).json()[2]["digest"].clone();
    let pinned = digest.as_str().unwrap();
    assert_eq!(call(&restarted, Era::Modern, Some(pinned)), "hello");
    done(&place.run(&[
        "tools",
        "deprecate",
        "greet@2.0.0",
        "--use",
        "greet@1.1.0",
        "--until",
        "2027-01-31",
    ]));
    for era in ERAS {
        eventually("the deprecation", || {
            let tools = ask(&restarted, era, "tools/list", json!({}));
            let description = tools["tools"][0]["description"].as_str().unwrap().to_owned();
            description.contains("Deprecated, to be removed on 2027-01-31; use `greet@1.1.0` instead.")
        });
    }
    done(&place.run(&["tools", "rollback", "greet"]));
    for era in ERAS {
        eventually("the former version", || call(&restarted, era, None) == "hi");
        assert_eq!(call(&restarted, era, Some("2.0.0")), "good_day", "it is not lost");
    }
    done(&place.run(&["tools", "yank", "greet@1.1.0", "--reason", "it leaks"]));
    for era in ERAS {
        // The greatest version that is left.
        eventually("the next version", || call(&restarted, era, None) == "good_day");
        assert_eq!(call(&restarted, era, Some("^1")), "hello");
        assert_eq!(call(&restarted, era, Some("1.1.0")), "hi", "by its exact version");
    }
    signal(restarted.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut restarted.child), 0);
    let again = Served::start(&place);
    for era in ERAS {
        assert_eq!(listed(&again, era), ["greet", "own"]);
        assert_eq!(call(&again, era, None), "good_day");
    }
}

#[test]
fn versions_are_published_called_side_by_side_and_rolled_back_on_sqlite() {
    first_slice("{sqlite: data/tools.db}");
}

/// Database on the PostgreSQL server of the tests; `None`, and a report, if there is none.
pub(crate) fn database() -> Option<TestDatabase> {
    let created = PostgresServer::shared().and_then(PostgresServer::create_database);
    created
        .map_err(|error| tool_testkit::skip(error.to_string()))
        .ok()
}

#[test]
fn versions_are_published_called_side_by_side_and_rolled_back_on_postgresql() {
    if let Some(database) = database() {
        first_slice(&format!("{{postgres: '{}'}}", database.url()));
    }
}

/// A pending approval and a used key outlive the gateway, also in the store that nobody configured.
#[test]
fn a_restart_loses_no_approval_and_no_key() {
    let place = Place::with(
        "tools: {pay: {description: Pays, approval: required, executor: {kind: mock, result: paid}}}\n",
    );
    let served = Served::start(&place);
    let pending = ask(
        &served,
        Era::Modern,
        "tools/call",
        json!({"name": "pay", "arguments": {}}),
    );
    let handle = pending["_meta"]["dev.toolplane/pending"]["handle"]
        .as_str()
        .unwrap_or_else(|| panic!("{pending}"));
    signal(served.child.id(), Signal::KILL);
    drop(served);
    let served = Served::start(&place);
    done(&place.run(&["approvals", "approve", handle, "--as", "boss"]));
    let meta = json!({"dev.toolplane/approval": handle, "dev.toolplane/idempotency-key": "k"});
    let paid = ask(
        &served,
        Era::Modern,
        "tools/call",
        json!({"name": "pay", "arguments": {}, "_meta": meta}),
    );
    assert_eq!(paid["content"][0]["text"], "paid", "{paid}");
    // Ended in order: a gateway that is killed at this moment may not have written the end of the call yet, and the key then
    // has an unknown outcome.
    let mut served = served;
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
    let served = Served::start(&place);
    let key = json!({"dev.toolplane/idempotency-key": "k"});
    let replayed = ask(
        &served,
        Era::Modern,
        "tools/call",
        json!({"name": "pay", "arguments": {}, "_meta": key}),
    );
    assert_ne!(
        replayed["_meta"]["dev.toolplane/replayed"],
        Value::Null,
        "{replayed}"
    );
}

#[test]
fn files_are_brought_into_the_store_with_their_servers() {
    let place = Place::with("store: {sqlite: data/tools.db}\n");
    let official = place.write(
        "official.yaml",
        "tool_id: notion_create_page
tool_type: mcp
version: 1.0.0
description: Create a new page in Notion
executor_config:
  mcp_server: notion
  mcp_tool: create_page
  transport: stdio
  command: nothing-runs-here
  args: [\"-y\"]
  env: {NOTION_API_KEY: \"${NOTION_API_KEY}\"}
parameters: [{name: title, type: string, required: true}]
",
    );
    let file = official.to_str().unwrap();
    let shown = place.run(&["import", file, "-o", "json"]).json();
    assert_eq!(
        (&shown["published"], &shown["servers"]),
        (&json!(false), &json!(["notion"]))
    );
    assert_eq!(
        place.run(&["tools", "versions", "notion_create_page"]).code,
        3,
        "only shown"
    );
    done(&place.run(&["import", file, "--publish", "--official"]));
    let shown = place.run(&["tools", "show", "notion_create_page", "-o", "json"]);
    assert_eq!(shown.json()["version"], "1.0.0", "{shown:?}");
    let servers = place.run(&["servers", "ls", "--no-start", "-o", "json"]).json();
    assert!(servers.to_string().contains("\"notion\""), "{servers}");
    let wide = place.run(&["tools", "ls", "--wide"]);
    assert!(
        wide.stdout.contains("1.0.0") && wide.stdout.contains("notion_create_page@1.0.0"),
        "{wide:?}"
    );
}

#[test]
fn a_tool_that_reads_a_file_beside_its_own_is_not_published() {
    let place = Place::with(&configuration("{sqlite: data/tools.db}"));
    place.write("result.json", "{}");
    let tool = "tools: {read: {description: Reads, executor: {kind: mock, result_file: result.json}}}";
    place.write("read.yaml", tool);
    let run = place.run(&["tools", "publish", "read.yaml"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("which is not part of the version"), "{run:?}");
}

#[test]
fn two_versions_are_compared_field_by_field() {
    let place = Place::with(&configuration("{sqlite: data/tools.db}"));
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    publish(&place, &greet(&place, "2.0.0", "hi", REQUIRED));
    let diff = place.run(&["tools", "diff", "greet@1.0.0"]);
    assert!(diff.stdout.contains("greet: 1.0.0 to 2.0.0"), "{diff:?}");
    assert!(
        diff.stdout.contains("hello") && diff.stdout.contains("required"),
        "{diff:?}"
    );
    let same = place.run(&["tools", "diff", "greet@1.0.0", "1.0.0"]);
    assert!(same.stdout.contains("no difference"), "{same:?}");
}

#[test]
fn the_command_line_calls_and_shows_versions() {
    let place = Place::with(&configuration("{sqlite: data/tools.db}"));
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    publish(&place, &greet(&place, "1.1.0", "hi", ANY));
    for (tool, expected) in [("greet", "hi"), ("greet@1.0.0", "hello"), ("greet@<1.1", "hello")] {
        let run = place.run(&["call", tool, "name=Ada"]);
        assert_eq!((run.code, run.stdout.trim()), (0, expected), "{run:?}");
    }
    let shown = place.run(&["tools", "show", "greet@1.0.0", "-o", "json"]);
    assert_eq!(shown.json()["version"], "1.0.0", "{shown:?}");
    for (arguments, code, expected) in [
        (
            &["call", "greet@2"][..],
            3,
            "`greet` has no version `2`; its version is `1.1.0`",
        ),
        (&["call", "greet@new"], 2, "`new` is no version: write `1.4.2`"),
        (&["call", "own@1.0.0"], 3, "`own` has no version"),
        (
            &["tools", "versions", "own"],
            3,
            "there is no tool `own` in the store",
        ),
        (
            &["tools", "yank", "greet", "--reason", "x"],
            2,
            "`greet` names no version",
        ),
        (
            &["tools", "yank", "greet@^1", "--reason", "x"],
            2,
            "`^1` is no exact version",
        ),
        (
            &["tools", "rollback", "greet", "--to", "x"],
            2,
            "`x` is no version",
        ),
        (
            &["tools", "deprecate", "greet@1.0.0", "--until", "soon"],
            2,
            "`soon` is no day",
        ),
        (
            &["tools", "alias", "--remove", "hello"],
            3,
            "there is no alias `hello`",
        ),
        (
            &["tools", "publish", "toolplane.yaml", "--tool", "x"],
            3,
            "has no tool `x`",
        ),
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, code, "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {run:?}");
    }
    done(&place.run(&["tools", "alias", "welcome", "greet@^1.0"]));
    let run = place.run(&["call", "welcome"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "hi"), "{run:?}");
}

#[test]
fn drafts_are_published_later_and_a_dry_run_changes_nothing() {
    let place = Place::with(&configuration("{sqlite: data/tools.db}"));
    let file = greet(&place, "1.0.0", "hello", ANY);
    done(&place.run(&["tools", "publish", &file, "--dry-run"]));
    assert_eq!(place.run(&["tools", "versions", "greet"]).code, 3);
    done(&place.run(&["tools", "publish", &file, "--draft"]));
    assert_eq!(
        place.run(&["call", "greet@1.0.0"]).code,
        3,
        "nobody calls a draft"
    );
    done(&place.run(&["tools", "publish", "greet@1.0.0", "--as", "ada"]));
    let versions = place.run(&["tools", "versions", "greet", "-o", "json"]).json();
    assert_eq!(
        (&versions[0]["state"], &versions[0]["created_by"]),
        (&json!("published"), &json!("ada"))
    );
    assert_eq!(place.run(&["call", "greet"]).stdout.trim(), "hello");
}

#[test]
fn a_tool_of_a_file_has_precedence_over_one_of_the_store() {
    let place = Place::with(&configuration("{sqlite: data/tools.db}"));
    let same = "tools: {own: {description: Of the store, executor: {kind: mock, result: stored}}}";
    place.write("own.yaml", same);
    publish(&place, "own.yaml");
    let run = place.run(&["call", "own"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "own"), "{run:?}");
    let listed = place.run(&["tools", "ls"]);
    assert!(
        listed
            .stderr
            .contains("`own` is already a tool of `configuration`"),
        "{listed:?}"
    );
}
