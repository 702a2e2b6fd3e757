use std::{
    io::{BufRead, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
};

use super::{
    client::{Answer, Client, Era, Message},
    compare::{members, text},
    time::LIMIT,
};

/// A client of a Streamable HTTP endpoint: a connection for each message, and no more HTTP than that takes.
pub(crate) struct HttpClient {
    address: SocketAddr,
    era: Era,
    session: Option<String>,
    next_id: u64,
    /// The notifications that came, in order: method and parameters.
    pub(crate) notifications: Vec<(String, String)>,
}

/// A response, its body put together.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpClient {
    pub(crate) fn open_at(address: SocketAddr, era: Era) -> Self {
        let mut client = Self {
            address,
            era,
            session: None,
            next_id: 0,
            notifications: Vec::new(),
        };
        client.open(era);
        client
    }

    fn post(&mut self, headers: &str, body: &str) -> Response {
        let version = match self.era {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        };
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\n{headers}\
             Content-Length: {}\r\n",
            self.address,
            body.len()
        );
        if let Some(session) = &self.session {
            head += &format!("Mcp-Session-Id: {session}\r\n");
        }
        exchange(self.address, format!("{head}\r\n{body}"))
    }

    /// The headers that the era wants for a request.
    fn headers(&self, method: &str, params: &str) -> String {
        let mut headers = String::new();
        if self.era == Era::Modern {
            headers += &format!("Mcp-Method: {method}\r\n");
            if let Some(name) = members(params).get("name") {
                headers += &format!("Mcp-Name: {}\r\n", text(name));
            }
        }
        headers
    }
}

impl Client for HttpClient {
    fn request(&mut self, method: &str, params: &str) -> Answer {
        self.next_id += 1;
        let id = self.next_id;
        let headers = self.headers(method, params);
        let params = self.era.params(params);
        let response = self.post(
            &headers,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#),
        );
        if let Some(session) = response.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        for message in response.messages() {
            match Message::read(&message) {
                Message::Answer(answered, answer) => {
                    assert_eq!(answered, id, "the answer to another request");
                    return answer;
                }
                Message::Notification(method, params) => self.notifications.push((method, params)),
                Message::Request(_) => panic!("the gateway asks what nobody offered: {message}"),
            }
        }
        panic!("no answer: status {}, {}", response.status, response.body)
    }

    fn notify(&mut self, method: &str) {
        let response = self.post("", &format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
        assert_eq!((response.status, response.body.as_str()), (202, ""));
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(key, _)| key == name);
        header.map(|(_, value)| value.as_str())
    }

    /// The messages of the body, which is one or a stream of events.
    fn messages(&self) -> Vec<String> {
        if !self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return vec![self.body.clone()];
        }
        let events = self.body.split("\n\n").map(|event| {
            let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
            data.map(|data| data.strip_prefix(' ').unwrap_or(data))
                .collect::<Vec<_>>()
                .join("\n")
        });
        events.filter(|data| !data.is_empty()).collect()
    }
}

/// A connection on which nothing takes for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Sends a request and reads the response by its own framing: not every server closes the connection when asked to.
pub(crate) fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Response {
    let mut stream = connect(address);
    stream.write_all(request.as_ref()).unwrap();
    receive(&mut BufReader::new(stream))
}

/// Reads one response.
pub(crate) fn receive(reader: &mut impl BufRead) -> Response {
    let status = line(reader).split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let line = line(reader);
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut response = Response {
        status,
        headers,
        body: String::new(),
    };
    let mut body = Vec::new();
    if response.header("transfer-encoding") == Some("chunked") {
        read_chunks(reader, &mut body);
    } else if status == 204 {
        // It has no body, so it need not say how long that is.
    } else if let Some(length) = response.header("content-length") {
        body.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut body).unwrap();
    } else {
        reader.read_to_end(&mut body).unwrap();
    }
    response.body = String::from_utf8(body).unwrap();
    response
}

/// Puts the chunks of a body together.
fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) {
    loop {
        let size = line(reader);
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).unwrap();
        assert_eq!(line(reader), "", "a chunk or the body has an end");
        if size == 0 {
            return;
        }
    }
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.ends_with("\r\n"), "cut off: {line:?}");
    line.truncate(line.len() - 2);
    line
}
