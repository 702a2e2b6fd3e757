use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::{JoinHandle, JoinSet},
    time::sleep,
};
use url::Url;

use crate::{FaultEvent, History, request_reader::RequestReader};

/// An HTTP server that counts executions by id. A counted execution has happened, whether its answer arrives or not.
///
/// A request is an execution once its last byte has arrived. Its id is `id` of the JSON object in its body, or of the
/// query. The answer is `{"id": …, "n": …}` with the number of executions of this id so far. `GET /ledger` is no
/// execution: it returns all ids with their numbers.
#[derive(Debug)]
pub struct ExecutionCounter {
    address: SocketAddr,
    book: Arc<CounterState>,
    task: JoinHandle<()>,
}

/// Options of an [`ExecutionCounter`].
#[derive(Debug, Clone)]
pub struct ExecutionCounterOptions {
    /// Address to listen on. Default: a free port of this machine.
    pub listen: SocketAddr,
    /// Time from an execution to its answer.
    pub think: Duration,
    /// `true` if it never answers.
    pub is_mute: bool,
    /// History of its events; executions are numbered instead of exchanges.
    pub history: History,
}

#[derive(Debug)]
struct CounterState {
    options: ExecutionCounterOptions,
    executions: Mutex<BTreeMap<String, u64>>,
}

impl Default for ExecutionCounterOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            think: Duration::ZERO,
            is_mute: false,
            history: History::default(),
        }
    }
}

impl ExecutionCounter {
    /// Starts a counter on a free port.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start() -> io::Result<Self> {
        Self::with_options(ExecutionCounterOptions::default()).await
    }

    /// Starts a counter, which listens until it is dropped.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn with_options(options: ExecutionCounterOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let book = Arc::new(CounterState {
            options,
            executions: Mutex::default(),
        });
        let task = tokio::spawn(accept(book.clone(), listener));
        Ok(Self { address, book, task })
    }

    /// Returns the address of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the number of executions of this id.
    #[must_use]
    pub fn executions(&self, id: &str) -> u64 {
        self.book.executions().get(id).copied().unwrap_or(0)
    }

    /// Returns the number of all executions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.book.executions().values().sum()
    }

    /// Returns the history of its events.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.book.options.history
    }
}

impl Drop for ExecutionCounter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CounterState {
    fn executions(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.executions.lock()
    }

    /// Executes a request. Returns the number of the execution and the answer.
    fn execute(&self, request: &[u8]) -> (u64, Value) {
        let id = id_of(request).unwrap_or_default();
        let mut executions = self.executions();
        let number = executions.values().sum();
        let n = executions.entry(id.clone()).or_default();
        *n += 1;
        let answer = json!({"id": id, "n": *n});
        drop(executions);
        self.options.history.add(number, FaultEvent::Executed(id));
        (number, answer)
    }
}

async fn accept(book: Arc<CounterState>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(serve(book.clone(), client));
                }
                // Out of file descriptors: the connection waits until one is free.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(book: Arc<CounterState>, client: TcpStream) {
    let _ = client.set_nodelay(true);
    let (reader, mut client) = client.into_split();
    let mut requests = RequestReader::new(reader);
    while let Ok(Some(request)) = requests.next().await {
        let answered = if request.starts_with(b"GET /ledger ") {
            let all = json!(*book.executions());
            say(&mut client, &all).await
        } else {
            respond(&book, &mut requests, &request, &mut client).await
        };
        if answered.is_err() {
            return;
        }
    }
}

async fn respond(
    book: &CounterState,
    requests: &mut RequestReader<OwnedReadHalf>,
    request: &Bytes,
    client: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let (number, answer) = book.execute(request);
    let options = &book.options;
    let think = async {
        match options.is_mute {
            true => std::future::pending().await,
            false => sleep(options.think).await,
        }
    };
    if options.is_mute || !options.think.is_zero() {
        tokio::select! {
            () = think => {}
            () = requests.gone() => {
                options.history.add(number, FaultEvent::Left);
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    }
    say(client, &answer).await
}

async fn say(client: &mut OwnedWriteHalf, answer: &Value) -> io::Result<()> {
    let body = answer.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await
}

/// Returns the id of a request.
fn id_of(request: &[u8]) -> Option<String> {
    let head = request.windows(4).position(|end| end == b"\r\n\r\n")?;
    let body: Option<Value> = serde_json::from_slice(&request[head + 4..]).ok();
    match body.as_ref().and_then(|body| body.get("id")) {
        Some(Value::String(id)) => return Some(id.clone()),
        Some(id) => return Some(id.to_string()),
        None => {}
    }
    let line = str::from_utf8(&request[..head]).ok()?.lines().next()?;
    let url = Url::parse("http://ledger")
        .ok()?
        .join(line.split(' ').nth(1)?)
        .ok()?;
    let id = url.query_pairs().find(|(key, _)| key == "id")?;
    Some(id.1.into_owned())
}
