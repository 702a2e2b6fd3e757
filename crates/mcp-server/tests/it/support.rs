//! A service that is scripted by its requests, and clients that write bytes.

use std::{
    collections::HashSet,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_server::{
    Answer, ClientRequestError, HeaderParams, HttpServerOptions, HttpService, InputRequired, Peer,
    RequestContext, ServeOptions, ServerIdentity, Service, StateSeal, serve_http, unknown_method,
};
use mcp_wire::{LogLevel, MirroredParams, Notification, Request, Revision, RpcError, code, method};
use raw_json::RawJson;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore, oneshot},
    task::JoinHandle,
    time::timeout,
};

/// Timeout that only a test that hangs exceeds.
pub(crate) const LIMIT: Duration = Duration::from_secs(150);

/// Waits for a future that completes unless there is a bug.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(LIMIT, future).await.expect("it takes too long")
}

/// Record of the service, and the semaphore that its slow requests wait for.
#[derive(Debug)]
pub(crate) struct Log {
    /// Number of slow requests that have begun and are neither dropped nor answered.
    pub(crate) running: AtomicUsize,
    /// Notifies of changes of [`Log::running`].
    pub(crate) changed: Notify,
    /// Semaphore of which each slow request takes a permit to end.
    pub(crate) gate: Semaphore,
    pub(crate) notifications: Mutex<Vec<String>>,
    /// Connections that have ended.
    pub(crate) ended: Mutex<Vec<u64>>,
    /// Capabilities of the server.
    pub(crate) capabilities: Mutex<&'static str>,
    /// Tools that were looked up, and the number of lookups.
    pub(crate) learned: Mutex<HashSet<String>>,
    pub(crate) learning: AtomicUsize,
    seal: StateSeal,
}

/// All capabilities.
pub(crate) const EVERYTHING: &str = r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":true,"subscribe":true},"logging":{}}"#;
/// Lifetime of a sealed state.
pub(crate) const STATE_LIFETIME: Duration = Duration::from_secs(60);

impl Log {
    pub(crate) fn offer(&self, capabilities: &'static str) {
        *self.capabilities.lock().unwrap() = capabilities;
    }

    /// Waits until this many slow requests run.
    pub(crate) async fn running(&self, count: usize) {
        soon(async {
            loop {
                let changed = self.changed.notified();
                let mut changed = std::pin::pin!(changed);
                changed.as_mut().enable();
                if self.running.load(Ordering::SeqCst) == count {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Scripted(pub(crate) Arc<Log>);

impl Scripted {
    pub(crate) fn new() -> (Self, Arc<Log>) {
        Self::sealed(StateSeal::new(STATE_LIFETIME).unwrap())
    }

    pub(crate) fn sealed(seal: StateSeal) -> (Self, Arc<Log>) {
        let log = Arc::new(Log {
            running: AtomicUsize::new(0),
            changed: Notify::new(),
            gate: Semaphore::new(0),
            notifications: Mutex::default(),
            ended: Mutex::default(),
            learned: Mutex::default(),
            learning: AtomicUsize::new(0),
            capabilities: Mutex::new(r#"{"tools":{"listChanged":true}}"#),
            seal,
        });
        (Self(Arc::clone(&log)), log)
    }
}

struct Running(Arc<Log>);

impl Running {
    fn new(log: &Arc<Log>) -> Self {
        log.running.fetch_add(1, Ordering::SeqCst);
        log.changed.notify_waiters();
        Self(Arc::clone(log))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

impl Service for Scripted {
    fn info(&self) -> ServerIdentity {
        ServerIdentity::new("scripted", "1.2.3")
            .title("A test")
            .instructions("Ask.")
    }

    fn capabilities(&self, _: Revision) -> RawJson {
        raw(*self.0.capabilities.lock().unwrap())
    }

    /// Allows all tasks except `other`.
    async fn filter_tasks(&self, mut ids: Vec<String>, _: &RequestContext) -> Vec<String> {
        ids.retain(|id| id != "other");
        ids
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        match &*request.method {
            "tools/list" => Ok(raw(r#"{"tools":[]}"#).into()),
            // Returns the parameters as the result.
            "tools/call" => Ok(request.params.unwrap_or(RawJson::object()).into()),
            "test/who" => {
                let session = cx
                    .session()
                    .map_or("none", |id| if id.len() == 32 { "some" } else { "odd" });
                let text = format!(
                    r#"{{"revision":"{}","principal":"{}","session":"{session}","http":{},"info":{},"capabilities":{}}}"#,
                    cx.revision(),
                    cx.principal(),
                    cx.http().is_some(),
                    cx.client_info().unwrap_or_default(),
                    cx.client_capabilities().unwrap_or_default(),
                );
                Ok(raw(&text).into())
            }
            "test/trace" => {
                let (parent, state) = cx.trace().unwrap_or_default();
                let state = state.unwrap_or_default();
                Ok(raw(&format!(r#"{{"trace":"{parent} {state}"}}"#)).into())
            }
            "test/wait" => {
                let _running = Running::new(&self.0);
                self.0.gate.acquire().await.unwrap().forget();
                Ok(RawJson::object().into())
            }
            "test/progress" => {
                let _running = Running::new(&self.0);
                for amount in ["1", "2", "2", "1", "2.5"] {
                    cx.progress().report(&raw(&format!(
                        r#"{{"progressToken":"theirs","progress":{amount},"extra":1e2}}"#
                    )));
                }
                if request.params.unwrap().get("wait").is_some() {
                    self.0.gate.acquire().await.unwrap().forget();
                }
                cx.progress().report(&raw(r#"{"progress":3}"#));
                let late = cx.progress().clone();
                tokio::spawn(async move { late.report(&raw(r#"{"progress":4}"#)) });
                Ok(RawJson::object().into())
            }
            "test/log" => {
                for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Error] {
                    cx.log(level, &raw(r#"{"level":"theirs","data":1e2}"#));
                }
                let level = cx.log_level().map_or("none", LogLevel::as_str);
                Ok(raw(&format!(r#"{{"wanted":"{level}"}}"#)).into())
            }
            "test/ask" => {
                let _running = Running::new(&self.0);
                let params = request.params.unwrap();
                let method = params.get("method").unwrap().string().unwrap();
                match cx.ask(&method, params.get("params").as_ref()).await {
                    Ok(given) => Ok(raw(&format!(r#"{{"given":{given}}}"#)).into()),
                    Err(ClientRequestError::NotDeclared(error)) => Err(error),
                    Err(error) => Ok(raw(&format!(r#"{{"failed":"{error}"}}"#)).into()),
                }
            }
            method::PROMPTS_GET => self.rounds(&request, cx),
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => match cx.uri() {
                Some(uri) if uri.starts_with("test:") => Ok(RawJson::object().into()),
                _ => Err(RpcError::new(code::RESOURCE_NOT_FOUND, "no such resource")),
            },
            "test/pause" => {
                let _running = Running::new(&self.0);
                if cx.log_level() == Some(LogLevel::Info) {
                    cx.log(LogLevel::Info, &raw(r#"{"data":"before"}"#));
                }
                cx.pause_stream(Duration::from_millis(20));
                self.0.gate.acquire().await.unwrap().forget();
                cx.log(LogLevel::Error, &raw(r#"{"data":"after"}"#));
                Ok(RawJson::object().into())
            }
            "test/typed" => Ok(raw(r#"{"resultType":"input_required"}"#).into()),
            "test/panic" => panic!("as asked"),
            other => Err(unknown_method(other)),
        }
    }

    /// Tools whose names begin with `late` are known once they were looked up, except `late-never`.
    fn header_params(&self, tool: &str, _: &Peer) -> HeaderParams<'_> {
        if tool.starts_with("late") && !self.0.learned.lock().unwrap().contains(tool) {
            let tool = tool.to_owned();
            return HeaderParams::Pending(Box::pin(async move {
                self.0.learning.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                if tool == "late-never" {
                    return HeaderParams::UnknownTool;
                }
                self.0.learned.lock().unwrap().insert(tool.clone());
                header_params(&tool)
            }));
        }
        header_params(tool)
    }

    fn on_disconnect(&self, connection: u64) {
        self.0.ended.lock().unwrap().push(connection);
    }

    async fn filter_resources(&self, uris: Vec<String>, cx: &RequestContext) -> Vec<String> {
        assert_eq!(cx.revision(), Revision::LATEST);
        uris.into_iter().filter(|uri| !uri.contains("secret")).collect()
    }

    fn on_notification(&self, notification: &Notification, _: &RequestContext) {
        self.0
            .notifications
            .lock()
            .unwrap()
            .push(notification.method.clone());
    }
}

/// Returns the mirrored arguments of a tool that is known.
fn header_params(tool: &str) -> HeaderParams<'static> {
    let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"odd":{"type":"string","x-mcp-header":"a b"},"list":{"items":{"type":"string","x-mcp-header":"Item"}}}}"#;
    let is_marked = matches!(tool, "mirrored" | "late");
    is_marked
        .then(|| Arc::new(MirroredParams::from_schema(&raw(schema))))
        .into()
}

impl Scripted {
    /// Asks for roots in a first round, and returns them with the state in a second one.
    fn rounds(&self, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        let Some(roots) = cx.input_response("roots") else {
            let state = self.0.seal.seal("a.state", request, cx);
            return InputRequired::new()
                .ask("roots", method::ROOTS_LIST, None)
                .state(state)
                .answer(request, cx);
        };
        let state = self
            .0
            .seal
            .open(&cx.request_state().unwrap_or_default(), request, cx)?;
        Ok(raw(&format!(r#"{{"roots":{roots},"state":"{state}"}}"#)).into())
    }
}

/// Server on loopback.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) log: Arc<Log>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(options: HttpServerOptions) -> Self {
        Self::start_with(options, ServeOptions::default()).await
    }

    pub(crate) async fn start_with(options: HttpServerOptions, serve: ServeOptions) -> Self {
        Self::start_scripted(Scripted::new(), options, serve).await
    }

    pub(crate) async fn start_sealed(options: HttpServerOptions, seal: StateSeal) -> Self {
        Self::start_scripted(Scripted::sealed(seal), options, ServeOptions::default()).await
    }

    async fn start_scripted(
        (service, log): (Scripted, Arc<Log>),
        options: HttpServerOptions,
        serve: ServeOptions,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let service = HttpService::new(service, options);
        let task = tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
                service.end_streams();
            };
            serve_http(listener, serve, |_| service.clone(), shutdown)
                .await
                .unwrap();
        });
        Self {
            address,
            log,
            stop: Some(stop),
            task,
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn once(&self, request: &Head<'_>, body: &str) -> Received {
        let mut connection = self.connect().await;
        connection.send(request, body).await;
        connection.receive().await
    }

    /// Starts the shutdown.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn stopped(self) {
        soon(self.task).await.unwrap();
    }
}

/// Head of a request.
#[derive(Debug, Clone)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
}

impl<'a> Head<'a> {
    /// Creates the head of a correct client, without the headers of an era.
    pub(crate) fn post() -> Self {
        Self {
            method: "POST",
            path: "/mcp",
            headers: vec![
                ("Host", "localhost:7080".to_owned()),
                ("Content-Type", "application/json".to_owned()),
                ("Accept", "application/json, text/event-stream".to_owned()),
            ],
        }
    }

    pub(crate) fn modern(method: &str) -> Self {
        Self::post()
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", method)
    }

    /// Sets a header, or removes it if the value is empty.
    pub(crate) fn with(mut self, name: &'a str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.headers.push((name, value.to_owned()));
        }
        self
    }

    pub(crate) fn method(mut self, method: &'a str) -> Self {
        self.method = method;
        self
    }

    fn text(&self, length: usize) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.headers.iter().any(|(name, _)| *name == "Transfer-Encoding") {
            text.push_str(&format!("Content-Length: {length}\r\n"));
        }
        text + "\r\n"
    }
}

/// `_meta` of a modern request.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}"#;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, head: &Head<'_>, body: &str) {
        let text = head.text(body.len()) + body;
        self.write(text.as_bytes()).await;
    }

    /// Sends the head of a request with a body of this length.
    pub(crate) async fn send_head(&mut self, head: &Head<'_>, length: usize) {
        self.write(head.text(length).as_bytes()).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        soon(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Reads more bytes. Returns `false` if the connection is closed.
    async fn fill(&mut self) -> bool {
        soon(self.stream.read_buf(&mut self.buffer))
            .await
            .is_ok_and(|count| count > 0)
    }

    /// Reads until this many bytes are buffered.
    pub(crate) async fn receive_up_to(&mut self, count: usize) {
        while self.buffer.len() < count {
            assert!(self.fill().await, "the connection ended too soon");
        }
    }

    /// Waits until the server closes the connection. Returns the bytes that it sent.
    pub(crate) async fn closed(&mut self) -> Vec<u8> {
        while self.fill().await {}
        std::mem::take(&mut self.buffer)
    }

    /// Reads the head of a response.
    pub(crate) async fn head(&mut self) -> Received {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8(self.buffer.drain(..end + 4).collect()).unwrap();
                let status = head[9..12].parse().unwrap();
                return Received {
                    status,
                    head,
                    body: String::new(),
                };
            }
            assert!(self.fill().await, "the connection ended in the head of an answer");
        }
    }

    /// Reads a whole response.
    pub(crate) fn receive(&mut self) -> Boxed<'_, Received> {
        Box::pin(async {
            let mut received = self.head().await;
            if received.header("transfer-encoding").is_some() {
                while let Some(chunk) = self.chunk().await {
                    received.body.push_str(&chunk);
                }
            } else {
                let length = received
                    .header("content-length")
                    .map_or(0, |text| text.parse().unwrap());
                while self.buffer.len() < length {
                    assert!(self.fill().await, "the connection ended in a body");
                }
                received.body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
            }
            received
        })
    }

    /// Reads one chunk of a streamed response. Returns `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let size = std::str::from_utf8(&self.buffer[..end]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                if self.buffer.len() >= end + 2 + size + 2 {
                    let chunk: Vec<u8> = self.buffer.drain(..end + 4 + size).collect();
                    let text = String::from_utf8(chunk[end + 2..end + 2 + size].to_vec()).unwrap();
                    return (size > 0).then_some(text);
                }
            }
            assert!(self.fill().await, "the connection ended in a stream");
        }
    }

    /// Reads one event of a stream.
    pub(crate) async fn event(&mut self) -> Option<String> {
        let mut event = String::new();
        loop {
            event.push_str(&self.chunk().await?);
            if event.ends_with("\n\n") {
                return Some(event);
            }
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
