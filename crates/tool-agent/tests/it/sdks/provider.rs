//! A provider on this machine.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use tool_agent::{
    ProviderFormat,
    serde_json::{self, Value},
};

use crate::streams::events;

/// A provider on this machine, which keeps requests. It answers each with the next response, and the last one again and again.
pub(super) struct Provider {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    pub(super) fn start(format: ProviderFormat, responses: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let kept = requests.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                // The SDK notices if it fails.
                let _ = answer(format, connection, &kept, &responses);
            }
        });
        Self { url, requests }
    }

    /// Returns the requests so far.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.requests.lock().expect("nothing panics with it").clone()
    }

    /// Returns the request that came last.
    pub(super) fn last(&self) -> Value {
        self.requests().pop().expect("there is one")
    }
}

/// Answers one request, whole or as a stream.
fn answer(
    format: ProviderFormat,
    mut connection: TcpStream,
    kept: &Mutex<Vec<Value>>,
    responses: &[Value],
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(n_bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n_bytes.trim().parse().unwrap_or_default();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body)?;
    let is_stream = match format {
        ProviderFormat::Gemini => head.contains(":streamGenerateContent"),
        _ => request["stream"] == true,
    };
    let mut kept = kept.lock().expect("nothing panics with it");
    let whole = &responses[kept.len().min(responses.len() - 1)];
    kept.push(request);
    drop(kept);
    let (kind, body) = match is_stream {
        true => streamed(format, whole),
        false => ("application/json", whole.to_string()),
    };
    write!(
        connection,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the type and the body of a response that is streamed.
fn streamed(format: ProviderFormat, whole: &Value) -> (&'static str, String) {
    let events = events(format, whole, &[0.5]).into_iter();
    if format == ProviderFormat::Ollama {
        let lines = events.map(|line| format!("{line}\n"));
        return ("application/x-ndjson", lines.collect());
    }
    let lines = events.map(|event| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    });
    let mut body: String = lines.collect();
    if format == ProviderFormat::OpenAiChat {
        body.push_str("data: [DONE]\n\n");
    }
    ("text/event-stream", body)
}
