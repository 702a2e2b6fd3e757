//! The operator's view of a running gateway: servers and disabled tools.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    thread,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, eventually, signal},
    serve::{Served, call},
};

const INNER: &str = "
tools:
  greet:
    description: Greets
    executor: {kind: mock, result: hello}
";

/// Returns a place with its own socket directory. Socket paths must be short.
fn place(configuration: &str) -> (Place, tempfile::TempDir) {
    let run = tempfile::Builder::new().prefix("tp").tempdir().unwrap();
    let place = Place::with(configuration).variable("XDG_RUNTIME_DIR", run.path().to_str().unwrap());
    place.write("inner.yaml", INNER);
    (place, run)
}

/// Returns a healthy, a failing and a disabled server.
fn servers(required: &str) -> String {
    format!(
        "
gateway: {{metrics: true}}
servers:
  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio], required: true}}
  broken: {{command: sh, args: ['-c', 'echo started >> starts; exit 3'], {required}}}
  idle: {{command: sh, disabled: true}}
"
    )
}

/// Returns the states in a list of servers.
fn states(list: &Value) -> Vec<(String, String)> {
    let servers = list.as_array().unwrap().iter();
    let text = |server: &Value, key: &str| server[key].as_str().unwrap().to_owned();
    servers
        .map(|server| (text(server, "name"), text(server, "state")))
        .collect()
}

#[test]
fn servers_are_shown_without_starting_them_where_that_is_asked_for() {
    let (place, _run) = place(&servers("required: false"));
    let list = place.run(&["servers", "ls", "--no-start", "-o", "json"]).json();
    let expected = [
        ("inner", "not started"),
        ("broken", "not started"),
        ("idle", "disabled"),
    ];
    let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
    assert_eq!(states(&list), expected);
    assert_eq!(
        (&list[0]["attempts"], &list[0]["transport"]),
        (&json!(0), &json!("stdio"))
    );
    assert!(!place.path().join("starts").exists(), "nothing was started");
    let table = place.run(&["servers", "ls", "--no-start"]);
    let header = table.data().lines().next().unwrap();
    let columns: Vec<_> = header.split_whitespace().collect();
    assert_eq!(
        columns,
        ["NAME", "STATE", "SINCE", "TRIES", "NEXT", "TOOLS", "DETAIL"]
    );
    assert!(table.data().contains("when needed"), "{table:?}");

    let none = place.run(&["servers", "ls", "--gateway"]);
    assert_eq!((none.code, none.stdout.as_str()), (6, ""));
    assert!(
        none.stderr.contains("no gateway of this user was reached"),
        "{none:?}"
    );

    // Servers that are started for the list.
    let list = place.run(&["servers", "ls", "-o", "yaml"]);
    let yaml = list.data();
    for line in [
        "- name: inner\n  state: ready\n",
        "  attempts: 1\n",
        "- name: broken\n  state: failed\n",
        "exit status: 3",
    ] {
        assert!(yaml.contains(line), "{line} in {yaml}");
    }
    let broken = &place.run(&["servers", "ls", "-o", "json"]).json()[1];
    let pause = broken.get("retry_in_ms").and_then(Value::as_u64);
    assert!(pause.is_none_or(|ms| ms <= 1250), "{broken}");
    assert!(broken["since"].as_str().unwrap().ends_with('Z'), "{broken}");
}

/// All sources report the same states.
#[test]
fn probes_health_and_lists_agree_on_servers() {
    for (required, is_ready) in [("required: false", true), ("required: true", false)] {
        let (place, _run) = place(&servers(required));
        let served = Served::start(&place);
        let list = || place.run(&["servers", "ls", "--gateway", "-o", "json"]).json();
        let expected = [("inner", "ready"), ("broken", "failed")];
        let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
        let attempts = |list: &Value| [0, 1].map(|n| list[n]["attempts"].clone());
        let look = || {
            let listed = list();
            let health = place.run(&["health", "--address", &served.address, "-o", "json"]);
            let (probe, metrics) = (served.get("/readyz"), served.page("/metrics").1);
            // A required server is restarted now and then, but not in between.
            let after = list();
            let is_still = [&listed, &after].iter().all(|list| states(list) == expected)
                && attempts(&listed) == attempts(&after);
            is_still.then_some((listed, health, probe, metrics))
        };
        let mut seen = None;
        eventually("that both were started", || {
            seen = look();
            seen.is_some()
        });
        let (listed, health, (status, probe), metrics) = seen.expect("it was looked at");
        assert_eq!(listed[0]["gateway"], served.child.id().to_string());
        assert!(
            listed[1]["reason"].as_str().unwrap().contains("exit status: 3"),
            "{listed}"
        );

        assert_eq!(health.code, i32::from(!is_ready));
        let page: Value = serde_json::from_str(&health.stdout).unwrap();
        assert_eq!(states(&page["servers"]), expected);
        assert_eq!(page["status"] == "ready", is_ready);
        for (of_list, of_page) in [0, 1].map(|n| (&listed[n], &page["servers"][n])) {
            assert_eq!(of_list["attempts"], of_page["attempts"]);
            assert_eq!(of_list["n_restarts"], of_page["n_restarts"]);
            assert!(of_page.get("reason").is_none() && of_page["since"].is_string());
        }

        assert_eq!(status, if is_ready { 200 } else { 503 });
        assert_eq!(probe["status"], page["status"]);
        assert_eq!(probe["reasons"], page["reasons"]);
        assert_eq!(probe["servers"], json!({"inner": "ready", "broken": "failed"}));

        for line in [
            r#"toolplane_source_state{source="inner"} 2"#,
            r#"toolplane_source_state{source="broken"} 3"#,
            r#"toolplane_source_up{source="inner"} 1"#,
            r#"toolplane_source_up{source="broken"} 0"#,
            r#"toolplane_requests_running{server="inner"} 0"#,
            r#"toolplane_own_connections_used{server="inner"} 0"#,
            r#"toolplane_own_connections_limit{server="inner"} 16"#,
        ] {
            assert!(metrics.lines().any(|it| it == line), "{line} in\n{metrics}");
        }
    }
}

/// Starts an API that refuses all credentials.
fn closed_api() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            let _ = stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    url
}

#[test]
fn a_tool_that_is_switched_off_is_shown_so_and_can_be_switched_on_again() {
    let url = closed_api();
    let configuration = format!(
        "
tools:
  search:
    description: Searches
    executor: {{kind: http, url: '{url}', allow_private: true, headers: {{Authorization: 'Bearer ${{env:TOKEN}}'}}}}
  free:
    description: Needs nothing
    executor: {{kind: mock, result: 1}}
"
    );
    let (place, _run) = place(&configuration);
    let place = place.variable("TOKEN", "t0p-secret-token");
    let none = place.run(&["tools", "enable", "search"]);
    assert_eq!((none.code, none.stdout.as_str()), (6, ""), "{none:?}");
    let served = Served::start(&place);
    let before = place.run(&["tools", "ls"]);
    assert!(!before.data().contains("STATE"), "nothing is off: {before:?}");
    for _ in 0..3 {
        served.post("localhost", &call(1, "search", &json!({})));
    }
    let table = place.run(&["tools", "ls"]);
    assert_eq!(table.code, 0);
    let row = table
        .stdout
        .lines()
        .find(|line| line.starts_with("search"))
        .unwrap();
    assert!(row.contains("disabled"), "{table:?}");
    assert!(
        table.stderr.contains("`search` is disabled in the gateway")
            && table
                .stderr
                .contains("`toolplane tools enable search` enables it again"),
        "{table:?}"
    );
    let list = place.run(&["tools", "ls", "-o", "json"]).json();
    let by_name = |name: &str| list.as_array().unwrap().iter().find(|tool| tool["name"] == name);
    let disabled = &by_name("search").unwrap()["disabled"][0];
    assert!(
        disabled["reason"].as_str().unwrap().contains("refused"),
        "{disabled}"
    );
    assert_eq!(disabled["gateway"], served.child.id().to_string());
    assert!(by_name("free").unwrap().get("disabled").is_none());

    let shown = place.run(&["tools", "show", "search"]);
    assert!(
        shown.data().contains("disabled") && shown.data().contains("toolplane tools enable search"),
        "{shown:?}"
    );
    let other = place.run(&["tools", "show", "free"]);
    assert!(!other.data().contains("disabled"), "{other:?}");

    let enabled = place.run(&["tools", "enable", "search"]);
    assert_eq!(enabled.code, 0, "{enabled:?}");
    assert!(!place.run(&["tools", "ls"]).data().contains("STATE"));
    assert_eq!(place.run(&["tools", "enable", "search"]).code, 3, "it is on");
}

#[test]
fn a_call_fails_on_purpose_and_says_so() {
    let place = Place::with(INNER);
    place.write(
        "chaos.yaml",
        "seed: 42\nrules: [{failure_rate: 100%, errors: [network]}]\n",
    );
    let run = place.run(&["call", "greet", "--chaos", "chaos.yaml", "--explain"]);
    assert_eq!((run.code, run.stdout.as_str()), (6, ""), "{run:?}");
    for said in ["CHAOS: calls fail on purpose", "seed 42", "injected fault"] {
        assert!(run.stderr.contains(said), "{said}: {run:?}");
    }
    let dry = place.run(&["call", "greet", "--chaos", "chaos.yaml", "--dry-run"]);
    assert_eq!(dry.code, 0, "nothing is sent that could fail: {dry:?}");
    place.write(
        "chaos.yaml",
        "seed: 42\nrules: [{tools: [gret], failure_rate: 100%}]\n",
    );
    let idle = place.run(&["call", "greet", "--chaos", "chaos.yaml"]);
    assert_eq!(idle.code, 0, "{idle:?}");
    assert!(
        idle.stderr
            .contains("a rule of the chaos plan has `gret`, which matches no tool"),
        "{idle:?}"
    );
    place.write("chaos.yaml", "seed: 42\nrules: [{failure_rte: 20%}]\n");
    let wrong = place.run(&["call", "greet", "--chaos", "chaos.yaml"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("chaos.yaml:2"), "{wrong:?}");
}

/// Starts an API that closes the connection after a request: it may have executed it.
pub(crate) fn rude_api() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
        }
    });
    url
}

#[test]
fn a_call_of_which_nobody_knows_whether_the_tool_ran_is_looked_up_by_its_id() {
    let url = rude_api();
    let configuration = format!(
        "
tools:
  pay:
    description: Pays
    executor: {{kind: http, method: POST, url: '{url}', allow_private: true}}
"
    );
    let (place, _run) = place(&configuration);
    let served = Served::start(&place);
    let empty = place.run(&["ledger", "ls"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (0, ""), "{empty:?}");
    let answer = served.post("localhost", &call(1, "pay", &json!({})));
    let id = answer.split(r#""ledger_id":""#).nth(1).expect("an id");
    let id = id.split('"').next().unwrap();

    let list = place.run(&["ledger", "ls", "-o", "json"]).json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(
        (&list[0]["id"], &list[0]["tool"], &list[0]["state"]),
        (&json!(id), &json!("pay"), &json!("unknown"))
    );
    let table = place.run(&["ledger", "ls"]);
    assert!(table.data().lines().nth(1).unwrap().starts_with(id), "{table:?}");
    let shown = place.run(&["ledger", "show", id]);
    assert!(
        shown.data().contains("State: unknown") && shown.data().contains("Error: outcome_unknown: "),
        "{shown:?}"
    );
    let other = place.run(&["ledger", "show", "00000000000000000000000000000001"]);
    assert_eq!((other.code, other.stdout.as_str()), (3, ""), "{other:?}");
    let wrong = place.run(&["ledger", "show", "no id"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn check_names_defaults_that_are_never_filled_in() {
    let place = Place::with(
        r#"
tools:
  search:
    description: Searches.
    input_schema:
      type: object
      properties:
        limit: {type: integer, default: ten}
        page: {type: integer, default: 1}
    executor: {kind: mock, result: 1}
"#,
    );
    let run = place.run(&["check"]);
    assert_eq!(run.code, 0, "{run:?}");
    let said = "the input schema of `search`: the default at `/properties/limit/default` is never filled in";
    assert!(run.stderr.contains(said), "{run:?}");
    assert!(run.stderr.contains("toolplane.yaml:8:"), "{run:?}");
    assert!(!run.stderr.contains("/properties/page"), "{run:?}");
    assert_eq!(place.run(&["check", "--strict"]).code, 2);
}

/// A gateway over stdio.
struct Spoken {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Spoken {
    fn start(place: &Place) -> Self {
        let mut child = place
            .command(&["serve", "--stdio", "--no-reload"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut spoken = Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        spoken.ask("initialize", &hello);
        spoken.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        spoken
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Reads until a message has this value under that key.
    fn until(&mut self, key: &str, value: &Value) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "it ended before {value}"
            );
            let message: Value = serde_json::from_str(&line).unwrap();
            if message[key] == *value {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        self.until("id", &json!(method))
    }

    fn names(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", &json!({}));
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn until_lists_change(&mut self) {
        self.until("method", &json!("notifications/tools/list_changed"));
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_operator_switches_a_tool_off_and_on_in_a_running_gateway() {
    let tools = "
tools:
  search: {description: Searches, executor: {kind: mock, result: found}}
  free: {description: Needs nothing, executor: {kind: mock, result: 1}}
";
    let place = Place::with(tools);
    let none = place.run(&["tools", "disable", "search"]);
    assert_eq!(none.code, 6, "no gateway runs: {none:?}");
    let mut spoken = Spoken::start(&place);
    assert_eq!(spoken.names(), ["free", "search"]);
    let unknown = place.run(&["tools", "disable", "serch"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");

    let disabled = place.run(&["tools", "disable", "search", "--reason", "broken upstream"]);
    assert_eq!(disabled.code, 0, "{disabled:?}");
    spoken.until_lists_change();
    assert_eq!(spoken.names(), ["free"]);
    let refused = spoken.ask("tools/call", &json!({"name": "search", "arguments": {}}));
    let said = "`search` is switched off: an operator switched it off: broken upstream";
    assert!(refused.to_string().contains(said), "{refused}");
    assert!(refused.to_string().contains("unavailable"), "{refused}");

    let table = place.run(&["tools", "ls"]);
    let row = table
        .stdout
        .lines()
        .find(|line| line.starts_with("search"))
        .unwrap()
        .to_owned();
    assert!(row.contains("disabled"), "{table:?}");
    assert!(table.stderr.contains("broken upstream"), "{table:?}");
    let list = place.run(&["tools", "ls", "-o", "json"]).json();
    let shown = &list
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "search")
        .unwrap()["disabled"][0];
    assert_eq!(
        (&shown["by"], shown.get("retry_in_ms")),
        (&json!("operator"), None),
        "{shown}"
    );

    // A reload keeps it.
    place.write(
        "toolplane.yaml",
        format!("{tools}  third: {{description: New, executor: {{kind: mock, result: 3}}}}\n"),
    );
    signal(spoken.child.id(), Signal::HUP);
    spoken.until_lists_change();
    assert_eq!(spoken.names(), ["free", "third"]);

    let enabled = place.run(&["tools", "enable", "search"]);
    assert_eq!(enabled.code, 0, "{enabled:?}");
    spoken.until_lists_change();
    assert_eq!(spoken.names(), ["free", "search", "third"]);
    let answer = spoken.ask("tools/call", &json!({"name": "search", "arguments": {}}));
    assert!(answer.to_string().contains("found"), "{answer}");

    // The log has both.
    signal(spoken.child.id(), Signal::TERM);
    let mut log = String::new();
    spoken
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    assert!(
        log.contains("an operator disabled `search`") && log.contains("an operator enabled `search`"),
        "{log}"
    );
}

#[test]
fn check_warns_of_names_that_a_clients_prefix_makes_too_long() {
    let with = |length: usize| {
        let name = "n".repeat(length);
        let place = Place::with(&format!(
            "tools: {{{name}: {{description: d, executor: {{kind: mock, result: 1}}}}}}\n"
        ));
        place.run(&["check"])
    };
    // `mcp__toolplane__` has 16 characters, and most models accept 64.
    let short = with(48);
    assert_eq!((short.code, short.stderr.as_str()), (0, ""), "{short:?}");
    let long = with(49);
    assert_eq!(long.code, 0, "{long:?}");
    assert!(
        long.stderr
            .contains("the name of 1 tool is longer than 48 characters"),
        "{long:?}"
    );
}
