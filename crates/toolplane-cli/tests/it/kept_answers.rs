//! First answers that are kept from one start to the next. A test writes a lie into the file: only a gateway that uses the file tells it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::PathBuf,
    process::{Child, ChildStdout, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, end_of, eventually},
    serve::Served,
    stores::spoil_pins,
};

const TRUTH: &str = "Says what it is told";
const LIE: &str = "Says what was a lie.";
const NEWS: &str = "Says something new";

/// A gateway with a server whose lists are kept, in files or in a store.
fn place(store: &str) -> Place {
    let servers =
        format!("servers:\n  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}\n");
    let place = Place::with(&format!("{store}{servers}"));
    write_server(&place, TRUTH);
    let listed = place.run(&["tools", "ls"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    place
}

fn write_server(place: &Place, description: &str) {
    let tool = format!("{{description: {description}, executor: {{kind: mock, result: 1}}}}");
    place.write(
        "inner.yaml",
        format!("gateway: {{instructions: Be kind.}}\ntools: {{say: {tool}}}\n"),
    );
}

/// A client over stdio.
struct Session {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Session {
    /// Starts a gateway and asks for the instructions and the tools at once.
    fn start(place: &Place, options: &[&str]) -> Self {
        let mut child = place
            .command(&[&["serve", "--stdio"], options].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut session = Self {
            child,
            answers: BufReader::new(stdout).lines(),
        };
        session.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        session
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().unwrap();
        // A gateway that has ended shows by the missing answer.
        let _ = writeln!(stdin, "{message}");
    }

    /// Returns the next message that contains this.
    fn receive(&mut self, part: &str) -> String {
        let mut messages = self.answers.by_ref().map(Result::unwrap);
        messages.find(|message| message.contains(part)).unwrap()
    }

    /// Returns the description of the server's tool in the list, or nothing if it is not in it.
    fn first_list(&mut self) -> String {
        let list: Value = serde_json::from_str(&self.receive("\"id\":2")).unwrap();
        let mut tools = list["result"]["tools"].as_array().unwrap().iter();
        let tool = tools.find(|tool| tool["name"] == "inner__say");
        tool.map_or("", |tool| tool["description"].as_str().unwrap())
            .to_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Returns the file of the gateway. The server is a gateway as well, and has another one.
fn kept_file(place: &Place) -> Option<PathBuf> {
    let entries = fs::read_dir(place.path().join(".cache/toolplane/answers")).ok()?;
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("inner__say")))
}

/// Starts gateways until one has kept its answers, and makes a lie of them.
fn keep_a_lie(place: &Place, options: &[&str]) {
    if let Some(file) = kept_file(place) {
        fs::remove_file(file).unwrap();
    }
    eventually("a kept answer", || {
        let mut session = Session::start(place, options);
        assert_eq!(session.first_list(), TRUTH);
        // Kept a moment after the first list.
        for _ in 0..20 {
            if kept_file(place).is_some() {
                return true;
            }
            sleep(Duration::from_millis(5));
        }
        false
    });
    lie(place);
}

fn lie(place: &Place) {
    let file = kept_file(place).unwrap();
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains("Be kind."), "{kept}");
    // In place: the file keeps its mode.
    fs::write(file, kept.replace(TRUTH, LIE)).unwrap();
}

fn check_answers_are_used_and_corrected(store: &str) {
    let place = place(store);
    keep_a_lie(&place, &[]);
    // A client that is late gets the truth.
    eventually("an answer of the earlier start", || {
        let mut session = Session::start(&place, &[]);
        let instructions = session.receive("\"id\":1");
        assert!(instructions.contains("Be kind."), "{instructions}");
        if session.first_list() != LIE {
            drop(session);
            keep_a_lie(&place, &[]);
            return false;
        }
        session.receive("notifications/tools/list_changed");
        session.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        assert_eq!(session.first_list(), TRUTH);
        let call = json!({"name": "inner__say", "arguments": {}});
        session.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}));
        assert!(session.receive("\"id\":3").contains("result"));
        true
    });
    eventually("the end of the lie", || kept_file(&place).is_none());
}

#[test]
fn answers_are_used_and_corrected_with_lists_in_files() {
    check_answers_are_used_and_corrected("");
}

#[test]
fn answers_are_used_and_corrected_with_lists_in_a_database() {
    check_answers_are_used_and_corrected("store: {sqlite: toolplane.db}\n");
}

#[test]
fn clients_over_http_get_them_as_well() {
    let place = place("");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    eventually("an answer of the earlier start", || {
        eventually("a kept answer", || {
            let served = Served::start(&place);
            assert!(served.post("localhost", &list).contains(TRUTH));
            kept_file(&place).is_some()
        });
        lie(&place);
        let served = Served::start(&place);
        served.post("localhost", &list).contains(LIE)
    });
}

#[test]
fn they_are_forgotten_with_the_lists() {
    for store in ["", "store: {sqlite: toolplane.db}\n"] {
        let place = place(store);
        keep_a_lie(&place, &[]);
        let forgotten = place.run(&["servers", "forget", "inner"]);
        assert_eq!(forgotten.code, 0, "{forgotten:?}");
        assert_eq!(kept_file(&place), None);
    }
}

/// Changes something that the answers depend on.
type Change<'a> = &'a dyn Fn(&Place);

/// After each of these changes, the lie may not be told.
#[test]
fn answers_are_not_used_after_a_change() {
    let done = |run: crate::binary::Run| assert_eq!(run.code, 0, "{run:?}");
    let stored = "store: {sqlite: toolplane.db}\n";
    // Another gateway learns that the server has another tool.
    let lists: Change<'_> = &|place| {
        write_server(place, NEWS);
        place.run(&["call", "inner__say"]);
    };
    let changes: [(&str, &str, Change<'_>, &str); 5] = [
        (
            "the configuration",
            "",
            &|place| {
                let file = place.path().join("toolplane.yaml");
                let text = fs::read_to_string(&file).unwrap();
                fs::write(file, format!("# other\n{text}")).unwrap();
            },
            TRUTH,
        ),
        ("the lock file", "", &|place| done(place.run(&["lock"])), TRUTH),
        ("the kept lists", "", lists, NEWS),
        // Its changed definition is withheld.
        ("the kept lists in a store", stored, lists, ""),
        (
            "a tool in the store",
            stored,
            &|place| {
                let tool = "tools: {z: {version: 1.0.0, description: d, executor: {kind: mock, result: 1}}}";
                place.write("z.yaml", tool);
                done(place.run(&["tools", "publish", "z.yaml"]));
            },
            TRUTH,
        ),
    ];
    for (what, store, change, expected) in changes {
        let place = place(store);
        keep_a_lie(&place, &[]);
        change(&place);
        assert!(kept_file(&place).is_some(), "{what}");
        let mut session = Session::start(&place, &[]);
        assert_eq!(session.first_list(), expected, "{what}");
    }
}

#[test]
fn answers_are_for_one_kind_of_start_only() {
    let place = place("");
    keep_a_lie(&place, &[]);
    let mut session = Session::start(&place, &["--mode", "list"]);
    assert_eq!(session.first_list(), TRUTH);
    drop(session);
    let place = place.variable("TOOLPLANE_UNHEARD_OF", "1");
    assert_eq!(Session::start(&place, &[]).first_list(), TRUTH);
}

/// The file decides what agents see, so nobody else may have written it.
#[test]
fn a_file_of_another_mode_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = place("");
    keep_a_lie(&place, &[]);
    fs::set_permissions(kept_file(&place).unwrap(), fs::Permissions::from_mode(0o660)).unwrap();
    assert_eq!(Session::start(&place, &[]).first_list(), TRUTH);
}

#[test]
fn nothing_is_kept_with_authentication_or_without_kept_lists() {
    for settings in [
        "gateway: {auth: tokens}\nstore: {sqlite: toolplane.db}\n",
        "defaults: {keep_lists: false}\n",
    ] {
        let place = place(settings);
        for _ in 0..2 {
            let mut session = Session::start(&place, &[]);
            session.receive("\"id\":2");
        }
        assert_eq!(kept_file(&place), None, "{settings}");
    }
}

/// The accepted definitions are read after the first answers here.
#[test]
fn a_gateway_that_cannot_read_the_accepted_definitions_ends() {
    let place = place("store: {sqlite: toolplane.db}\n");
    keep_a_lie(&place, &[]);
    spoil_pins(&place, "toolplane.db");
    let mut session = Session::start(&place, &[]);
    let call = json!({"name": "inner__say", "arguments": {}});
    session.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}));
    assert_eq!(end_of(&mut session.child), 6);
    // Nothing but the first answers was given.
    let messages = session.answers.by_ref().map(Result::unwrap);
    for message in messages.filter(|message| message.contains(r#""id":3"#)) {
        assert!(message.contains("error"), "{message}");
    }
}
