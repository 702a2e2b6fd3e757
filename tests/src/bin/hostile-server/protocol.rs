//! Messages of a server of each era, and their scripted errors.

use std::{io, iter};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A message of the client: a request with an id and a method, a notification without the id, an answer without the
/// method.
#[derive(Deserialize)]
pub(crate) struct Message {
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) method: Option<String>,
    pub(crate) params: Option<Params>,
}

#[derive(Deserialize)]
pub(crate) struct Params {
    name: Option<String>,
    uri: Option<String>,
    arguments: Option<Box<RawValue>>,
}

impl Message {
    /// Returns `true` if it calls the tool that misbehaves, or gets the prompt or the resource that does.
    pub(crate) fn is_act(&self) -> bool {
        let Some(params) = &self.params else { return false };
        match self.method.as_deref() {
            Some("tools/call" | "prompts/get") => params.name.as_deref() == Some("act"),
            Some("resources/read") => params.uri.as_ref().is_some_and(|uri| uri.ends_with("/act")),
            _ => false,
        }
    }

    /// Returns the text to record.
    pub(crate) fn note(&self) -> &str {
        match &self.method {
            None => "answer",
            Some(_) if self.is_act() => "act",
            Some(method) => method,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{}},"serverInfo":{"name":"hostile","version":"1"}}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"hostile","version":"1"}},"ttlMs":0,"cacheScope":"private"}"#;
const ACT: &str = r#"{"name":"act","inputSchema":{"type":"object"}}"#;
const ECHO: &str = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
/// Invalid entries of a list of tools.
const JUNK: &str = r#"null,7,"echo",{},{"name":7},{"name":"","inputSchema":{}},{"name":"bad","inputSchema":"no schema"},{"name":"a\u0000b","inputSchema":{"type":"object"}},{"name":"echo","description":"the first of two","inputSchema":{"type":"object"}},{"name":"loop","inputSchema":{"$ref":"http://127.0.0.1:1/schema"}}"#;

impl Era {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "modern" => Self::Modern,
            _ => Self::Legacy,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// Returns the result of a method that every server knows; `None` for a method of the other era.
    pub(crate) fn result(self, mode: &str, message: &Message) -> Option<String> {
        match (self, message.method.as_deref()?) {
            (Self::Legacy, "initialize") => Some(opening(mode, INITIALIZED)),
            (Self::Modern, "server/discover") => Some(opening(mode, DISCOVERED)),
            (_, "tools/list") => Some(self.list(mode)),
            (_, "prompts/list") => Some(self.beside(mode, "prompts", r#"{"name":"act"},{"name":"echo"}"#)),
            (_, "resources/list") => {
                let entry = |name| format!(r#"{{"uri":"hostile:{mode}/{name}","name":"{name}"}}"#);
                Some(self.beside(mode, "resources", &format!("{},{}", entry("act"), entry("echo"))))
            }
            (_, "resources/templates/list") => Some(self.beside(mode, "resourceTemplates", "")),
            (_, "prompts/get" | "resources/read") => Some(self.text(r#""fine""#)),
            (_, "tools/call") => {
                let arguments = message.params.as_ref()?.arguments.as_ref();
                let text = serde_json::to_string(arguments.map_or("{}", |arguments| arguments.get())).ok()?;
                Some(self.text(&text))
            }
            _ => None,
        }
    }

    /// Returns a result with one text, given as JSON.
    pub(crate) fn text(self, json: &str) -> String {
        self.complete(&format!(r#""content":[{{"type":"text","text":{json}}}]"#))
    }

    /// Returns a result with these members.
    pub(crate) fn complete(self, members: &str) -> String {
        match self {
            Self::Legacy => format!("{{{members}}}"),
            Self::Modern => format!(r#"{{"resultType":"complete",{members}}}"#),
        }
    }

    fn page(self, key: &str, entries: &str, more: &str) -> String {
        let hints = match self {
            Self::Legacy => "",
            Self::Modern => r#","ttlMs":0,"cacheScope":"private""#,
        };
        self.complete(&format!(r#""{key}":{entries}{hints}{more}"#))
    }

    /// Returns a list of prompts, resources or templates.
    fn beside(self, mode: &str, key: &str, entries: &str) -> String {
        match mode {
            "beside-nothing" => self.page(key, "7", ""),
            "beside-junk" => self.page(
                key,
                r#"[null,7,"echo",{},{"name":7},{"uri":7},{"uri":"","name":""},{"uriTemplate":"{{{"}]"#,
                "",
            ),
            "beside-in-circles" => self.page(key, &format!("[{entries}]"), r#","nextCursor":"again""#),
            _ => self.page(key, &format!("[{entries}]"), ""),
        }
    }

    fn list(self, mode: &str) -> String {
        let page = |tools: &str, more: &str| self.page("tools", tools, more);
        match mode {
            "lists-nothing" => page("7", ""),
            "lists-junk" => page(&format!("[{JUNK},{ACT},{ECHO}]"), ""),
            "lists-in-circles" => page(&format!("[{ACT}]"), r#","nextCursor":"again""#),
            // The server does not remember which pages were read, so every cursor leads to another page.
            "lists-without-end" => page("[]", &format!(r#","nextCursor":"{}""#, number())),
            "lists-too-much" => {
                let tools: Vec<_> = iter::repeat_n(ECHO, 100_001).collect();
                page(&format!("[{}]", tools.join(",")), "")
            }
            _ => page(&format!("[{ACT},{ECHO}]"), ""),
        }
    }

    /// Returns the first message of a subscription.
    pub(crate) fn acknowledgement(id: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
    }
}

/// Returns `true` for the method of a list of prompts, resources or templates.
pub(crate) fn is_list_beside(method: &str) -> bool {
    method.ends_with("/list") && method != "tools/list"
}

fn opening(mode: &str, fine: &str) -> String {
    match mode {
        "opens-with-nothing" => "null".to_owned(),
        "opens-with-a-list" => "[]".to_owned(),
        "opens-in-another-age" => fine
            .replace("2025-11-25", "1999-01-01")
            .replace("2026-07-28", "2999-01-01"),
        _ => fine.to_owned(),
    }
}

/// Returns a new number on each call.
fn number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn answer(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub(crate) fn unknown_method(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#)
}

/// A transport of messages to the client.
pub(crate) trait Wire {
    fn begin(&mut self) -> io::Result<()>;
    fn piece(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Flushes a message.
    fn end(&mut self) -> io::Result<()>;

    fn say(&mut self, message: impl AsRef<[u8]>) -> io::Result<()>
    where
        Self: Sized,
    {
        self.begin()?;
        self.piece(message.as_ref())?;
        self.end()
    }
}
