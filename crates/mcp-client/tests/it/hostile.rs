//! Servers that violate the protocol, played over an in-memory stream with a paused clock.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_client::{ClientError, ClientErrorKind, ConnectionOptions, RequestOptions};
use mcp_wire::Era;
use serde_json::Value;
use tokio::time::Instant;

use crate::support::peer::{call, connect, connect_modern, connect_with, raw, within, works};

fn is_timeout(error: &ClientError) -> bool {
    matches!(error.kind(), ClientErrorKind::Timeout(_)) && error.was_sent()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_told_that_nobody_waits() {
    let (connection, mut peer) = connect().await;
    let start = Instant::now();
    let pending = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    assert!(is_timeout(&pending.await.unwrap().unwrap_err()));
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(
        peer.notification("notifications/cancelled").await["requestId"],
        id
    );
    // The late response belongs to no request.
    peer.answer(id, "{}").await;
    works(&connection, &mut peer).await;
    assert_eq!(connection.stats().unmatched, 1);
}

/// Messages instead of a response, with `ID` as placeholder for the id, and the outcome of the call.
#[tokio::test(start_paused = true)]
async fn odd_answers() {
    enum Expect {
        Result(&'static str),
        Rpc(i64),
        Protocol,
        Timeout,
    }
    use Expect::{Protocol, Result, Rpc, Timeout};
    let deep = format!(r#"{{"id":ID,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let cases: &[(&str, Expect)] = &[
        // Messages of real servers, which must arrive unchanged.
        (
            r#"{"jsonrpc":"2.0","id":"ID","result":{"a":1}}"#,
            Result(r#"{"a":1}"#),
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID.0,"result":{"a":1}}"#,
            Result(r#"{"a":1}"#),
        ),
        (r#"{"id":ID,"result":{"a":1}}"#, Result(r#"{"a":1}"#)),
        (r#"{"jsonrpc":"2.0","id":ID,"result":null}"#, Result("null")),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":null}"#,
            Result("{}"),
        ),
        (
            r#"{"id":ID,"result":{"t":"\ud800"}}"#,
            Result(r#"{"t":"\ud800"}"#),
        ),
        (
            r#"{"id":ID,"result":{"n":12345678901234567890123,"m":1e2, "z":1,"a":2}}"#,
            Result(r#"{"n":12345678901234567890123,"m":1e2, "z":1,"a":2}"#),
        ),
        (
            r#"{"id":ID,"result":{"content":[{"type":"video","x":{}}]}}"#,
            Result(r#"{"content":[{"type":"video","x":{}}]}"#),
        ),
        ("garbage\n\n{\n\u{feff}{\"id\":ID,\"result\":{}}", Result("{}")),
        (r#"{"id":ID,"error":{"code":-5,"message":"no"}}"#, Rpc(-5)),
        // An error without an id can only belong to the single call.
        (
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#,
            Rpc(-32700),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
            Rpc(-32700),
        ),
        // A malformed response that names the call fails it at once.
        (r#"{"id":ID,"result":{},"error":{}}"#, Protocol),
        (r#"{"id":ID,"Result":{}}"#, Protocol),
        (r#"{"id":ID,"result":{"a":01}}"#, Protocol),
        (&deep, Protocol),
        // A message that names no call leaves it to its deadline.
        (r#"{"id":99999,"result":{}}"#, Timeout),
        (r#"{"id":"IDx","result":{}}"#, Timeout),
        (r#"{"result":{}}"#, Timeout),
        (r#"[{"id":ID,"result":{}}]"#, Timeout),
        ("null", Timeout),
        // A log line.
        (r#"{"level":"info","id":ID,"text":"starting"}"#, Timeout),
    ];
    let both = || {
        cases
            .iter()
            .flat_map(|case| [(case, Era::Legacy), (case, Era::Modern)])
    };
    for ((answer, expected), era) in both() {
        let (connection, mut peer) = match era {
            Era::Legacy => connect().await,
            Era::Modern => connect_modern(ConnectionOptions::default()).await,
        };
        let pending = call(&connection, within(7));
        let id = peer.request("tools/call").await;
        let start = Instant::now();
        peer.send(answer.replace("ID", &id.to_string())).await;
        let outcome = pending.await.unwrap();
        match (expected, &outcome) {
            (Result(text), Ok(result)) => assert_eq!(result.as_str(), *text),
            (Rpc(code), Err(error)) => assert_eq!(error.as_rpc().unwrap().code, *code),
            (Protocol, Err(error)) if matches!(error.kind(), ClientErrorKind::Protocol(_)) => {
                assert!(error.was_sent());
            }
            (Timeout, Err(error)) if is_timeout(error) => {
                peer.notification("notifications/cancelled").await;
            }
            _ => panic!("{answer}: {outcome:?}"),
        }
        if !matches!(expected, Timeout) {
            assert_eq!(start.elapsed(), Duration::ZERO, "{answer}");
        }
        works(&connection, &mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_utf8_fails_the_call_that_it_is_about() {
    let (connection, mut peer) = connect().await;
    let pending = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    peer.send([format!(r#"{{"id":{id},"result":""#).as_bytes(), b"\xff\xfe\"}"].concat())
        .await;
    let error = pending.await.unwrap().unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Protocol(_)), "{error}");
    works(&connection, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_without_an_id_blames_nobody_when_there_are_two() {
    let (connection, mut peer) = connect().await;
    let calls = [call(&connection, within(7)), call(&connection, within(7))];
    let ids = [peer.request("tools/call").await, peer.request("tools/call").await];
    peer.send(r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#)
        .await;
    for id in ids {
        peer.answer(id, "{}").await;
    }
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(connection.stats().unmatched, 1);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_fails_its_call_or_else_all() {
    let options = ConnectionOptions::default().max_message(100_000);
    let (connection, mut peer) = connect_with(options, 1 << 20).await;
    let long = "x".repeat(200_000);
    for id_first in [true, false] {
        let calls = [call(&connection, within(7)), call(&connection, within(7))];
        let ids = [peer.request("tools/call").await, peer.request("tools/call").await];
        let line = match id_first {
            true => format!(r#"{{"id":{},"result":"{long}"}}"#, ids[0]),
            false => format!(r#"{{"result":"{long}","id":{}}}"#, ids[0]),
        };
        peer.send(line).await;
        if id_first {
            peer.answer(ids[1], "{}").await;
        }
        let [first, second] = calls;
        let error = first.await.unwrap().unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::TooLarge { limit: 100_000, .. }) && error.was_sent(),
            "{error}"
        );
        assert_eq!(second.await.unwrap().is_ok(), id_first);
        works(&connection, &mut peer).await;
    }
}

/// Its id is the server's own, and it is not a response.
#[tokio::test(start_paused = true)]
async fn what_a_server_says_unasked_at_too_great_a_length_fails_no_call() {
    let options = ConnectionOptions::default().max_message(100_000);
    let (connection, mut peer) = connect_with(options, 1 << 20).await;
    let long = "x".repeat(200_000);
    let called = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    peer.send(format!(
        r#"{{"method":"notifications/message","params":"{long}"}}"#
    ))
    .await;
    peer.send(format!(
        r#"{{"id":{id},"method":"sampling/createMessage","params":"{long}"}}"#
    ))
    .await;
    let refused = peer.next().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&id.into(), &(-32600).into())
    );
    peer.answer(id, "{}").await;
    called.await.unwrap().unwrap();
    assert_eq!(connection.stats().oversize, 2);
}

#[tokio::test(start_paused = true)]
async fn garbage_without_end_closes_the_connection() {
    let (connection, mut peer) = connect().await;
    for _ in 0..999 {
        peer.send("Listening on port 3000").await;
    }
    // A valid message in between shows that the server is healthy.
    works(&connection, &mut peer).await;
    for _ in 0..999 {
        peer.send("{").await;
    }
    works(&connection, &mut peer).await;
    let pending = call(&connection, within(7));
    peer.request("tools/call").await;
    for _ in 0..1000 {
        peer.send("[]").await;
    }
    let error = pending.await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the connection is closed: the server wrote too many lines that are not messages"
    );
    assert!(connection.is_closed());
    assert_eq!(connection.stats().garbage, 2998);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_reading_holds_no_caller_up() {
    let (connection, peer) = connect().await;
    let large = raw(&format!(r#"{{"name":"{}"}}"#, "x".repeat(200_000)));
    let start = Instant::now();
    // The stalled request, and one queued after it that was never sent.
    let stuck = connection.request("tools/call", Some(large), within(1));
    let behind = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        connection.request("tools/call", None, within(1)).await
    };
    let (stuck, behind) = tokio::join!(stuck, behind);
    assert!(is_timeout(&stuck.unwrap_err()));
    let behind = behind.unwrap_err();
    assert!(
        matches!(behind.kind(), ClientErrorKind::Timeout(_)) && !behind.was_sent(),
        "{behind}"
    );
    assert!(start.elapsed() < Duration::from_millis(1100));
    // Nobody reads for ten seconds: the connection is closed, and all waiting callers get the reason.
    let waiting = connection
        .request("tools/call", None, within(60))
        .await
        .unwrap_err();
    assert_eq!(
        waiting.to_string(),
        "the connection is closed: the server stopped reading its input"
    );
    assert!(!waiting.was_sent());
    assert!(start.elapsed() < Duration::from_millis(10_100));
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_fails_what_is_under_way_and_what_comes() {
    let (connection, mut peer) = connect().await;
    let pending = call(&connection, within(7));
    peer.request("tools/call").await;
    drop(peer);
    let error = pending.await.unwrap().unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Closed(_)) && error.was_sent(),
        "{error}"
    );
    let error = call(&connection, within(7)).await.unwrap().unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Closed(_)) && !error.was_sent(),
        "{error}"
    );
    assert!(
        connection
            .closed()
            .await
            .to_string()
            .contains("closed the connection")
    );
}

#[tokio::test(start_paused = true)]
async fn a_last_answer_without_a_newline_counts() {
    let (connection, mut peer) = connect().await;
    let pending = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    peer.send_text(&format!(r#"{{"id":{id},"result":{{}}}}"#)).await;
    drop(peer);
    assert!(pending.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_notifications_and_requests_holds_nothing_up() {
    let (connection, mut peer) = connect().await;
    let pending = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    // Nobody reads the responses to the pings, so most are dropped.
    for _ in 0..5000 {
        peer.send(
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
        )
        .await;
        peer.send(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other","progress":1}}"#).await;
        peer.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
    }
    peer.answer(id, "{}").await;
    assert!(pending.await.unwrap().is_ok());
    let counters = connection.stats();
    assert_eq!(counters.notifications, 10_000);
    assert!(counters.dropped > 3000, "{counters:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_of_the_server() {
    let (connection, mut peer) = connect().await;
    peer.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
    assert_eq!(
        peer.next().await,
        serde_json::json!({"jsonrpc": "2.0", "id": "p", "result": {}})
    );
    for method in [
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "no/such",
    ] {
        peer.send(format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{}}}}"#
        ))
        .await;
        let answer = peer.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::from(7), &Value::from(-32601))
        );
    }
    assert_eq!(connection.stats().refused, 4);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_twice_is_counted() {
    let (connection, mut peer) = connect().await;
    let pending = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    peer.answer(id, r#"{"n":1}"#).await;
    peer.answer(id, r#"{"n":2}"#).await;
    assert_eq!(pending.await.unwrap().unwrap().as_str(), r#"{"n":1}"#);
    works(&connection, &mut peer).await;
    assert_eq!(connection.stats().unmatched, 1);
}

/// Options whose callbacks record events in order.
fn noting(options: &RequestOptions) -> (RequestOptions, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let notes = Arc::clone(&notes);
        move || notes.lock().unwrap().push(what.to_owned())
    };
    let progress = Arc::clone(&notes);
    let options = options
        .clone()
        .on_sent(note("sent"))
        .on_answered(note("answered"))
        .on_progress(move |params| {
            progress
                .lock()
                .unwrap()
                .push(params.get("progress").unwrap().to_string());
        });
    (options, notes)
}

#[tokio::test(start_paused = true)]
async fn progress_comes_in_order_and_before_the_answer() {
    for _ in 0..50 {
        let (connection, mut peer) = connect().await;
        let (options, notes) = noting(&within(7));
        let pending = call(&connection, options);
        let request = peer.next().await;
        let (id, token) = (
            request["id"].as_u64().unwrap(),
            &request["params"]["_meta"]["progressToken"],
        );
        for step in 0..50 {
            peer.send(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step}}}}}"#
            ))
            .await;
        }
        peer.answer(id, "{}").await;
        peer.send(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":99}}}}"#
        ))
        .await;
        pending.await.unwrap().unwrap();
        works(&connection, &mut peer).await;
        let mut expected = vec!["sent".to_owned()];
        expected.extend((0..50).map(|step| step.to_string()));
        expected.push("answered".to_owned());
        assert_eq!(*notes.lock().unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_moves_the_deadline_up_to_the_hard_one() {
    let (connection, mut peer) = connect().await;
    let start = Instant::now();
    let (options, _notes) = noting(
        &RequestOptions::default()
            .timeout(Duration::from_secs(10))
            .max_total(Duration::from_secs(25)),
    );
    let pending = call(&connection, options);
    let id = peer.request("tools/call").await;
    while !pending.is_finished() {
        peer.send(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
        ))
        .await;
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    assert!(is_timeout(&pending.await.unwrap().unwrap_err()));
    assert!(
        (25..29).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn progress_that_stops_lets_the_deadline_come() {
    let (connection, mut peer) = connect().await;
    let start = Instant::now();
    let (options, _notes) = noting(&RequestOptions::default().timeout(Duration::from_secs(10)));
    let pending = call(&connection, options);
    let id = peer.request("tools/call").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    peer.send(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
    ))
    .await;
    assert!(is_timeout(&pending.await.unwrap().unwrap_err()));
    assert_eq!(start.elapsed().as_secs(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_cancels() {
    let (connection, mut peer) = connect().await;
    let pending = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    pending.abort();
    assert_eq!(
        peer.notification("notifications/cancelled").await["requestId"],
        id
    );
    works(&connection, &mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_caller_leaves_before_it_is_sent_is_never_sent() {
    let (connection, mut peer) = connect().await;
    // Fills the stream, so that the next request must wait.
    let large = raw(&format!(r#"{{"name":"{}"}}"#, "x".repeat(200_000)));
    let first = {
        let connection = connection.clone();
        tokio::spawn(async move { connection.request("tools/call", Some(large), within(9)).await })
    };
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (options, notes) = noting(&within(9));
    let second = call(&connection, options);
    tokio::time::sleep(Duration::from_millis(1)).await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    let id = peer.request("tools/call").await;
    peer.answer(id, "{}").await;
    first.await.unwrap().unwrap();
    // The server receives neither the second request nor its cancellation.
    works(&connection, &mut peer).await;
    assert!(notes.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_callers_that_leave_at_random_points_leave_nothing() {
    let (connection, mut peer) = connect_with(ConnectionOptions::default(), 4096).await;
    let answering = tokio::spawn(async move {
        let mut unanswered = 0_usize;
        while let Some(message) = peer.next_or_end().await {
            let Some(id) = message["id"].as_u64() else {
                continue;
            };
            // Every third request gets no response.
            unanswered += 1;
            if !unanswered.is_multiple_of(3) || message["params"]["last"] == true {
                peer.answer(id, "{}").await;
            }
        }
    });
    let answered = Arc::new(AtomicUsize::new(0));
    for round in 0..100 {
        let calls: Vec<_> = (0..100)
            .map(|index: u64| {
                let (connection, answered) = (connection.clone(), Arc::clone(&answered));
                let patience = Duration::from_micros((index * 7919 + round * 104_729) % 3000);
                tokio::spawn(async move {
                    let request = connection.request("tools/call", None, within(60));
                    if let Ok(Ok(_)) = tokio::time::timeout(patience, request).await {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    }
    assert!(answered.load(Ordering::Relaxed) > 100);
    connection
        .request("tools/call", Some(raw(r#"{"last":true}"#)), within(60))
        .await
        .unwrap();
    assert_eq!(connection.pending(), 0);
    drop(connection);
    answering.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_is_no_matter_of_others() {
    let (connection, mut peer) = connect().await;
    let options = within(7)
        .on_sent(|| panic!("a hook"))
        .on_answered(|| panic!("a hook"));
    let (first, second) = (call(&connection, options), call(&connection, within(7)));
    let ids = [peer.request("tools/call").await, peer.request("tools/call").await];
    for (id, call) in ids.into_iter().zip([first, second]) {
        peer.answer(id, "{}").await;
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_lists_are_counted() {
    let (connection, mut peer) = connect().await;
    let mut changes = connection.changes();
    for _ in 0..3 {
        peer.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
            .await;
    }
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}"#)
        .await;
    let changes = changes.wait_for(|changes| changes.prompts == 1).await.unwrap();
    assert_eq!((changes.tools, changes.resources), (3, 0));
}

/// A truncated response fails with the end of the connection; one that lacks only the line end is valid.
#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_none() {
    let answer = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
    for end in 0..=answer(2).len() {
        let (connection, mut peer) = connect().await;
        let pending = call(&connection, within(7));
        let whole = answer(peer.request("tools/call").await);
        peer.send_text(&whole[..end.min(whole.len())]).await;
        drop(peer);
        match pending.await.unwrap() {
            Ok(result) => assert_eq!((result.as_str(), end), (r#"{"content":[]}"#, whole.len())),
            Err(error) => {
                let is_closed = matches!(error.kind(), ClientErrorKind::Closed(_));
                assert!(is_closed && error.was_sent(), "cut at {end}: {error}");
                assert!(end < whole.len());
            }
        }
    }
}
