use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, Command},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    compare::{members, object, text},
    offer::Offer,
    process::Process,
    time::{LIMIT, Stopwatch},
};

/// The end of a request, verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Result(String),
    Error(String),
}

impl Answer {
    /// Returns the result; an error fails the test.
    pub(crate) fn result(self) -> String {
        match self {
            Self::Result(result) => result,
            Self::Error(error) => panic!("answered with the error {error}"),
        }
    }

    /// Returns the code of the error; a result fails the test.
    pub(crate) fn error_code(&self) -> i64 {
        match self {
            Self::Result(result) => panic!("answered with the result {result}"),
            Self::Error(error) => members(error)["code"].parse().unwrap(),
        }
    }

    /// Returns the kind of our own error in a result, if it is one.
    pub(crate) fn error_kind(&self) -> Option<String> {
        let Self::Result(result) = self else { return None };
        let result = members(result);
        if result.get("isError").is_none_or(|flag| flag != "true") {
            return None;
        }
        let error = members(result.get("_meta")?).remove("dev.toolplane/error")?;
        Some(text(&members(&error)["kind"]))
    }
}

/// Era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Era {
    /// 2025-11-25: a handshake, and a session if the server wants one.
    Legacy,
    /// 2026-07-28: every request stands alone.
    Modern,
}

impl Era {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// Returns parameters with the members that the era requires.
    pub(crate) fn params(self, params: &str, offer: &Offer) -> String {
        if self == Self::Legacy {
            return params.to_owned();
        }
        let mut params = members(params);
        let mut meta = params.get("_meta").map(|meta| members(meta)).unwrap_or_default();
        for (key, value) in [
            ("protocolVersion", r#""2026-07-28""#),
            ("clientCapabilities", &offer.capabilities),
            ("clientInfo", r#"{"name":"oracle","version":"1"}"#),
        ] {
            meta.insert(format!("io.modelcontextprotocol/{key}"), value.to_owned());
        }
        params.insert("_meta".to_owned(), object(&meta));
        object(&params)
    }
}

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    pub(crate) const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Returns the member of a page that holds the list.
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the member that identifies an entry.
    fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// A minimal client of an MCP server that does not interpret the answers.
pub(crate) trait Client {
    /// Makes a request and waits for its answer.
    fn request(&mut self, method: &str, params: &str) -> Answer;

    /// Sends a notification.
    fn notify(&mut self, method: &str);

    /// Returns the client's capabilities and the questions so far.
    fn offer(&mut self) -> &mut Offer;

    /// Makes a request in several rounds: the questions of a modern server are answered.
    fn converse(&mut self, method: &str, params: &str) -> Answer {
        let mut answer = self.request(method, params);
        for _ in 0..16 {
            let Answer::Result(result) = &answer else { break };
            let Some(mut next) = self.offer().next_round(result) else {
                break;
            };
            next.extend(members(params));
            answer = self.request(method, &object(&next));
        }
        answer
    }

    /// Opens the connection.
    fn open(&mut self, era: Era) {
        if era == Era::Modern {
            self.request("server/discover", "{}").result();
            return;
        }
        let params = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{{"name":"oracle","version":"1"}}}}"#,
            self.offer().capabilities
        );
        self.request("initialize", &params).result();
        self.notify("notifications/initialized");
    }

    /// Returns the definitions of a list, page by page, with their names or URIs. Empty for a server without such a
    /// list.
    fn list(&mut self, list: List) -> Vec<(String, String)> {
        let (mut items, mut params) = (Vec::new(), "{}".to_owned());
        loop {
            let answer = self.request(list.method(), &params);
            if matches!(&answer, Answer::Error(_)) && answer.error_code() == -32601 && items.is_empty() {
                return items;
            }
            let page = members(&answer.result());
            let found: Vec<Box<RawValue>> = serde_json::from_str(&page[list.member()]).unwrap();
            items.extend(found.iter().map(|item| {
                let key = text(&members(item.get())[list.key()]);
                (key, item.get().to_owned())
            }));
            match page.get("nextCursor") {
                Some(cursor) => params = format!(r#"{{"cursor":{cursor}}}"#),
                None => return items,
            }
        }
    }

    /// Returns the definitions of all tools with their names.
    fn tools(&mut self) -> Vec<(String, String)> {
        self.list(List::Tools)
    }

    /// Calls a tool with these arguments, the text of a JSON object.
    fn call(&mut self, tool: &str, arguments: &str) -> Answer {
        self.request("tools/call", &call_params(tool, arguments))
    }

    /// Calls a tool as a task with these arguments and waits for its end (2025-11-25). The result is without the mark
    /// of its task.
    fn call_as_task(&mut self, tool: &str, arguments: &str) -> Answer {
        let mut params = members(&call_params(tool, arguments));
        params.insert("task".to_owned(), "{}".to_owned());
        let made = members(&self.request("tools/call", &object(&params)).result());
        let id = &members(&made["task"])["taskId"];
        let result = self.request("tasks/result", &format!(r#"{{"taskId":{id}}}"#));
        let mut result = members(&result.result());
        if let Some(meta) = result.remove("_meta") {
            let mut meta = members(&meta);
            meta.remove("io.modelcontextprotocol/related-task");
            result.insert("_meta".to_owned(), object(&meta));
        }
        Answer::Result(object(&result))
    }
}

pub(crate) fn call_params(tool: &str, arguments: &str) -> String {
    format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#)
}

/// The members of a message that determine its kind.
#[derive(Deserialize)]
struct Envelope {
    id: Option<Box<RawValue>>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

/// A message from a server.
pub(crate) enum Message {
    Answer(u64, Answer),
    Notification(String, String),
    Request {
        id: String,
        method: String,
        params: String,
    },
}

impl Message {
    pub(crate) fn read(line: &str) -> Self {
        let envelope: Envelope =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("no message ({error}): {line:.500}"));
        let id = envelope.id.map(|id| id.get().to_owned());
        let own = |value: Box<RawValue>| value.get().to_owned();
        match (id, envelope.method) {
            (id, Some(method)) => {
                let params = envelope.params.map_or(String::new(), own);
                match id {
                    None => Self::Notification(method, params),
                    Some(id) => Self::Request { id, method, params },
                }
            }
            (id, None) => {
                let id = id.and_then(|id| id.parse().ok());
                let id = id.unwrap_or_else(|| panic!("an answer to nothing of ours: {line:.500}"));
                match (envelope.result, envelope.error) {
                    (Some(result), None) => Self::Answer(id, Answer::Result(own(result))),
                    (None, Some(error)) => Self::Answer(id, Answer::Error(own(error))),
                    _ => panic!("neither result nor error, or both: {line:.500}"),
                }
            }
        }
    }
}

/// A client that has started its server.
pub(crate) struct StdioClient {
    pub(crate) process: Process,
    input: Option<ChildStdin>,
    era: Era,
    offer: Offer,
    lines: Receiver<String>,
    next_id: u64,
    answers: HashMap<u64, Answer>,
    /// Received notifications, in order: method and parameters.
    pub(crate) notifications: Vec<(String, String)>,
    /// Request ids in the order of their answers.
    pub(crate) order: Vec<u64>,
}

impl StdioClient {
    /// Starts a server and opens the connection.
    pub(crate) fn start(command: &mut Command, era: Era) -> Self {
        Self::start_offering(command, era, Offer::default())
    }

    /// Starts a server for a client that can be asked.
    pub(crate) fn start_offering(command: &mut Command, era: Era, offer: Offer) -> Self {
        let (process, input, output) = Process::spawn(command);
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            process,
            input: Some(input),
            era,
            offer,
            lines,
            next_id: 0,
            answers: HashMap::new(),
            notifications: Vec::new(),
            order: Vec::new(),
        };
        client.open(era);
        client
    }

    /// Sends a request and returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: &str) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        let params = self.era.params(params, &self.offer);
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        id
    }

    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &str) -> u64 {
        self.begin("tools/call", &call_params(tool, arguments))
    }

    /// Waits for the answer to a request.
    pub(crate) fn wait(&mut self, id: u64) -> Answer {
        let watch = Stopwatch::start();
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            match self.lines.recv_timeout(watch.left(LIMIT)) {
                Ok(line) => self.take(&line),
                Err(RecvTimeoutError::Timeout) => panic!("no answer to request {id} within {LIMIT:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the server closed its output"),
            }
        }
    }

    /// Cancels a request.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }

    /// Reads the messages of this time.
    pub(crate) fn drain(&mut self, time: Duration) {
        let watch = Stopwatch::start();
        while let Ok(line) = self.lines.recv_timeout(watch.left(time)) {
            self.take(&line);
        }
    }

    fn take(&mut self, line: &str) {
        match Message::read(line) {
            Message::Answer(id, answer) => {
                assert!(
                    self.answers.insert(id, answer).is_none() && !self.order.contains(&id),
                    "request {id} was answered twice"
                );
                self.order.push(id);
            }
            Message::Notification(method, params) => self.notifications.push((method, params)),
            Message::Request { id, method, params } => {
                let answer = self.offer.answer(&id, &method, &params);
                self.write(&answer);
            }
        }
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open until it is closed");
        writeln!(input, "{line}").and_then(|()| input.flush()).unwrap();
    }

    /// Closes the server's input, which asks it to end.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }
}

impl Client for StdioClient {
    fn request(&mut self, method: &str, params: &str) -> Answer {
        let id = self.begin(method, params);
        self.wait(id)
    }

    fn notify(&mut self, method: &str) {
        self.write(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
    }

    fn offer(&mut self) -> &mut Offer {
        &mut self.offer
    }
}
