//! Tests of HTTP framing: answers that arrive before their request was sent, and heads and bodies that two readers may
//! interpret differently.

use std::{sync::Arc, time::Duration};

use mcp_client::{ClientError, ClientErrorKind, Connection, ConnectionOptions, EraChoice, HttpEndpoint};
use raw_json::RawJson;
use tokio::time::timeout;

use crate::{
    http::{about, call, serving_in},
    support::http_server::{Headers, Reply, Seen, Server, opening},
    support::peer::{raw, within},
};
use mcp_wire::Era;

const PATIENCE: Duration = Duration::from_secs(60);
/// Size beyond the capacity of sockets in transit.
const LARGE: usize = 8 << 20;

fn is_large(headers: &Headers) -> bool {
    let length = headers.get("content-length");
    length.is_some_and(|length| length.parse::<usize>().unwrap() > LARGE)
}

async fn connect(server: &Server) -> Connection {
    let endpoint = HttpEndpoint::new(&server.url).unwrap();
    let opening = Connection::http(&endpoint, ConnectionOptions::default());
    timeout(PATIENCE, opening).await.unwrap().unwrap()
}

/// Makes a call with large arguments.
async fn large_call(connection: &Connection) -> Result<RawJson, ClientError> {
    let params = raw(&format!(
        r#"{{"name":"t","arguments":{{"text":"{}"}}}}"#,
        "x".repeat(LARGE)
    ));
    let calling = connection.request("tools/call", Some(params), within(20));
    timeout(PATIENCE, calling).await.unwrap()
}

/// Body of a message in one chunk, with the end of the body.
fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[tokio::test]
async fn a_request_goes_on_leaving_while_its_answer_is_read() {
    type Rest = fn(&Seen) -> String;
    let cases: [(&'static str, Rest); 6] = [
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            |seen| chunk(&about(seen, "data: {\"id\":ID,\"result\":{}}\n\n")),
        ),
        // Part of the body arrives early.
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n3\r\n:\n\n\r\n",
            |seen| chunk(&about(seen, "data: {\"id\":ID,\"result\":{}}\n\n")),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
            |seen| chunk(&about(seen, r#"{"id":ID,"result":{}}"#)),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 30\r\n\r\n{",
            |seen| format!("{:29}", &about(seen, r#""id":ID,"result":{}}"#)),
        ),
        // An error that names the request.
        (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n",
            |seen| {
                format!(
                    "{:50}",
                    &about(seen, r#"{"id":ID,"error":{"code":-7,"message":"no"}}"#)
                )
            },
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", |seen| {
            let body = about(seen, r#"{"id":ID,"result":{}}"#);
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        }),
    ];
    for (head, rest) in cases {
        let server = Server::start_early(
            move |headers| is_large(headers).then(|| head.as_bytes().to_vec()),
            move |seen| opening(seen).unwrap_or_else(|| Reply::Bytes(vec![rest(seen).into_bytes()])),
        )
        .await;
        let connection = connect(&server).await;
        match large_call(&connection).await {
            Ok(result) => assert_eq!(result.as_str(), "{}", "{head}"),
            Err(error) => assert!(
                head.contains(" 400 ") && matches!(error.kind(), ClientErrorKind::Rpc(_)),
                "{head}: {error}"
            ),
        }
        // The connection is still reusable.
        let peers = || server.seen().iter().map(|seen| seen.peer).collect::<Vec<_>>();
        let peer = *peers().last().unwrap();
        let _ = large_call(&connection).await;
        assert_eq!(*peers().last().unwrap(), peer, "{head}");
    }
}

#[tokio::test]
async fn a_message_without_an_answer_leaves_as_a_whole() {
    let early = |headers: &Headers| {
        is_large(headers).then(|| b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec())
    };
    let server = Server::start_early(early, |seen| {
        let is_answered = seen.body["params"]["text"].is_string();
        opening(seen)
            .filter(|_| !is_answered)
            .unwrap_or(Reply::Bytes(Vec::new()))
    })
    .await;
    let connection = connect(&server).await;
    let params = raw(&format!(r#"{{"text":"{}"}}"#, "x".repeat(LARGE)));
    let telling = connection.notify("notifications/x", Some(&params));
    timeout(PATIENCE, telling).await.unwrap().unwrap();
    server.wait_for("notifications/x").await;
}

#[tokio::test]
async fn a_post_of_http_and_sse_leaves_as_a_whole() {
    // Event stream that carries the responses.
    let (events, stream) = tokio::sync::mpsc::unbounded_channel::<String>();
    let stream = Arc::new(std::sync::Mutex::new(Some(stream)));
    let early = |headers: &Headers| {
        is_large(headers).then(|| b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec())
    };
    let server = Server::start_early(early, move |seen| {
        if seen.method == "GET" {
            return Reply::Events(stream.lock().unwrap().take().unwrap());
        }
        let answer = match seen.body["method"].as_str() {
            Some("initialize") => Some(crate::support::peer::OPENED),
            Some("tools/call") => Some("{}"),
            _ => None,
        };
        if let Some(result) = answer {
            let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{result}}}\n\n");
            events.send(about(seen, &event)).unwrap();
        }
        match is_large(&seen.headers) {
            true => Reply::Bytes(Vec::new()),
            false => crate::support::http_server::status("202 Accepted", "", ""),
        }
    })
    .await;
    let endpoint = HttpEndpoint::new(&server.url).unwrap();
    let options = ConnectionOptions::default().era(EraChoice::Legacy);
    let connection = timeout(PATIENCE, Connection::sse(&endpoint, options))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(large_call(&connection).await.unwrap().as_str(), "{}");
}

/// Answers that are not HTTP/1.1 or are ambiguous; the next call succeeds.
#[tokio::test]
async fn answers_that_cannot_be_trusted() {
    let json = r#"{"id":2,"result":{}}"#;
    let chunked = |version: &str, body: &str| {
        format!(
            "HTTP/{version} 200 OK\r\ncontent-type: application/json\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n{body}"
        )
    };
    let data = format!("{:x}\r\n{json}\r\n", json.len());
    let end = "0\r\n\r\n";
    let mut cases = vec![
        // A missing digit is not a size.
        chunked("1.1", &format!("{data}\r\n\r\n")),
        chunked("1.1", &format!("{data};x\r\n\r\n")),
        chunked("1.1", &format!("{data} \r\n\r\n")),
        chunked("1.1", &format!("{:x};\n{json}\r\n{end}", json.len())),
        chunked("1.1", &format!("{:x}\n{json}\r\n{end}", json.len())),
        chunked("1.0", &format!("{data}{end}")),
        "HTTP/1.1 100 Continue\r\n\r\n".repeat(2000),
        "\r\n".repeat(20_000),
    ];
    for line in ["099 OK", "999 OK", "600 OK", "0200 OK", "20 OK"] {
        cases.push(format!(
            "HTTP/1.1 {line}\r\ncontent-length: {}\r\n\r\n{json}",
            json.len()
        ));
    }
    for era in [Era::Legacy, Era::Modern] {
        for answer in cases.clone() {
            let start = answer[..40].to_owned();
            let (_server, connection) =
                serving_in(era, move |_| Reply::Bytes(vec![answer.clone().into_bytes()])).await;
            let error = call(&connection, within(20)).await.unwrap_err();
            let ClientErrorKind::Protocol(text) = error.kind() else {
                panic!("{start:?}: {error:?}");
            };
            assert!(
                text.contains("invalid HTTP/1.1") && error.was_sent(),
                "{start:?}: {text}"
            );
            call(&connection, within(20)).await.unwrap();
        }
    }
}
