use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use super::{
    client::{Answer, Client, Message},
    time::LIMIT,
};

/// A client of a Streamable HTTP endpoint: a connection for each message, and no more HTTP than that takes.
pub(crate) struct HttpClient {
    address: SocketAddr,
    path: String,
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
    pub(crate) fn new(address: SocketAddr, path: &str) -> Self {
        Self {
            address,
            path: path.to_owned(),
            session: None,
            next_id: 0,
            notifications: Vec::new(),
        }
    }

    fn post(&mut self, body: &str) -> Response {
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n\
             Content-Length: {}\r\n",
            self.path,
            self.address,
            body.len()
        );
        if let Some(session) = &self.session {
            head += &format!("Mcp-Session-Id: {session}\r\n");
        }
        exchange(self.address, &format!("{head}\r\n{body}"))
    }
}

impl Client for HttpClient {
    fn request(&mut self, method: &str, params: &str) -> Answer {
        self.next_id += 1;
        let id = self.next_id;
        let response = self.post(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
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
        let response = self.post(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
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

/// Sends a request and reads until the server closes the connection.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> Response {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no response: {:?}", String::from_utf8_lossy(&bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut response = Response {
        status,
        headers,
        body: String::new(),
    };
    let body = &bytes[end + 4..];
    let chunked = response.header("transfer-encoding") == Some("chunked");
    let body = if chunked { unchunk(body) } else { body.to_vec() };
    response.body = String::from_utf8(body).unwrap();
    response
}

/// Puts the chunks of a body together.
fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}
