use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use mcp_server::{Notifier, StdioOptions, serve_stdio};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
    },
    sync::oneshot,
    task::JoinHandle,
};

use crate::support::{Log, META, Scripted, soon};

/// Client at the other end of two pipes.
pub(crate) struct Client {
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) log: Arc<Log>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Client {
    pub(crate) fn start(options: StdioOptions) -> Self {
        let (service, log) = Scripted::new();
        let (ours, theirs) = duplex(1 << 20);
        let (reader, writer) = split(theirs);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve_stdio(service, reader, writer, options, async {
            let _ = stopped.await;
        }));
        let (output, input) = split(ours);
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            log,
            stop: Some(stop),
            task,
        }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        soon(self.input.as_mut().unwrap().write_all(line.as_bytes()))
            .await
            .unwrap();
    }

    pub(crate) async fn receive(&mut self) -> String {
        soon(self.output.next_line()).await.unwrap().expect("a line")
    }

    pub(crate) async fn ask(&mut self, line: &str) -> String {
        self.send(line).await;
        self.receive().await
    }

    /// Ends the input. Returns the remaining output.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        soon(self.input.as_mut().unwrap().shutdown()).await.unwrap();
        let mut lines = Vec::new();
        while let Some(line) = soon(self.output.next_line()).await.unwrap() {
            lines.push(line);
        }
        soon(self.task).await.unwrap().unwrap();
        lines
    }
}

fn start() -> Client {
    Client::start(StdioOptions::default())
}

#[tokio::test]
async fn answers_whatever_a_line_holds() {
    let modern =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}}}}}"#);
    let error = |code: i64| format!(r#""error":{{"code":{code},"#);
    for (line, expected) in [
        // Ids are returned with their own bytes.
        (r#"{"jsonrpc":"2.0","id":-7,"method":"ping"}"#.to_owned(), r#"{"jsonrpc":"2.0","id":-7,"result":{}}"#.to_owned()),
        (r#"{"jsonrpc":"2.0","id":"\u0061é","method":"ping"}"#.to_owned(), r#"{"jsonrpc":"2.0","id":"\u0061é","result":{}}"#.to_owned()),
        // So are parameters and results.
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"b": 1e2,"a":12345678901234567890123}}"#.to_owned(),
            r#""result":{"b": 1e2,"a":12345678901234567890123}"#.to_owned(),
        ),
        (modern("tools/list"), r#""result":{"resultType":"complete","tools":[]}"#.to_owned()),
        (modern("test/wait-not"), error(-32601)),
        (modern("test/typed"), r#""result":{"resultType":"input_required"}"#.to_owned()),
        (modern("server/discover"), r#""supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true}},"instructions":"Ask.","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted","title":"A test","version":"1.2.3"}}"#.to_owned()),
        // Methods of the other era are unknown.
        (modern("ping"), error(-32601)),
        (modern("initialize"), error(-32601)),
        (modern("logging/setLevel"), error(-32601)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#.to_owned(), error(-32601)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#.to_owned(), error(-32601)),
        // Unsupported versions.
        (modern("tools/list").replace("2026-07-28", "1900-01-01"), r#""error":{"code":-32022,"message":"unsupported protocol version `1900-01-01`","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"1900-01-01"}}"#.to_owned()),
        (modern("tools/list").replace("2026-07-28", "2025-11-25"), error(-32022)),
        (modern("tools/list").replace("clientCapabilities\":{}", "clientCapabilities\":1"), error(-32602)),
        (modern("tools/list").replace("\"2026-07-28\"", "7"), error(-32602)),
        // Lines that are not messages.
        ("hello".to_owned(), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#.to_owned()),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"".to_owned(), error(-32700)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.to_owned(), error(-32600)),
        ("[]".to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call"}"#.to_owned(), r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32600"#.to_owned()),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":{"b":1,"b":2}}}"#.to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":5,"Method":"ping"}"#.to_owned(), error(-32600)),
        (r#"{"id":5,"method":"ping"}"#.to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}"#.to_owned(), error(-32600)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"test/panic"}"#.to_owned(), error(-32603)),
    ] {
        let mut client = start();
        let answer = client.ask(&line).await;
        assert!(answer.contains(&expected), "{line}\n{answer}\nshould hold {expected}");
        // The connection stays open after any of them.
        let next = client.ask(r#"{"jsonrpc":"2.0","id":"next","method":"ping"}"#).await;
        assert_eq!(next, r#"{"jsonrpc":"2.0","id":"next","result":{}}"#, "after {line}");
        assert!(client.finish().await.is_empty(), "{line}");
    }
}

#[tokio::test]
async fn agrees_on_a_revision() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
    ] {
        let mut client = start();
        let answer = client.ask(&initialize(asked)).await;
        assert_eq!(
            answer,
            format!(
                r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{agreed}","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"scripted","title":"A test","version":"1.2.3"}},"instructions":"Ask."}}}}"#
            )
        );
        let who = client
            .ask(r#"{"jsonrpc":"2.0","id":1,"method":"test/who"}"#)
            .await;
        let expected = format!(
            r#"{{"revision":"{agreed}","principal":"local","session":"none","http":false,"info":{{"name":"t"}},"capabilities":{{"roots":{{}}}}}}"#
        );
        assert!(who.contains(&expected), "{who}");
        let again = client.ask(&initialize(asked)).await;
        assert!(again.contains("-32600"), "{again}");
    }
    let mut client = start();
    for params in ["", r#","params":{}"#, r#","params":{"protocolVersion":7}"#] {
        let answer = client
            .ask(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize"{params}}}"#
            ))
            .await;
        assert!(answer.contains("-32602"), "{answer}");
    }
}

fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"t"}}}}}}"#
    )
}

#[tokio::test]
async fn both_eras_share_a_connection() {
    let mut client = start();
    client.ask(&initialize("2025-06-18")).await;
    let modern = client
        .ask(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"test/who","params":{{{META}}}}}"#
        ))
        .await;
    assert!(modern.contains(r#""revision":"2026-07-28""#), "{modern}");
    assert!(
        modern.contains(r#""info":{"name":"t","version":"0"}"#),
        "{modern}"
    );
    let legacy = client
        .ask(r#"{"jsonrpc":"2.0","id":2,"method":"test/who"}"#)
        .await;
    assert!(legacy.contains(r#""revision":"2025-06-18""#), "{legacy}");
}

#[tokio::test]
async fn a_slow_request_holds_up_no_other_one() {
    let mut client = start();
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    assert!(
        client
            .ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
            .await
            .contains("\"id\":2")
    );
    client.log.gate.add_permits(1);
    assert!(client.receive().await.contains("\"id\":1"));
}

#[tokio::test]
async fn an_id_in_flight_is_taken() {
    let mut client = start();
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    let answer = client
        .ask(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    assert!(
        answer.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#),
        "{answer}"
    );
    // An id of another form is another id.
    client
        .send(r#"{"jsonrpc":"2.0","id":"1","method":"test/wait"}"#)
        .await;
    client.log.running(2).await;
    client.log.gate.add_permits(2);
    let mut answers = [client.receive().await, client.receive().await];
    answers.sort();
    assert!(
        answers[0].contains("\"id\":\"1\"") && answers[1].contains("\"id\":1"),
        "{answers:?}"
    );
    // The id is free again with the response.
    client.log.gate.add_permits(1);
    let answer = client
        .ask(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    assert!(answer.contains("result"), "{answer}");
}

#[tokio::test]
async fn cancelling_drops_the_request_and_answers_nothing() {
    let mut client = start();
    client
        .send(r#"{"jsonrpc":"2.0","id":"a","method":"test/wait"}"#)
        .await;
    client.log.running(1).await;
    // Other ids and invalid parameters cancel no request.
    for params in [
        r#"{"requestId":"b"}"#,
        r#"{"requestId":null}"#,
        "{}",
        r#"{"requestId":[1]}"#,
    ] {
        client
            .send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
            ))
            .await;
    }
    client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(client.log.running.load(Ordering::SeqCst), 1);
    client
        .send(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"r"}}"#,
        )
        .await;
    client.log.running(0).await;
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn progress_comes_in_order_under_the_own_token_and_before_the_answer() {
    let mut client = start();
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"test/progress","params":{"_meta":{"progressToken":"mine"}}}"#)
        .await;
    for amount in ["1", "2", "2.5"] {
        assert_eq!(
            client.receive().await,
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"mine","progress":{amount},"extra":1e2}}}}"#
            )
        );
    }
    assert!(
        client
            .receive()
            .await
            .contains(r#""params":{"progress":3,"progressToken":"mine"}"#)
    );
    assert_eq!(client.receive().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    // A client that wants no progress gets none.
    let answer = client
        .ask(r#"{"jsonrpc":"2.0","id":2,"method":"test/progress","params":{}}"#)
        .await;
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn the_end_of_the_input_lets_requests_finish() {
    let mut client = start();
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    // The last line may lack its end.
    let input = client.input.as_mut().unwrap();
    soon(input.write_all(br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#))
        .await
        .unwrap();
    soon(input.shutdown()).await.unwrap();
    assert!(client.receive().await.contains("\"id\":2"));
    client.log.gate.add_permits(1);
    assert!(client.receive().await.contains("\"id\":1"));
    assert_eq!(soon(client.output.next_line()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_the_drain_time_is_dropped() {
    let mut client = Client::start(StdioOptions::default().drain(Duration::from_secs(5)));
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    client.log.running(1).await;
    let start = tokio::time::Instant::now();
    client.stop.take().unwrap().send(()).unwrap();
    let log = Arc::clone(&client.log);
    assert_eq!(soon(client.output.next_line()).await.unwrap(), None);
    assert_eq!(start.elapsed().as_secs(), 5);
    soon(client.task).await.unwrap().unwrap();
    assert_eq!(log.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_what_it_asked_for() {
    let mut client = start();
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    client.log.running(1).await;
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    let log = Arc::clone(&client.log);
    let task = client.task;
    // Both halves are closed: the next write fails.
    drop((client.input, client.output));
    let _ = soon(task).await.unwrap();
    assert_eq!(log.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_line_beyond_the_limit_is_refused_by_its_id() {
    let mut client = Client::start(StdioOptions::default().max_message(1000));
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"ping","params":{{"a":"{}"}}}}"#,
        "x".repeat(5000)
    );
    let answer = client.ask(&long).await;
    assert!(
        answer.starts_with(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32600"#),
        "{answer}"
    );
    assert!(
        client
            .ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
            .await
            .contains("\"id\":2")
    );
}

#[tokio::test]
async fn only_so_many_requests_are_worked_on() {
    let mut client = Client::start(StdioOptions::default().max_in_flight(3));
    for id in 0..10 {
        client
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/wait"}}"#))
            .await;
    }
    client.log.running(3).await;
    // All are answered in time, and never more than three run.
    for _ in 0..10 {
        client.log.gate.add_permits(1);
        client.receive().await;
        assert!(client.log.running.load(Ordering::SeqCst) <= 3);
    }
}

#[tokio::test]
async fn who_waits_for_a_turn_can_be_cancelled() {
    let mut client = Client::start(StdioOptions::default().max_in_flight(1));
    for id in 0..3 {
        client
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/wait"}}"#))
            .await;
    }
    client.log.running(1).await;
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    client.ask(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    // It never ran.
    client.log.gate.add_permits(2);
    assert!(client.receive().await.contains("\"id\":0"));
    assert!(client.receive().await.contains("\"id\":2"));
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn thousands_of_cancellations_leave_nothing_behind() {
    let mut client = start();
    // A linear congruential generator: the same order in every run.
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut open: Vec<u64> = Vec::new();
    for id in 0..5000_u64 {
        client
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/wait"}}"#))
            .await;
        open.push(id);
        while open.len() > 100 || (!open.is_empty() && random(3) == 0) {
            let index = usize::try_from(random(open.len() as u64)).unwrap();
            let id = open.swap_remove(index);
            client
                .send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ))
                .await;
        }
    }
    client.log.running(open.len()).await;
    for id in open {
        client
            .send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            ))
            .await;
    }
    client.log.running(0).await;
    // All ids are free, no request was answered, and none is left.
    client.log.gate.add_permits(1);
    let answer = client
        .ask(r#"{"jsonrpc":"2.0","id":0,"method":"test/wait"}"#)
        .await;
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
    assert!(client.finish().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_cannot_hold_up_the_end() {
    let (service, _log) = Scripted::new();
    let (ours, theirs) = duplex(256);
    let (reader, writer) = split(theirs);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(serve_stdio(
        service,
        reader,
        writer,
        StdioOptions::default(),
        async {
            let _ = stopped.await;
        },
    ));
    let (_output, mut input) = split(ours);
    // More responses than fit into the pipe and the queue: in the end the input is not read.
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let flood = async {
        for _ in 0..10_000 {
            input.write_all(ping).await.unwrap();
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), flood).await.is_err());
    let start = tokio::time::Instant::now();
    stop.send(()).unwrap();
    soon(task).await.unwrap().unwrap();
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn notices_reach_who_has_opened_the_connection() {
    let notices = Notifier::default();
    let mut client = Client::start(StdioOptions::default().notifier(notices.clone()));
    client.ask(&initialize("2025-11-25")).await;
    notices.send("notifications/tools/list_changed", None);
    // Even if it sends the notification repeatedly.
    for _ in 0..3 {
        client
            .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
    }
    client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    notices.send("notifications/tools/list_changed", None);
    assert_eq!(
        client.receive().await,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
    );
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#)
        .await;
    let next = client.ask(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
    assert!(next.contains(r#""id":3"#), "it is told once: {next}");
    assert_eq!(
        *client.log.notifications.lock().unwrap(),
        ["notifications/roots/list_changed"]
    );
}
