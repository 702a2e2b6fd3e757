//! How close a connection comes to the least that can be done: a bare client on the same pipe, a bare HTTP client on
//! the same socket. Run alternately, reported as ratios: `cargo bench -p mcp-client --bench echo`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark reports and fails by panicking"
)]

use std::{
    collections::HashMap,
    future::Future,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mcp_client::{Command, Connection, ConnectionOptions, HttpEndpoint, RequestOptions};
use raw_json::RawJson;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::Child,
    sync::{mpsc, oneshot},
    time::Instant,
};

const PARAMS: &str =
    r#"{"name":"echo","arguments":{"text":"hello hello hello hello hello hello hello hello hello"}}"#;
const ROUNDS: usize = 7;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Box<RawValue>>>>>;

/// A client with a writer, a reader and a map, and nothing that could be left out.
#[derive(Clone)]
struct Bare {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Waiting,
    next: Arc<AtomicU64>,
    _child: Arc<Child>,
}

impl Bare {
    fn spawn() -> Self {
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_mcp-client-fixture"))
            .arg("fast")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (queue, mut frames) = mpsc::unbounded_channel::<Vec<u8>>();
        let waiting = Waiting::default();
        tokio::spawn(async move {
            let (mut batch, mut buffer) = (Vec::new(), Vec::new());
            while frames.recv_many(&mut batch, 64).await > 0 {
                buffer.clear();
                batch.drain(..).for_each(|frame| buffer.extend_from_slice(&frame));
                stdin.write_all(&buffer).await.unwrap();
            }
        });
        let answers = Arc::clone(&waiting);
        tokio::spawn(async move {
            #[derive(serde::Deserialize)]
            struct Answer {
                id: u64,
                result: Box<RawValue>,
            }
            let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).await.unwrap() > 0 {
                let answer: Answer = serde_json::from_slice(&line).unwrap();
                if let Some(sender) = answers.lock().unwrap().remove(&answer.id) {
                    let _ = sender.send(answer.result);
                }
                line.clear();
            }
        });
        Self {
            queue,
            waiting,
            next: Arc::new(AtomicU64::new(2)),
            _child: Arc::new(child),
        }
    }

    async fn call(&self) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().unwrap().insert(id, sender);
        let frame =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{PARAMS}}}\n");
        self.queue.send(frame.into_bytes()).unwrap();
        std::hint::black_box(receiver.await.unwrap());
    }
}

/// Makes `count` calls with `width` under way at once; returns calls per second.
async fn rate<F>(width: usize, count: usize, call: impl Fn() -> F + Clone + Send + 'static) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let start = Instant::now();
    let workers: Vec<_> = (0..width)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..count / width {
                    call().await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

async fn compare<A, B>(
    name: &str,
    width: usize,
    count: usize,
    ours: impl Fn() -> A + Clone + Send + 'static,
    bare: impl Fn() -> B + Clone + Send + 'static,
) where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    // An argument picks the comparisons whose names hold it.
    if std::env::args()
        .skip(1)
        .any(|arg| !arg.starts_with('-') && !name.contains(&arg))
    {
        return;
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        a.push(rate(width, count, ours.clone()).await);
        b.push(rate(width, count, bare.clone()).await);
    }
    let (a, b) = (median(a), median(b));
    println!("{name:24} ours {a:9.0}/s  bare {b:9.0}/s  ratio {:.2}", a / b);
}

/// Answers every request on a connection that stays open.
async fn serve_http(mut socket: TcpStream) {
    socket.set_nodelay(true).unwrap();
    let mut seen = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut seen).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let text = String::from_utf8_lossy(&seen[..head]).to_ascii_lowercase();
        let length = text.split("content-length: ").nth(1).map_or(0, |rest| {
            rest.split("\r\n").next().unwrap().parse::<usize>().unwrap()
        });
        while seen.len() < head + length {
            if socket.read_buf(&mut seen).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let answer = match mcp_wire::id_in_head(&seen[head..head + length]) {
            Some(id) => {
                let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"content":[{"type":"text","text":"hello hello"}]}"#;
                let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        seen.drain(..head + length);
        if socket.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::main]
async fn main() {
    let params = RawJson::parse(PARAMS).unwrap();
    let options = || RequestOptions::within(Duration::from_secs(30));

    let command = Command::new(env!("CARGO_BIN_EXE_mcp-client-fixture")).args(["fast"]);
    let connection = Connection::spawn(&command, ConnectionOptions::default())
        .await
        .unwrap();
    let ours = |connection: Connection| {
        let params = params.clone();
        move || {
            let (connection, params) = (connection.clone(), params.clone());
            async move {
                std::hint::black_box(
                    connection
                        .request("tools/call", Some(params), options())
                        .await
                        .unwrap(),
                );
            }
        }
    };
    let bare = Bare::spawn();
    let bare = move || {
        let bare = bare.clone();
        async move { bare.call().await }
    };
    compare(
        "stdio, 64 in flight",
        64,
        200_000,
        ours(connection.clone()),
        bare.clone(),
    )
    .await;
    compare("stdio, one at a time", 1, 10_000, ours(connection), bare).await;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve_http(socket));
        }
    });
    let connection = Connection::http(&HttpEndpoint::new(&url).unwrap(), ConnectionOptions::default())
        .await
        .unwrap();
    let client = reqwest::Client::builder().tcp_nodelay(true).no_proxy().build();
    let client = client
        .or_else(|_| reqwest::Client::builder().tls_certs_only([]).build())
        .unwrap();
    let bare = move || {
        let request = client
            .post(&url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{PARAMS}}}"
            ));
        async move {
            std::hint::black_box(request.send().await.unwrap().bytes().await.unwrap());
        }
    };
    compare(
        "HTTP, 64 in flight",
        64,
        32_000,
        ours(connection.clone()),
        bare.clone(),
    )
    .await;
    compare("HTTP, one at a time", 1, 4_000, ours(connection), bare).await;
}
