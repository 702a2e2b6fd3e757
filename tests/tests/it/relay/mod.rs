//! Comparison of direct answers with those through the gateway, byte for byte: every tool, prompt and resource of eight
//! third-party servers, over both transports and in both eras.

mod everything;
mod node;
mod python;

use serde_json::Value;
use tool_testkit::PeerCommand;

use crate::support::{
    Answer, Client, Configuration, Era, Gateway, List, StdioClient, assert_same_definition,
    assert_same_result, base_environment, end_both, members,
};

/// A request for a feature of a server, and the way to compare its two answers.
struct Call {
    subject: Subject,
    /// Parameters except those that name the subject.
    params: String,
    compare: Compare,
}

/// Subject of a request, by its name at the server.
#[derive(PartialEq)]
enum Subject {
    Tool(&'static str),
    /// A tool that runs as a task only: the gateway runs the task for a client that makes a plain call.
    Task(&'static str),
    Prompt(&'static str),
    Resource(String),
    ArgumentOfPrompt(&'static str),
    ArgumentOfTemplate(&'static str),
}

#[derive(Clone, Copy, PartialEq)]
enum Compare {
    /// Every member has the same text.
    Text,
    /// Equal except for digits and session ids: the result contains the time.
    Shape,
}

/// Text of a JSON object.
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
    Call::new(
        Subject::Tool(tool),
        format!(r#""arguments":{}"#, arguments.into().0),
    )
}

fn task(tool: &'static str, arguments: impl Into<Arguments>) -> Call {
    Call {
        subject: Subject::Task(tool),
        ..call(tool, arguments)
    }
}

fn prompt(prompt: &'static str, arguments: impl Into<Arguments>) -> Call {
    Call {
        subject: Subject::Prompt(prompt),
        ..call(prompt, arguments)
    }
}

fn read(uri: impl Into<String>) -> Call {
    Call::new(Subject::Resource(uri.into()), String::new())
}

/// Returns a completion request: `params` are the argument's name, its incomplete value, and more.
fn complete(subject: Subject, params: &Value) -> Call {
    let params = params.to_string();
    Call::new(subject, params[1..params.len() - 1].to_owned())
}

impl Call {
    fn new(subject: Subject, params: String) -> Self {
        Self {
            subject,
            params,
            compare: Compare::Text,
        }
    }

    /// Marks the result as dependent on the time or on earlier calls.
    fn at_some_time(self) -> Self {
        Self {
            compare: Compare::Shape,
            ..self
        }
    }

    /// Returns the method and parameters, with this prefix in front of every name.
    fn request(&self, prefix: &str) -> (&'static str, String) {
        let (method, subject) = match &self.subject {
            Subject::Tool(name) | Subject::Task(name) => {
                ("tools/call", format!(r#""name":"{prefix}{name}""#))
            }
            Subject::Prompt(name) => ("prompts/get", format!(r#""name":"{prefix}{name}""#)),
            Subject::Resource(uri) => ("resources/read", format!(r#""uri":"{uri}""#)),
            Subject::ArgumentOfPrompt(name) => (
                "completion/complete",
                format!(r#""ref":{{"type":"ref/prompt","name":"{prefix}{name}"}}"#),
            ),
            Subject::ArgumentOfTemplate(uri) => (
                "completion/complete",
                format!(r#""ref":{{"type":"ref/resource","uri":"{uri}"}}"#),
            ),
        };
        let comma = if self.params.is_empty() { "" } else { "," };
        (method, format!("{{{subject}{comma}{}}}", self.params))
    }

    /// Makes the call and returns the server's own answer.
    fn make(&self, direct: &mut impl Client) -> Answer {
        let (method, params) = self.request("");
        match self.subject {
            Subject::Task(tool) => direct.call_as_task(tool, &members(&params)["arguments"]),
            _ => direct.request(method, &params),
        }
    }
}

/// Lists and calls everything of a server, directly and through the gateway, and compares. `prepare` resets the
/// server's data before each round.
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

/// Environment variable by which the gateway finds the processes of a server, and the number of digits of its random
/// value.
const MARK: &str = "MCP_CLIENT_TREE";
const MARK_DIGITS: usize = 32;

/// Replaces the random value by zeros, for a server that returns its environment.
fn unmarked(text: &str) -> String {
    let is_digit = |character: char| character.is_ascii_hexdigit();
    let Some((before, after)) = text.split_once(MARK) else {
        return text.to_owned();
    };
    let number = after.find(is_digit).unwrap_or(after.len());
    let (between, number) = after.split_at(number);
    let rest = number.trim_start_matches(is_digit);
    assert_eq!(number.len() - rest.len(), MARK_DIGITS, "{text}");
    format!("{before}{MARK}{between}{}{rest}", "0".repeat(MARK_DIGITS))
}

/// Connects to the server without a gateway, in the environment that the gateway would give it.
fn direct(peer: &PeerCommand, era: Era) -> StdioClient {
    let mut command = peer.to_command();
    command
        .env_clear()
        .envs(base_environment())
        .env(MARK, "0".repeat(MARK_DIGITS))
        .envs(peer.env.iter().map(|(name, value)| (name, value)));
    StdioClient::start(&mut command, era)
}

/// Compares a direct server with a gateway that has it under the name `peer`: over stdio, and over HTTP in both eras.
fn compare(configuration: &Configuration, direct: &mut impl Client, calls: &[Call], prepare: impl Fn()) {
    // Both gateways start at the same time; the server's data do not change until they have started.
    let mut stdio = Gateway::stdio(configuration);
    let http = Gateway::http(configuration);
    let lists = List::ALL.map(|list| (list, direct.list(list)));
    assert_all_are_called(&lists, calls);
    let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
    let mut clients: [(&str, &mut dyn Client); 3] = [
        ("over stdio", &mut stdio.client),
        ("over HTTP in the legacy era", &mut legacy),
        ("over HTTP in the modern era", &mut modern),
    ];
    for (way, client) in &mut clients {
        for (list, items) in &lists {
            assert_same_list(way, *list, items, &client.list(*list));
        }
    }
    // Compared first, before calls leave anything behind.
    let resources = lists.iter().find(|(list, _)| *list == List::Resources);
    let reads: Vec<Call> = resources
        .into_iter()
        .flat_map(|(_, resources)| resources)
        .map(|(uri, _)| read(uri))
        .collect();
    assert_same_answers(&reads, direct, &mut clients, || {});
    assert_same_answers(calls, direct, &mut clients, prepare);
    for (way, client) in &mut clients {
        assert_eq!(client.offer().asked, [], "nobody can be asked {way}");
    }
    end_both(stdio, http);
}

/// Checks that the calls cover all features; resources are always read.
fn assert_all_are_called(lists: &[(List, Vec<(String, String)>)], calls: &[Call]) {
    for (list, items) in lists.iter().filter(|(list, _)| *list != List::Resources) {
        for (key, _) in items {
            let called = calls.iter().any(|call| match (&call.subject, list) {
                (Subject::Tool(name) | Subject::Task(name), List::Tools) => name == key,
                (Subject::Prompt(name), List::Prompts) => name == key,
                // These templates only leave their ends open.
                (Subject::Resource(uri), List::Templates) => uri.starts_with(&key[..key.find('{').unwrap()]),
                _ => false,
            });
            assert!(called, "nothing for `{key}` in the table of this test");
        }
    }
}

/// Compares lists. Resources keep their URIs; all other names have the server's prefix.
fn assert_same_list(way: &str, list: List, direct: &[(String, String)], relayed: &[(String, String)]) {
    assert_eq!(relayed.len(), direct.len(), "{} {way}", list.method());
    for (key, definition) in direct {
        let outward = match list {
            List::Tools | List::Prompts => format!("peer__{key}"),
            List::Resources | List::Templates => key.clone(),
        };
        let (_, found) = relayed
            .iter()
            .find(|(key, _)| *key == outward)
            .unwrap_or_else(|| panic!("`{outward}` is not listed {way}"));
        // The gateway runs the task, so clients see a tool for plain calls.
        let definition = definition.replace(r#""taskSupport":"required""#, r#""taskSupport":"optional""#);
        let what = format!("`{outward}` {way}");
        assert_same_definition(&what, (key, &definition), (&outward, found));
    }
}

fn assert_same_answers(
    calls: &[Call],
    direct: &mut impl Client,
    clients: &mut [(&str, &mut dyn Client)],
    prepare: impl Fn(),
) {
    prepare();
    let expected: Vec<Answer> = calls.iter().map(|call| call.make(direct)).collect();
    for (way, client) in clients {
        prepare();
        for (call, direct) in calls.iter().zip(&expected) {
            let (method, params) = call.request("peer__");
            let relayed = client.request(method, &params);
            assert_same_answer(&format!("`{method}` {params} {way}"), call, direct, &relayed);
        }
    }
}

fn assert_same_answer(what: &str, call: &Call, direct: &Answer, relayed: &Answer) {
    let compared = |text: &str| match call.compare {
        Compare::Text => unmarked(text),
        Compare::Shape => shape(text),
    };
    match (direct, relayed) {
        (Answer::Result(direct), Answer::Result(relayed)) => {
            assert_same_result(what, &compared(direct), &compared(relayed));
        }
        (Answer::Error(direct), Answer::Error(relayed)) => {
            assert_eq!(members(&compared(direct)), members(&compared(relayed)), "{what}");
        }
        _ => panic!("{what}: {direct:.2000?} became {relayed:.2000?}"),
    }
}

/// Replaces every run of digits by one digit, every UUID by one letter, and PM by AM.
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
    // Over stdio there is no session to name.
    shape
        .replace("PM", "AM")
        .replace("session undefined", "session U")
}

fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.bytes().enumerate().all(is_right)
}
