//! Tests of the program `tp-fault`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

fn tp_fault() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tp-fault"))
}

/// A listening program, which ends when dropped.
struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    fn start(arguments: &[&str]) -> Self {
        let mut child = tp_fault().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut address).unwrap();
        Self {
            child,
            address: address.trim_end().to_owned(),
        }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Runs a program with an input, until it ends.
fn run(arguments: &[&str], input: &str) -> Output {
    let mut command = tp_fault();
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that ends at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn events(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|entry| entry["event"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_proxy_in_front_of_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    let ledger = Listening::start(&["ledger"]);
    let proxy = Listening::start(&[
        "proxy",
        "--to",
        &ledger.address,
        "--fault",
        "cut:response=8",
        "--matching",
        "id=b",
        "--times",
        "1",
        "--history",
        file.to_str().unwrap(),
    ]);
    let ask = |id: &str| {
        let mut stream = TcpStream::connect(&proxy.address).unwrap();
        let request = format!("GET /?id={id} HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = vec![0; 8];
        stream.read_exact(&mut answer).unwrap();
        stream
    };
    let _stays_open = ask("a");
    let mut cut = ask("b");
    assert_eq!(cut.read(&mut [0; 1]).unwrap(), 0, "there is no more of it");
    let _stays_open = ask("b");
    let all = ledger.ask("GET /ledger HTTP/1.1\r\n\r\n");
    assert!(all.ends_with(r#"{"a":1,"b":2}"#), "{all}");
    let events = events(&file);
    for (event, n) in [("request", 3), ("met", 1), ("cut", 1), ("answering", 3)] {
        assert_eq!(
            events.iter().filter(|found| *found == event).count(),
            n,
            "{events:?}"
        );
    }
}

#[test]
fn a_wrapped_program_fails_in_its_first_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    let arguments = [
        "stdio",
        "--fault",
        "crash=5",
        "--starts",
        "2",
        "--history",
        file.to_str().unwrap(),
        "--",
        "cat",
    ];
    for expected in [
        (Some(5), ""),
        (Some(5), ""),
        (Some(0), "hello\n"),
        (Some(0), "hello\n"),
    ] {
        let output = run(&arguments, "hello\n");
        assert_eq!(output.status.code(), expected.0, "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected.1);
    }
    assert_eq!(
        events(&file).iter().filter(|event| *event == "started").count(),
        4
    );
}

#[test]
fn it_ends_while_its_client_keeps_the_input_open() {
    let mut command = tp_fault();
    command.args(["stdio", "--fault", "cut:response=2", "--", "cat"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"hello\n").unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!((output.as_str(), child.wait().unwrap().code()), ("he", Some(1)));
    drop(input);
}

#[test]
fn what_cannot_be_is_refused_with_words() {
    for (arguments, part) in [
        (
            &["stdio", "--fault", "cut:response", "--", "cat"][..],
            "invalid fault `cut:response`: missing value",
        ),
        (
            &["stdio", "--fault", "status=503", "--", "cat"],
            "`status=503` applies to connections",
        ),
        (&["stdio", "--starts", "1", "--", "cat"], "--history"),
        (
            &["proxy", "--to", "127.0.0.1:1", "--fault", "exit=1"],
            "`exit=1` applies to wrapped programs",
        ),
        (
            &["ledger", "--history", "no/such/folder/file"],
            "the history `no/such/folder/file` cannot be written",
        ),
    ] {
        let output = run(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(part), "{told}");
    }
}
