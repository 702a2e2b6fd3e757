use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use super::time::LIMIT;

const PAGE: &str = "<!DOCTYPE html><html><head><title>Wrens</title></head><body><article><h1>Wrens</h1>\
    <p>Small birds, &quot;loud&quot; ones \u{1f426}.</p><ul><li>one</li><li>two</li></ul></article></body></html>";
const DATA: &str = r#"{"wrens": [1e2, 12345678901234567890123]}"#;
const ROBOTS: &str = "User-agent: *\nDisallow: /private/\n";

/// A static web site on the loopback interface.
pub(crate) struct Site {
    address: SocketAddr,
}

impl Site {
    /// Opens it, until the process of the test ends.
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(stream));
            }
        });
        Self { address }
    }

    /// Returns the URL of a page.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Answers one request; a client that has gone misses it.
fn answer(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(LIMIT));
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let (status, kind, body) = match first.split(' ').nth(1) {
        Some("/page" | "/private/page") => ("200 OK", "text/html; charset=utf-8", PAGE),
        Some("/data.json") => ("200 OK", "application/json", DATA),
        Some("/robots.txt") => ("200 OK", "text/plain", ROBOTS),
        _ => ("404 Not Found", "text/plain", "nothing here"),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}
