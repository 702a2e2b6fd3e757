use std::{
    io::{BufRead, BufReader, Read as _},
    net::{SocketAddr, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use super::{
    client::{Answer, Client, Era, Message},
    compare::{members, text},
    http::{Incoming, begin},
    offer::Offer,
    time::{LIMIT, Stopwatch},
};

/// A minimal client of a Streamable HTTP endpoint, with one connection for each message.
pub(crate) struct HttpClient {
    address: SocketAddr,
    era: Era,
    offer: Offer,
    /// Header lines of every request.
    extra_headers: String,
    session: Option<String>,
    next_id: u64,
    /// Notifications that came with answers, in order: method and parameters.
    pub(crate) notifications: Vec<(String, String)>,
}

/// Notifications of an open stream.
pub(crate) struct Notifications(Receiver<(String, String)>);

impl HttpClient {
    pub(crate) fn open_at(address: SocketAddr, era: Era) -> Self {
        Self::open_offering(address, era, Offer::default())
    }

    /// Opens the connection of a client that can be asked.
    pub(crate) fn open_offering(address: SocketAddr, era: Era, offer: Offer) -> Self {
        Self::prepared(address, era, offer, "")
    }

    /// Opens a connection whose requests have these header lines, each with its end.
    pub(crate) fn open_with(address: SocketAddr, era: Era, extra_headers: &str) -> Self {
        Self::prepared(address, era, Offer::default(), extra_headers)
    }

    fn prepared(address: SocketAddr, era: Era, offer: Offer, extra_headers: &str) -> Self {
        let mut client = Self {
            address,
            era,
            offer,
            extra_headers: extra_headers.to_owned(),
            session: None,
            next_id: 0,
            notifications: Vec::new(),
        };
        client.open(era);
        client
    }

    /// Opens a stream for notifications: in the modern era those of `filter`, a JSON object.
    pub(crate) fn listen(&mut self, filter: &str) -> Notifications {
        let response = match self.era {
            Era::Legacy => self.send("GET", "", ""),
            Era::Modern => {
                let params = format!(r#"{{"notifications":{filter}}}"#);
                self.send_request("subscriptions/listen", &params).1
            }
        };
        assert_eq!(response.status, 200);
        assert!(response.is_stream());
        let (sender, notifications) = channel();
        thread::spawn(move || {
            for message in messages(response) {
                let Message::Notification(method, params) = Message::read(&message) else {
                    panic!("no notification: {message}");
                };
                if sender.send((method, params)).is_err() {
                    return;
                }
            }
        });
        let notifications = Notifications(notifications);
        if self.era == Era::Modern {
            notifications.wait_for("notifications/subscriptions/acknowledged");
        }
        notifications
    }

    fn send(&self, method: &str, headers: &str, body: &str) -> Incoming<BufReader<TcpStream>> {
        let version = match self.era {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        };
        let accept = match method {
            "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: {accept}\r\nMCP-Protocol-Version: {version}\r\n{headers}{}Content-Length: {}\r\n",
            self.address,
            self.extra_headers,
            body.len()
        );
        if let Some(session) = &self.session {
            head += &format!("Mcp-Session-Id: {session}\r\n");
        }
        begin(self.address, format!("{head}\r\n{body}"))
    }

    /// Sends a request and returns its id and the response.
    fn send_request(&mut self, method: &str, params: &str) -> (u64, Incoming<BufReader<TcpStream>>) {
        self.next_id += 1;
        let id = self.next_id;
        let headers = self.headers(method, params);
        let params = self.era.params(params, &self.offer);
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        (id, self.send("POST", &headers, &request))
    }

    /// Sends a message without an answer.
    fn tell(&self, message: &str) {
        let mut response = self.send("POST", "", message);
        let mut body = String::new();
        response.read_to_string(&mut body).unwrap();
        assert_eq!((response.status, body.as_str()), (202, ""));
    }

    /// Returns the headers that the era requires for a request.
    fn headers(&self, method: &str, params: &str) -> String {
        let mut headers = String::new();
        if self.era == Era::Modern {
            headers += &format!("Mcp-Method: {method}\r\n");
            let key = if method == "resources/read" { "uri" } else { "name" };
            if let Some(name) = members(params).get(key) {
                headers += &format!("Mcp-Name: {}\r\n", text(name));
            }
        }
        headers
    }
}

impl Client for HttpClient {
    fn request(&mut self, method: &str, params: &str) -> Answer {
        let (id, response) = self.send_request(method, params);
        if let Some(session) = response.header("mcp-session-id") {
            self.session = Some(session.to_owned());
        }
        let status = response.status;
        for message in messages(response) {
            match Message::read(&message) {
                Message::Answer(answered, answer) => {
                    assert_eq!(answered, id, "the answer to another request");
                    return answer;
                }
                Message::Notification(method, params) => self.notifications.push((method, params)),
                Message::Request { id, method, params } => {
                    let answer = self.offer.answer(&id, &method, &params);
                    self.tell(&answer);
                }
            }
        }
        panic!("no answer to `{method}`: status {status}")
    }

    fn notify(&mut self, method: &str) {
        self.tell(&format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
    }

    fn offer(&mut self) -> &mut Offer {
        &mut self.offer
    }
}

impl Notifications {
    /// Drops the notifications so far.
    pub(crate) fn clear(&self) {
        self.0.try_iter().for_each(drop);
    }

    /// Waits for the next notification: method and parameters.
    pub(crate) fn next(&self) -> (String, String) {
        self.within(LIMIT, "notification")
    }

    /// Waits for a notification of this method, skips all others, and returns its parameters.
    pub(crate) fn wait_for(&self, method: &str) -> String {
        let watch = Stopwatch::start();
        loop {
            let (found, params) = self.within(watch.left(LIMIT), method);
            if found == method {
                return params;
            }
        }
    }

    fn within(&self, limit: Duration, what: &str) -> (String, String) {
        let next = self.0.recv_timeout(limit);
        next.unwrap_or_else(|error| panic!("no `{what}`: {error}"))
    }
}

/// Returns the messages of a body, one or an event stream, each as soon as it has arrived.
fn messages(response: Incoming<BufReader<TcpStream>>) -> impl Iterator<Item = String> {
    let is_stream = response.is_stream();
    let mut lines = BufReader::new(response);
    let mut is_over = false;
    std::iter::from_fn(move || {
        if !is_stream {
            let mut body = String::new();
            lines.read_to_string(&mut body).unwrap();
            return (!body.is_empty() && !std::mem::replace(&mut is_over, true)).then_some(body);
        }
        let mut data: Vec<String> = Vec::new();
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
            let content = line.trim_end_matches(['\r', '\n']);
            if let Some(content) = content.strip_prefix("data:") {
                data.push(content.strip_prefix(' ').unwrap_or(content).to_owned());
            } else if content.is_empty() && data.iter().any(|data| !data.is_empty()) {
                return Some(data.join("\n"));
            } else if content.is_empty() {
                // An event without data only carries the id for resumption.
                data.clear();
            }
            line.clear();
        }
        None
    })
}
