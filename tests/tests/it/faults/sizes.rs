//! APIs that answer with a gibibyte. MCP servers that send too much are tested in [`floods`](crate::hostile); the tests
//! of `mcp-client` count how much they could write.

use std::{
    io::{BufRead as _, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::outcome;
use crate::support::{Client as _, Configuration, Gateway, healthy_server};

/// Size of an answer, in bytes.
const SIZE: usize = 1 << 30;
/// Number of concurrent calls.
const AT_ONCE: usize = 8;

/// Starts a server whose answers are zeros, in the form that the path selects.
fn zeros() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that has read enough closes the connection.
            thread::spawn(move || drop(answer(&stream)));
        }
    });
    address
}

fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let kind = first
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .trim_start_matches('/');
    let head = match kind {
        "announced" => format!("content-length: {SIZE}\r\n"),
        "chunked" => "transfer-encoding: chunked\r\n".to_owned(),
        "zipped" => "content-encoding: gzip\r\n".to_owned(),
        _ => String::new(),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{head}\r\n"
    )?;
    let block = vec![b'0'; 1 << 20];
    let mut zipped = GzEncoder::new(stream, Compression::fast());
    for _ in 0..SIZE / block.len() {
        match kind {
            "chunked" => {
                write!(stream, "{:x}\r\n", block.len())?;
                stream.write_all(&block)?;
                stream.write_all(b"\r\n")?;
            }
            "zipped" => zipped.write_all(&block)?,
            _ => stream.write_all(&block)?,
        }
    }
    Ok(())
}

#[test]
fn an_answer_of_a_gibibyte_fails_its_call_and_costs_little() {
    let address = zeros();
    let kinds = ["announced", "chunked", "until-the-end", "zipped"];
    let mut configuration = Configuration::default().server("healthy", healthy_server());
    for kind in kinds {
        let url = format!("http://{address}/{kind}");
        let executor = json!({"kind": "http", "url": url, "allow_private": true});
        configuration = configuration.tool(kind, json!({"description": "Too much.", "executor": executor}));
    }
    let mut gateway = Gateway::stdio(&configuration);
    gateway.client.tools();
    let before = gateway.client.process.peak_memory();
    for kind in kinds {
        let calls: Vec<_> = (0..AT_ONCE)
            .map(|_| gateway.client.begin_call(kind, "{}"))
            .collect();
        assert_eq!(outcome(&gateway.client.call("healthy__echo", "{}"), "{}"), "fine");
        for call in calls {
            assert_eq!(
                outcome(&gateway.client.wait(call), "00"),
                "result_too_large",
                "{kind}"
            );
        }
        let more = (gateway.client.process.peak_memory() - before) >> 20;
        assert!(more <= 64 * AT_ONCE, "{kind}: {more} MiB more");
    }
    assert_eq!(gateway.end().code(), Some(0));
}
