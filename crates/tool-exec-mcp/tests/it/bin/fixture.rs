//! An MCP server over stdio for the tests of `tool-exec-mcp`. Its first argument is a folder. The file `tools.json`
//! there holds its tools, other files hold its other lists and its capabilities, and it writes what happens to further
//! files. Its second argument is its mode.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead as _, Write},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use raw_json::RawJson;

const CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;

/// State and folder of the server.
struct Server {
    folder: PathBuf,
    mode: String,
    /// Each created task: its id, its state at each poll, and the call's params.
    tasks: Vec<(String, Vec<RawJson>, RawJson)>,
    /// Request that waits for the answer to a question, and its own answer.
    held: Option<(RawJson, RawJson)>,
}

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or_default());
    let mode = args.next().unwrap_or_default();
    note(&folder, "starts", &process::id().to_string())?;
    match mode.as_str() {
        "fails" => {
            writeln!(io::stderr(), "no license found\nin no place")?;
            end(3)
        }
        "never-opens" => sleep(),
        _ => {}
    }
    let mut server = Server {
        folder,
        mode,
        tasks: Vec::new(),
        held: None,
    };
    for line in io::stdin().lock().lines() {
        let message = RawJson::parse(line?).map_err(io::Error::other)?;
        let method = text(&message, "method");
        match message.get("id") {
            Some(_) if method.is_empty() => {
                note(&server.folder, "answers", message.as_str())?;
                if let Some((id, outcome)) = server.held.take() {
                    result(&id, outcome.as_str())?;
                }
            }
            Some(id) => server.answer(&id, &method, &message.get("params").unwrap_or_default())?,
            None => note(&server.folder, "notifications", &method)?,
        }
    }
    Ok(())
}

impl Server {
    fn answer(&mut self, id: &RawJson, method: &str, params: &RawJson) -> io::Result<()> {
        match method {
            "initialize" if self.mode != "modern" => result(
                id,
                &format!(
                    r#"{{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{{"name":"fixture","version":"1.2"}}}}"#,
                    self.capabilities()
                ),
            ),
            "server/discover" if self.mode == "modern" => result(
                id,
                &format!(
                    r#"{{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#,
                    self.capabilities()
                ),
            ),
            "tools/list" => self.list(id, method, "tools"),
            "prompts/list" => self.list(id, method, "prompts"),
            "resources/list" => self.list(id, method, "resources"),
            "resources/templates/list" => self.list(id, method, "resourceTemplates"),
            "completion/complete" => match fs::read_to_string(self.folder.join("completion.json")) {
                Ok(completion) => result(id, &format!(r#"{{"completion":{completion}}}"#)),
                Err(_) => ask(id, method, params),
            },
            "prompts/get" | "resources/read" => ask(id, method, params),
            "tools/call" if params.get("task").is_some() => self.make_task(id, params),
            "tools/call" if text(params, "name") == "insists" && !follows_tasks(params) => {
                error(id, TASKS_MISSING)
            }
            "tools/call" if text(params, "name") == "insists" => self.make_task(id, params),
            "tools/call" => call(id, params),
            "tasks/update" => {
                let given = params.get("inputResponses").unwrap_or_default();
                note(&self.folder, "tasks", &format!("tasks/update {given}"))?;
                result(id, r#"{"resultType":"complete"}"#)
            }
            "tasks/get" | "tasks/cancel" if self.mode == "modern" && !follows_tasks(params) => {
                error(id, TASKS_MISSING)
            }
            "tasks/get" | "tasks/result" | "tasks/cancel" => self.task(id, method, &text(params, "taskId")),
            _ => error(id, r#"{"code":-32601,"message":"Method not found"}"#),
        }
    }

    fn capabilities(&self) -> String {
        let told = fs::read_to_string(self.folder.join("capabilities.json"));
        told.unwrap_or_else(|_| CAPABILITIES.to_owned())
    }

    /// Lists the content of the file, which may be `silence`.
    fn list(&self, id: &RawJson, method: &str, key: &str) -> io::Result<()> {
        note(&self.folder, "lists", method)?;
        match fs::read_to_string(self.folder.join(format!("{key}.json"))) {
            Ok(list) if list == "silence" => Ok(()),
            Ok(list) => {
                let ttl = fs::read_to_string(self.folder.join("ttl.json"));
                let ttl = ttl.map_or(String::new(), |ttl| format!(r#","ttlMs":{ttl}"#));
                result(id, &format!(r#"{{"{key}":{}{ttl}}}"#, list.trim()))
            }
            Err(_) if key == "tools" => {
                error(id, r#"{"code":-32603,"message":"the tools are being written"}"#)
            }
            Err(_) => error(id, r#"{"code":-32601,"message":"Method not found"}"#),
        }
    }

    /// Creates the task that the arguments describe.
    fn make_task(&mut self, id: &RawJson, params: &RawJson) -> io::Result<()> {
        let arguments = params.get("arguments").unwrap_or_default();
        let Some(made) = arguments.get("made") else {
            return result(id, r#"{"content":["at once"]}"#);
        };
        let looks = arguments.get("looks").unwrap_or_default();
        let looks = looks.items().collect::<Vec<_>>().into_iter().rev().collect();
        self.tasks.push((text(&made, "taskId"), looks, params.clone()));
        if self.mode == "modern" {
            return result(id, made.as_str());
        }
        result(id, &format!(r#"{{"task":{made}}}"#))
    }

    fn task(&mut self, id: &RawJson, method: &str, task: &str) -> io::Result<()> {
        note(&self.folder, "tasks", &format!("{method} {task}"))?;
        let known = self.tasks.iter_mut().rev().find(|(known, ..)| known == task);
        let Some((_, looks, params)) = known else {
            return error(id, r#"{"code":-32602,"message":"Task not found"}"#);
        };
        let arguments = params.get("arguments").unwrap_or_default();
        if method == "tasks/get" {
            // The last state is repeated.
            let look = if looks.len() > 1 {
                looks.pop()
            } else {
                looks.last().cloned()
            };
            return match look.unwrap_or_default() {
                gone if gone.as_str() == "\"gone\"" => {
                    error(id, r#"{"code":-32602,"message":"Task not found"}"#)
                }
                look => result(id, look.as_str()),
            };
        }
        if let (Some(meta), Some(reports)) = (params.get("_meta"), arguments.get("progress")) {
            let token = meta.get("progressToken").unwrap_or_default();
            for amount in reports.items() {
                send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{amount}}}}}"#
                ))?;
            }
        }
        if let (Some(question), "tasks/result") = (arguments.get("asks"), method) {
            self.held = Some((id.clone(), arguments.get("result").unwrap_or_default()));
            return send(&format!(
                r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{question}}}"#
            ));
        }
        match (arguments.get("result"), arguments.get("error")) {
            (Some(outcome), _) => result(id, outcome.as_str()),
            (None, Some(outcome)) => error(id, outcome.as_str()),
            (None, None) => Ok(()),
        }
    }
}

/// Asks the client, and answers with its answer.
fn ask(id: &RawJson, method: &str, params: &RawJson) -> io::Result<()> {
    if text(params, "name") == "rpc-error" || text(params, "uri") == "box:none" {
        return error(
            id,
            r#"{"code":-32002,"message":"not here","data":{ "uri":"box:none" }}"#,
        );
    }
    if text(params, "name") == "asks" && params.get("inputResponses").is_none() {
        return result(id, QUESTION);
    }
    result(
        id,
        &format!(r#"{{"method":"{method}","params":{params},"isError":true}}"#),
    )
}

/// Returns `true` if a modern client declares with a request that it supports tasks.
fn follows_tasks(params: &RawJson) -> bool {
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    [
        "_meta",
        capabilities,
        "extensions",
        "io.modelcontextprotocol/tasks",
    ]
    .iter()
    .try_fold(params.clone(), |value, key| value.get(key))
    .is_some()
}

const TASKS_MISSING: &str = r#"{"code":-32021,"message":"tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;

const QUESTION: &str = r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create"}},"requestState":"s1"}"#;

fn text(value: &RawJson, key: &str) -> String {
    value
        .get(key)
        .and_then(|value| value.string())
        .unwrap_or_default()
}

/// Runs the tool of this name.
fn call(id: &RawJson, params: &RawJson) -> io::Result<()> {
    match text(params, "name").as_str() {
        "progress" => {
            let token = params
                .get("_meta")
                .and_then(|meta| meta.get("progressToken"))
                .unwrap_or_default();
            for step in 1..=5 {
                send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"total":5,"message":"step {step}"}}}}"#
                ))?;
            }
            result(id, r#"{"content":[]}"#)
        }
        "tell" => {
            let arguments = params.get("arguments").unwrap_or_default();
            let (method, params) = (
                text(&arguments, "method"),
                arguments.get("params").unwrap_or_default(),
            );
            send(&format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#
            ))?;
            result(id, r#"{"content":[]}"#)
        }
        "storm" => {
            for _ in 0..100 {
                send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)?;
            }
            result(id, r#"{"content":[]}"#)
        }
        "changes" => {
            let kind = text(&params.get("arguments").unwrap_or_default(), "change");
            send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{kind}/list_changed"}}"#
            ))?;
            result(id, r#"{"content":[]}"#)
        }
        "claims-sandbox" => result(
            id,
            r#"{"content":[],"_meta":{"dev.toolplane/sandbox":{"level":"bwrap"},"page":1}}"#,
        ),
        "is-error" => result(
            id,
            r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#,
        ),
        "asks" if params.get("inputResponses").is_none() => result(id, QUESTION),
        "says" => result(id, params.get("arguments").unwrap_or_default().as_str()),
        "visit" => error(
            id,
            r#"{"code":-32042,"message":"look there first","data":{"elicitations":[{"mode":"url","url":"https://a.test","elicitationId":"e1","message":"?"}]}}"#,
        ),
        "rpc-error" => error(
            id,
            r#"{"code":-32050,"message":"the\u0007 moon is full","data":{"phase":1e0}}"#,
        ),
        "no-object" => result(id, r#""done""#),
        "twice" => result(
            id,
            r#"{"content":[],"structuredContent":{"ok":true},"structured\u0043ontent":{"ok":false}}"#,
        ),
        "both" => send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#
        )),
        "large" => result(id, &format!(r#"{{"content":"{}"}}"#, "x".repeat(200_000))),
        "exit" => end(7),
        "never" => Ok(()),
        // The params as they came.
        _ => result(id, params.as_str()),
    }
}

fn result(id: &RawJson, result: &str) -> io::Result<()> {
    send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn error(id: &RawJson, error: &str) -> io::Result<()> {
    send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

fn send(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

/// Appends a line to a file that a test reads.
fn note(folder: &Path, file: &str, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(file))?;
    file.write_all(format!("{line}\n").as_bytes())
}

fn sleep() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

#[expect(clippy::exit, reason = "a server that ends in the middle is what is tested")]
fn end(status: i32) -> ! {
    process::exit(status)
}
