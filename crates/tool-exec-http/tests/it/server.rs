//! HTTP server that answers with scripted bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().skip(1);
        let mut pairs = lines.filter_map(|line| line.split_once(": "));
        pairs
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Reaction of the server to a request.
pub(crate) enum Answer {
    /// Sends this and waits for the next request.
    Keep(Vec<u8>),
    /// Sends this and closes the connection.
    Close(Vec<u8>),
    /// Sends this and then stays silent.
    Hang(Vec<u8>),
    /// Sends the first text once, then the second one repeatedly.
    Endless(Vec<u8>, Vec<u8>),
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Received>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(script: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (seen, opened, script) = (requests.clone(), connections.clone(), Arc::new(script));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                opened.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, seen.clone(), script.clone()));
            }
        });
        Self {
            address,
            requests,
            connections,
            task,
        }
    }

    /// Starts a server that answers every request with this JSON.
    pub(crate) async fn json(body: &'static str) -> Self {
        Self::start(move |_| Answer::Keep(ok("application/json", body))).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Received {
        self.requests().pop().expect("a request has arrived")
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<S: Fn(&Received) -> Answer>(
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<Received>>>,
    script: Arc<S>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer).await {
        seen.lock().unwrap().push(request.clone());
        match script(&request) {
            Answer::Keep(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Answer::Close(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Answer::Hang(bytes) => {
                let _ = stream.write_all(&bytes).await;
                // Ends when the client disconnects.
                let _ = stream.read(&mut [0; 1]).await;
                return;
            }
            Answer::Endless(head, chunk) => {
                let _ = stream.write_all(&head).await;
                while stream.write_all(&chunk).await.is_ok() {}
                return;
            }
        }
    }
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
            let mut request = Received {
                head,
                body: Vec::new(),
            };
            let length: usize = request
                .header("content-length")
                .map_or(0, |text| text.parse().unwrap());
            while buffer.len() < end + 4 + length {
                if stream.read_buf(buffer).await.ok()? == 0 {
                    return None;
                }
            }
            request.body = buffer[end + 4..end + 4 + length].to_vec();
            buffer.drain(..end + 4 + length);
            return Some(request);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

/// Complete response.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &[("content-type", content_type)], body)
}
