//! Tests of answers that are split at every position.

use std::collections::VecDeque;

use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::*;

/// Server that answers the first byte it receives with scripted pieces, one for each read, and then closes the
/// connection or stays silent.
struct Script {
    pieces: VecDeque<Vec<u8>>,
    ends: bool,
    is_asked: bool,
    reader: Option<Waker>,
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_asked {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let Some(mut piece) = self.pieces.pop_front() else {
            return if self.ends {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            };
        };
        let rest = piece.split_off(piece.len().min(buf.remaining()));
        buf.put_slice(&piece);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        self.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Outcome of an exchange.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Answer {
        status: u16,
        body: String,
        is_reusable: bool,
    },
    /// Still waiting for the rest.
    Pending,
    Ended(&'static str),
    Malformed(String),
}

fn answer(status: u16, body: &str, is_reusable: bool) -> Outcome {
    Outcome::Answer {
        status,
        body: body.to_owned(),
        is_reusable,
    }
}

/// Runs an exchange with a server that answers with these pieces.
fn read(method: &Method, pieces: &[&[u8]], ends: bool) -> Outcome {
    let script = Script {
        pieces: pieces
            .iter()
            .filter(|piece| !piece.is_empty())
            .map(|piece| piece.to_vec())
            .collect(),
        ends,
        is_asked: false,
        reader: None,
    };
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = try_read(method, script) => outcome,
            // All available bytes have been read before.
            () = quiet() => Outcome::Pending,
        }
    })
}

/// Ends after more polls than any exchange in these tests needs.
async fn quiet() {
    for _ in 0..512 {
        tokio::task::yield_now().await;
    }
}

async fn try_read(method: &Method, script: Script) -> Outcome {
    let mut connection = Connection::new(script, Arc::default()).await.unwrap();
    let request = Request::builder().method(method).uri("/").body(()).unwrap();
    let mut status = 0;
    let done = async {
        let answer = connection.exchange(request, &mut Bytes::new()).await;
        let answer = answer.map_err(|broken| broken.fault)?;
        status = answer.status().as_u16();
        let (mut body, mut incoming) = (Vec::new(), answer.into_body());
        while let Some(piece) = poll_fn(|cx| connection.poll_chunk(&mut incoming, cx)).await? {
            assert!(!piece.is_empty(), "an empty piece looks like the end");
            body.extend_from_slice(&piece);
        }
        Ok((body, incoming))
    }
    .await;
    match done {
        Ok((body, mut incoming)) => Outcome::Answer {
            status,
            body: String::from_utf8_lossy(&body).into_owned(),
            is_reusable: connection.finish_exchange(&mut incoming),
        },
        Err(Http1Error::Malformed(why)) => Outcome::Malformed(why),
        Err(Http1Error::Ended(when)) => Outcome::Ended(when),
        Err(Http1Error::Io(error)) => panic!("{error}"),
    }
}

/// Answers as servers write them, with the expected outcome.
fn answers() -> Vec<(&'static str, Outcome)> {
    vec![
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            answer(200, "hi", true),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:2 \r\n\r\nhi",
            answer(200, "hi", true),
        ),
        ("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", answer(200, "", true)),
        // The next answer does not belong to this exchange.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP",
            answer(200, "hi", false),
        ),
        // Variants of closing the connection.
        (
            "HTTP/1.1 200 OK\r\nconnection: Keep-Alive, Close\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", false),
        ),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", false),
        ),
        (
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", true),
        ),
        // Statuses without a body, whatever the head says.
        (
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            answer(204, "", true),
        ),
        // A body that is sent nevertheless would be the next answer.
        (
            "HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n",
            answer(204, "", false),
        ),
        (
            "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n",
            answer(304, "", false),
        ),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", answer(304, "", true)),
        // An empty line that belongs to the previous answer.
        (
            "\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", true),
        ),
        // Line end without CR, as some servers write it.
        ("HTTP/1.1 200 OK\ncontent-length: 1\n\nx", answer(200, "x", true)),
        // Interim answers.
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            answer(202, "", true),
        ),
        // Repeated lengths that agree.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", true),
        ),
        // Chunks: an extension, upper case, trailers.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;a=b\r\nhi\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
            answer(200, "hi0123456789", true),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            answer(200, "", true),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0002 \t; a=\"b\"\r\nhi\r\n0000\r\n\r\n",
            answer(200, "hi", true),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nrest",
            answer(200, "x", false),
        ),
        // Both length and chunks: the chunks count, and the connection is not reused.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            answer(200, "x", false),
        ),
    ]
}

#[test]
fn answers_are_read_however_they_arrive() {
    for (text, expected) in answers() {
        let bytes = text.as_bytes();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&Method::POST, &[bytes], false), expected, "{text:?}");
        assert_eq!(
            read(&Method::POST, &single, false),
            expected,
            "a byte at a time: {text:?}"
        );
        for at in 0..bytes.len() {
            let (before, after) = bytes.split_at(at);
            let outcome = read(&Method::POST, &[before, after], false);
            assert_eq!(outcome, expected, "cut at {at}: {text:?}");
        }
    }
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nuntil the end";
    assert_eq!(
        read(&Method::POST, &[until_close], true),
        answer(200, "until the end", false)
    );
}

#[test]
fn an_answer_that_is_cut_off_is_none() {
    for (text, expected) in answers() {
        let Outcome::Answer { body: whole, .. } = expected else {
            continue;
        };
        for at in 0..text.len() {
            match read(&Method::POST, &[&text.as_bytes()[..at]], true) {
                Outcome::Ended("before it answered") => assert_eq!(at, 0, "{text:?}"),
                Outcome::Ended("in the middle of its answer") => {}
                // The truncated part did not belong to it.
                Outcome::Answer {
                    body, is_reusable, ..
                } => assert!(body == whole && !is_reusable, "{at} of {text:?}"),
                other => panic!("{at} of {text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn answers_that_may_be_read_in_two_ways_are_refused() {
    let head = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}");
    let chunks = |body: &str| head("transfer-encoding: chunked\r\n", body);
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let cases = [
        "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        "HTTP/2 200\r\n\r\n".to_owned(),
        "HTTP/1.1 xx OK\r\n\r\n".to_owned(),
        "HTTP/1.1 099 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 000 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 600 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 999 OK\r\n\r\n".to_owned(),
        interim.repeat(2 * MAX_HEAD / interim.len()),
        "\r\n".repeat(MAX_HEAD),
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
        "HTTP/1.0 200 OK\r\ntransfer-encoding: gzip\r\ncontent-length: 1\r\n\r\nx".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
        head("a b: c\r\n", ""),
        head("a: b\0\r\n", ""),
        head("content-length: -1\r\n", ""),
        head("content-length: +1\r\n", ""),
        head("content-length: \r\n", ""),
        head("content-length: 99999999999999999999\r\n", ""),
        head("content-length: 1, 2\r\n", "xx"),
        head("content-length: 1\r\ncontent-length: 2\r\n", "xx"),
        head("transfer-encoding: gzip\r\n", ""),
        head("transfer-encoding: gzip, chunked\r\n", ""),
        head("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", ""),
        chunks("x\r\n"),
        chunks("-1\r\n"),
        chunks("fffffffffffffffff\r\n"),
        // A missing digit is not zero.
        chunks("\r\n\r\n"),
        chunks("5\r\nhello\r\n\r\n\r\n"),
        chunks(";x\r\n\r\n"),
        chunks(" \r\n\r\n"),
        chunks(" 1\r\nx\r\n0\r\n\r\n"),
        chunks("+1\r\nx\r\n0\r\n\r\n"),
        chunks("0x1\r\nx\r\n0\r\n\r\n"),
        chunks("1 1\r\nx\r\n0\r\n\r\n"),
        // Readers disagree about the end of such lines.
        chunks("5;\nhello\r\n0\r\n\r\n"),
        chunks("5\nhello\r\n0\r\n\r\n"),
        chunks("1\r\nxy\r\n"),
        chunks("1\r\nx\n0\r\n\r\n"),
        chunks("0\r\n: x\r\n\r\n"),
        chunks(&format!("0\r\na: {}", "b".repeat(2 * MAX_HEAD))),
        chunks(&format!("1;{}", "a".repeat(2 * MAX_HEAD))),
        head(&"a: b\r\n".repeat(MAX_HEADERS + 1), ""),
        format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(2 * MAX_HEAD)),
    ];
    for text in cases {
        let outcome = read(&Method::POST, &[text.as_bytes()], false);
        let start: String = text.chars().take(80).collect();
        assert!(matches!(outcome, Outcome::Malformed(_)), "{start:?}: {outcome:?}");
    }
    // The maximum number of headers.
    let most = head(
        &format!("{}content-length: 0\r\n", "a: b\r\n".repeat(MAX_HEADERS - 1)),
        "",
    );
    assert_eq!(
        read(&Method::POST, &[most.as_bytes()], false),
        answer(200, "", true)
    );
}

#[test]
fn an_answer_to_head_has_no_body() {
    let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(read(&Method::HEAD, &[text], false), answer(200, "", true));
}

/// Receiving byte by byte costs one step for each byte, and not one for each byte before it.
#[test]
fn heads_and_trailers_may_come_a_byte_at_a_time() {
    let long = |kib: usize| format!("a: {}\r\n", "b".repeat(kib * 1024));
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{}\r\n", long(12));
    let trailers = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{}\r\n",
        long(12)
    );
    for text in [&head, &trailers] {
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(&Method::POST, &single, false), answer(200, "", true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(9112), ..ProptestConfig::default() })]

    /// The outcome does not depend on how the answer is split.
    #[test]
    fn any_bytes_in_any_pieces(
        head in prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\n", "",
        ]),
        headers in prop::collection::vec(prop::sample::select(vec![
            "content-length: 3\r\n", "content-length: 0\r\n", "transfer-encoding: chunked\r\n", "connection: close\r\n",
            "content-length: 3, 3\r\n", "x:y\r\n", "\r\n",
        ]), 0..4),
        body in prop::collection::vec(prop::sample::select(vec![
            "\r\n", "3\r\nabc\r\n", "0\r\n\r\n", "abc", "0\r\n", "1;x=y\r\n", "\n", "\0", "ff\r\n",
        ]), 0..6),
        cuts in prop::collection::vec(0_usize..200, 0..4),
        ends in any::<bool>(),
    ) {
        let text = [head, &headers.concat(), "\r\n", &body.concat()].concat();
        let bytes = text.as_bytes();
        let whole = read(&Method::POST, &[bytes], ends);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(&Method::POST, &pieces, ends), whole, "{:?}", text);
    }

    /// RFC 9112, section 7.1: a chunk size has a digit, and its line ends with CR LF.
    #[test]
    fn any_line_before_a_chunk(line in "[0-9aF;x \t\r\n\0+\"]{0,9}", length in prop::sample::select(vec![0, 1, 15, 16, 17])) {
        let text = format!("{}{line}\r\n", "0".repeat(length));
        let (first, _) = text.split_once('\n').unwrap();
        let is_size = first.strip_suffix('\r').is_some_and(|first| {
            let rest = first.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            let extension = rest.trim_start_matches([' ', '\t']);
            rest.len() < first.len() && (extension.is_empty() || extension.starts_with(';'))
        });
        let text = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{text}");
        let outcome = read(&Method::POST, &[text.as_bytes()], false);
        prop_assert!(is_size || matches!(outcome, Outcome::Malformed(_)), "{:?}: {:?}", text, outcome);
    }
}
