//! Echo server over HTTP, written by hand: the less it costs, the more a ratio says about the clients.

use std::{
    env,
    future::pending,
    io::{self, BufRead as _, BufReader, Write as _, sink, stdin, stdout},
    process::{Child, Command, Stdio},
    str::FromStr,
    thread,
};

use anyhow::{Context as _, Error, Result, bail};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::echo::{Era, answer};

/// Mode of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Modern: no session, JSON.
    Json,
    /// Legacy: a session, and each response an event stream.
    Session,
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "json" => Ok(Self::Json),
            "session" => Ok(Self::Session),
            _ => bail!("there is no mode `{name}`"),
        }
    }
}

const EVENT: &str = "event: message\ndata: ";
const EVENT_END: &str = "\n\n";

/// Prints its address to stdout, and serves until its stdin ends.
pub fn serve(mode: Mode) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(stdout(), "http://{}/mcp", listener.local_addr()?)?;
        let (left, gone) = oneshot::channel();
        thread::spawn(move || {
            let _ = io::copy(&mut stdin(), &mut sink());
            let _ = left.send(());
        });
        let accept = async {
            loop {
                let (socket, _) = listener.accept().await?;
                socket.set_nodelay(true)?;
                // A client that disconnects during a request is no fault of the server.
                tokio::spawn(async move { connection(socket, mode).await.ok() });
            }
        };
        tokio::select! {
            done = accept => done,
            _ = gone => Ok(()),
        }
    })
}

async fn connection(mut socket: TcpStream, mode: Mode) -> Result<()> {
    let mut seen = Vec::with_capacity(16 * 1024);
    loop {
        let Some(head) = read_head(&mut socket, &mut seen).await? else {
            return Ok(());
        };
        let length = content_length(&seen[..head])?;
        while seen.len() < head + length {
            if socket.read_buf(&mut seen).await? == 0 {
                return Ok(());
            }
        }
        let reply = match (&seen[..4], mode) {
            (b"POST", _) => reply(&seen[head..head + length], mode),
            (b"GET ", Mode::Session) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                socket.write_all(head.as_bytes()).await?;
                // There are no notifications.
                return pending().await;
            }
            (b"DELE", Mode::Session) => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        seen.drain(..head + length);
        socket.write_all(reply.as_bytes()).await?;
    }
}

/// Returns the length of the next head as soon as it is complete.
async fn read_head(socket: &mut TcpStream, seen: &mut Vec<u8>) -> Result<Option<usize>> {
    loop {
        if let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(Some(end + 4));
        }
        if socket.read_buf(seen).await? == 0 {
            return Ok(None);
        }
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    const NAME: &[u8] = b"content-length:";
    let lines = head.split(|byte| *byte == b'\n');
    for line in lines {
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            return Ok(std::str::from_utf8(&line[NAME.len()..])?.trim().parse()?);
        }
    }
    Ok(0)
}

fn reply(body: &[u8], mode: Mode) -> String {
    let era = match mode {
        Mode::Json => Era::Modern,
        Mode::Session => Era::Legacy,
    };
    let Some(answer) = answer(body, era) else {
        return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned();
    };
    // Over HTTP, unknown methods are refused with a status in both eras.
    if answer.contains("\"code\":-32601") {
        let length = answer.len();
        return format!(
            "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{answer}"
        );
    }
    match mode {
        Mode::Json => {
            let length = answer.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{answer}"
            )
        }
        Mode::Session => {
            let length = EVENT.len() + answer.len() + EVENT_END.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: echo\r\n\
                 transfer-encoding: chunked\r\n\r\n\
                 {length:x}\r\n{EVENT}{answer}{EVENT_END}\r\n0\r\n\r\n"
            )
        }
    }
}

/// This program started as a server, ended on drop.
pub struct Server {
    pub url: String,
    process: Child,
}

impl Server {
    pub fn start(mode: &str) -> Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .args(["serve-http", mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().context("stdout is a pipe")?;
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { url, process })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
