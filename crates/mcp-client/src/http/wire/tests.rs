use std::future::Future;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// A wire, and the server's end of it.
async fn connected() -> (Wire, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (Wire::new(stream.unwrap()), accepted.unwrap().0)
}

fn request(body: impl Into<Bytes>) -> Request {
    Request::new(b"POST / HTTP/1.1\r\n\r\n".to_vec(), body.into())
}

async fn exchange(wire: &mut Wire, mut request: Request) -> Result<Head, Broken> {
    wire.exchange(&Method::POST, &mut request).await
}

/// The whole body of an answer, and in how many pieces it came.
async fn body(wire: &mut Wire, mut framing: Framing) -> Result<(Vec<u8>, usize), Reason> {
    let (mut body, mut n_pieces) = (Vec::new(), 0);
    while let Some(piece) = poll_fn(|cx| wire.poll_piece(&mut framing, cx)).await? {
        body.extend_from_slice(&piece);
        n_pieces += 1;
    }
    Ok((body, n_pieces))
}

/// Runs what the client does until it is done, beside what the server does.
async fn beside<T>(client: impl Future<Output = T>, server: impl Future<Output = ()>) -> T {
    tokio::join!(client, server).0
}

#[tokio::test]
async fn an_answer_may_come_before_the_request_has_left() {
    let (mut wire, mut server) = connected().await;
    let answering = async {
        let mut head = [0; 19];
        server.read_exact(&mut head).await.unwrap();
        // The rest is never read.
        server
            .write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
    };
    let request = request(vec![b'x'; 64 << 20]);
    let head = beside(exchange(&mut wire, request), answering).await.unwrap();
    assert_eq!(head.status, 413);
    assert!(
        !wire.is_clean(),
        "half a request stands in the way of the next one"
    );
}

#[tokio::test]
async fn large_requests_and_answers_arrive_whole() {
    const LENGTH: usize = 3 << 20;
    let sent: Bytes = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    for is_read_whole in [false, true] {
        let (mut wire, mut server) = connected().await;
        let echoing = async {
            let mut all = vec![0; 19 + LENGTH];
            server.read_exact(&mut all).await.unwrap();
            assert!(sent.is_unique(), "what has left is not kept for the answer");
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
            server.write_all(head.as_bytes()).await.unwrap();
            server.write_all(&all[19..]).await.unwrap();
        };
        let asking = async {
            let mut head = exchange(&mut wire, request(sent.clone())).await.unwrap();
            assert!(head.is_kept);
            if is_read_whole {
                poll_fn(|cx| wire.poll_rest(&mut head.framing, LENGTH, cx))
                    .await
                    .unwrap()
            } else {
                body(&mut wire, head.framing).await.unwrap().0.into()
            }
        };
        assert!(beside(asking, echoing).await == sent);
        assert!(wire.is_ready());
        wire.rest();
        assert_eq!(
            wire.arrived.buffer().capacity(),
            0,
            "a connection that rests has no buffer"
        );
    }
}

#[tokio::test]
async fn what_comes_unasked_ends_a_connection() {
    for unasked in [true, false] {
        let (mut wire, mut server) = connected().await;
        let answering = async {
            server
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
                .await
                .unwrap();
        };
        let head = beside(exchange(&mut wire, request("")), answering).await.unwrap();
        assert_eq!(body(&mut wire, head.framing).await.unwrap(), (b"hi".to_vec(), 1));
        assert!(wire.is_ready());
        if unasked {
            server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        } else {
            drop(server);
        }
        arrived(&wire);
        assert!(!wire.is_ready(), "{unasked}");
    }
}

/// Blocks until something has come over the connection, without letting the runtime know.
fn arrived(wire: &Wire) {
    while recv(&wire.stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) == Err(Errno::AGAIN) {
        std::thread::yield_now();
    }
}

/// A task that makes many calls at once uses up its budget, and every socket of the runtime says then that nothing is there.
#[tokio::test]
async fn what_comes_unasked_is_seen_by_a_task_without_budget() {
    for unasked in [
        &b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"[..],
        b"",
    ] {
        let (mut wire, mut server) = connected().await;
        let answering = async {
            server
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
        };
        beside(exchange(&mut wire, request("")), answering).await.unwrap();
        server.write_all(unasked).await.unwrap();
        drop(server);
        wire.stream.readable().await.unwrap();
        let is_ready = poll_fn(|cx| {
            while pin!(tokio::task::coop::consume_budget()).poll(cx).is_ready() {}
            Poll::Ready(wire.is_ready())
        });
        assert!(!is_ready.await);
    }
}

/// What comes before a byte of the request has left answers something else: it can be asked elsewhere.
#[tokio::test]
async fn an_answer_to_nothing_is_none() {
    let (mut wire, mut server) = connected().await;
    server
        .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    arrived(&wire);
    // Nobody reads, so that nothing more leaves.
    let filler = [0; 64 * 1024];
    let mut n_full = 0;
    while n_full < 1000 {
        // The last room is taken a byte at a time.
        let length = if n_full == 0 { filler.len() } else { 1 };
        match rustix::net::send(&wire.stream, &filler[..length], rustix::net::SendFlags::DONTWAIT) {
            Err(Errno::AGAIN) => n_full += 1,
            // What is on the way makes room for more when it arrives.
            sent => n_full = sent.map(|_| 0).unwrap(),
        }
        std::thread::yield_now();
    }
    let mut asked = request("hello");
    let broken = wire.exchange(&Method::POST, &mut asked).await.unwrap_err();
    assert!(broken.unsent);
    let (mut other, mut server) = connected().await;
    let answering = async {
        let mut all = [0; 24];
        server.read_exact(&mut all).await.unwrap();
        assert!(all.ends_with(b"hello"), "the request is given back");
        server
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .await
            .unwrap();
    };
    let head = beside(other.exchange(&Method::POST, &mut asked), answering)
        .await
        .unwrap();
    assert_eq!(head.status, 204);
}

/// A byte at a time costs a step for each byte, and not one for each byte before it.
#[tokio::test]
async fn heads_and_trailers_may_come_a_byte_at_a_time() {
    let long = format!("a: {}\r\n", "b".repeat(60 * 1024));
    let head = format!("HTTP/1.1 200 OK\r\n{long}\r\n");
    let trailers = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{long}\r\n");
    for text in [&head, &trailers] {
        for _ in 0..50 {
            let (mut arrived, mut head) = (Arrived::default(), None::<Head>);
            for byte in text.as_bytes() {
                arrived.push(&[*byte]);
                match &mut head {
                    Some(head) => assert!(head.framing.take(&mut arrived).is_ok()),
                    None => head = Head::take(&mut arrived, &Method::POST, &mut 0).unwrap(),
                }
            }
            assert!(arrived.is_empty() && head.is_some());
        }
    }
}

#[tokio::test]
async fn the_end_of_a_connection_says_when_it_was() {
    let cases: [(&[u8], &str); 3] = [
        (b"", "before it answered"),
        (b"HTTP/1.1 200 OK\r\ncontent-len", "in the middle of its answer"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi",
            "in the middle of its answer",
        ),
    ];
    for (answer, when) in cases {
        let (mut wire, mut server) = connected().await;
        let closing = async move {
            let mut head = [0; 19];
            server.read_exact(&mut head).await.unwrap();
            server.write_all(answer).await.unwrap();
        };
        let asking = async {
            let head = exchange(&mut wire, request("")).await.map_err(|broken| {
                assert!(!broken.unsent);
                broken.reason
            })?;
            body(&mut wire, head.framing).await
        };
        let reason = beside(asking, closing).await.unwrap_err();
        assert!(reason.to_string().contains(when), "{reason}");
    }
}
