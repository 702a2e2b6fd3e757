//! A server of raw bytes over TCP: a test says what it writes for each request.

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

/// The headers of a request, their names in lower case.
pub(crate) type Headers = HashMap<String, String>;

/// One request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) headers: Headers,
    pub(crate) body: Value,
    /// Where the client's end of the connection is.
    pub(crate) peer: SocketAddr,
}

/// What is written for a request.
pub(crate) enum Reply {
    /// These bytes, one after the other.
    Bytes(Vec<Vec<u8>>),
    /// These bytes, and then the connection is closed.
    Close(Vec<u8>),
    /// A stream of events, each as it is sent here.
    EventReceiver(mpsc::UnboundedReceiver<String>),
    /// Bytes without an end.
    Flood(Flood),
    /// Nothing, ever.
    Silence,
}

/// A beginning, and then a block again and again until so many bytes are written or nobody takes any more.
#[derive(Clone)]
pub(crate) struct Flood {
    pub(crate) start: String,
    pub(crate) block: Vec<u8>,
    pub(crate) size: usize,
    /// Is told how many bytes were taken.
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

/// A stream of events that ends with its connection.
pub(crate) fn stream(events: &str) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Reply::Close(format!("{head}{events}").into_bytes())
}

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Listens on the loopback; `reply` says what each request gets.
    pub(crate) async fn start(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_early(|_| None, reply).await
    }

    /// Like [`start`](Self::start), with bytes that are written for a request before its body is read.
    pub(crate) async fn start_early(
        early: impl Fn(&Headers) -> Option<Vec<u8>> + Send + Sync + 'static,
        reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // So that a large request does not leave before it is read.
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

    /// Waits until a request of this JSON-RPC method, or of this HTTP method, has come in.
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
            Reply::EventReceiver(mut events) => {
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
                // Until the client hangs up.
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

/// Answers what opens a modern connection, and tells whether it has.
pub(crate) fn modern_opening(seen: &Seen) -> Option<Reply> {
    (seen.body["method"] == "server/discover").then(|| {
        let discovered = crate::support::peer::DISCOVERED;
        json(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{discovered}}}"#,
            seen.body["id"]
        ))
    })
}

/// Answers what opens a connection, and tells whether it has.
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
