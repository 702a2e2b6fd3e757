//! Servers that send requests to the client, in both eras.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_client::{
    ClientError, ClientErrorKind, Connection, ConnectionOptions, EraChoice, Handlers, HttpEndpoint,
    InputRequiredResult,
};
use mcp_wire::RpcError;
use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    support::http_server::{Reply, Server, json as json_reply, opening, stream},
    support::peer::{self, call, connect_modern, connect_with, pair, raw, within, works},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Accepts every elicitation once `gate` has a permit.
fn agreeing(gate: Arc<Semaphore>) -> Handlers {
    Handlers::new()
        .elicitation(raw(r#"{"form":{}}"#), move |request| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                let content = request.defaults();
                Ok(RawJson::object()
                    .with_members(&[("action", RawJson::from("accept")), ("content", content)])
                    .unwrap())
            }
        })
        .roots(RawJson::object(), |_| async {
            Err(RpcError::new(-7, "no roots today"))
        })
        .sampling(RawJson::object(), |request| async move {
            assert!(request.params.is_some(), "a fault on purpose");
            Ok(RawJson::object())
        })
}

fn with_handlers(era: EraChoice, permits: usize) -> (ConnectionOptions, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(permits));
    let options = ConnectionOptions::default()
        .era(era)
        .handlers(agreeing(Arc::clone(&gate)));
    (options, gate)
}

const QUESTION: &str = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"number","default":1e2},"b":{"type":"string"}}}}"#;

fn question(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{QUESTION}}}"#)
}

#[tokio::test(start_paused = true)]
async fn only_what_has_a_handler_is_declared() {
    let (ours, mut peer) = pair(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let (options, _gate) = with_handlers(EraChoice::Auto, 0);
    let (connection, ()) = tokio::join!(Connection::from_streams(reader, writer, options), async {
        let message = peer.next().await;
        assert_eq!(
            message["params"]["capabilities"],
            json!({"elicitation": {"form": {}}, "roots": {}, "sampling": {}})
        );
        peer.answer(message["id"].as_u64().unwrap(), peer::OPENED).await;
        peer.notification("notifications/initialized").await;
    });
    connection.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_in_the_middle_of_a_call_holds_nothing_up() {
    let (options, gate) = with_handlers(EraChoice::Legacy, 0);
    let (connection, mut peer) = connect_with(options, 64 * 1024).await;
    let asking = call(&connection, within(20));
    let id = peer.request("tools/call").await;
    peer.send(question(r#""q-1""#)).await;
    // The user is thinking; other requests are served meanwhile, and so is `ping`.
    works(&connection, &mut peer).await;
    peer.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
    assert_eq!(
        peer.next().await,
        json!({"jsonrpc": "2.0", "id": "p", "result": {}})
    );
    gate.add_permits(1);
    assert_eq!(
        peer.next().await,
        json!({"jsonrpc": "2.0", "id": "q-1", "result": {"action": "accept", "content": {"a": 100.0}}})
    );
    peer.answer(id, "{}").await;
    asking.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_to_requests_that_go_wrong() {
    let (options, _gate) = with_handlers(EraChoice::Legacy, 0);
    let (connection, mut peer) = connect_with(options, 64 * 1024).await;
    for (request, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, -7),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#,
            -32603,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#, -32601),
    ] {
        peer.send(request).await;
        let answer = peer.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(1), &json!(code)),
            "{request}"
        );
    }
    // Far more requests than are handled at once, and one id twice.
    for id in 0..100 {
        peer.send(question(&id.to_string())).await;
    }
    for id in 64..100 {
        let answer = peer.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(-32603))
        );
    }
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#)
        .await;
    peer.send(question("6")).await;
    let answer = peer.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(6), &json!(-32600))
    );
    works(&connection, &mut peer).await;
    assert_eq!(connection.stats().refused, 1 + 36 + 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_task_says_so() {
    let (options, _gate) = with_handlers(EraChoice::Legacy, 1);
    let (_connection, mut peer) = connect_with(options, 64 * 1024).await;
    let related = r#"{"io.modelcontextprotocol/related-task":{"taskId":"t1"},"other":1}"#;
    peer.send(question("7").replace(r#""params":{"#, &format!(r#""params":{{"_meta":{related},"#)))
        .await;
    let answer = peer.next().await;
    assert_eq!(answer["id"], 7);
    assert_eq!(
        answer["result"]["_meta"],
        json!({"io.modelcontextprotocol/related-task": {"taskId": "t1"}})
    );
    assert_eq!(answer["result"]["action"], "accept");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_is_not_answered() {
    let (options, gate) = with_handlers(EraChoice::Legacy, 0);
    let (connection, mut peer) = connect_with(options, 64 * 1024).await;
    peer.send(question("1")).await;
    works(&connection, &mut peer).await;
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    works(&connection, &mut peer).await;
    gate.add_permits(10);
    peer.send(question("2")).await;
    assert_eq!(peer.next().await["id"], 2);
}

#[tokio::test]
async fn a_question_on_the_stream_of_a_call_is_answered_by_a_post() {
    let server = Server::start(|seen| {
        opening(seen).unwrap_or_else(|| match seen.body["method"].as_str() {
            Some("tools/call") => stream(&format!(
                "data: {}\n\ndata: {{\"id\":{},\"result\":{{}}}}\n\n",
                question("7"),
                seen.body["id"]
            )),
            _ => crate::support::http_server::status("202 Accepted", "", ""),
        })
    })
    .await;
    let (options, _gate) = with_handlers(EraChoice::Auto, 1);
    let connection = open(&server, options).await.unwrap();
    connection.request("tools/call", None, within(20)).await.unwrap();
    let answered = async {
        loop {
            if let Some(seen) = server.seen().iter().find(|seen| seen.body["id"] == 7) {
                return seen.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let answer = timeout(PATIENCE, answered).await.unwrap();
    assert_eq!(answer.body["result"]["action"], "accept");
    assert_eq!(answer.headers["mcp-session-id"], "s1");
}

async fn open(server: &Server, options: ConnectionOptions) -> Result<Connection, ClientError> {
    let endpoint = HttpEndpoint::new(&server.url).unwrap();
    timeout(PATIENCE, Connection::http(&endpoint, options))
        .await
        .unwrap()
}

const WANTED: &str = r#"{"resultType":"input_required","requestState":{"x": 1e2},"inputRequests":{"a b":{"method":"elicitation/create","params":{"requestedSchema":{"properties":{"n":{"default":1}}}}}}}"#;

#[tokio::test(start_paused = true)]
async fn rounds_of_input() {
    let (options, _gate) = with_handlers(EraChoice::Modern, 10);
    let (connection, mut peer) = connect_modern(options).await;
    let params = raw(r#"{"name":"t","arguments":{"k":1e2},"requestState":"of another"}"#);
    let calling = tokio::spawn({
        let connection = connection.clone();
        async move {
            connection
                .request_with_input("tools/call", Some(params), within(20))
                .await
        }
    });
    let first = peer.next().await;
    peer.answer(first["id"].as_u64().unwrap(), WANTED).await;
    let second = peer.next().await;
    assert_ne!(first["id"], second["id"]);
    let params = &second["params"];
    assert_eq!(params["name"], "t");
    assert_eq!(params["requestState"], json!({"x": 1e2}));
    assert_eq!(
        params["inputResponses"],
        json!({"a b": {"action": "accept", "content": {"n": 1}}})
    );
    // A round without state, and then the end.
    let no_state = r#"{"resultType":"input_required","inputRequests":{}}"#;
    peer.answer(second["id"].as_u64().unwrap(), no_state).await;
    let third = peer.next().await;
    assert_eq!(third["params"].get("requestState"), None);
    assert_eq!(third["params"]["inputResponses"], json!({}));
    peer.answer(
        third["id"].as_u64().unwrap(),
        r#"{"resultType":"complete","n":1e2}"#,
    )
    .await;
    let result = calling.await.unwrap().unwrap();
    assert_eq!(result.as_str(), r#"{"resultType":"complete","n":1e2}"#);
}

#[tokio::test(start_paused = true)]
async fn input_that_is_not_given() {
    for (wanted, expected) in [
        (WANTED, "which this client does not support"),
        (
            r#"{"resultType":"input_required","requestState":"for ever"}"#,
            "in too many rounds",
        ),
        (
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#,
            "was refused",
        ),
        (
            r#"{"resultType":"input_required","inputRequests":{"a":7}}"#,
            "which this client does not support",
        ),
    ] {
        let (mut options, _gate) = with_handlers(EraChoice::Modern, 10);
        if wanted == WANTED {
            options.handlers = Handlers::new();
        }
        let (connection, mut peer) = connect_modern(options).await;
        let calling = tokio::spawn(async move {
            connection
                .request_with_input("tools/call", None, within(20))
                .await
        });
        let mut rounds = 0;
        while let Some(message) = peer.next_or_end().await {
            rounds += 1;
            peer.answer(message["id"].as_u64().unwrap(), wanted).await;
        }
        let error = calling.await.unwrap().unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Unsupported(_)) && rounds <= 16,
            "{error}"
        );
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn results_that_ask_for_nothing() {
    for result in [
        "{}",
        "null",
        r#"{"resultType":"complete"}"#,
        r#"{"resultType":7,"inputRequests":{}}"#,
    ] {
        assert_eq!(InputRequiredResult::from_result(&raw(result)), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_one_request_alone() {
    let (options, _gate) = with_handlers(EraChoice::Modern, 0);
    let (connection, mut peer) = connect_modern(options).await;
    let mut own = within(5);
    own.capabilities = Some(raw(r#"{"sampling":{ "x-vendor":1e2 }}"#));
    own.log_level = Some("debug".into());
    let of_connection = json!({"elicitation": {"form": {}}, "roots": {}, "sampling": {}});
    let cases = [
        (own, json!({"sampling": {"x-vendor": 1e2}}), json!("debug")),
        (within(5), of_connection, json!(null)),
    ];
    for (options, capabilities, level) in cases {
        let params = raw(
            r#"{"_meta":{"vendor":1,"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/protocolVersion":"1"}}"#,
        );
        let calling = connection.request("tools/call", Some(params), options);
        let (result, ()) = tokio::join!(calling, async {
            let message = peer.next().await;
            let meta = &message["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], capabilities);
            assert_eq!(meta["io.modelcontextprotocol/logLevel"], level);
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert_eq!(meta["vendor"], 1, "the caller's own members stay");
            peer.answer(message["id"].as_u64().unwrap(), "{}").await;
        });
        result.unwrap();
    }
}

#[tokio::test]
async fn a_question_in_an_answer_over_http_names_the_request_it_belongs_to() {
    let server = Server::start(|seen| {
        if seen.method == "GET" {
            return stream(&format!("data: {}\n\n", question(r#""g""#)));
        }
        opening(seen).unwrap_or_else(|| {
            let (id, question) = (&seen.body["id"], question(r#""q""#));
            stream(&format!(
                "data: {question}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n"
            ))
        })
    })
    .await;
    let tags = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&tags);
    let handlers = Handlers::new().elicitation(RawJson::object(), move |request| {
        told.lock().unwrap().push(request.tag);
        async { Ok(RawJson::object()) }
    });
    let options = ConnectionOptions::default()
        .era(EraChoice::Legacy)
        .handlers(handlers);
    let connection = open(&server, options).await.unwrap();
    let mut options = within(20);
    options.tag = Some(7);
    connection.request("tools/call", None, options).await.unwrap();
    let asked = async {
        while tags.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asked).await.unwrap();
    let tags = tags.lock().unwrap().clone();
    assert!(tags.contains(&None) && tags.contains(&Some(7)), "{tags:?}");
}

/// A modern HTTP server with a tool whose arguments are mirrored.
#[tokio::test]
async fn arguments_are_mirrored_once_the_list_is_known() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Server::start(move |seen| {
        let id = &seen.body["id"];
        let result = match seen.body["method"].as_str() {
            Some("server/discover") => r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#.to_owned(),
            Some("tools/list") => r#"{"tools":[{"name":"täglich","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}},{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}"#.to_owned(),
            _ => {
                counted.fetch_add(1, Ordering::SeqCst);
                if seen.headers.get("mcp-param-a").is_none_or(|value| value != "=?base64?IHg=?=") {
                    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32020,"message":"HeaderMismatch"}}}}"#);
                    return crate::support::http_server::status("400 Bad Request", "content-type: application/json\r\n", &body);
                }
                assert_eq!(seen.headers["mcp-name"], "=?base64?dMOkZ2xpY2g=?=");
                assert_eq!(seen.headers["mcp-method"], "tools/call");
                "{}".to_owned()
            }
        };
        json_reply(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    })
    .await;
    let connection = open(&server, ConnectionOptions::default()).await.unwrap();
    let params = || Some(raw(r#"{"name":"täglich","arguments":{"a":" x"}}"#));
    // The first call is refused for its headers; the list is read, and the call is repeated.
    connection
        .request("tools/call", params(), within(20))
        .await
        .unwrap();
    connection
        .request("tools/call", params(), within(20))
        .await
        .unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(connection.list_tools().await.unwrap().len(), 1);
    // No second attempt if the list does not help.
    let error = connection
        .request("tools/call", Some(raw(r#"{"name":"other"}"#)), within(20))
        .await
        .unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, -32020);
    assert_eq!(calls.load(Ordering::SeqCst), 5);
}

/// The list is read within the deadline of the call that needs it.
#[tokio::test]
async fn a_list_that_never_comes_holds_no_call_beyond_its_deadline() {
    let server = Server::start(|seen| {
        let id = &seen.body["id"];
        match seen.body["method"].as_str() {
            Some("server/discover") => json_reply(&format!(r#"{{"id":{id},"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}}}}}"#)),
            Some("tools/list") => Reply::Silence,
            _ => {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32020,"message":"HeaderMismatch"}}}}"#);
                crate::support::http_server::status("400 Bad Request", "content-type: application/json\r\n", &body)
            }
        }
    })
    .await;
    let connection = open(&server, ConnectionOptions::default()).await.unwrap();
    let called = connection
        .request("tools/call", Some(raw(r#"{"name":"t"}"#)), within(1))
        .await;
    let error = called.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Timeout(_)), "{error}");
    assert!(!error.was_sent(), "the server has refused the headers");
}

/// Answers to a call whose stream ends before the response, and to the GET that resumes it.
#[tokio::test]
async fn streams_that_are_polled() {
    let primed = "id: e1\nretry: 10\ndata: \n\n";
    for (first, resumed, fine) in [
        (primed, Some("data: {\"id\":ID,\"result\":{\"n\":1e2}}\n\n"), true),
        // Two resumptions.
        (primed, Some("id: e2\ndata:\n\n"), true),
        (primed, None, false),
        // An id that is invalid in a header does not replace a valid one, and an empty one resets it.
        (
            "id: e1\nretry: 10\ndata: \n\nid: e\u{1}\ndata: \n\n",
            Some("data: {\"id\":ID,\"result\":{\"n\":1e2}}\n\n"),
            true,
        ),
        (
            "id: e1\nretry: 10\ndata: \n\nid:\ndata: \n\n",
            Some("data: {\"id\":ID,\"result\":{}}\n\n"),
            false,
        ),
        ("data: \n\n", Some("data: {\"id\":ID,\"result\":{}}\n\n"), false),
    ] {
        let gets = AtomicUsize::new(0);
        let last = std::sync::Mutex::new(Value::Null);
        let (first, resumed) = (first.to_owned(), resumed.map(str::to_owned));
        let server = Server::start(move |seen| {
            if seen.method == "GET" && !seen.headers.contains_key("last-event-id") {
                return crate::support::http_server::status("405 Method Not Allowed", "", "");
            }
            if seen.method == "GET" {
                let id = last.lock().unwrap().to_string();
                return match (&resumed, gets.fetch_add(1, Ordering::SeqCst)) {
                    (None, _) => crate::support::http_server::status("405 Method Not Allowed", "", ""),
                    (Some(events), 0) => {
                        assert_eq!(seen.headers["last-event-id"], "e1");
                        stream(&events.replace("ID", &id))
                    }
                    (Some(_), _) => {
                        assert_eq!(seen.headers["last-event-id"], "e2");
                        stream(&format!("data: {{\"id\":{id},\"result\":{{\"n\":1e2}}}}\n\n"))
                    }
                };
            }
            opening(seen).unwrap_or_else(|| {
                *last.lock().unwrap() = seen.body["id"].clone();
                stream(&first)
            })
        })
        .await;
        let connection = open(&server, ConnectionOptions::default()).await.unwrap();
        let outcome = timeout(PATIENCE, connection.request("tools/call", None, within(30)))
            .await
            .unwrap();
        if fine {
            assert_eq!(outcome.unwrap().as_str(), r#"{"n":1e2}"#);
        } else {
            let error = outcome.unwrap_err();
            assert!(
                error.was_sent() && error.to_string().contains("ended without an answer"),
                "{error}"
            );
        }
        let posts = server
            .seen()
            .iter()
            .filter(|seen| seen.body["method"] == "tools/call")
            .count();
        assert_eq!(posts, 1, "a call is never sent twice");
    }
}

#[tokio::test]
async fn a_stream_that_never_gets_anywhere_ends_at_the_deadline() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => stream("id: again\ndata:\n\n"),
        _ => opening(seen).unwrap_or_else(|| stream("id: e\nretry: 1\ndata:\n\n")),
    })
    .await;
    let connection = open(&server, ConnectionOptions::default()).await.unwrap();
    let options = mcp_client::RequestOptions::with_timeout(Duration::from_millis(700));
    let call = connection.request("tools/call", None, options);
    let error = timeout(PATIENCE, call).await.unwrap().unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Timeout(_)) && error.was_sent(),
        "{error}"
    );
    let gets = server.seen().iter().filter(|seen| seen.method == "GET").count();
    assert!(gets <= 7, "asked {gets} times in 0.7 s");
}

/// Answers to the probe for a modern server, and their outcome.
#[tokio::test]
async fn the_era_of_an_http_server() {
    let modern_error = |code: i64, data: &str| {
        format!(r#"{{"id":ID,"error":{{"code":{code},"message":"m","data":{data}}}}}"#)
    };
    let only_new = modern_error(-32022, r#"{"supported":["2099-01-01"]}"#);
    let only_old = modern_error(-32022, r#"{"supported":["2025-11-25"]}"#);
    let mismatch = modern_error(-32020, "null");
    for (line, body, era) in [
        (
            "200 OK",
            r#"{"id":ID,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#,
            Some("2026-07-28"),
        ),
        ("200 OK", r#"{"id":ID,"result":{}}"#, Some("2025-11-25")),
        (
            "200 OK",
            r#"{"id":ID,"error":{"code":-32601,"message":"Method not found"}}"#,
            Some("2025-11-25"),
        ),
        (
            "400 Bad Request",
            r#"{"id":null,"error":{"code":-32000,"message":"no session"}}"#,
            Some("2025-11-25"),
        ),
        ("404 Not Found", "not here", Some("2025-11-25")),
        ("405 Method Not Allowed", "", Some("2025-11-25")),
        ("500 Oops", "boom", Some("2025-11-25")),
        ("400 Bad Request", only_old.as_str(), Some("2025-11-25")),
        ("400 Bad Request", only_new.as_str(), None),
        ("400 Bad Request", mismatch.as_str(), None),
        ("401 Unauthorized", "", None),
    ] {
        let text = body.to_owned();
        let server = Server::start(move |seen| match seen.body["method"].as_str() {
            Some("server/discover") => {
                let body = text.replace("ID", &seen.body["id"].to_string());
                crate::support::http_server::status(line, "content-type: application/json\r\n", &body)
            }
            _ => opening(seen).unwrap_or(Reply::Silence),
        })
        .await;
        let connection = open(&server, ConnectionOptions::default()).await;
        let spoken = connection
            .as_ref()
            .ok()
            .map(|connection| connection.server().revision.as_str());
        assert_eq!(spoken, era, "{line} {body}");
        let tried = server
            .seen()
            .iter()
            .any(|seen| seen.body["method"] == "initialize");
        assert_eq!(tried, era == Some("2025-11-25"), "{line} {body}");
    }
}
