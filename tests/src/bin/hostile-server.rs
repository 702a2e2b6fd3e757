//! An MCP server over stdio that misbehaves as its first argument says. It has two tools: `act` misbehaves, `echo`
//! answers with its arguments. A second argument names a file in which every start, every notification and every call
//! of `act` is noted.

use std::{
    fs::OpenOptions,
    io::{self, BufRead as _, Write},
    process::{self, Command, Stdio},
    thread,
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A request; what has no id needs no answer.
#[derive(Deserialize)]
struct Request {
    id: Option<Box<RawValue>>,
    method: String,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

const INFO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"act","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]}"#;
const FINE: &str = r#"{"content":[{"type":"text","text":"fine"}]}"#;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap_or_default();
    let notes = args.next();
    note(notes.as_deref(), "start")?;
    if mode == "sleeps" {
        note(notes.as_deref(), &format!("child {}", process::id()))?;
        sleep();
    }
    if mode == "exit-at-once" {
        writeln!(io::stderr(), "no license found")?;
        end(3);
    }
    for line in io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Request>(&line?) else {
            continue;
        };
        match &request.id {
            None => note(notes.as_deref(), &request.method)?,
            Some(id) => {
                if request.params.as_ref().and_then(|params| params.name.as_deref()) == Some("act") {
                    note(notes.as_deref(), "act")?;
                }
                answer(&mode, id.get(), &request, notes.as_deref())?;
            }
        }
    }
    if mode == "ignores-the-end" {
        sleep();
    }
    Ok(())
}

fn note(file: Option<&str>, what: &str) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    writeln!(OpenOptions::new().create(true).append(true).open(file)?, "{what}")
}

fn answer(mode: &str, id: &str, request: &Request, notes: Option<&str>) -> io::Result<()> {
    let params = request.params.as_ref();
    let arguments = params.and_then(|params| params.arguments.as_ref());
    match (
        request.method.as_str(),
        params.and_then(|params| params.name.as_deref()),
    ) {
        ("initialize", _) if mode == "never-opens" => sleep(),
        ("initialize", _) => send(&result(id, INFO)),
        ("tools/list", _) => {
            send(&result(id, TOOLS))?;
            // Whatever is sent from now on stays in the pipe.
            if mode == "deaf" {
                sleep();
            }
            Ok(())
        }
        ("tools/call", Some("act")) => act(mode, id, notes),
        ("tools/call", _) => {
            let text = arguments.map_or("{}", |arguments| arguments.get());
            let text = serde_json::to_string(text).map_err(io::Error::other)?;
            send(&result(
                id,
                &format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#),
            ))
        }
        _ => send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#
        )),
    }
}

fn act(mode: &str, id: &str, notes: Option<&str>) -> io::Result<()> {
    match mode {
        "never-answers" => Ok(()),
        "wrong-id" => send(&result("99999999", FINE)),
        "string-id" => send(&result(&format!("\"{id}\""), FINE)),
        "no-jsonrpc" => send(&format!(r#"{{"id":{id},"result":{FINE}}}"#)),
        "error-without-id" => send(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#),
        "garbage-first" => send(&format!(
            "npm warn deprecated\n\n{{\"half\": \n\u{1b}[32mready\u{1b}[0m\n{}",
            result(id, FINE)
        )),
        "lone-surrogate" => send(&result(id, r#"{"content":[{"type":"text","text":"a\ud800b"}]}"#)),
        "invalid-utf8" => {
            let mut line =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#)
                    .into_bytes();
            line.extend(b"\xff\xfe\xc0\x80\"}]}}\n");
            write(&line)
        }
        "huge-line" => huge_line(id),
        "null-result" => send(&result(id, "null")),
        "unknown-content" => send(&result(
            id,
            r#"{"content":[{"type":"hologram","beam":12345678901234567890123,"at":1e2}],"more":[ 1 ]}"#,
        )),
        "answers-twice" => {
            send(&result(id, FINE))?;
            send(&result(id, r#"{"content":[{"type":"text","text":"again"}]}"#))
        }
        "exits-mid-call" => {
            writeln!(io::stderr(), "out of cheese")?;
            end(7)
        }
        "leaves-a-child" => {
            Command::new(std::env::current_exe()?)
                .args(["sleeps", notes.unwrap_or_default()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            send(&result(id, FINE))
        }
        "exits-mid-line" => {
            write(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"conte"#).as_bytes())?;
            end(0)
        }
        "floods-notifications" => {
            let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noise"}}"#;
            let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":1}}"#;
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            let block = format!("{note}\n{progress}\n{changed}\n").repeat(100);
            for _ in 0..200 {
                write(block.as_bytes())?;
            }
            send(&result(id, FINE))
        }
        "floods-stderr" => {
            let block = "noise ".repeat(200) + "\n";
            for _ in 0..50_000 {
                io::stderr().write_all(block.as_bytes())?;
            }
            send(&result(id, FINE))
        }
        _ => send(&result(id, FINE)),
    }
}

/// An answer of 100 MB.
fn huge_line(id: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(
        out,
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
    )?;
    let megabyte = vec![b'x'; 1_000_000];
    for _ in 0..100 {
        out.write_all(&megabyte)?;
    }
    out.write_all(b"\"}]}}\n")?;
    out.flush()
}

fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn send(line: &str) -> io::Result<()> {
    write(format!("{line}\n").as_bytes())
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
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
