//! Minimal clients: everything that is missing here (deadlines, limits, cancellation, validation of input) is the cost
//! of a full client.

use std::{
    collections::HashMap,
    env,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Uri};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
};

use crate::client::{Client, Way, check, params};

#[derive(Deserialize)]
struct Answer {
    id: u64,
    result: Box<RawValue>,
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Box<RawValue>>>>;

/// Stdio client: a writer, a reader, and a map of waiting callers.
pub struct BareStdio {
    queue: mpsc::UnboundedSender<String>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
    _child: Child,
}

impl BareStdio {
    pub fn open() -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .arg("serve-stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().context("stdin is a pipe")?;
        let stdout = child.stdout.take().context("stdout is a pipe")?;
        let (queue, frames) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(write(frames, stdin));
        tokio::spawn(read(stdout, Arc::clone(&waiting)));
        Ok(Self {
            queue,
            waiting,
            next: AtomicU64::new(1),
            _child: child,
        })
    }
}

async fn write(mut frames: mpsc::UnboundedReceiver<String>, mut stdin: ChildStdin) -> Result<()> {
    let (mut batch, mut buffer) = (Vec::new(), Vec::new());
    while frames.recv_many(&mut batch, 64).await > 0 {
        buffer.clear();
        batch
            .drain(..)
            .for_each(|frame| buffer.extend_from_slice(frame.as_bytes()));
        stdin.write_all(&buffer).await?;
    }
    Ok(())
}

async fn read(stdout: ChildStdout, waiting: Arc<Waiting>) -> Result<()> {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).await? > 0 {
        let answer: Answer = serde_json::from_slice(&line)?;
        let sender = waiting.lock().expect("nobody panics with it").remove(&answer.id);
        if let Some(sender) = sender {
            let _ = sender.send(answer.result);
        }
        line.clear();
    }
    Ok(())
}

impl Client for BareStdio {
    async fn call(&self, payload: String) -> Result<()> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.waiting
            .lock()
            .expect("nobody panics with it")
            .insert(id, sender);
        let params = params(&payload);
        self.queue.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n"
        ))?;
        check(receiver.await?.get(), &payload)
    }
}

/// HTTP client: hyper's pooled client with bodies in one piece.
pub struct BareHttp {
    client: HyperClient<HttpConnector, Full<Bytes>>,
    uri: Uri,
    way: Way,
    next: AtomicU64,
}

impl BareHttp {
    pub async fn open(way: Way, server: &str) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let bare = Self {
            client: HyperClient::builder(TokioExecutor::new()).build(connector),
            uri: server.parse()?,
            way,
            next: AtomicU64::new(1),
        };
        if way == Way::HttpSession {
            bare.post(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#.to_owned())
                .await?;
        }
        Ok(bare)
    }

    async fn post(&self, body: String) -> Result<Bytes> {
        let request = Request::post(self.uri.clone())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let request = match self.way {
            Way::HttpSession => request
                .header("mcp-protocol-version", "2025-11-25")
                .header("mcp-session-id", "echo"),
            _ => request
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "echo"),
        };
        let answer = self.client.request(request.body(Full::from(body))?).await?;
        ensure!(answer.status() == 200, "the status is {}", answer.status());
        Ok(answer.into_body().collect().await?.to_bytes())
    }
}

impl Client for BareHttp {
    async fn call(&self, payload: String) -> Result<()> {
        const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bare","version":"1"}"#;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut params = params(&payload);
        if self.way == Way::HttpJson {
            params.truncate(params.len() - 1);
            params = format!(r#"{params},"_meta":{{{META}}}}}"#);
        }
        let body = self
            .post(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
            ))
            .await?;
        let json = match self.way {
            Way::HttpSession => data_of(&body).context("the stream has no event")?,
            _ => &body,
        };
        let answer: Answer = serde_json::from_slice(json)?;
        ensure!(answer.id == id, "the answer has another id");
        check(answer.result.get(), &payload)
    }
}

/// Data of the only event of a stream.
fn data_of(stream: &[u8]) -> Option<&[u8]> {
    let mut lines = stream.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_prefix(b"data: "))
}
