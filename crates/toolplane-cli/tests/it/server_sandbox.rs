//! Servers in a sandbox.

use std::{fs, io::Read, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    accesses::{Listener, accesses_of},
    binary::{Place, end_of, eventually, signal},
    code::{call, text},
    serve::Served,
    versions::{ERAS, Era},
};

/// MCP server in Python with one tool, which does what it is told.
const SERVER: &str = r#"
import json, os, subprocess, sys, urllib.error, urllib.request

def act(do, what):
    if do == "environment":
        return json.dumps(dict(os.environ))
    if do == "directory":
        return os.getcwd()
    if do == "read":
        return open(what).read()
    if do == "write":
        with open(what, "w") as file:
            file.write("written")
        return "ok"
    if do == "fetch":
        try:
            return urllib.request.urlopen(what, timeout=20).read().decode()
        except urllib.error.HTTPError as error:
            return f"status {error.code}"
    if do == "exit":
        os._exit(3)
    if do == "daemon":
        # A daemon: its parent has ended, and where that is allowed it has a session of its own.
        if os.fork() == 0:
            try:
                os.setsid()
            except OSError:
                pass
            if os.fork() == 0:
                null = os.open("/dev/null", os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(null, number)
                os.execv("/usr/bin/sleep", ["sleep", what])
            os._exit(0)
        os.wait()
        return "ok"

def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "boxed", "version": "1"}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"do": {"type": "string"}, "what": {"type": "string"}}}
        return {"tools": [{"name": "act", "description": "Acts.", "inputSchema": schema}]}
    arguments = params.get("arguments", {})
    try:
        said, failed = act(arguments["do"], arguments.get("what")), False
    except Exception as error:
        said, failed = type(error).__name__, True
    return {"content": [{"type": "text", "text": said}], "isError": failed}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
        print(json.dumps(reply), flush=True)
"#;

/// Returns a place with the server in `server/`, a file of the host beside it, and `shared/`, which everyone may write.
fn place_with(configuration: &str) -> Place {
    let place = Place::with(configuration).variable("GATEWAY_ONLY", "of-the-gateway");
    let place = place.variable("BOXED_TOKEN", "granted-token");
    place.write("server/main.py", SERVER);
    place.write("outside.txt", "of the host");
    place.write("shared/.keep", "");
    let shared = place.path().join("shared");
    fs::set_permissions(shared, fs::Permissions::from_mode(0o777)).unwrap();
    place
}

/// Settings of the server in a sandbox with these members.
fn boxed(sandbox: &str) -> String {
    format!(
        "servers:\n  boxed:\n    command: python3\n    args: [main.py]\n    cwd: server\n    env: {{TOKEN: '${{env:BOXED_TOKEN}}'}}\n    \
         sandbox: {sandbox}\n"
    )
}

fn act(served: &Served, era: Era, what: &[&str]) -> Value {
    let arguments = match what {
        [what] => json!({"do": what}),
        [what, with] => json!({"do": what, "what": with}),
        _ => unreachable!(),
    };
    call(served, era, "boxed__act", arguments)
}

/// Returns the status of a server in the health page.
fn status(served: &Served, name: &str) -> Value {
    let (_, page) = served.get("/health");
    let servers = page["servers"].as_array().unwrap();
    servers
        .iter()
        .find(|server| server["name"] == name)
        .unwrap()
        .clone()
}

/// Returns `true` if a process with this argument runs.
fn lives(argument: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments
            .split(|byte| *byte == 0)
            .any(|part| part == argument.as_bytes())
    })
}

#[test]
fn a_server_sees_what_its_sandbox_names_and_nothing_else() {
    for level in ["bwrap", "landlock"] {
        let place = place_with(&boxed(&format!("{{level: {level}, writes: [shared]}}")));
        let served = Served::start(&place);
        let host = |name: &str| place.path().join(name).display().to_string();
        for era in ERAS {
            let said = act(&served, era, &["environment"]);
            assert_eq!(
                said["_meta"]["dev.toolplane/sandbox"],
                json!({"level": level, "network": "off"}),
                "{said}"
            );
            let environment: Value = serde_json::from_str(text(&said)).unwrap();
            // It is there, and hidden in results as the value of a secret.
            assert_eq!(environment["TOKEN"], "[redacted]", "{environment}");
            for absent in ["GATEWAY_ONLY", "BOXED_TOKEN", "USER", "MCP_CLIENT_TREE"] {
                assert!(environment[absent].is_null(), "{absent}: {environment}");
            }
            assert_ne!(environment["HOME"], json!(place.path()), "{environment}");
            let directory = act(&served, era, &["directory"]);
            assert_eq!(text(&directory), host("server"), "{directory}");
            let own = act(&served, era, &["read", "main.py"]);
            assert!(text(&own).contains("def act"), "{own}");
            for hidden in [
                host("outside.txt"),
                host("toolplane.yaml"),
                "/etc/shadow".to_owned(),
            ] {
                let refused = act(&served, era, &["read", &hidden]);
                assert_eq!(refused["isError"], true, "{hidden}: {refused}");
            }
            let read_only = act(&served, era, &["write", "main.py"]);
            assert_eq!(read_only["isError"], true, "{read_only}");
            let written = act(&served, era, &["write", &host("shared/file")]);
            assert_eq!(text(&written), "ok", "{written}");
            assert_eq!(fs::read_to_string(host("shared/file")).unwrap(), "written");
            fs::remove_file(host("shared/file")).unwrap();
        }
        assert_eq!(fs::read_to_string(host("server/main.py")).unwrap(), SERVER);
        assert_eq!(status(&served, "boxed")["sandbox"], level);
    }
}

#[test]
fn a_daemon_is_gone_with_its_server() {
    for (level, number) in [("bwrap", 1), ("landlock", 2)] {
        let place = place_with(&boxed(level));
        let daemon = |end: u32| format!("{}.{number}{end}", 100_000 + std::process::id());
        let start = |served: &Served, end| {
            let started = act(served, Era::Modern, &["daemon", &daemon(end)]);
            assert_eq!(text(&started), "ok", "{started}");
            eventually("the daemon", || lives(&daemon(end)));
        };
        // The server crashes; the gateway starts another one.
        let mut served = Served::start(&place);
        start(&served, 1);
        let crashed = act(&served, Era::Modern, &["exit"]);
        assert_eq!(
            crashed["_meta"]["dev.toolplane/error"]["kind"], "outcome_unknown",
            "{crashed}"
        );
        eventually("the end of the daemon of a crashed server", || !lives(&daemon(1)));
        // The gateway stops.
        eventually("another server", || {
            act(&served, Era::Modern, &["directory"])["isError"] == false
        });
        start(&served, 2);
        signal(served.child.id(), Signal::TERM);
        end_of(&mut served.child);
        assert!(!lives(&daemon(2)), "{level}");
        let mut log = String::new();
        served.stderr.read_to_string(&mut log).unwrap();
        // Without namespaces, the end of a daemon is only seen when the first process of the machine has reaped it.
        let is_seen_at_once = level == "bwrap";
        let ended = log.contains("the server has ended with exit status: 3");
        assert!(ended || !is_seen_at_once, "{log}");
        // The gateway is killed.
        let mut served = Served::start(&place);
        start(&served, 3);
        served.child.kill().unwrap();
        eventually("the end of the daemon of a killed gateway", || !lives(&daemon(3)));
    }
}

#[test]
fn hosts_of_a_server_are_allowed_one_by_one() {
    let (named, other) = (Listener::start(), Listener::start());
    let place = place_with(&boxed(&format!("{{network: ['127.0.0.1:{}']}}", named.port)));
    let served = Served::start_with(&place, &["--log", "info", "--log-format", "json"]);
    for era in ERAS {
        let fetch = |listener: &Listener| {
            act(
                &served,
                era,
                &["fetch", &format!("http://127.0.0.1:{}/", listener.port)],
            )
        };
        let allowed = fetch(&named);
        assert_eq!(text(&allowed), "hello", "{allowed}");
        assert_eq!(
            allowed["_meta"]["dev.toolplane/sandbox"],
            json!({"level": "bwrap", "network": "hosts"})
        );
        let denied = fetch(&other);
        assert_eq!(text(&denied), "status 403", "{denied}");
    }
    assert_eq!((named.count(), other.count()), (2, 0));
    let accesses = accesses_of(served);
    let verdicts: Vec<_> = accesses.iter().map(|access| &access["verdict"]).collect();
    assert_eq!(
        verdicts,
        ["allowed", "denied", "allowed", "denied"],
        "{accesses:#?}"
    );
    for access in accesses {
        assert_eq!(
            (&access["subject"], &access["name"]),
            (&json!("upstream"), &json!("boxed"))
        );
    }
}

#[test]
fn a_server_that_cannot_have_its_sandbox_is_refused_alone() {
    let place = place_with(
        "servers:
  outside: {command: ./tool, sandbox: auto}
  missing: {command: python3, sandbox: {reads: [nowhere]}}
  weak: {command: python3, sandbox: {level: landlock, network: [api.example.com]}}
  open: {command: python3, args: [main.py], cwd: server, sandbox: none}
",
    );
    let tool = place.write("tool", "#!/bin/sh\n");
    fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
    let run = place.run(&["servers", "ls", "-o", "json"]);
    let servers = run.json();
    let row = |name: &str| {
        let rows = servers.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    for (name, reason) in [
        ("outside", "the sandbox does not show the program"),
        ("missing", "nowhere`: No such file"),
        ("weak", "level `landlock` has no network to filter"),
    ] {
        let row = row(name);
        assert_eq!(row["state"], "failed", "{row}");
        assert!(row["reason"].as_str().unwrap().contains(reason), "{row}");
        assert!(row["sandbox"].is_null(), "{row}");
    }
    let outside = row("outside");
    let folder = place.path().canonicalize().unwrap();
    let advice = format!("add `{}` to `reads`", folder.display());
    assert!(outside["reason"].as_str().unwrap().contains(&advice), "{outside}");
    assert_eq!(
        (&row("open")["state"], &row("open")["sandbox"]),
        (&json!("ready"), &json!("none"))
    );
}

/// VS Code's words: `sandboxEnabled` on a server, and `sandbox` for all of a file.
#[test]
fn the_sandbox_of_a_clients_file_is_kept_or_the_server_is_refused() {
    let file = |rules: &str| {
        format!(
            r#"{{"servers": {{
              "boxed": {{"type": "stdio", "command": "python3", "args": ["main.py"], "cwd": "server", "sandboxEnabled": true}},
              "plain": {{"type": "stdio", "command": "python3", "args": ["main.py"], "cwd": "server"}}
            }}, "sandbox": {rules}}}"#
        )
    };
    let place = place_with("include: [mcp.json]\n");
    place.write(
        "mcp.json",
        file(r#"{"filesystem": {"allowWrite": ["../shared"], "denyRead": ["/etc"]}, "network": {"deniedDomains": ["evil.example"]}}"#),
    );
    let served = Served::start(&place);
    let shared = place.path().join("shared/file").display().to_string();
    let written = act(&served, Era::Modern, &["write", &shared]);
    assert_eq!(text(&written), "ok", "{written}");
    assert_eq!(
        written["_meta"]["dev.toolplane/sandbox"]["level"], "bwrap",
        "{written}"
    );
    let outside = place.path().join("outside.txt").display().to_string();
    let refused = act(&served, Era::Modern, &["read", &outside]);
    assert_eq!(refused["isError"], true, "{refused}");
    let plain = call(
        &served,
        Era::Modern,
        "plain__act",
        json!({"do": "read", "what": outside}),
    );
    assert_eq!(text(&plain), "of the host", "{plain}");
    assert!(plain["_meta"]["dev.toolplane/sandbox"].is_null(), "{plain}");
    drop(served);

    place.write(
        "mcp.json",
        file(r#"{"filesystem": {"allowWrite": ["../shared"], "denyWrite": ["../shared/secret"]}}"#),
    );
    let checked = place.run(&["check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(
        said.contains("mcp.json:4")
            && said.contains("cannot deny `../shared/secret` within the allowed `../shared`"),
        "{said}"
    );
    let served = Served::start(&place);
    let plain = call(&served, Era::Modern, "plain__act", json!({"do": "directory"}));
    assert_eq!(plain["isError"], false, "{plain}");
    let servers = place.run(&["servers", "ls", "-o", "json"]).json();
    let boxed = servers
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "boxed")
        .unwrap();
    assert_eq!(boxed["state"], "failed", "{boxed}");
    assert!(
        boxed["reason"]
            .as_str()
            .unwrap()
            .contains("cannot deny `../shared/secret`"),
        "{boxed}"
    );
}

#[test]
fn words_of_a_client_without_effect_are_reported() {
    for (text, message) in [
        (
            "sandbox: {network: {allowedDomains: [a.org]}}\nservers: {a: {command: 'true'}}\n",
            "`sandbox` has no effect here",
        ),
        (
            "servers: {a: {url: 'http://127.0.0.1:9/', sandboxEnabled: true}}\n",
            "`sandboxEnabled` has no effect on a server with a `url`",
        ),
    ] {
        let run = Place::with(text).run(&["check"]);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(
            said.contains("toolplane.yaml:1") && said.contains(message),
            "{text}{said}"
        );
    }
}

#[test]
fn problems_of_a_sandbox_show_the_line_and_what_is_meant() {
    for (text, line, message) in [
        (
            "servers:\n  a: {url: 'http://127.0.0.1:9/', sandbox: auto}\n",
            2,
            "`sandbox` belongs to a server with a `command`",
        ),
        (
            "servers:\n  a:\n    command: x\n    sandbox: {read: [/a]}\n",
            4,
            "did you mean `reads`?",
        ),
        (
            "servers:\n  a:\n    command: x\n    sandbox: strict\n",
            4,
            "bwrap",
        ),
        (
            "servers:\n  a:\n    command: x\n    sandbox:\n      network: ['https://a.org']\n",
            5,
            "`https://a.org` is no host",
        ),
        (
            "servers:\n  a:\n    command: x\n    sandbox:\n      limits: {memory: 0}\n",
            5,
            "a limit of 0",
        ),
        (
            "servers:\n  a:\n    command: x\n    sandbox: {level: none, reads: [/a]}\n",
            4,
            "without a sandbox the server reaches everything",
        ),
    ] {
        let run = Place::with(text).run(&["check"]);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, 2, "{said}");
        assert!(
            said.contains(&format!("toolplane.yaml:{line}")) && said.contains(message),
            "{text}{said}"
        );
    }
}
