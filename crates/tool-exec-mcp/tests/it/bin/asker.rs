//! A legacy MCP server over stdio that asks its client, for the tests of `tool-exec-mcp`. Its first argument is a
//! folder, to whose files it writes what happens. Its second argument is its mode.

use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{self, BufRead as _, Write},
    path::PathBuf,
    process, thread,
    time::Duration,
};

use raw_json::RawJson;

const INFO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"asker","version":"1"}}"#;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut server = Server {
        folder: PathBuf::from(args.next().unwrap_or_default()),
        mode: args.next().unwrap_or_default(),
        asked: HashMap::new(),
        held: Vec::new(),
        n_questions: 0,
        n_starts: 0,
    };
    server.note("starts", &process::id().to_string())?;
    if server.mode == "ends" {
        end();
    }
    let starts = std::fs::read_to_string(server.folder.join("starts"))?;
    server.n_starts = starts.lines().count();
    server.hold_up("waits");
    for line in io::stdin().lock().lines() {
        let message = RawJson::parse(line?).map_err(io::Error::other)?;
        let method = message.get("method").and_then(|method| method.string());
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                server.request(&method, id, &message.get("params").unwrap_or_default())?;
            }
            (Some(method), None) => server.notification(&method)?,
            (None, id) => server.answer(&id.unwrap_or_default(), &message)?,
        }
    }
    if server.mode == "stays" {
        // Longer than anyone waits for it.
        thread::sleep(Duration::from_secs(3600));
    }
    Ok(())
}

struct Server {
    folder: PathBuf,
    mode: String,
    /// Calls that wait for the answer to a question.
    asked: HashMap<String, RawJson>,
    /// Calls that wait for `release`.
    held: Vec<RawJson>,
    n_questions: u64,
    /// Number of processes started so far, including this one.
    n_starts: usize,
}

impl Server {
    /// Waits for a file, if the mode makes all processes but the first ones wait at this step.
    fn hold_up(&self, step: &str) {
        let first = self.mode.strip_prefix(step).and_then(|n| n.trim().parse().ok());
        while first.is_some_and(|first| self.n_starts > first) && !self.folder.join("go").exists() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn request(&mut self, method: &str, id: RawJson, params: &RawJson) -> io::Result<()> {
        match method {
            "initialize" => {
                let declared = params.get("capabilities").unwrap_or_default();
                self.note("declared", declared.as_str())?;
                result(&id, INFO)
            }
            "tools/list" => {
                self.hold_up("lists");
                result(
                    &id,
                    r#"{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}"#,
                )
            }
            "tools/call" => self.call(id, params),
            "resources/subscribe" if self.mode == "no-news" => send(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32002,"message":"no such resource"}}}}"#
            )),
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                self.note("requests", &format!("{method} {params}"))?;
                result(&id, "{}")
            }
            _ => send(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#
            )),
        }
    }

    /// Runs the tool of this name.
    fn call(&mut self, id: RawJson, params: &RawJson) -> io::Result<()> {
        let arguments = params.get("arguments").unwrap_or_default();
        let text = |key: &str| arguments.get(key).and_then(|value| value.string());
        match params
            .get("name")
            .and_then(|name| name.string())
            .unwrap_or_default()
            .as_str()
        {
            "ask" => {
                let question = self.question(&text("method").unwrap_or_default(), arguments.get("params"))?;
                self.asked.insert(question, id);
                Ok(())
            }
            "leave-question" => {
                self.question("elicitation/create", None)?;
                result(&id, r#"{"content":[]}"#)
            }
            "hold" => {
                self.note("held", id.as_str())?;
                self.held.push(id);
                Ok(())
            }
            // Resumes calls that may have been abandoned meanwhile, and asks for each.
            "ask-for-held" => {
                for held in std::mem::take(&mut self.held) {
                    let question = self.question("elicitation/create", None)?;
                    self.asked.insert(question, held);
                }
                result(&id, r#"{"content":[]}"#)
            }
            "release" => {
                for held in std::mem::take(&mut self.held) {
                    result(&held, r#"{"content":[]}"#)?;
                }
                result(&id, r#"{"content":[]}"#)
            }
            "log" => {
                let level = text("level").unwrap_or_default();
                send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1e2}}}}"#
                ))?;
                result(&id, r#"{"content":[]}"#)
            }
            "update" => {
                let uri = text("uri").unwrap_or_default();
                send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}","x":1e2}}}}"#
                ))?;
                result(&id, r#"{"content":[]}"#)
            }
            "tell" => {
                send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"{}","params":{}}}"#,
                    text("method").unwrap_or_default(),
                    arguments.get("params").unwrap_or_default()
                ))?;
                result(&id, r#"{"content":[]}"#)
            }
            "refuse" => send(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#,
                arguments.get("error").unwrap_or_default()
            )),
            "exit" => end(),
            _ => result(&id, &format!(r#"{{"content":[],"pid":{}}}"#, process::id())),
        }
    }

    fn notification(&mut self, method: &str) -> io::Result<()> {
        self.note("notifications", method)?;
        let wants_roots = self.mode == "wants-roots";
        if wants_roots
            && matches!(
                method,
                "notifications/initialized" | "notifications/roots/list_changed"
            )
        {
            self.question("roots/list", None)?;
        }
        Ok(())
    }

    /// Uses the answer to a question as the result of the call that asked it.
    fn answer(&mut self, id: &RawJson, message: &RawJson) -> io::Result<()> {
        let answer = message
            .without_members(&["jsonrpc", "id"])
            .map_err(io::Error::other)?;
        match self.asked.remove(&id.string().unwrap_or_default()) {
            Some(call) => result(&call, &format!(r#"{{"content":[],"answer":{answer}}}"#)),
            None => self.note("answers", answer.as_str()),
        }
    }

    fn question(&mut self, method: &str, params: Option<RawJson>) -> io::Result<String> {
        self.n_questions += 1;
        let id = format!("q{}", self.n_questions);
        let params = params.map_or(String::new(), |params| format!(r#","params":{params}"#));
        send(&format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}"{params}}}"#
        ))?;
        Ok(id)
    }

    /// Appends a line to a file that a test reads.
    fn note(&self, file: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join(file))?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}

fn result(id: &RawJson, result: &str) -> io::Result<()> {
    send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn send(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

#[expect(clippy::exit, reason = "a server that ends in the middle is what is tested")]
fn end() -> ! {
    process::exit(7)
}
