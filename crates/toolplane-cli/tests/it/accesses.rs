//! Accesses of code that the sandbox decides about: enforced, and reported for an audit.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{Place, end_of, signal},
    code::{call, text},
    serve::Served,
    versions::{ERAS, ask},
};

/// HTTP server on loopback that counts its connections, and answers each with `hello`.
pub(crate) struct Listener {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
}

impl Listener {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut request = Vec::new();
                let mut buffer = [0; 1024];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(length @ 1..) => request.extend_from_slice(&buffer[..length]),
                        _ => break,
                    }
                }
                // The client may be gone.
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
            }
        });
        Self { port, connections }
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Stops a gateway and returns its log lines about accesses.
pub(crate) fn accesses_of(mut served: Served) -> Vec<Value> {
    signal(served.child.id(), Signal::TERM);
    end_of(&mut served.child);
    let mut log = served.said.clone();
    served.stderr.read_to_string(&mut log).unwrap();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| line["target"] == "tool_observe::access_log")
        .collect()
}

const FETCH: &str = r#"
        import socket, urllib.error, urllib.request
        def run(url, direct=None):
            if direct:
                try:
                    socket.create_connection(("127.0.0.1", direct), 5)
                    return "connected"
                except OSError as error:
                    return "no way"
            try:
                return urllib.request.urlopen(url, timeout=20).read().decode()
            except urllib.error.HTTPError as error:
                return f"status {error.code}"
"#;

#[test]
fn hosts_are_allowed_one_by_one_and_each_decision_is_in_the_log() {
    let (named, other) = (Listener::start(), Listener::start());
    let place = Place::with(&format!(
        "tools:\n  fetch:\n    description: Fetches.\n    parameters: [{{name: url, type: string, required: true}}, {{name: direct, type: \
         integer}}]\n    executor:\n      kind: python\n      network: ['127.0.0.1:{}']\n      code: |{FETCH}",
        named.port
    ));
    let served = Served::start_with(&place, &["--log", "info", "--log-format", "json"]);
    let fetch = |arguments: Value, era| call(&served, era, "fetch", arguments);
    let at = |listener: &Listener| format!("http://127.0.0.1:{}/", listener.port);
    for (n_before, era) in ERAS.into_iter().enumerate() {
        let allowed = fetch(json!({"url": at(&named)}), era);
        assert_eq!(text(&allowed), "hello", "{allowed}");
        let sandbox = &allowed["_meta"]["dev.toolplane/sandbox"];
        assert_eq!(
            sandbox,
            &json!({"level": "bwrap", "network": "hosts"}),
            "{allowed}"
        );
        let denied = fetch(json!({"url": at(&other)}), era);
        assert_eq!(text(&denied), "status 403", "{denied}");
        // There is no way around the proxy.
        for listener in [&named, &other] {
            let direct = fetch(json!({"url": "", "direct": listener.port}), era);
            assert_eq!(text(&direct), "no way", "{direct}");
        }
        assert_eq!((named.count(), other.count()), (n_before + 1, 0));
    }
    let accesses = accesses_of(served);
    assert_eq!(accesses.len(), 4, "{accesses:#?}");
    let mut ids = Vec::new();
    for (index, access) in accesses.iter().enumerate() {
        let (listener, verdict) = [(&named, "allowed"), (&other, "denied")][index % 2];
        assert_eq!(access["verdict"], verdict, "{access}");
        assert_eq!(access["resource"], format!("127.0.0.1:{}", listener.port));
        assert_eq!(
            (&access["subject"], &access["name"]),
            (&json!("tool"), &json!("fetch"))
        );
        assert_eq!(access["principal"], "anonymous", "{access}");
        assert_eq!(access["reason"].is_string(), verdict == "denied", "{access}");
        let id = access["correlation_id"].as_str().unwrap();
        assert_eq!(id.len(), 32, "{access}");
        ids.push(id.to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 4, "each call has its own");
}

/// An interpreter that loads its code before a call comes has no call yet; afterwards it has that one.
#[test]
fn accesses_of_a_waiting_interpreter_belong_to_the_call_that_takes_it() {
    let named = Listener::start();
    let place = Place::with(&format!(
        "tools:\n  fetch:\n    description: Fetches.\n    parameters: [{{name: url, type: string, required: true}}, {{name: direct, type: \
         integer}}]\n    executor:\n      kind: python\n      stateless: true\n      network: ['127.0.0.1:{}']\n      code: |{FETCH}",
        named.port
    ));
    let served = Served::start_with(&place, &["--log", "info", "--log-format", "json"]);
    let url = format!("http://127.0.0.1:{}/", named.port);
    for era in ERAS {
        let result = call(&served, era, "fetch", json!({"url": url}));
        assert_eq!(text(&result), "hello", "{result}");
    }
    let accesses = accesses_of(served);
    assert_eq!((accesses.len(), named.count()), (2, 2), "{accesses:#?}");
    let ids: Vec<_> = accesses
        .iter()
        .map(|access| access["correlation_id"].as_str())
        .collect();
    assert!(
        ids[0].is_some() && ids[1].is_some() && ids[0] != ids[1],
        "{accesses:#?}"
    );
}

/// A tool of a store reaches what its permissions name, for callers who hold them.
#[test]
fn a_caller_without_the_permission_of_a_stored_tool_starts_nothing() {
    let named = Listener::start();
    let url = format!("http://127.0.0.1:{}/", named.port);
    let place = Place::with("store: {sqlite: data/tools.db}\n");
    let tool = |permission: &str| {
        format!(
            "tools:\n  fetch:\n    version: 1.0.0\n    description: Fetches.\n    required_permissions: [{permission}]\n    parameters: \
             [{{name: url, type: string, required: true}}]\n    executor:\n      kind: python\n      network: ['127.0.0.1:{}']\n      \
             code: |{FETCH}",
            named.port
        )
    };
    // The wrong permission does not open the private network.
    place.write("wrong.yaml", tool("network.external"));
    let refused = place.run(&["tools", "publish", "wrong.yaml"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("requires the permission `network.internal`"),
        "{refused:?}"
    );

    let place = Place::with("store: {sqlite: data/tools.db}\n");
    place.write("right.yaml", tool("network.internal"));
    let published = place.run(&["tools", "publish", "right.yaml"]);
    assert_eq!(published.code, 0, "{published:?}");
    let served = Served::start(&place);
    for era in ERAS {
        let listed = ask(&served, era, "tools/list", json!({}));
        assert_eq!(listed["tools"], json!([]), "{listed}");
    }
    drop(served);
    let refused = place.run(&["call", "fetch", &format!("url={url}")]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains("network.internal"), "{refused:?}");
    assert_eq!(named.count(), 0);
    place.write(
        "toolplane.yaml",
        "store: {sqlite: data/tools.db}\npolicy: {permissions: {anonymous: [network.internal]}}\n",
    );
    let served = Served::start(&place);
    let result = call(&served, ERAS[1], "fetch", json!({"url": url}));
    assert_eq!((text(&result), named.count()), ("hello", 1), "{result}");
}

/// `filesystem` is another name for reading and writing together.
#[test]
fn paths_are_for_tools_of_the_operator_and_callers_who_hold_the_permission() {
    let place = Place::empty();
    let folder = place.path().join("notes").display().to_string();
    place.write("notes/a.txt", "a note");
    place.write("other.txt", "of the host");
    let configuration = |held: &str| {
        format!(
            "policy: {{permissions: {{anonymous: [{held}]}}}}\ntools:\n  read:\n    description: Reads.\n    required_permissions: \
             [filesystem.read]\n    parameters: [{{name: path, type: string, required: true}}]\n    executor: {{kind: bash, code: 'cat \
             \"$path\"', reads: ['{folder}']}}\n"
        )
    };
    let read = |served: &Served, name: &str| {
        let path = place.path().join(name).display().to_string();
        call(served, ERAS[1], "read", json!({"path": path}))
    };
    for (held, is_allowed) in [
        ("filesystem", true),
        ("filesystem.read", true),
        ("filesystem.write", false),
    ] {
        place.write("toolplane.yaml", configuration(held));
        let served = Served::start(&place);
        if is_allowed {
            let note = read(&served, "notes/a.txt");
            assert_eq!(text(&note), "a note", "{held}: {note}");
            let other = read(&served, "other.txt");
            assert_eq!(other["isError"], true, "{other}");
        } else {
            let listed = ask(&served, ERAS[1], "tools/list", json!({}));
            assert_eq!(listed["tools"], json!([]), "{held}: {listed}");
        }
    }
}
