//! A closed loop of calls to a server over HTTP, for benchmarks and training.
//!
//! The client is minimal: one connection, one request at a time, every answer checked.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

/// Number of attempts to connect to a starting server, and the pause between two.
const TRIES: usize = 2000;
const BETWEEN: Duration = Duration::from_millis(10);

/// `_meta` of a request of 2026-07-28, around the capabilities of its client.
const META: [&str; 2] = [
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":"#,
    r#","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}"#,
];

/// A listening process, ended when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts the server that `command` makes for an address, and waits until it listens.
    ///
    /// # Errors
    /// When it does not start, or does not listen within 20 s.
    pub fn start(command: impl FnOnce(SocketAddr) -> Command) -> Result<Self> {
        let free = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
        let address = free.local_addr()?;
        drop(free);
        let mut command = command(address);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("failed to start `{name}`"))?;
        let mut server = Self { child, address };
        for _ in 0..TRIES {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                bail!("`{name}` ended with {status} before it listened");
            }
            thread::sleep(BETWEEN);
        }
        bail!("`{name}` does not listen at {address}")
    }

    /// Returns the address of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the processor time of the process, without its children.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn processor_time(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name in parentheses: fields 14 and 15 of proc(5), in ticks of 10 ms.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok());
        let (user, system) = ticks(11)
            .zip(ticks(12))
            .context("proc(5) has another shape here")?;
        Ok(Duration::from_millis(10 * (user + system)))
    }

    /// Returns the number of its running descendants.
    #[must_use]
    pub fn n_descendants(&self) -> usize {
        let (mut n, mut parents) = (0, vec![self.child.id()]);
        while let Some(parent) = parents.pop() {
            let children = children(parent);
            n += children.len();
            parents.extend(children);
        }
        n
    }

    /// Terminates it regularly and waits for its end, so that its last writes are complete.
    ///
    /// # Errors
    /// When it does not end well.
    pub fn end(mut self) -> Result<()> {
        self.ask_to_end();
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }

    fn ask_to_end(&self) {
        // It may have ended already.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask_to_end();
        }
        let _ = self.child.wait();
    }
}

/// Returns the children of a process: those that each of its threads has started.
fn children(parent: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let lists: Vec<String> = threads.flatten().filter_map(of_thread).collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// Revision of MCP that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25 without a session, for a server that keeps none.
    Plain,
    /// 2025-11-25 with `initialize` and a session.
    Session,
    /// 2026-07-28.
    Modern,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    era: Era,
    /// Capabilities that requests of 2026-07-28 declare, as JSON.
    capabilities: &'static str,
    /// Header lines of every request, each with its line end.
    headers: String,
    body: Vec<u8>,
}

impl Client {
    /// Opens a connection, and the session if the era has one.
    ///
    /// # Errors
    /// When the server does not accept it.
    pub fn open(address: SocketAddr, era: Era) -> Result<Self> {
        let stream = TcpStream::connect(address).context("the server accepts no connection")?;
        stream.set_nodelay(true)?;
        let mut headers = format!(
            "host: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        );
        if era == Era::Modern {
            headers += "mcp-protocol-version: 2026-07-28\r\n";
        }
        let mut client = Self {
            stream: BufReader::new(stream),
            era,
            capabilities: "{}",
            headers,
            body: Vec::new(),
        };
        if era == Era::Session {
            let opening = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;
            let session = client.exchange(&client.framed("", opening))?;
            let session = session.context("the server opened no session")?;
            client.headers += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
            let opened = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            client.exchange(&client.framed("", opened))?;
        }
        Ok(client)
    }

    /// Declares these capabilities, as JSON, in further requests of 2026-07-28.
    #[must_use]
    pub fn declaring(self, capabilities: &'static str) -> Self {
        Self { capabilities, ..self }
    }

    /// Returns a request that can be sent repeatedly: `params` are the members of the parameters, without braces.
    #[must_use]
    pub fn request(&self, method: &str, name: Option<&str>, params: &str) -> Vec<u8> {
        let named = name.map(|name| format!(r#""name":"{name}""#));
        let meta = (self.era == Era::Modern).then(|| META.join(self.capabilities));
        let given = Some(params).filter(|params| !params.is_empty());
        let params: Vec<&str> = named
            .as_deref()
            .into_iter()
            .chain(given)
            .chain(meta.as_deref())
            .collect();
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{}}}}}"#,
            params.join(",")
        );
        let mut headers = String::new();
        if self.era == Era::Modern {
            headers += &format!("mcp-method: {method}\r\n");
            headers.extend(name.map(|name| format!("mcp-name: {name}\r\n")));
        }
        self.framed(&headers, &message)
    }

    /// Sends a request and returns the answer's text.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub fn send(&mut self, request: &[u8]) -> Result<&str> {
        self.exchange(request)?;
        std::str::from_utf8(&self.body).context("the answer is no UTF-8")
    }

    fn framed(&self, headers: &str, message: &str) -> Vec<u8> {
        let length = message.len();
        let head = format!(
            "POST /mcp HTTP/1.1\r\n{}{headers}content-length: {length}\r\n\r\n",
            self.headers
        );
        [head, message.to_owned()].concat().into_bytes()
    }

    /// Sends a request, reads the answer, and returns the session that it opened.
    fn exchange(&mut self, request: &[u8]) -> Result<Option<String>> {
        self.stream.get_mut().write_all(request)?;
        let (mut length, mut session, mut line) = (0, None, String::new());
        loop {
            line.clear();
            ensure!(
                self.stream.read_line(&mut line)? > 0,
                "the server closed the connection"
            );
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            let Some((name, value)) = text.split_once(':') else {
                ensure!(text.starts_with("HTTP/1.1 20"), "the server answered `{text}`");
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().context("the length is no number")?;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(value.trim().to_owned());
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(session)
    }
}
