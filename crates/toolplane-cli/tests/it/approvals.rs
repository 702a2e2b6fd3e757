//! Approvals of calls, decided from another process.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::binary::{Place, end_of};

const TOOLS: &str = "
policy:
  approval: {required: [pay*], separate_approver: true}
tools:
  pay:
    description: Pays
    input_schema: {type: object, properties: {to: {type: string}}}
    executor: {kind: mock, result: {paid: true}}
  look:
    description: Looks
    approval: required
    executor: {kind: mock, result: {seen: true}}
  free:
    description: Needs nothing
    executor: {kind: mock, result: {free: true}}
";

/// Directory of gateway sockets, below the user's home.
pub(crate) const SOCKETS: &str = ".local/state/toolplane/run";

/// A gateway over pipes, with a client that cannot be asked.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Gateway {
    pub(crate) fn start(place: &Place) -> Self {
        Self::new(place.command(&["serve", "--stdio"]))
    }

    /// Starts a gateway by this command and initializes it.
    pub(crate) fn new(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut gateway = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        gateway.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        gateway
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.input.as_ref().unwrap(), "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the gateway has ended"
            );
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == request["id"] {
                return answer["result"].clone();
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}))
    }

    pub(crate) fn end(mut self) -> i32 {
        self.input = None;
        end_of(&mut self.child)
    }
}

/// Returns a place with its own socket directory. Socket paths must be short.
fn place() -> (Place, tempfile::TempDir) {
    let run = tempfile::Builder::new().prefix("tp").tempdir().unwrap();
    let place = Place::with(TOOLS).variable("XDG_RUNTIME_DIR", run.path().to_str().unwrap());
    (place, run)
}

#[test]
fn somebody_decides_on_calls_of_a_gateway_that_runs() {
    let (place, _run) = place();
    let none = place.run(&["approvals", "ls"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none:?}");
    assert!(none.stderr.contains("no call waits for approval"), "{none:?}");
    let mut gateway = Gateway::start(&place);
    let none = place.run(&["approvals", "ls"]);
    assert_eq!(none.code, 0, "{none:?}");
    assert!(none.stderr.contains("no call waits for approval"), "{none:?}");
    assert_eq!(
        gateway.call("free", &json!({}))["structuredContent"],
        json!({"free": true})
    );
    let pending = gateway.call("pay", &json!({"to": "ann\u{202e}"}));
    let handle = pending["_meta"]["dev.toolplane/pending"]["handle"]
        .as_str()
        .unwrap();
    let sockets = place.path().join(SOCKETS);
    let files: Vec<_> = fs::read_dir(&sockets).unwrap().collect();
    assert_eq!(files.len(), 1);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(files[0].as_ref().unwrap().path()), 0o600);
    assert_eq!(mode(sockets), 0o700);

    let list = place.run(&["approvals", "ls", "-o", "json"]).json();
    assert_eq!(list[0]["handle"], handle);
    assert_eq!(
        (&list[0]["tool"], &list[0]["state"]),
        (&json!("pay"), &json!("pending"))
    );
    let table = place.run(&["approvals", "ls"]);
    assert!(
        table.data().contains(&handle[..8]) && table.data().contains("pay"),
        "{table:?}"
    );
    let shown = place.run(&["approvals", "show", &handle[..8]]);
    assert!(
        shown
            .data()
            .contains("Arguments:\n{\n  \"to\": \"ann\\u202e\"\n}"),
        "{shown:?}"
    );

    let own = place.run(&["approvals", "approve", handle, "--as", "local"]);
    assert_eq!(own.code, 4, "{own:?}");
    assert_eq!(place.run(&["approvals", "approve", "none"]).code, 3);
    let approved = place.run(&["approvals", "approve", &handle[..8], "--as", "boss"]);
    assert_eq!(approved.data(), format!("approved {handle}: pay\n"));
    let twice = place.run(&["approvals", "deny", handle]);
    assert_eq!(twice.code, 1, "{twice:?}");
    let paid = gateway.call("pay", &json!({"to": "ann\u{202e}"}));
    assert_eq!(paid["structuredContent"], json!({"paid": true}));

    let pending = gateway.call("pay", &json!({"to": "bob"}));
    let handle = pending["_meta"]["dev.toolplane/pending"]["handle"]
        .as_str()
        .unwrap();
    let denied = place.run(&["approvals", "deny", handle, "--reason", "not him"]);
    assert_eq!(denied.code, 0, "{denied:?}");
    let refused = gateway.call("pay", &json!({"to": "bob"}));
    let error = &refused["_meta"]["dev.toolplane/error"];
    assert_eq!(error["message"], "`operator` denied the call: not him");
    assert_eq!(gateway.end(), 0);
    assert_eq!(
        fs::read_dir(place.path().join(SOCKETS)).unwrap().count(),
        0,
        "it goes with the gateway"
    );
}

#[test]
fn a_call_from_the_command_line_waits_or_is_approved_by_whoever_makes_it() {
    let (place, _run) = place();
    let waits = place.run(&["call", "pay"]);
    assert_eq!((waits.code, waits.stdout.as_str()), (5, ""), "{waits:?}");
    assert!(
        waits.stderr.contains("it waits for somebody's approval, as `"),
        "{waits:?}"
    );
    let other = place.run(&["call", "pay", "--approve"]);
    assert_eq!(other.code, 4, "somebody else must: {other:?}");
    let dry = place.run(&["call", "pay", "--dry-run"]);
    assert_eq!(dry.code, 0);
    let said = format!("{}{}", dry.stdout, dry.stderr);
    assert!(
        said.contains("would ask for approval, because of the policy rule `pay*`"),
        "{dry:?}"
    );

    place.write("toolplane.yaml", TOOLS.replace(", separate_approver: true", ""));
    let explained = place.run(&["call", "look", "--approve", "--explain"]);
    assert_eq!(explained.code, 0, "{explained:?}");
    assert!(
        explained.stderr.contains("`local` approved it, as `"),
        "{explained:?}"
    );
}

#[test]
fn what_is_not_right_about_approval_is_said_with_its_line() {
    for (text, expected) in [
        ("defaults: {approval: sometimes}", "sometimes"),
        ("policy: {approval: {require: [a]}}", "did you mean `required`?"),
        (
            "policy: {approval: {expires_after: 0s}}",
            "nobody could decide in no time",
        ),
    ] {
        let place = Place::with(text);
        let run = place.run(&["check"]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
}
