//! Questions and log messages over HTTP, which come with the answer to the call that they belong to.

use std::{
    collections::HashMap,
    fmt::Display,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Barrier, oneshot},
};
use tool_exec_mcp::{EraChoice, HttpTarget, HttpTransport, Isolation, McpServer, ServerSettings};

use crate::{
    client::Client,
    fixture::{NoSecrets, text},
    http::{bare, read_request, result},
};

/// A server that answers a call only when two are in progress.
struct Peer {
    both: Barrier,
    open: Mutex<HashMap<String, oneshot::Sender<Value>>>,
}

async fn listen() -> SocketAddr {
    let peer = Arc::new(Peer {
        both: Barrier::new(2),
        open: Mutex::default(),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, peer.clone()));
        }
    });
    address
}

async fn serve(stream: TcpStream, peer: Arc<Peer>) {
    let mut stream = BufReader::new(stream);
    while let Some((line, body)) = read_request(&mut stream).await {
        let answer = match body["method"].as_str() {
            _ if !line.starts_with("POST") => bare("405 Method Not Allowed"),
            Some("initialize") => result(
                &body["id"],
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}"#,
            ),
            Some("tools/call") => return call(stream.into_inner(), &peer, &body).await,
            None => {
                let open = peer.open.lock().unwrap().remove(body["id"].as_str().unwrap());
                let _ = open.unwrap().send(body["result"].clone());
                bare("202 Accepted")
            }
            _ => bare("202 Accepted"),
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Asks or logs in the stream of the answer, and answers with the answer that it got.
async fn call(mut stream: TcpStream, peer: &Peer, body: &Value) {
    peer.both.wait().await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Value::Null;
    if body["params"]["name"] == "ask" {
        let id = format!("q{}", body["id"]);
        let (sender, answered) = oneshot::channel();
        peer.open.lock().unwrap().insert(id.clone(), sender);
        let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create"});
        event(&mut stream, question).await;
        answer = answered.await.unwrap();
    } else {
        let who = &body["params"]["arguments"]["who"];
        let params = format!(r#"{{"level":"info","data":{who}}}"#);
        let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#);
        event(&mut stream, message).await;
    }
    let result = json!({"content": [], "answer": {"result": answer}});
    event(
        &mut stream,
        json!({"jsonrpc": "2.0", "id": body["id"], "result": result}),
    )
    .await;
}

async fn event(stream: &mut TcpStream, message: impl Display) {
    stream
        .write_all(format!("data: {message}\n\n").as_bytes())
        .await
        .unwrap();
}

async fn server(isolation: Isolation) -> Arc<McpServer> {
    let target =
        HttpTarget::new(text(&format!("http://{}/mcp", listen().await))).transport(HttpTransport::Streamable);
    let mut settings = ServerSettings::new("box", target);
    settings.era = EraChoice::Legacy;
    settings.isolation = isolation;
    McpServer::new(settings, Arc::new(NoSecrets))
}

#[tokio::test]
async fn questions_reach_the_client_of_their_call_among_several_on_one_connection() {
    let server = server(Isolation::Principal).await;
    let [anna, otto] = ["anna", "otto"].map(|name| Client::session(name, r#"{"elicitation":{}}"#).answers(1));
    let (of_anna, of_otto) = tokio::join!(
        anna.asks(&server, "elicitation/create"),
        otto.asks(&server, "elicitation/create"),
    );
    assert_eq!(
        (&of_anna["result"]["by"], &of_otto["result"]["by"]),
        (&json!("anna"), &json!("otto"))
    );
    assert_eq!(server.n_dedicated_connections(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn log_messages_reach_the_client_of_their_call_over_the_shared_connection() {
    let server = server(Isolation::Auto).await;
    let [anna, otto] = ["anna", "otto"].map(|name| Client::listening(name, "info"));
    let mut calls = [(&anna, "anna"), (&otto, "otto")]
        .map(|(client, who)| client.call(&server, "log", json!({"who": who})));
    let [first, second] = &mut calls;
    let (first, second) = tokio::join!(first.make(), second.make());
    first.unwrap();
    second.unwrap();
    for (client, who) in [(&anna, "anna"), (&otto, "otto")] {
        assert_eq!(client.logs(), [format!(r#"{{"level":"info","data":"{who}"}}"#)]);
    }
    server.shutdown().await;
}
