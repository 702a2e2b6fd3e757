//! MCP server over stdio for the tests of `mcp-client`. Its first argument selects how it misbehaves.

use std::{
    fs,
    io::{self, BufRead as _, Write as _},
    process::{self, Command, Stdio},
    thread,
    time::Duration,
};

use mcp_client::{Connection, ConnectionOptions};
use mcp_wire::{Message, Request, into_line, method};
use raw_json::RawJson;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let mode = args.get(1).map_or("echo", String::as_str);
    let file = args.get(2).map(String::as_str);
    match mode {
        "exit" => {
            note(file, "start")?;
            io::stderr().write_all(b"no license found\n")?;
            end(3)
        }
        "sleep" => sleep(),
        "silent" => {
            note(file, &process::id().to_string())?;
            sleep()
        }
        "parent" => return parent(&args),
        "grandchild" | "grandchild-left" => {
            let child = Command::new(&args[0]).arg("sleep").stdin(Stdio::null()).spawn()?;
            note(file, &child.id().to_string())?;
        }
        "daemon" | "daemon-left" => {
            // Started through a process that ends at once, so that the daemon has no parent.
            let started = Command::new(&args[0]).arg("daemonize").arg(&args[2]).status()?;
            assert!(started.success(), "there is no daemon");
        }
        "daemonize" => {
            let sleeper = [args[0].as_str(), "asleep", file.unwrap_or_default()];
            Command::new("setsid")
                .args(sleeper)
                .stdin(Stdio::null())
                .spawn()?;
            return Ok(());
        }
        "session" => {
            // This process can be found by its parent only.
            let sleeper = [args[0].as_str(), "asleep", file.unwrap_or_default()];
            let mut child = Command::new("setsid");
            child
                .args(sleeper)
                .env_remove("MCP_CLIENT_TREE")
                .stdin(Stdio::null());
            child.spawn()?;
        }
        "asleep" => {
            note(file, &process::id().to_string())?;
            sleep()
        }
        "stubborn" => ignore_sigterm()?,
        _ => {}
    }
    if mode == "pid" || mode == "stubborn" {
        note(file, &process::id().to_string())?;
    }
    if mode == "count" {
        note(file, "start")?;
    }
    serve(mode)?;
    if mode == "stubborn" {
        sleep();
    }
    Ok(())
}

/// Answers requests until the end of the input.
fn serve(mode: &str) -> io::Result<()> {
    let mut calls = 0;
    for line in io::stdin().lock().lines() {
        let Ok(Message::Request(request)) = Message::from_client(line?) else {
            continue;
        };
        if request.method == method::TOOLS_CALL {
            calls += 1;
            misbehave(mode, calls, &request)?;
        }
        let result = match mode {
            "unwell" if request.method == method::TOOLS_CALL => health(&request)?,
            _ => result(&request)?,
        };
        io::stdout().write_all(&into_line(mcp_wire::result(&request.id, &result)))?;
    }
    Ok(())
}

/// Misbehaves in a tool call as the mode requires.
fn misbehave(mode: &str, calls: u32, request: &Request) -> io::Result<()> {
    match mode {
        "exit-mid-call" | "grandchild-left" | "daemon-left" => {
            io::stderr().write_all(b"out of cheese\n")?;
            end(7)
        }
        "deaf" => sleep(),
        "stderr-flood" => {
            let line = "noise ".repeat(170) + "\n";
            for _ in 0..50_000 {
                io::stderr().write_all(line.as_bytes())?;
            }
        }
        "huge" if calls == 1 => {
            let mut out = io::stdout().lock();
            write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":\"", request.id)?;
            let megabyte = vec![b'x'; 1 << 20];
            for _ in 0..100 {
                out.write_all(&megabyte)?;
            }
            out.write_all(b"\"}\n")?;
        }
        "environment" => {
            let mut names: Vec<String> = std::env::vars_os()
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect();
            names.sort();
            let result = RawJson::from(names.join(" ").as_str());
            io::stdout().write_all(&into_line(mcp_wire::result(&request.id, &result)))?;
        }
        _ => {}
    }
    Ok(())
}

/// Health tool that succeeds if its arguments say so.
fn health(request: &Request) -> io::Result<RawJson> {
    let arguments = request.params.as_ref().and_then(|params| params.get("arguments"));
    let is_well = arguments.is_some_and(|arguments| arguments.as_str() == r#"{"well":true}"#);
    let text = if is_well {
        r#"{"content":[]}"#
    } else {
        r#"{"content":[{"type":"text","text":"the database is away"}],"isError":true}"#
    };
    RawJson::parse(text).map_err(io::Error::other)
}

fn result(request: &Request) -> io::Result<RawJson> {
    let text = match request.method.as_str() {
        method::INITIALIZE => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fixture","version":"1"},"instructions":"be kind"}"#
        }
        method::TOOLS_LIST => r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
        _ => return Ok(request.params.clone().unwrap_or_default()),
    };
    RawJson::parse(text).map_err(io::Error::other)
}

/// Appends a line to the file that a test reads.
fn note(file: Option<&str>, line: &str) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
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

/// Imitates a program that starts a server, drops its connection and exits immediately.
fn parent(args: &[String]) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let command =
        mcp_client::Command::new(&args[0]).args(["stubborn".into()].into_iter().chain(args.get(2).cloned()));
    let connection = runtime.block_on(Connection::spawn(&command, ConnectionOptions::default()));
    drop(connection.map_err(io::Error::other)?);
    end(0)
}

/// Ignores SIGTERM while the process lives.
fn ignore_sigterm() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let signal = {
        let _context = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?
    };
    thread::spawn(move || {
        let mut signal = signal;
        runtime.block_on(async { while signal.recv().await.is_some() {} });
    });
    Ok(())
}
