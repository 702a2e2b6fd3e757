//! An engine that follows a script, over HTTP/1.1 on a socket.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// Image of the fake engine.
pub(crate) const IMAGE: &str =
    "tools/sort@sha256:1111111111111111111111111111111111111111111111111111111111111111";
/// Its id.
pub(crate) const IMAGE_ID: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

/// Answers of the engine.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) is_podman: bool,
    pub(crate) info: Value,
    /// `true` if the image is there from the start, and not after a pull alone.
    pub(crate) has_image: bool,
    pub(crate) create: (u16, Value),
    pub(crate) start: (u16, Value),
    /// Number of requests to attach that fail first.
    pub(crate) n_failed_attaches: usize,
    /// Output: the stream, and bytes.
    pub(crate) output: Vec<(u8, Vec<u8>)>,
    /// `true` if the container runs until it is killed.
    pub(crate) hangs: bool,
    pub(crate) exit_code: i64,
    pub(crate) oom_killed: bool,
    /// Containers that are there.
    pub(crate) containers: Value,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            is_podman: false,
            info: json!({"MemoryLimit": true, "PidsLimit": true, "CpuCfsQuota": true, "CgroupVersion": "2"}),
            has_image: true,
            create: (201, json!({"Id": "c0ffee", "Warnings": []})),
            start: (204, Value::Null),
            n_failed_attaches: 0,
            output: vec![(1, b"done\n".to_vec())],
            hangs: false,
            exit_code: 0,
            oom_killed: false,
            containers: json!([]),
        }
    }
}

/// A request: its line without the version of the API, and its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) body: Vec<u8>,
}

/// The engine. Requests arrive in its channel.
pub(crate) struct FakeEngine {
    pub(crate) socket: PathBuf,
    pub(crate) requests: mpsc::UnboundedReceiver<Request>,
    /// Lets requests that make a container be answered.
    pub(crate) may_create: watch::Sender<bool>,
    state: Arc<State>,
    listening: Mutex<Option<JoinHandle<()>>>,
    _folder: tempfile::TempDir,
}

struct State {
    script: Script,
    n_attaches: AtomicUsize,
    requests: mpsc::UnboundedSender<Request>,
    may_create: watch::Receiver<bool>,
    has_image: watch::Sender<bool>,
    is_started: watch::Sender<bool>,
    is_killed: watch::Sender<bool>,
    /// `true` once a program has read its input.
    has_read: watch::Sender<bool>,
}

impl FakeEngine {
    pub(crate) fn start(script: Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("api.sock");
        let (sender, requests) = mpsc::unbounded_channel();
        let (may_create, receiver) = watch::channel(true);
        let state = Arc::new(State {
            has_image: watch::Sender::new(script.has_image),
            script,
            n_attaches: AtomicUsize::new(0),
            requests: sender,
            may_create: receiver,
            is_started: watch::Sender::new(false),
            is_killed: watch::Sender::new(false),
            has_read: watch::Sender::new(false),
        });
        let engine = Self {
            socket,
            requests,
            may_create,
            state,
            listening: Mutex::default(),
            _folder: folder,
        };
        engine.restart();
        engine
    }

    /// Refuses connections from now on.
    pub(crate) fn stop(&self) {
        if let Some(listening) = self.listening.lock().unwrap().take() {
            listening.abort();
        }
        std::fs::remove_file(&self.socket).unwrap();
    }

    /// Accepts connections again.
    pub(crate) fn restart(&self) {
        let listener = UnixListener::bind(&self.socket).unwrap();
        let state = self.state.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(state.clone(), stream));
            }
        });
        *self.listening.lock().unwrap() = Some(listening);
    }

    /// Returns the next request whose line contains this, and drops those before it.
    pub(crate) async fn next(&mut self, part: &str) -> Request {
        loop {
            let request = self.requests.recv().await.expect("the engine runs");
            if request.line.contains(part) {
                return request;
            }
        }
    }

    /// Returns the lines of all requests so far.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(request) = self.requests.try_recv() {
            lines.push(request.line);
        }
        lines
    }
}

async fn serve(state: Arc<State>, stream: UnixStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).await.ok()?;
    let mut words = head.first()?.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let line = format!("{method} {path}");
    let is_attach = path.contains("/attach?");
    if !(is_attach && path.contains("stdin=true")) {
        let _ = state.requests.send(Request {
            line: line.clone(),
            body,
        });
    }
    let is_attached =
        is_attach && state.n_attaches.fetch_add(1, Ordering::SeqCst) >= state.script.n_failed_attaches;
    match is_attached {
        true => attach(&state, stream, &line).await,
        false => {
            let (status, answer) = answer(&state, &line).await;
            let text = if answer.is_null() {
                String::new()
            } else {
                answer.to_string()
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                text.len()
            );
            stream.write_all((head + &text).as_bytes()).await.ok()
        }
    }
}

async fn attach(state: &State, mut stream: BufReader<UnixStream>, line: &str) -> Option<()> {
    let upgraded = b"HTTP/1.1 101 UPGRADED\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n";
    stream.write_all(upgraded).await.ok()?;
    if line.contains("stdin=true") {
        let mut body = Vec::new();
        stream.read_to_end(&mut body).await.ok()?;
        let _ = state.requests.send(Request {
            line: line.to_owned(),
            body,
        });
        state.has_read.send_replace(true);
        return Some(());
    }
    state
        .is_started
        .subscribe()
        .wait_for(|is_started| *is_started)
        .await
        .ok()?;
    // As a program that reads its input before it writes.
    state
        .has_read
        .subscribe()
        .wait_for(|has_read| *has_read)
        .await
        .ok()?;
    for (number, bytes) in &state.script.output {
        let mut frame = vec![*number, 0, 0, 0];
        frame.extend(u32::try_from(bytes.len()).ok()?.to_be_bytes());
        frame.extend(bytes);
        stream.write_all(&frame).await.ok()?;
    }
    if state.script.hangs {
        state
            .is_killed
            .subscribe()
            .wait_for(|is_killed| *is_killed)
            .await
            .ok()?;
    }
    Some(())
}

async fn answer(state: &State, line: &str) -> (u16, Value) {
    let script = &state.script;
    let (method, path) = line.split_once(' ').unwrap();
    let path = path.split('?').next().unwrap();
    // The first request asks for the version.
    let versioned = path.strip_prefix("/v1.41");
    let path = versioned.unwrap_or(if path == "/version" { path } else { "unversioned" });
    match (method, path) {
        ("GET", "/version") => {
            let name = if script.is_podman {
                "Podman Engine"
            } else {
                "Engine"
            };
            (
                200,
                json!({"Version": "9.9.9", "ApiVersion": "1.41", "Components": [{"Name": name, "Version": "9.9.9"}]}),
            )
        }
        ("GET", "/info") => (200, script.info.clone()),
        ("POST", "/images/create") => {
            state.has_image.send_replace(true);
            (200, json!({"status": "Downloaded"}))
        }
        ("GET", path) if path.starts_with("/images/") => match *state.has_image.borrow() {
            true => (
                200,
                json!({"Id": IMAGE_ID, "RepoDigests": [IMAGE], "Config": {"Volumes": {"/data": {}}}}),
            ),
            false => (404, json!({"message": "no such image"})),
        },
        ("POST", "/containers/create") => {
            let mut may_create = state.may_create.clone();
            let _ = may_create.wait_for(|may_create| *may_create).await;
            script.create.clone()
        }
        ("POST", path) if path.ends_with("/attach") => (500, json!({"message": "no such socket"})),
        ("GET", "/containers/json") => (200, script.containers.clone()),
        ("POST", path) if path.ends_with("/start") => {
            state.is_started.send_replace(true);
            script.start.clone()
        }
        ("POST", path) if path.ends_with("/wait") => (200, json!({"StatusCode": script.exit_code})),
        ("POST", path) if path.ends_with("/kill") => {
            state.is_killed.send_replace(true);
            (204, Value::Null)
        }
        ("GET", path) if path.ends_with("/json") => (200, json!({"State": {"OOMKilled": script.oom_killed}})),
        ("DELETE", _) => (204, Value::Null),
        _ => (500, json!({"message": format!("unknown request {line}")})),
    }
}
