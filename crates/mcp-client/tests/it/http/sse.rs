//! Servers of the transport of 2024-11-05.

use std::{sync::Arc, time::Duration};

use mcp_client::{ClientErrorKind, Connection, ConnectionOptions, EraChoice, HttpEndpoint};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    sync::Mutex,
    time::timeout,
};

use crate::support::peer::{OPENED, raw, within};

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server that names `place` as its endpoint and behaves as the name of the called tool says.
async fn server(place: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let place: Arc<str> = place.replace("HOST", &address.to_string()).into();
    let events: Arc<Mutex<Option<OwnedWriteHalf>>> = Arc::default();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, Arc::clone(&events), Arc::clone(&place)));
        }
    });
    format!("http://{address}/sse")
}

async fn serve(socket: TcpStream, events: Arc<Mutex<Option<OwnedWriteHalf>>>, place: Arc<str>) {
    let (reader, mut writer) = socket.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let head = head.to_ascii_lowercase();
        if head.starts_with("get /sse ") {
            let start = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let first = format!("{start}event: endpoint\ndata: {place}\n\n");
            writer.write_all(first.as_bytes()).await.unwrap();
            *events.lock().await = Some(writer);
            return;
        }
        let length = head.split("content-length: ").nth(1).unwrap();
        let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
        reader.read_exact(&mut body).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let status = if head.starts_with("post /messages?session=1 ") {
            post(&body, &events).await
        } else {
            "405 Method Not Allowed"
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        writer.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Behaves as a message requires. Returns the status of its post.
async fn post(body: &Value, events: &Mutex<Option<OwnedWriteHalf>>) -> &'static str {
    let id = &body["id"];
    let event = match (body["method"].as_str(), body["params"]["name"].as_str()) {
        (Some("initialize"), _) => format!(r#"data: {{"id":{id},"result":{OPENED}}}"#),
        (Some("tools/call"), Some("refuse")) => return "500 Oops",
        (Some("tools/call"), Some("who")) => return "401 Unauthorized\r\nwww-authenticate: Bearer",
        (Some("tools/call"), Some("busy")) => return "503 Busy\r\nretry-after: 7",
        (Some("tools/call"), Some("hold")) => {
            tell(events, r#"data: {"method":"notifications/message","params":{}}"#).await;
            std::future::pending().await
        }
        (Some("tools/call"), Some("end")) => {
            *events.lock().await = None;
            return "202 Accepted";
        }
        (Some("tools/call"), Some("large")) => {
            format!("data: {{\"id\":{id},\"result\":\"{}\"}}", "x".repeat(5000))
        }
        (Some("tools/call"), Some("ask")) => {
            let long = "x".repeat(5000);
            tell(
                events,
                &format!(r#"data: {{"method":"notifications/message","params":"{long}"}}"#),
            )
            .await;
            format!(
                "event: message\ndata: {{\"id\":\"q\",\"method\":\"ping\"}}\n\ndata: {{\"id\":{id},\ndata: \"result\":{{\"n\":1e2}}}}"
            )
        }
        _ => return "202 Accepted",
    };
    tell(events, &event).await;
    "202 Accepted"
}

async fn tell(events: &Mutex<Option<OwnedWriteHalf>>, event: &str) {
    let mut events = events.lock().await;
    let writer = events.as_mut().unwrap();
    writer.write_all(format!("{event}\n\n").as_bytes()).await.unwrap();
}

fn options() -> ConnectionOptions {
    ConnectionOptions::default().max_message(4096)
}

#[tokio::test]
async fn a_server_of_the_old_transport() {
    let url = server("/messages?session=1").await;
    let endpoint = HttpEndpoint::new(&url).unwrap();
    for endpoint in [endpoint.clone().with_sse_fallback(), endpoint.clone()] {
        let opening = async {
            match Connection::http(&endpoint, options()).await {
                Err(error) => {
                    assert!(error.to_string().contains("405"), "{error}");
                    Connection::sse(&endpoint, options()).await
                }
                done => done,
            }
        };
        let connection = timeout(PATIENCE, opening).await.unwrap().unwrap();
        assert_eq!(connection.server().name().as_deref(), Some("peer"));
        let call = async |name: &str| {
            let params = raw(&format!(r#"{{"name":"{name}"}}"#));
            let call = connection.request("tools/call", Some(params), within(30));
            timeout(PATIENCE, call).await.unwrap()
        };
        assert_eq!(call("ask").await.unwrap().get("n").unwrap().as_str(), "1e2");
        for (name, is_it) in [
            (
                "refuse",
                (|kind| matches!(kind, ClientErrorKind::HttpStatus { status: 500, .. })) as fn(&_) -> bool,
            ),
            ("who", |kind| {
                matches!(
                    kind,
                    ClientErrorKind::Auth {
                        status: 401,
                        challenge: Some(_),
                        ..
                    }
                )
            }),
            (
                "busy",
                |kind| matches!(kind, ClientErrorKind::HttpStatus { status: 503, retry_after: Some(after), .. } if after == "7"),
            ),
            ("large", |kind| {
                matches!(kind, ClientErrorKind::TooLarge { limit: 4096, .. })
            }),
        ] {
            let error = call(name).await.unwrap_err();
            assert!(error.was_sent() && is_it(error.kind()), "{name}: {error:?}");
        }
        let error = call("end").await.unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Closed(_)) && error.was_sent(),
            "{error}"
        );
        assert!(connection.is_closed());
    }
}

/// A server that answers posts only after the response, with more requests than are posted at once.
#[tokio::test]
async fn callers_that_leave_make_room_for_others() {
    let endpoint = HttpEndpoint::new(&server("/messages?session=1").await).unwrap();
    let connection = Connection::sse(&endpoint, options()).await.unwrap();
    let mut held = connection.events();
    let call = |name: &str| {
        let (connection, params) = (connection.clone(), raw(&format!(r#"{{"name":"{name}"}}"#)));
        tokio::spawn(async move { connection.request("tools/call", Some(params), within(50)).await })
    };
    let waiting: Vec<_> = (0..65).map(|_| call("hold")).collect();
    for _ in 0..64 {
        timeout(PATIENCE, held.next()).await.unwrap().unwrap();
    }
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    let answer = timeout(PATIENCE, call("ask")).await.unwrap().unwrap();
    assert_eq!(answer.unwrap().get("n").unwrap().as_str(), "1e2");
}

#[tokio::test]
async fn places_that_are_not_posted_to() {
    for (place, expected) in [
        ("//a:b@HOST/messages?session=1", "user or a password"),
        ("//a@HOST/messages?session=1", "user or a password"),
        ("//:b@HOST/messages?session=1", "user or a password"),
        ("http://a:b@HOST/messages?session=1", "user or a password"),
        ("HTTP:\\\\a:b@HOST\\messages?session=1", "user or a password"),
        ("http:///a:b@HOST/messages?session=1", "user or a password"),
        ("/\\a:b@HOST/messages?session=1", "user or a password"),
        ("//\ta%3Ab@HOST/messages?session=1", "user or a password"),
        ("//a:b%40@HOST/messages?session=1", "user or a password"),
        ("http://127.0.0.1:1/elsewhere", "another origin"),
        ("https://example.com/", "another origin"),
        ("", "names no endpoint"),
    ] {
        let endpoint = HttpEndpoint::new(&server(place).await).unwrap();
        let opening = Connection::sse(&endpoint, options());
        let error = timeout(PATIENCE, opening).await.unwrap().unwrap_err();
        assert!(error.to_string().contains(expected), "{place}: {error}");
    }
    let endpoint = HttpEndpoint::new(&server("/messages?session=1").await).unwrap();
    let modern = options().era(EraChoice::Modern);
    let error = Connection::sse(&endpoint, modern).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Invalid(_)), "{error}");
}
