//! Tests of the execution counter.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tp_fault::{ExecutionCounter, FaultEvent};

async fn ask(ledger: &ExecutionCounter, request: &str) -> Value {
    let mut client = TcpStream::connect(ledger.address()).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    serde_json::from_str(body).unwrap()
}

#[tokio::test]
async fn executions_are_counted_by_their_ids() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let post = |body: &str| format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    assert_eq!(
        ask(&ledger, &post(r#"{"id":"a b"}"#)).await,
        json!({"id": "a b", "n": 1})
    );
    assert_eq!(
        ask(&ledger, "GET /?id=a%20b HTTP/1.1\r\n\r\n").await,
        json!({"id": "a b", "n": 2})
    );
    assert_eq!(
        ask(&ledger, &post(r#"{"id":7}"#)).await,
        json!({"id": "7", "n": 1})
    );
    let without = ask(&ledger, "GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(without, json!({"id": "", "n": 1}));
    let all = ask(&ledger, "GET /ledger HTTP/1.1\r\n\r\n").await;
    assert_eq!(all, json!({"": 1, "7": 1, "a b": 2}));
    assert_eq!(
        (ledger.executions("a b"), ledger.executions("c"), ledger.total()),
        (2, 0, 4)
    );
    let executed = |event: &FaultEvent| matches!(event, FaultEvent::Executed(_));
    assert_eq!(ledger.history().count(executed), 4);
}

#[tokio::test]
async fn half_a_request_is_no_execution() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let mut client = TcpStream::connect(ledger.address()).await.unwrap();
    client
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\n{\"id\":1")
        .await
        .unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!((answer.as_str(), ledger.total()), ("", 0));
}
