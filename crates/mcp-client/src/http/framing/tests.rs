use proptest::prelude::*;

use super::*;
use crate::http::chunk::LONGEST_SIZE;

/// What comes of an answer that arrives in these pieces, and then the end of the connection.
#[derive(Debug, Clone, PartialEq)]
enum Came {
    Answer {
        status: u16,
        body: String,
        is_kept: bool,
        /// What was not taken.
        rest: String,
    },
    Short,
    Malformed(&'static str),
}

fn read(method: &Method, pieces: &[&[u8]]) -> Came {
    try_read(method, pieces).unwrap_or_else(|Malformed(why)| Came::Malformed(why))
}

fn try_read(method: &Method, pieces: &[&[u8]]) -> Result<Came, Malformed> {
    let (mut buffer, mut n_interim) = (Arrived::default(), 0);
    let mut pieces = pieces.iter();
    let mut head = loop {
        if let Some(head) = Head::take(&mut buffer, method, &mut n_interim)? {
            break head;
        }
        match pieces.next() {
            Some(piece) => buffer.push(piece),
            None => return Ok(Came::Short),
        }
    };
    let mut body = Vec::new();
    loop {
        match head.framing.take(&mut buffer)? {
            Piece::Data(data) => {
                assert!(!data.is_empty(), "an empty piece looks like the end");
                body.extend_from_slice(&data);
            }
            Piece::End => break,
            Piece::More => match pieces.next() {
                Some(piece) => buffer.push(piece),
                None if head.framing.may_end() => break,
                None => return Ok(Came::Short),
            },
        }
    }
    pieces.for_each(|piece| buffer.push(piece));
    Ok(Came::Answer {
        status: head.status,
        body: String::from_utf8_lossy(&body).into_owned(),
        is_kept: head.is_kept,
        rest: String::from_utf8_lossy(buffer.as_slice()).into_owned(),
    })
}

fn answer(status: u16, body: &str, is_kept: bool, rest: &str) -> Came {
    let (body, rest) = (body.to_owned(), rest.to_owned());
    Came::Answer {
        status,
        body,
        is_kept,
        rest,
    }
}

/// Answers as servers write them, and what is read.
fn answers() -> Vec<(&'static str, Came)> {
    vec![
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            answer(200, "hi", true, ""),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:2 \r\n\r\nhi",
            answer(200, "hi", true, ""),
        ),
        (
            "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
            answer(200, "", true, ""),
        ),
        // The next answer is not this one's.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP",
            answer(200, "hi", true, "HTTP"),
        ),
        // Every server's own way to close.
        (
            "HTTP/1.1 200 OK\r\nconnection: Keep-Alive, Close\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", false, ""),
        ),
        (
            "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", false, ""),
        ),
        (
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", true, ""),
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nuntil the end",
            answer(200, "until the end", false, ""),
        ),
        // No body, whatever the head says.
        (
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            answer(204, "", true, ""),
        ),
        // One that may come all the same would be the next answer.
        (
            "HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n",
            answer(204, "", false, ""),
        ),
        (
            "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n",
            answer(304, "", false, ""),
        ),
        // An empty line that belongs to the answer before.
        (
            "\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", true, ""),
        ),
        // The end of a line as some servers write it.
        (
            "HTTP/1.1 200 OK\ncontent-length: 1\n\nx",
            answer(200, "x", true, ""),
        ),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", answer(304, "", true, "")),
        // Interim answers.
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            answer(202, "", true, ""),
        ),
        // Lengths that agree.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\ncontent-length: 1\r\n\r\nx",
            answer(200, "x", true, ""),
        ),
        // Chunks: an extension, upper case, trailers.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;a=b\r\nhi\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\nrest",
            answer(200, "hi0123456789", true, "rest"),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            answer(200, "", true, ""),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0002 \t; a=\"bé\"\r\nhi\r\n0000\r\n\r\n",
            answer(200, "hi", true, ""),
        ),
        // Both: the chunks count, and the connection is not trusted any further.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            answer(200, "x", false, ""),
        ),
    ]
}

#[test]
fn what_is_an_answer_however_it_arrives() {
    for (text, expected) in answers() {
        let bytes = text.as_bytes();
        assert_eq!(read(&Method::POST, &[bytes]), expected, "{text:?}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(
            read(&Method::POST, &single),
            expected,
            "a byte at a time: {text:?}"
        );
        for at in 0..bytes.len() {
            let (before, after) = bytes.split_at(at);
            assert_eq!(
                read(&Method::POST, &[before, after]),
                expected,
                "{at} of {text:?}"
            );
        }
    }
}

#[test]
fn an_answer_that_is_cut_short_is_none() {
    for (text, whole) in answers() {
        let Came::Answer { body, rest, .. } = &whole else {
            panic!("{whole:?}");
        };
        for at in 0..text.len() - rest.len() {
            match read(&Method::POST, &[&text.as_bytes()[..at]]) {
                Came::Short => {}
                // Only the end of the connection tells the end of the body.
                Came::Answer { body: cut, .. } if text.contains("\r\n\r\nuntil") => {
                    assert!(body.starts_with(&cut), "{at} of {text:?}");
                }
                other => panic!("{at} of {text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_none_is_refused() {
    let head = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}");
    let chunks = |body: &str| head("transfer-encoding: chunked\r\n", body);
    let cases = [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "begin with `HTTP/1.1`"),
        ("HTTP/2 200\r\n\r\n".to_owned(), "begin with `HTTP/1.1`"),
        ("HTTP/1.1 xx OK\r\n\r\n".to_owned(), "status"),
        ("HTTP/1.1 099 OK\r\n\r\n".to_owned(), "status"),
        ("HTTP/1.1 000 OK\r\n\r\n".to_owned(), "status"),
        ("HTTP/1.1 600 OK\r\n\r\n".to_owned(), "status"),
        ("HTTP/1.1 999 OK\r\n\r\n".to_owned(), "status"),
        (
            "HTTP/1.1 100 C\r\n\r\n".repeat(MOST_INTERIM + 1),
            "more than 32 interim",
        ),
        ("\r\n".repeat(MOST_INTERIM + 1), "more than 32 interim"),
        (
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            "which HTTP/1.0 does not know",
        ),
        (
            "HTTP/1.0 200 OK\r\ntransfer-encoding: gzip\r\ncontent-length: 1\r\n\r\nx".to_owned(),
            "which HTTP/1.0 does not know",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
            "changes the protocol",
        ),
        (head("a b: c\r\n", ""), "name of a header"),
        (head("a: b\0\r\n", ""), "value of a header"),
        (head("content-length: -1\r\n", ""), "no number"),
        (head("content-length: +1\r\n", ""), "no number"),
        (head("content-length: \r\n", ""), "no number"),
        (head("content-length: 99999999999999999999\r\n", ""), "no number"),
        (head("content-length: 1, 2\r\n", "xx"), "two lengths"),
        (
            head("content-length: 1\r\ncontent-length: 2\r\n", "xx"),
            "two lengths",
        ),
        (head("transfer-encoding: gzip\r\n", ""), "not `chunked`"),
        (head("transfer-encoding: gzip, chunked\r\n", ""), "not `chunked`"),
        (
            head("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", ""),
            "not `chunked`",
        ),
        (chunks("x\r\n"), "size of a chunk"),
        (chunks("-1\r\n"), "size of a chunk"),
        (chunks("fffffffffffffffff\r\n"), "size of a chunk"),
        // No digit is not zero.
        (chunks("\r\n\r\n"), "size of a chunk"),
        (chunks("5\r\nhello\r\n\r\n\r\n"), "size of a chunk"),
        (chunks(";x\r\n\r\n"), "size of a chunk"),
        (chunks(" \r\n\r\n"), "size of a chunk"),
        (chunks(" 1\r\nx\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("+1\r\nx\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("0x1\r\nx\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("1 1\r\nx\r\n0\r\n\r\n"), "size of a chunk"),
        // Readers disagree where such lines end.
        (chunks("5;\nhello\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("5\nhello\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("5;a\rb\r\nhello\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("5;\0\r\nhello\r\n0\r\n\r\n"), "size of a chunk"),
        (chunks("0\r\nx: y\n\r\n"), "no trailer"),
        (chunks("0\r\nx: y\r\n\n"), "no trailer"),
        (chunks("0\r\n\n"), "no trailer"),
        (chunks("1\r\nxy\r\n"), "longer than it says"),
        (chunks("1\r\nx\n0\r\n\r\n"), "longer than it says"),
        (
            chunks(&format!("1;{}", "a".repeat(LONGEST_SIZE))),
            "before a chunk is too long",
        ),
        (chunks("0\r\n: x\r\n\r\n"), "no trailer"),
        (
            chunks(&format!("0\r\na: {}", "b".repeat(LARGEST_HEAD))),
            "no trailer",
        ),
        (head(&"a: b\r\n".repeat(MOST_HEADERS + 1), ""), "more than 128"),
        (
            format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(LARGEST_HEAD)),
            "64 KiB",
        ),
    ];
    for (text, expected) in cases {
        let came = read(&Method::POST, &[text.as_bytes()]);
        let start: String = text.chars().take(80).collect();
        match came {
            Came::Malformed(why) => assert!(why.contains(expected), "{start:?}: {why}"),
            other => panic!("{start:?}: {other:?}"),
        }
    }
    // As many as there may be.
    let most = head(
        &format!("{}content-length: 0\r\n", "a: b\r\n".repeat(MOST_HEADERS - 1)),
        "",
    );
    assert_eq!(read(&Method::POST, &[most.as_bytes()]), answer(200, "", true, ""));
}

#[test]
fn an_answer_to_head_has_no_body() {
    let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(read(&Method::HEAD, &[text]), answer(200, "", true, ""));
}

#[test]
fn headers_are_found_whatever_their_case() {
    let mut buffer = Arrived::default();
    buffer.push(b"HTTP/1.1 200 OK\r\nMcp-Session-ID:  s1 \r\nX: 1\r\nx: 2\r\n\r\n");
    let head = Head::take(&mut buffer, &Method::POST, &mut 0).unwrap().unwrap();
    assert_eq!(head.get("mcp-session-id"), Some(&b"s1"[..]));
    assert_eq!(head.get("x"), Some(&b"1"[..]));
    assert_eq!(head.get("y"), None);
}

#[test]
fn a_request_as_it_is_written() {
    let headers = [(HeaderName::from_static("a"), HeaderValue::from_static("b"))];
    let head = |length| {
        let head = request_head(&Method::POST, b" /mcp HTTP/1.1\r\nhost: x\r\n", &headers, length);
        String::from_utf8(head).unwrap()
    };
    let start = "POST /mcp HTTP/1.1\r\nhost: x\r\na: b\r\n";
    assert_eq!(head(None), format!("{start}\r\n"));
    for length in [0, 7, 10, 65_536, usize::MAX] {
        assert_eq!(
            head(Some(length)),
            format!("{start}content-length: {length}\r\n\r\n")
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(9112), ..ProptestConfig::default() })]

    /// Whatever a server sends ends, takes no more than came, and is the same however it was cut.
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
    ) {
        let text = [head, &headers.concat(), "\r\n", &body.concat()].concat();
        let bytes = text.as_bytes();
        let whole = read(&Method::POST, &[bytes]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(&Method::POST, &pieces), whole);
    }

    /// RFC 9112, section 7.1, and nothing that another reader might take for something else.
    #[test]
    fn any_line_before_a_chunk(line in "[0-9aF;x \t\r\n\0+\"]{0,9}", length in prop::sample::select(vec![0, 1, 15, 16, 17])) {
        let text = format!("{}{line}\r\n", "0".repeat(length));
        let (first, _) = text.split_once('\n').unwrap();
        let expected = first.strip_suffix('\r').is_some_and(|first| {
            let rest = first.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            let n_digits = first.len() - rest.len();
            let extension = rest.trim_start_matches([' ', '\t']);
            let is_plain = |c: char| c == '\t' || !c.is_control();
            (1..=16).contains(&n_digits) && (extension.is_empty() || extension.starts_with(';')) && rest.chars().all(is_plain)
        });
        let text = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{text}");
        let came = read(&Method::POST, &[text.as_bytes()]);
        prop_assert_eq!(came != Came::Malformed("the size of a chunk is none"), expected, "{:?}", text);
    }
}
