//! What a tool answers directly is what it answers through the gateway, to the letter: every tool of eight servers
//! that nobody here wrote, over both transports.

mod everything;
mod node;
mod python;

use serde_json::Value;
use tool_testkit::PeerCommand;

use crate::support::{
    Answer, Client, Configuration, Era, Gateway, StdioClient, assert_same_result, assert_same_tool,
    base_environment,
};

/// A call of a server's tool, and how its two results are compared.
struct Call {
    tool: &'static str,
    arguments: String,
    compare: Compare,
    /// Whether the server wants it called as a task; the gateway's clients call it like any other.
    is_task: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Compare {
    /// Every member has the same text.
    Text,
    /// The same but for digits and sessions: the result tells the time, which goes on between two calls.
    Shape,
}

/// The text of a JSON object.
struct Arguments(String);

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

impl From<&str> for Arguments {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

fn call(tool: &'static str, arguments: impl Into<Arguments>) -> Call {
    Call {
        tool,
        arguments: arguments.into().0,
        compare: Compare::Text,
        is_task: false,
    }
}

impl Call {
    /// That its result tells the time, or of what went on before.
    fn at_some_time(self) -> Self {
        Self {
            compare: Compare::Shape,
            ..self
        }
    }

    /// That the server wants it called as a task.
    fn in_a_task(self) -> Self {
        Self {
            is_task: true,
            ..self
        }
    }
}

/// Lists and calls the tools of a server directly and through the gateway, and compares. `prepare` brings what the
/// server works on into the same state before each round.
fn relayed(peer: &PeerCommand, calls: &[Call], prepare: impl Fn()) {
    prepare();
    let mut direct = direct(peer, Era::Legacy);
    compare(
        &Configuration::default().peer("peer", peer),
        &mut direct,
        calls,
        prepare,
    );
}

/// The server without a gateway, in the environment that the gateway gives it.
fn direct(peer: &PeerCommand, era: Era) -> StdioClient {
    let mut command = peer.to_command();
    command
        .env_clear()
        .envs(base_environment())
        .envs(peer.env.iter().map(|(name, value)| (name, value)));
    StdioClient::start(&mut command, era)
}

/// Compares a server, spoken to directly, with what a gateway makes of it that has it under the name `peer`: over
/// stdio, and over HTTP in both eras.
fn compare(configuration: &Configuration, direct: &mut impl Client, calls: &[Call], prepare: impl Fn()) {
    // Both gateways start at the same time; what the servers work on stays as it is until they have started.
    let mut stdio = Gateway::stdio(configuration);
    let http = Gateway::http(configuration);
    let tools = direct.tools();
    for (tool, _) in &tools {
        let called = calls.iter().any(|call| call.tool == tool);
        assert!(called, "no call of `{tool}` in the table of this test");
    }
    let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
    let mut clients: [(&str, &mut dyn Client); 3] = [
        ("over stdio", &mut stdio.client),
        ("over HTTP in the legacy era", &mut legacy),
        ("over HTTP in the modern era", &mut modern),
    ];
    for (way, client) in &mut clients {
        assert_same_tools(way, &tools, &client.tools());
    }
    prepare();
    let expected: Vec<Answer> = calls
        .iter()
        .map(|call| match call.is_task {
            true => direct.call_as_task(call.tool, &call.arguments),
            false => direct.call(call.tool, &call.arguments),
        })
        .collect();
    for (way, client) in &mut clients {
        prepare();
        assert_same_answers(way, *client, calls, &expected);
    }
    assert_eq!(stdio.end().code(), Some(0));
    assert_eq!(http.terminate().code(), Some(0));
}

fn assert_same_tools(way: &str, tools: &[(String, String)], relayed: &[(String, String)]) {
    assert_eq!(relayed.len(), tools.len(), "{way}");
    for (name, definition) in tools {
        let outward = format!("peer__{name}");
        let (_, found) = relayed
            .iter()
            .find(|(name, _)| *name == outward)
            .unwrap_or_else(|| panic!("`{outward}` is not listed {way}"));
        assert_same_tool(&format!("`{outward}` {way}"), definition, found);
    }
}

fn assert_same_answers(way: &str, client: &mut dyn Client, calls: &[Call], expected: &[Answer]) {
    for (call, direct) in calls.iter().zip(expected) {
        let what = format!("`{}` with {} {way}", call.tool, call.arguments);
        let relayed = client
            .call(&format!("peer__{}", call.tool), &call.arguments)
            .result();
        let direct = direct.clone().result();
        match call.compare {
            Compare::Text => assert_same_result(&what, &direct, &relayed),
            Compare::Shape => assert_same_result(&what, &shape(&direct), &shape(&relayed)),
        }
    }
}

/// The text with every run of digits made one digit, every UUID one letter, and the afternoon morning.
fn shape(text: &str) -> String {
    let (mut shape, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        if rest.get(..36).is_some_and(is_uuid) {
            shape.push('U');
            rest = &rest[36..];
            continue;
        }
        match c {
            '0'..='9' if shape.ends_with('0') => {}
            '0'..='9' => shape.push('0'),
            c => shape.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    shape.replace("PM", "AM")
}

fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.bytes().enumerate().all(is_right)
}
