//! A collector for the spans of a gateway.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};

/// Accepts all requests and ignores their content. It listens until the process ends.
pub(crate) struct Collector {
    address: SocketAddr,
    n_requests: Arc<AtomicUsize>,
}

impl Collector {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
        let address = listener.local_addr()?;
        let n_requests = Arc::new(AtomicUsize::new(0));
        let counted = n_requests.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let counted = counted.clone();
                // The gateway reopens a connection that breaks.
                thread::spawn(move || drop(take(&connection, &counted)));
            }
        });
        Ok(Self { address, n_requests })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of requests so far.
    pub(crate) fn n_requests(&self) -> usize {
        self.n_requests.load(Ordering::Relaxed)
    }
}

/// Answers the requests of one connection.
fn take(mut connection: &TcpStream, n_requests: &AtomicUsize) -> Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        n_requests.fetch_add(1, Ordering::Relaxed);
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        connection.write_all(answer.as_bytes())?;
    }
}
