//! An MCP server over stdio for the tests of `tool-exec-mcp`. Its first argument is a folder: the tools it lists are
//! in `tools.json` there, and what happens to it goes into files beside that. Its second argument says how it is.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead as _, Write},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use raw_json::RawJson;

const INFO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fixture","version":"1.2"}}"#;
const BARE: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fixture","version":"1.2"}}"#;

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
    for line in io::stdin().lock().lines() {
        let message = RawJson::parse(line?).map_err(io::Error::other)?;
        let method = message
            .get("method")
            .and_then(|method| method.string())
            .unwrap_or_default();
        match message.get("id") {
            Some(id) => answer(&folder, &mode, &id, &method, message.get("params"))?,
            None => note(&folder, "notifications", &method)?,
        }
    }
    Ok(())
}

fn answer(folder: &Path, mode: &str, id: &RawJson, method: &str, params: Option<RawJson>) -> io::Result<()> {
    match method {
        "initialize" => result(id, if mode == "no-tools" { BARE } else { INFO }),
        "tools/list" => {
            note(folder, "lists", method)?;
            match fs::read_to_string(folder.join("tools.json")) {
                Ok(tools) => result(id, &format!(r#"{{"tools":{}}}"#, tools.trim())),
                Err(_) => error(id, r#"{"code":-32603,"message":"the tools are being written"}"#),
            }
        }
        "tools/call" => call(id, &params.unwrap_or_default()),
        _ => error(id, r#"{"code":-32601,"message":"Method not found"}"#),
    }
}

/// Does what the tool's name says.
fn call(id: &RawJson, params: &RawJson) -> io::Result<()> {
    let name = params
        .get("name")
        .and_then(|name| name.string())
        .unwrap_or_default();
    match name.as_str() {
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
        "storm" => {
            for _ in 0..100 {
                send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)?;
            }
            result(id, r#"{"content":[]}"#)
        }
        "is-error" => result(
            id,
            r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#,
        ),
        "asks" => result(
            id,
            r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create"}},"requestState":"s1"}"#,
        ),
        "rpc-error" => error(
            id,
            r#"{"code":-32050,"message":"the\u0007 moon is full","data":{"phase":1e0}}"#,
        ),
        "no-object" => result(id, r#""done""#),
        "both" => send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#
        )),
        "large" => result(id, &format!(r#"{{"content":"{}"}}"#, "x".repeat(200_000))),
        "exit" => end(7),
        "never" => Ok(()),
        // The parameters as they came.
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
