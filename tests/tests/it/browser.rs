//! The gateway from a page in a browser: Chromium loads a page from another port of the loopback interface, which uses
//! the gateway if its origin is listed.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Condvar, Mutex, mpsc::channel},
    thread,
};

use serde_json::{Value, json};
use tool_testkit::Peers;

use crate::support::{Configuration, Gateway, LIMIT, Process, installed};

const PAGE: &str = include_str!("fixtures/page.html");

/// Site of a page, on the loopback interface until the process of the test ends.
struct Origin {
    address: SocketAddr,
    is_done: Arc<(Mutex<bool>, Condvar)>,
}

impl Origin {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_done = Arc::<(Mutex<bool>, Condvar)>::default();
        let told = is_done.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = told.clone();
                thread::spawn(move || answer(stream, &told));
            }
        });
        Self { address, is_done }
    }

    /// Returns the origin as the operator lists it.
    fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Loads the page in a browser, and returns its report of the gateway.
    fn load(&self, gateway: &str) -> Option<Value> {
        let profile = tempfile::tempdir().unwrap();
        let chromium = installed(|peers: &Peers| peers.chromium(profile.path()))?;
        let mut command = chromium.to_command();
        let home: &Path = profile.path();
        command
            .env("HOME", home)
            .arg(format!("{}/?gateway={gateway}", self.name()));
        let (mut process, _input, mut output) = Process::spawn(&mut command);
        let (sender, page) = channel();
        thread::spawn(move || {
            let mut page = String::new();
            output.read_to_string(&mut page).unwrap();
            sender.send(page).unwrap();
        });
        let page = page.recv_timeout(LIMIT).unwrap_or_else(|_| {
            panic!("the browser does not end: {}", process.stderr());
        });
        process.wait();
        assert!(
            *self.is_done.0.lock().unwrap(),
            "the page came to no outcome: {page}"
        );
        let outcome = page
            .split_once(r#"<pre id="outcome">"#)
            .and_then(|(_, rest)| rest.split_once("</pre>"));
        let (outcome, _) = outcome.unwrap_or_else(|| panic!("no outcome: {page}"));
        Some(serde_json::from_str(outcome).unwrap_or_else(|error| panic!("{error}: {outcome}")))
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, is_done: &(Mutex<bool>, Condvar)) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let (lock, changed) = is_done;
    let path = first.split([' ', '?']).nth(1).unwrap_or_default();
    match path {
        "/done" => {
            *lock.lock().unwrap() = true;
            changed.notify_all();
        }
        "/wait" => {
            let guard = lock.lock().unwrap();
            drop(
                changed
                    .wait_timeout_while(guard, LIMIT, |is_done| !*is_done)
                    .unwrap(),
            );
        }
        _ => {}
    }
    let (status, body) = if path == "/" {
        ("200 OK", PAGE)
    } else {
        ("204 No Content", "")
    };
    // A browser that has ended misses it.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

#[test]
fn a_page_uses_the_gateway_if_its_origin_is_listed() {
    let [listed, other] = [(); 2].map(|()| Origin::open());
    let greet =
        json!({"description": "Greets.", "executor": {"kind": "mock", "template": "\"hello, {{name}}\""}});
    let configuration = Configuration::default()
        .tool("greet", greet)
        .gateway(json!({"allowed_origins": [listed.name()]}));
    let gateway = Gateway::http(&configuration);
    let Some(outcome) = listed.load(&gateway.url()) else {
        return;
    };
    let expected = json!({
        "revision": "2025-11-25", "session": true, "tools": ["greet"], "text": "hello, page", "code": -32602,
        "stream": "text/event-stream", "ended": true,
    });
    assert_eq!(outcome, expected);
    let refused = other.load(&gateway.url());
    assert_eq!(
        refused,
        Some(json!({"refused": "TypeError"})),
        "the browser gives no reason to a page"
    );
    assert_eq!(gateway.terminate().code(), Some(0));
}
