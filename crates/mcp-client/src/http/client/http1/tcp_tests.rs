//! Tests over TCP: buffers of the kernel and their timing.

use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::http::client::byte_stream::CheckedSocket;

/// Creates a connection over TCP. Also returns the server's end.
async fn connected() -> (Connection, TcpStream) {
    let (stream, server) = pair().await;
    (over(stream).await, server)
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (stream.unwrap(), accepted.unwrap().0)
}

async fn over(stream: TcpStream) -> Connection {
    let progress = Arc::default();
    let socket = CheckedSocket::new(stream, Arc::clone(&progress));
    Connection::new(socket, progress).await.unwrap()
}

fn post() -> Request<()> {
    Request::post("/").body(()).unwrap()
}

/// Reads the head of a request at the server's end.
async fn read_head(server: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(server.read_u8().await.unwrap());
    }
}

/// Runs an exchange without bodies, after which the connection can be reused.
async fn exchange(connection: &mut Connection, server: &mut TcpStream) {
    let answering = async {
        read_head(server).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        server.write_all(answer).await.unwrap();
    };
    let mut nothing = Bytes::new();
    let (answer, ()) = tokio::join!(connection.exchange(post(), &mut nothing), answering);
    assert!(connection.finish_exchange(&mut answer.unwrap().into_body()));
}

#[tokio::test]
async fn an_answer_may_come_before_the_request_has_left() {
    let (mut connection, mut server) = connected().await;
    let answering = async {
        read_head(&mut server).await;
        // The rest is never read.
        let refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
        server.write_all(refusal).await.unwrap();
    };
    let mut body = vec![b'x'; 64 << 20].into();
    let (answer, ()) = tokio::join!(connection.exchange(post(), &mut body), answering);
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 413);
    assert!(
        !connection.finish_exchange(&mut answer.into_body()),
        "half a request stands in the way of the next one"
    );
}

#[tokio::test]
async fn large_requests_and_answers_arrive_whole() {
    const LENGTH: usize = 3 << 20;
    let sent: Bytes = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    for is_read_whole in [false, true] {
        let (mut connection, mut server) = connected().await;
        let echoing = async {
            read_head(&mut server).await;
            let mut all = vec![0; LENGTH];
            server.read_exact(&mut all).await.unwrap();
            while !sent.is_unique() {
                // Sent bytes are not kept for the answer.
                tokio::task::yield_now().await;
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
            server.write_all(head.as_bytes()).await.unwrap();
            server.write_all(&all).await.unwrap();
        };
        let asking = async {
            let mut body = sent.clone();
            let answer = connection.exchange(post(), &mut body).await.unwrap();
            let mut incoming = answer.into_body();
            let whole = if is_read_whole {
                connection.whole(&mut incoming, LENGTH).await.unwrap()
            } else {
                let mut whole = Vec::new();
                while let Some(piece) = poll_fn(|cx| connection.poll_chunk(&mut incoming, cx))
                    .await
                    .unwrap()
                {
                    whole.extend_from_slice(&piece);
                }
                whole.into()
            };
            assert!(connection.finish_exchange(&mut incoming));
            whole
        };
        let (whole, ()) = tokio::join!(asking, echoing);
        assert!(whole == sent);
        assert!(connection.is_ready());
    }
}

/// Blocks until bytes have arrived, without letting the runtime notice.
fn arrived(socket: &std::os::fd::OwnedFd) {
    while recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) == Err(Errno::AGAIN) {
        std::thread::yield_now();
    }
}

/// Unsolicited bytes are detected even if the reactor has not run or the task has no coop budget.
#[tokio::test]
async fn a_connection_is_over_when_something_came_unasked() {
    for unasked in [
        &b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"[..],
        b"",
    ] {
        for has_budget in [true, false] {
            for is_asked in [true, false] {
                let (stream, mut server) = pair().await;
                let socket = rustix::io::dup(&stream).unwrap();
                let mut connection = over(stream).await;
                exchange(&mut connection, &mut server).await;
                assert!(connection.is_ready());
                send(&server, unasked, SendFlags::empty()).unwrap();
                rustix::net::shutdown(&server, rustix::net::Shutdown::Write).unwrap();
                arrived(&socket);
                let over = async {
                    if is_asked {
                        return !connection.is_ready();
                    }
                    let mut body = Bytes::from_static(b"hello");
                    let broken = connection.exchange(post(), &mut body).await.unwrap_err();
                    broken.unsent && body == "hello"
                };
                let mut over = pin!(over);
                let mut is_spent = has_budget;
                let over = poll_fn(|cx| {
                    while !is_spent {
                        is_spent = pin!(tokio::task::coop::consume_budget()).poll(cx).is_pending();
                    }
                    over.as_mut().poll(cx)
                });
                assert!(over.await, "{has_budget} {is_asked}");
            }
        }
    }
}

/// Bytes that arrive before the request was begun belong to something else: the request can be sent elsewhere.
#[tokio::test]
async fn an_answer_to_nothing_is_none() {
    let (stream, mut server) = pair().await;
    let socket = rustix::io::dup(&stream).unwrap();
    let mut connection = over(stream).await;
    // The server does not read, so no more can be sent.
    let filler = [0; 64 * 1024];
    let mut n_full = 0;
    while n_full < 100 {
        // The last room is filled byte by byte.
        let length = if n_full == 0 { filler.len() } else { 1 };
        match send(&socket, &filler[..length], SendFlags::DONTWAIT) {
            Err(Errno::AGAIN) => n_full += 1,
            // Bytes in transit make room when they arrive.
            sent => n_full = sent.map(|_| 0).unwrap(),
        }
        std::thread::yield_now();
    }
    let mut body = Bytes::from_static(b"hello");
    let answering = async {
        tokio::task::yield_now().await;
        server
            .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
    };
    let (answer, ()) = tokio::join!(connection.exchange(post(), &mut body), answering);
    assert!(answer.unwrap_err().unsent);
    assert_eq!(body, "hello", "the request is given back");
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
        let (mut connection, mut server) = connected().await;
        let closing = async move {
            read_head(&mut server).await;
            server.write_all(answer).await.unwrap();
        };
        let asking = async {
            let answer = connection.exchange(post(), &mut Bytes::new()).await;
            let answer = answer.map_err(|broken| {
                assert!(!broken.unsent);
                broken.fault
            })?;
            connection.whole(&mut answer.into_body(), 5).await
        };
        let (asked, ()) = tokio::join!(asking, closing);
        let fault = asked.unwrap_err();
        assert!(fault.to_string().contains(when), "{fault}");
    }
}
