//! A minimal server over HTTP that can break the rules of HTTP.

use std::{
    io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use crate::{
    Notes,
    act::{CHANGED, LOGGED, act},
    protocol::{Era, Message, Wire, answer, is_list_beside, unknown_method},
    sleep,
};

pub(crate) fn serve(notes: &Notes) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    for socket in listener.incoming() {
        let (socket, notes) = (socket?, notes.clone());
        // The end of a connection was requested, or is the client's choice.
        thread::spawn(move || connection(socket, &notes));
    }
    Ok(())
}

fn connection(socket: TcpStream, notes: &Notes) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut out = BufWriter::new(socket);
    while let Some(head) = Head::read(&mut reader)? {
        let mut parts = head.path.split('/').skip(1);
        let era = Era::parse(parts.next().unwrap_or_default());
        let is_stream = parts.next() == Some("events");
        let mode = parts.next().unwrap_or_default();
        if mode == "deaf" && head.length > 100_000 {
            sleep();
        }
        let mut body = vec![0; head.length];
        reader.read_exact(&mut body)?;
        let mut answering = Answering {
            out: &mut out,
            era,
            mode,
            is_stream,
            notes,
        };
        let goes_on = match head.method.as_str() {
            "GET" => answering.listen(&mut reader)?,
            "POST" => answering.post(&body, head.has_session, &mut reader)?,
            _ => answering.status("200 OK", "", "").map(|()| true)?,
        };
        if !goes_on {
            return Ok(());
        }
    }
    Ok(())
}

/// The parsed part of a request's head.
struct Head {
    method: String,
    path: String,
    length: usize,
    has_session: bool,
}

impl Head {
    fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        let mut head = Self {
            method: next(),
            path: next(),
            length: 0,
            has_session: false,
        };
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else {
                return Ok(Some(head));
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.trim().parse().unwrap_or_default(),
                "mcp-session-id" => head.has_session = true,
                _ => {}
            }
        }
    }
}

struct Answering<'a> {
    out: &'a mut BufWriter<TcpStream>,
    era: Era,
    mode: &'a str,
    is_stream: bool,
    notes: &'a Notes,
}

/// Heads of answers, to which further headers may be added.
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n";

impl Answering<'_> {
    /// Answers a message. Returns `false` if the connection ends.
    fn post(
        &mut self,
        body: &[u8],
        has_session: bool,
        reader: &mut BufReader<TcpStream>,
    ) -> io::Result<bool> {
        let Ok(message) = serde_json::from_slice::<Message>(body) else {
            return self.status("400 Bad Request", "", "").map(|()| true);
        };
        self.notes.note(message.note())?;
        let (Some(id), Some(method)) = (&message.id, &message.method) else {
            return self.status("202 Accepted", "", "").map(|()| true);
        };
        let id = id.get();
        if message.is_act() {
            return self.misbehave(id, has_session, reader);
        }
        if self.mode == "never-opens" || self.mode == "beside-silence" && is_list_beside(method) {
            return self.hold(reader);
        }
        if self.era == Era::Modern && method == "subscriptions/listen" {
            return self.subscribe(id, reader);
        }
        match self.era.result(self.mode, &message) {
            None => {
                let (line, error) = ("400 Bad Request", unknown_method(id));
                self.status(line, "content-type: application/json\r\n", &error)?;
            }
            Some(result) => self.streamed(|wire| wire.say(answer(id, &result)))?,
        }
        Ok(true)
    }

    /// Answers with the messages of `speak`, in the form of the server.
    fn streamed(&mut self, speak: impl FnOnce(&mut Chunks<'_>) -> io::Result<()>) -> io::Result<()> {
        let head = if self.is_stream { STREAM } else { JSON };
        self.out.write_all(head.as_bytes())?;
        if self.era == Era::Legacy {
            self.out.write_all(b"mcp-session-id: s1\r\n")?;
        }
        self.out.write_all(b"\r\n")?;
        self.out.flush()?;
        speak(&mut Chunks {
            out: self.out,
            is_stream: self.is_stream,
        })?;
        self.out.write_all(b"0\r\n\r\n")?;
        self.out.flush()
    }

    fn status(&mut self, line: &str, headers: &str, body: &str) -> io::Result<()> {
        let length = body.len();
        self.raw(&format!(
            "HTTP/1.1 {line}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn misbehave(
        &mut self,
        id: &str,
        has_session: bool,
        reader: &mut BufReader<TcpStream>,
    ) -> io::Result<bool> {
        match self.mode {
            "never-answers" => return self.hold(reader),
            "forgets-sessions" if has_session => self.status("404 Not Found", "", "")?,
            "accepts" => self.status("202 Accepted", "", "")?,
            "fails" => self.status("500 Internal Server Error", "", "<h1>out of cheese</h1>")?,
            "sends-away" => {
                // The redirect leads to a healthy server.
                let there = format!("location: /{}/json/healthy\r\n", self.era.name());
                self.status("307 Temporary Redirect", &there, "")?;
            }
            "wants-credentials" => {
                self.status(
                    "401 Unauthorized",
                    "www-authenticate: Bearer realm=\"cheese\"\r\n",
                    "",
                )?;
            }
            "writes-html" => self.status("200 OK", "content-type: text/html\r\n", "<html>")?,
            "compresses" => {
                self.status(
                    "200 OK",
                    "content-type: application/json\r\ncontent-encoding: gzip\r\n",
                    "\u{1f}",
                )?;
            }
            "says-nothing" => self.streamed(|_| Ok(()))?,
            "exits-mid-call" => return Ok(false),
            "exits-mid-head" => return self.raw("HTTP/1.1 200 OK\r\ncontent-ty").map(|()| false),
            "exits-mid-answer" => {
                let head = if self.is_stream { STREAM } else { JSON };
                let start = if self.is_stream {
                    "data: {\"id\":"
                } else {
                    "{\"id\":"
                };
                return self
                    .raw(&format!("{head}\r\n{:x}\r\n{start}\r\n", start.len()))
                    .map(|()| false);
            }
            "speaks-ssh" => return self.raw("SSH-2.0-OpenSSH_9.9\r\n").map(|()| false),
            "has-two-lengths" => {
                self.raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}\n")?;
                return Ok(false);
            }
            "has-odd-chunks" => {
                return self
                    .raw(&format!("{JSON}\r\nfffffffffffffffff\r\n{{}}\r\n"))
                    .map(|()| false);
            }
            "never-ends-its-head" => {
                self.raw("HTTP/1.1 200 OK\r\n")?;
                return self.without_end("x-noise: noise\r\n", Duration::ZERO);
            }
            "drips-its-head" => {
                self.raw("HTTP/1.1 200 OK\r\n")?;
                return self.without_end("a: b\r\n", Duration::from_millis(50));
            }
            "asks-to-go-on" => {
                return self.without_end("HTTP/1.1 100 Continue\r\n\r\n", Duration::from_millis(1));
            }
            "keeps-alive" => {
                self.raw(&format!("{STREAM}\r\n"))?;
                return self.without_end("3\r\n:\n\n\r\n", Duration::from_millis(1));
            }
            "ends-every-stream" => {
                let event = "id: 1\nretry: 0\ndata:\n\n";
                self.raw(&format!("{STREAM}\r\n{:x}\r\n{event}\r\n0\r\n\r\n", event.len()))?;
            }
            mode => {
                let era = self.era;
                self.streamed(|wire| act(wire, era, mode, id))?;
            }
        }
        Ok(true)
    }

    /// Sends nothing until the client closes the connection.
    fn hold(&self, reader: &mut BufReader<TcpStream>) -> io::Result<bool> {
        // A reset is a close as well.
        let _ = io::copy(reader, &mut io::sink());
        self.notes.note("left").map(|()| false)
    }

    fn without_end(&mut self, text: &str, pause: Duration) -> io::Result<bool> {
        loop {
            self.raw(text)?;
            thread::sleep(pause);
        }
    }

    /// Opens the stream of a legacy client.
    fn listen(&mut self, reader: &mut BufReader<TcpStream>) -> io::Result<bool> {
        self.notes.note("GET")?;
        match self.mode {
            "never-quiet" => self.flood(),
            "ends-every-stream" => self.raw(&format!("{STREAM}\r\n0\r\n\r\n")).map(|()| true),
            "never-opens" => self.hold(reader),
            _ => self.status("405 Method Not Allowed", "", "").map(|()| true),
        }
    }

    /// Opens the subscription of a modern client.
    fn subscribe(&mut self, id: &str, reader: &mut BufReader<TcpStream>) -> io::Result<bool> {
        if self.mode == "never-quiet" {
            return self.flood();
        }
        if self.mode == "ends-every-stream" {
            return self.raw(&format!("{STREAM}\r\n0\r\n\r\n")).map(|()| true);
        }
        self.raw(&format!("{STREAM}\r\n"))?;
        let mut wire = Chunks {
            out: self.out,
            is_stream: true,
        };
        wire.say(Era::acknowledgement(id))?;
        self.hold(reader)
    }

    /// Sends change notifications without end, until the client closes the connection.
    fn flood(&mut self) -> io::Result<bool> {
        self.raw(&format!("{STREAM}\r\n"))?;
        let mut wire = Chunks {
            out: self.out,
            is_stream: true,
        };
        let block = format!("{CHANGED}\n\ndata: {LOGGED}\n\ndata: ").repeat(100);
        loop {
            wire.say(&block)?;
        }
    }
}

/// Body of an answer: one document, or an event stream.
struct Chunks<'a> {
    out: &'a mut BufWriter<TcpStream>,
    is_stream: bool,
}

impl Wire for Chunks<'_> {
    fn begin(&mut self) -> io::Result<()> {
        if self.is_stream {
            self.piece(b"data: ")
        } else {
            Ok(())
        }
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            // An empty chunk would end the body.
            return Ok(());
        }
        write!(self.out, "{:x}\r\n", bytes.len())?;
        self.out.write_all(bytes)?;
        self.out.write_all(b"\r\n")?;
        self.out.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        if self.is_stream {
            self.piece(b"\n\n")
        } else {
            Ok(())
        }
    }

    fn say(&mut self, message: impl AsRef<[u8]>) -> io::Result<()> {
        match self.is_stream {
            true => self.piece(&[b"data: ", message.as_ref(), b"\n\n"].concat()),
            false => self.piece(message.as_ref()),
        }
    }
}
