//! The proxy in front of an execution counter, from the view of a client of plain bytes.

use std::{
    io::{self, ErrorKind},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tp_fault::{
    Direction, ExecutionCounter, ExecutionCounterOptions, Fault, FaultEvent, Plan, Proxy, ProxyOptions,
};

/// Time limit of a test, to detect a hang.
const LONG: Duration = Duration::from_secs(30);

fn fault(text: &str) -> Fault {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn request(id: &str) -> String {
    let body = format!(r#"{{"id":"{id}"}}"#);
    format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Sends a request on its own connection and reads until the end.
async fn ask(proxy: &Proxy, id: &str) -> (String, io::Result<()>) {
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(request(id).as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 1024];
    let ended = timeout(LONG, async {
        loop {
            match client.read(&mut chunk).await {
                Ok(0) => return Ok(()),
                Ok(length) => answer.extend_from_slice(&chunk[..length]),
                Err(error) => return Err(error),
            }
        }
    });
    let ended = ended.await.expect("the connection ends");
    (String::from_utf8(answer).unwrap(), ended)
}

/// Sends a request on a connection that stays open, and reads its answer.
async fn answered(client: &mut TcpStream, id: &str) -> String {
    client.write_all(request(id).as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut chunk = [0; 1024];
    while !answer.ends_with('}') && !answer.ends_with("content-length: 0\r\n\r\n") {
        let length = timeout(LONG, client.read(&mut chunk)).await.unwrap().unwrap();
        assert_ne!(length, 0, "the answer ends too early: {answer}");
        answer += str::from_utf8(&chunk[..length]).unwrap();
    }
    answer
}

#[tokio::test]
async fn without_faults_bytes_pass_and_connections_stay() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let proxy = Proxy::start(ledger.address(), Plan::without_faults())
        .await
        .unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    for n in 1..=3 {
        let answer = answered(&mut client, "a").await;
        assert!(answer.ends_with(&format!(r#"{{"id":"a","n":{n}}}"#)), "{answer}");
    }
    assert_eq!(
        proxy
            .history()
            .count(|event| matches!(event, FaultEvent::Request { .. })),
        3
    );
    assert_eq!(ledger.executions("a"), 3);
}

#[tokio::test]
async fn a_request_that_is_cut_is_done_only_when_it_was_whole() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let proxy = Proxy::start(ledger.address(), Plan::without_faults())
        .await
        .unwrap();
    for ending in ["cut", "reset"] {
        let length = request("cut-000").len();
        for after in 0..=length {
            let id = format!("{ending}-{after:03}");
            proxy
                .set_plan(Plan::new([fault(&format!("{ending}:request={after}"))]))
                .unwrap();
            let (answer, ended) = ask(&proxy, &id).await;
            proxy.wait_until_settled().await;
            let is_whole = after >= request(&id).len();
            assert_eq!(answer, "", "{ending} {after}");
            assert_eq!(ledger.executions(&id), u64::from(is_whole), "{ending} {after}");
            let is_reset = ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
            assert_eq!(is_reset, ending == "reset", "{ending} {after}");
        }
    }
}

#[tokio::test]
async fn a_response_that_is_cut_has_so_many_bytes_and_was_done() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let proxy = Proxy::start(ledger.address(), Plan::without_faults())
        .await
        .unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let whole = answered(&mut client, "000").await;
    for after in 0..=whole.len() {
        let id = format!("{after:03}x");
        proxy
            .set_plan(Plan::new([fault(&format!("cut:response={after}"))]))
            .unwrap();
        let (answer, ended) = ask(&proxy, &id).await;
        proxy.wait_until_settled().await;
        assert!(ended.is_ok(), "it ends in order");
        assert_eq!(answer.len(), after);
        assert_eq!(ledger.executions(&id), 1, "cut at {after}");
        let cut = FaultEvent::Cut {
            direction: Direction::Response,
            after: after as u64,
        };
        assert_eq!(proxy.history().count(|event| *event == cut), 1);
    }
}

#[tokio::test]
async fn half_of_a_connection_can_end() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let whole = request("half").len();
    // All of the request and then its end: the answer still arrives.
    let plan = Plan::new([fault(&format!("half-close:request={whole}"))]);
    let proxy = Proxy::start(ledger.address(), plan).await.unwrap();
    let (answer, _) = ask(&proxy, "half").await;
    assert!(answer.ends_with(r#"{"id":"half","n":1}"#), "{answer}");
    // The answer ends, while the client can still write.
    proxy
        .set_plan(Plan::new([fault("half-close:response=8")]))
        .unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(request("half").as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LONG, client.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer, "HTTP/1.1");
    client.write_all(b"still here").await.unwrap();
}

#[tokio::test]
async fn a_status_is_answered_in_the_place_of_the_upstream_and_then_it_is_over() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let plan = Plan::new([fault("status=429;retry-after=7")])
        .matching("storm")
        .times(2);
    let proxy = Proxy::start(ledger.address(), plan).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    for _ in 0..2 {
        let answer = answered(&mut client, "storm").await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        assert!(answer.contains("\r\nretry-after: 7\r\n"), "{answer}");
        assert!(answered(&mut client, "calm").await.starts_with("HTTP/1.1 200 "));
    }
    assert!(answered(&mut client, "storm").await.starts_with("HTTP/1.1 200 "));
    assert_eq!((ledger.executions("storm"), ledger.executions("calm")), (1, 2));
}

#[tokio::test]
async fn a_black_hole_takes_everything_and_says_nothing() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let proxy = Proxy::start(ledger.address(), Plan::new([Fault::BlackHole]))
        .await
        .unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        client.write_all(request("lost").as_bytes()).await.unwrap();
        clients.push(client);
    }
    let waits = async {
        while proxy.history().max_concurrent_requests() < 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, waits).await.expect("all three arrive");
    let mut byte = [0];
    for client in &clients {
        let silent = client.try_read(&mut byte);
        assert_eq!(silent.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    drop(clients);
    let left = async {
        while proxy.history().count(|event| *event == FaultEvent::Left) < 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, left).await.expect("that clients leave is noted");
    assert_eq!(ledger.total(), 0);
}

#[tokio::test]
async fn bytes_that_drip_or_wait_arrive_whole_and_not_earlier() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let plan = Plan::new([
        fault("delay:response=40ms"),
        fault("drip:response=16@2ms"),
        fault("rate:request=20000"),
    ]);
    let proxy = Proxy::start(ledger.address(), plan).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let start = tokio::time::Instant::now();
    let answer = answered(&mut client, "slow").await;
    assert!(answer.ends_with(r#"{"id":"slow","n":1}"#), "{answer}");
    let least = Duration::from_millis(40 + 2 * (answer.len() as u64 / 16 - 1));
    assert!(start.elapsed() >= least, "{:?} of {least:?}", start.elapsed());
}

#[tokio::test]
async fn connections_are_refused_until_the_proxy_is_opened() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let options = ProxyOptions {
        is_closed: true,
        ..ProxyOptions::new(ledger.address())
    };
    let proxy = Proxy::with_options(options).await.unwrap();
    for _ in 0..3 {
        let error = TcpStream::connect(proxy.address()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
    proxy.open().unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(answered(&mut client, "a").await.ends_with(r#"{"id":"a","n":1}"#));
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_connection_to_the_upstream_with_it() {
    let options = ExecutionCounterOptions {
        is_mute: true,
        ..ExecutionCounterOptions::default()
    };
    let ledger = ExecutionCounter::with_options(options).await.unwrap();
    let proxy = Proxy::start(ledger.address(), Plan::without_faults())
        .await
        .unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(request("a").as_bytes()).await.unwrap();
    let until = |event: FaultEvent| {
        let history = ledger.history().clone();
        async move {
            while history.count(|found| *found == event) == 0 {
                tokio::task::yield_now().await;
            }
        }
    };
    timeout(LONG, until(FaultEvent::Executed("a".to_owned())))
        .await
        .unwrap();
    drop(client);
    timeout(LONG, until(FaultEvent::Left))
        .await
        .expect("the upstream is told");
}

#[tokio::test]
async fn plain_tcp_is_one_exchange_for_each_connection() {
    // An echo server, which closes when the client does.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
        }
    });
    let plan = Plan::new([fault("cut:response=5")]).skip(1);
    let options = ProxyOptions {
        is_tcp: true,
        plan,
        ..ProxyOptions::new(upstream)
    };
    let proxy = Proxy::with_options(options).await.unwrap();
    for expected in ["hello world", "hello"] {
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        client.write_all(b"hello ").await.unwrap();
        client.write_all(b"world").await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        timeout(LONG, client.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_closes_the_connection() {
    let ledger = ExecutionCounter::start().await.unwrap();
    let nobody = Proxy::with_options(ProxyOptions {
        is_closed: true,
        ..ProxyOptions::new(ledger.address())
    });
    let nobody = nobody.await.unwrap();
    let proxy = Proxy::start(nobody.address(), Plan::without_faults())
        .await
        .unwrap();
    assert_eq!(ask(&proxy, "a").await.0, "");
    assert_eq!(
        proxy.history().count(|event| *event == FaultEvent::Unreachable),
        1
    );
}

#[tokio::test]
async fn faults_of_programs_are_refused() {
    let ledger = ExecutionCounter::start().await.unwrap();
    for text in ["garbage=x", "exit=1", "crash=1", "stop-reading"] {
        let error = Proxy::start(ledger.address(), Plan::new([fault(text)]))
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{text}` applies to wrapped programs, not to connections")
        );
    }
    let options = ProxyOptions {
        is_tcp: true,
        plan: Plan::new([fault("status=503")]),
        ..ProxyOptions::new(ledger.address())
    };
    assert!(
        Proxy::with_options(options)
            .await
            .unwrap_err()
            .to_string()
            .contains("not to plain TCP")
    );
}
