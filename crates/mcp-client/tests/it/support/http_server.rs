//! Server of raw bytes over TCP: a test decides what it writes for each request.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpSocket, TcpStream},
    sync::mpsc,
    time::sleep,
};

/// Headers of a request, with names in lower case.
pub(crate) type Headers = HashMap<String, String>;

/// Received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) headers: Headers,
    pub(crate) body: Value,
    /// Address of the client's end of the connection.
    pub(crate) peer: SocketAddr,
}

/// Answer to a request.
pub(crate) enum Reply {
    /// These bytes, one piece after the other.
    Bytes(Vec<Vec<u8>>),
    /// These bytes, after which the connection is closed.
    Close(Vec<u8>),
    /// Event stream of the events received here.
    Events(mpsc::UnboundedReceiver<String>),
    /// Endless bytes.
    Flood(Flood),
    /// No answer at all.
    Silence,
}

/// A beginning, and then a repeated block, until enough bytes are written or the client stops reading.
#[derive(Clone)]
pub(crate) struct Flood {
    pub(crate) start: String,
    pub(crate) block: Vec<u8>,
    pub(crate) size: usize,
    /// Receives the number of accepted bytes.
    pub(crate) taken: mpsc::UnboundedSender<usize>,
}

impl Flood {
    async fn write(&self, socket: &mut BufReader<TcpStream>) {
        let mut taken = 0;
        let mut rest = self.start.as_bytes();
        while taken < self.size {
            match socket.write(rest).await {
                Ok(count @ 1..) => (taken, rest) = (taken + count, &rest[count..]),
                _ => break,
            }
            if rest.is_empty() {
                rest = &self.block;
            }
        }
        let _ = self.taken.send(taken);
    }
}

pub(crate) fn status(line: &str, headers: &str, body: &str) -> Reply {
    let head = format!(
        "HTTP/1.1 {line}\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    Reply::Bytes(vec![format!("{head}{body}").into_bytes()])
}

pub(crate) fn json(body: &str) -> Reply {
    status("200 OK", "content-type: application/json\r\n", body)
}

/// Event stream that ends with its connection.
pub(crate) fn stream(events: &str) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Reply::Close(format!("{head}{events}").into_bytes())
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Listens on the loopback interface. `reply` decides about each request.
    pub(crate) async fn start(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_early(|_| None, reply).await
    }

    /// Like [`start`](Self::start), with bytes that are written before the body of a request is read.
    pub(crate) async fn start_early(
        early: impl Fn(&Headers) -> Option<Vec<u8>> + Send + Sync + 'static,
        reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // A large request cannot be sent before it is read.
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(64).unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, early, reply) = (Arc::clone(&seen), Arc::new(early), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(
                    socket,
                    Arc::clone(&log),
                    Arc::clone(&early),
                    Arc::clone(&reply),
                ));
            }
        });
        Self { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits for a request with this JSON-RPC or HTTP method.
    pub(crate) async fn wait_for(&self, method: &str) -> Seen {
        let found = async {
            loop {
                let seen = self.seen();
                let found = seen
                    .iter()
                    .find(|seen| seen.body["method"] == method || seen.method == method);
                if let Some(found) = found {
                    return found.clone();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), found)
            .await
            .expect("the request never came")
    }
}

async fn serve(
    socket: TcpStream,
    log: Arc<Mutex<Vec<Seen>>>,
    early: Arc<impl Fn(&Headers) -> Option<Vec<u8>> + Send + Sync + 'static>,
    reply: Arc<impl Fn(&Seen) -> Reply + Send + Sync + 'static>,
) {
    let mut socket = BufReader::new(socket);
    while let Some(seen) = read_request(&mut socket, &*early).await {
        log.lock().unwrap().push(seen.clone());
        match reply(&seen) {
            Reply::Bytes(pieces) => {
                for piece in pieces {
                    if socket.write_all(&piece).await.is_err() {
                        return;
                    }
                }
            }
            Reply::Close(bytes) => {
                let _ = socket.write_all(&bytes).await;
                return;
            }
            Reply::Events(mut events) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /mcp\n\n";
                let mut next = Some(head.to_owned());
                while let Some(event) = next {
                    if socket.write_all(event.as_bytes()).await.is_err() {
                        return;
                    }
                    next = events.recv().await;
                }
                return;
            }
            Reply::Flood(flood) => return flood.write(&mut socket).await,
            Reply::Silence => {
                // Wait until the client disconnects.
                let _ = socket.read_u8().await;
                return;
            }
        }
    }
}

async fn read_request(
    socket: &mut BufReader<TcpStream>,
    early: &impl Fn(&Headers) -> Option<Vec<u8>>,
) -> Option<Seen> {
    let mut line = String::new();
    socket
        .read_line(&mut line)
        .await
        .ok()
        .filter(|length| *length > 0)?;
    let method = line.split(' ').next()?.to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        socket.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    if let Some(bytes) = early(&headers) {
        socket.write_all(&bytes).await.ok()?;
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    let body = if length == 0 {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap()
    };
    let peer = socket.get_ref().peer_addr().ok()?;
    Some(Seen {
        method,
        headers,
        body,
        peer,
    })
}

/// Answers the handshake of a modern connection. Returns `None` for other requests.
pub(crate) fn modern_opening(seen: &Seen) -> Option<Reply> {
    (seen.body["method"] == "server/discover").then(|| {
        let discovered = crate::support::peer::DISCOVERED;
        json(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{discovered}}}"#,
            seen.body["id"]
        ))
    })
}

/// Answers the handshake of a connection. Returns `None` for other requests.
pub(crate) fn opening(seen: &Seen) -> Option<Reply> {
    match seen.body["method"].as_str() {
        Some("initialize") => {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
                seen.body["id"],
                crate::support::peer::OPENED
            );
            Some(status(
                "200 OK",
                "content-type: application/json\r\nmcp-session-id: s1\r\n",
                &body,
            ))
        }
        Some("server/discover") => Some(status("404 Not Found", "", "no such page")),
        Some(method) if method.starts_with("notifications/") => Some(status("202 Accepted", "", "")),
        None if seen.method == "GET" => Some(status("405 Method Not Allowed", "", "")),
        None => Some(status("200 OK", "", "")),
        Some(_) => None,
    }
}
