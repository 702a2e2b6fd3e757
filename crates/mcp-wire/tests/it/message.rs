use mcp_wire::{Id, Message, ParseErrorKind, code, id_in_head, integer_id, has_method_in_head};
use raw_json::RawJson;

use crate::raw;

fn client(text: &str) -> Result<Message, mcp_wire::ParseError> {
    Message::from_client(text.to_owned())
}

fn server(text: &str) -> Result<Message, mcp_wire::ParseError> {
    Message::from_server(text.to_owned())
}

#[test]
fn a_request_keeps_its_payload_and_its_id() {
    let text = r#" {"jsonrpc":"2.0","id":"a\u0062","method":"tools\/call","params":{ "n":1e2, "x":12345678901234567890123 }} "#;
    let Ok(Message::Request(request)) = client(text) else {
        panic!("not a request")
    };
    assert_eq!(request.id.as_raw().as_str(), r#""a\u0062""#);
    assert_eq!(request.method, "tools/call");
    assert_eq!(
        request.params.unwrap().as_str(),
        r#"{ "n":1e2, "x":12345678901234567890123 }"#
    );
}

#[test]
fn a_payload_shares_the_bytes_of_its_message() {
    let bytes = bytes::Bytes::from(
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":"bbbbbbbbbbbbbbbbbbbbbbbb"}}"#.to_owned(),
    );
    let range = bytes.as_ptr_range();
    let Ok(Message::Response(response)) = Message::from_server(bytes) else {
        panic!("not a response")
    };
    let result = response.outcome.unwrap();
    assert!(range.contains(&result.as_bytes().as_ptr()));
}

#[test]
fn what_clients_may_not_send() {
    let huge = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(1025));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"m","params":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let long = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{}"}}"#, "m".repeat(257));
    let twice = ParseErrorKind::DuplicateKey("a".to_owned());
    let cases: &[(&str, ParseErrorKind, Option<&str>)] = &[
        ("{", ParseErrorKind::Json, None),
        ("", ParseErrorKind::Json, None),
        ("[]", ParseErrorKind::Batch, None),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
            ParseErrorKind::Batch,
            None,
        ),
        ("7", ParseErrorKind::NotAnObject, None),
        (r#"{"id":1,"method":"m"}"#, ParseErrorKind::Version, Some("1")),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            ParseErrorKind::Version,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            ParseErrorKind::Id,
            Some("null"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
            ParseErrorKind::Id,
            Some("1.5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1e400,"method":"m"}"#,
            ParseErrorKind::Id,
            Some("1e400"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
            ParseErrorKind::Id,
            Some("{}"),
        ),
        (&huge, ParseErrorKind::Id, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
            ParseErrorKind::DuplicateKey("id".to_owned()),
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}"#,
            ParseErrorKind::LookAlikeKey("Method".to_owned()),
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"\u0061":2}}"#,
            twice,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            ParseErrorKind::Method,
            Some("1"),
        ),
        (&long, ParseErrorKind::Method, Some("3")),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
            ParseErrorKind::Params,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            ParseErrorKind::Params,
            Some("1"),
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, ParseErrorKind::Empty, Some("1")),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            ParseErrorKind::Ambiguous,
            Some("1"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
            ParseErrorKind::Ambiguous,
            Some("1"),
        ),
        (&deep, ParseErrorKind::TooDeep, Some("3")),
    ];
    for (text, kind, id) in cases {
        let error = client(text).expect_err(text);
        assert_eq!(error.kind(), kind, "{text}");
        if let Some(id) = id {
            assert_eq!(error.id().map(RawJson::as_str), Some(*id), "{text}");
        }
        let expected = if *kind == ParseErrorKind::Json {
            code::PARSE_ERROR
        } else {
            code::INVALID_REQUEST
        };
        assert_eq!(error.to_rpc_error().code, expected, "{text}");
    }
    assert_eq!(
        Message::from_client(&b"{\"a\":\"\xff\"}"[..]).unwrap_err().kind(),
        &ParseErrorKind::Json
    );
}

#[test]
fn only_an_id_that_a_request_may_have_is_answered_under() {
    let long = format!("\"{}\"", "x".repeat(1025));
    for (id, expected) in [
        ("7", Some("7")),
        (r#""a\u0062""#, Some(r#""a\u0062""#)),
        ("1.5", None),
        ("1e400", None),
        ("null", None),
        ("true", None),
        ("{}", None),
        ("[7]", None),
        (&long, None),
    ] {
        let error = client(&format!(r#"{{"id":{id},"method":"m"}}"#)).unwrap_err();
        assert_eq!(error.id().map(RawJson::as_str), Some(id));
        assert_eq!(error.answer_id().map(RawJson::as_str), expected, "{id}");
    }
}

#[test]
fn what_servers_may_be_loose_about() {
    let result = |text: &str| match server(text) {
        Ok(Message::Response(response)) => response,
        other => panic!("{text}: {other:?}"),
    };
    // No `jsonrpc`; null as a result; an error beside a null; a lone surrogate.
    assert_eq!(
        result(r#"{"id":1,"result":null}"#).outcome.unwrap().as_str(),
        "null"
    );
    assert!(result(r#"{"id":1,"result":{},"error":null}"#).outcome.is_ok());
    assert_eq!(
        result(r#"{"id":1,"result":null,"error":{"code":-1}}"#)
            .outcome
            .unwrap_err()
            .code,
        -1
    );
    assert_eq!(
        result(r#"{"id":1,"result":"\ud800"}"#).outcome.unwrap().as_str(),
        r#""\ud800""#
    );
    // An error that is about no call we know.
    for id in ["", r#""id":null,"#] {
        let response = result(&format!(
            r#"{{{id}"error":{{"code":-32700,"message":"Parse error","data":[1]}}}}"#
        ));
        assert_eq!(response.id, None);
        let error = response.outcome.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (-32700, "Parse error"));
        assert_eq!(error.data.unwrap().as_str(), "[1]");
    }
    // Errors of odd shapes.
    for (error, code, message) in [
        (r#""boom""#, code::INTERNAL_ERROR, "boom"),
        ("{}", code::INTERNAL_ERROR, "{}"),
        (r#"{"code":"-7","message":7}"#, -7, "7"),
        (r#"{"code":-7.0,"message":"x"}"#, -7, "x"),
        (r#"{"code":1e99,"message":"x"}"#, code::INTERNAL_ERROR, "x"),
    ] {
        let read = result(&format!(r#"{{"id":1,"error":{error}}}"#))
            .outcome
            .unwrap_err();
        assert_eq!((read.code, read.message.as_str()), (code, message), "{error}");
    }
    assert!(matches!(
        server(r#"{"method":"notifications/x","params":null}"#),
        Ok(Message::Notification(_))
    ));
    // The envelope itself stays strict, and tells which call it was about.
    for text in [
        r#"{"id":4,"result":1,"Result":2}"#,
        r#"{"id":4,"result":1,"result":2}"#,
        r#"{"id":4,"result":1,"error":2}"#,
    ] {
        assert_eq!(
            integer_id(server(text).unwrap_err().id().unwrap()),
            Some(4),
            "{text}"
        );
    }
}

#[test]
fn ids_that_were_echoed_in_another_form() {
    for (text, expected) in [
        ("7", Some(7)),
        (r#""7""#, Some(7)),
        ("7.0", Some(7)),
        (r#""7.0""#, Some(7)),
        ("7e0", Some(7)),
        ("70e-1", Some(7)),
        ("18446744073709551615", Some(u64::MAX)),
        ("7.5", None),
        ("-7", None),
        ("1e300", None),
        (r#""seven""#, None),
        (r#""inf""#, None),
        (r#""NaN""#, None),
        ("null", None),
        ("[7]", None),
    ] {
        assert_eq!(integer_id(&raw(text)), expected, "{text}");
    }
}

#[test]
fn ids_of_clients() {
    for (text, fits) in [
        ("0", true),
        ("-1", true),
        ("18446744073709551615", true),
        ("123456789012345678901", false),
        (r#""""#, true),
        ("1.0", false),
        ("true", false),
        ("[]", false),
    ] {
        assert_eq!(Id::new(&raw(text)).is_some(), fits, "{text}");
    }
}

#[test]
fn ids_in_what_is_left_of_a_message() {
    for (head, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"aaaa"#,
            Some(7),
        ),
        (r#"{ "id" : "7" , "result"#, Some(7)),
        (r#"{"result":{"id":1},"id":7}"#, Some(7)),
        (r#"{"x":"\"id\":3,","id":7,"#, Some(7)),
        // Not whole, not at the top, not ours.
        (r#"{"id":7"#, None),
        (r#"{"result":{"id":1,"#, None),
        (r#"[{"id":1},"#, None),
        (r#"{"id":"seven","#, None),
        (r#"}}{"id":1,"#, None),
        (r#"{"a\"#, None),
        ("", None),
    ] {
        assert_eq!(id_in_head(head.as_bytes()), expected, "{head}");
    }
    assert_eq!(id_in_head(b"{\"id\":7,\"result\":\"\xff\"}"), Some(7));
    for (head, has_method) in [
        (r#"{"id":7,"method":"sampling/createMessage","params":{"#, true),
        (r#"{"params":{"method":"x"},"method" : "#, true),
        (r#"{"id":7,"result":{"method":"x","#, false),
        (r#"{"id":"method","result":"#, false),
    ] {
        assert_eq!(has_method_in_head(head.as_bytes()), has_method, "{head}");
    }
}

#[test]
fn a_batch_is_taken_apart() {
    let texts = |text: &str| -> Result<Vec<String>, ParseErrorKind> {
        let messages = mcp_wire::split_batch(text.to_owned()).map_err(|error| error.kind().clone())?;
        let text = |message: bytes::Bytes| String::from_utf8(message.to_vec()).unwrap();
        Ok(messages.into_iter().map(text).collect())
    };
    // As they are written.
    assert_eq!(
        texts(" [ {\"a\" : 1e2},[] , 7]\n"),
        Ok(vec!["{\"a\" : 1e2}".to_owned(), "[]".to_owned(), "7".to_owned()])
    );
    assert_eq!(mcp_wire::batch_response(&["{}", "7"]), b"[{},7]");
    let of = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    assert_eq!(
        texts(&of(mcp_wire::MAX_BATCH)).unwrap().len(),
        mcp_wire::MAX_BATCH
    );
    for (text, kind) in [
        (of(0), ParseErrorKind::BatchLength),
        (of(mcp_wire::MAX_BATCH + 1), ParseErrorKind::BatchLength),
        ("{}".to_owned(), ParseErrorKind::NotAnObject),
        ("[1,]".to_owned(), ParseErrorKind::Json),
        (
            r#"[{"a":{"b":1,"b":2}}]"#.to_owned(),
            ParseErrorKind::DuplicateKey("b".to_owned()),
        ),
    ] {
        assert_eq!(texts(&text), Err(kind), "{text}");
    }
    // A server's is bounded alike, and what its messages hold is its own affair.
    let odd = r#"[{"a":{"b":1,"b":2}}]"#;
    assert_eq!(
        mcp_wire::split_server_batch(odd),
        Ok(vec![bytes::Bytes::from(&odd[1..odd.len() - 1])])
    );
    for refused in [of(0), of(mcp_wire::MAX_BATCH + 1)] {
        let error = mcp_wire::split_server_batch(refused).unwrap_err();
        assert_eq!(error.kind(), &ParseErrorKind::BatchLength);
    }
}

#[test]
fn members_of_an_error_that_nobody_defines_are_kept_and_bounded() {
    let text = r#"{"code":-1,"x":1.50,"message":"m","retryAfter":{"a":1e2},"data":null,"x":2,"Code":3}"#;
    let error = mcp_wire::RpcError::from_raw(&raw_json::RawJson::parse(text.to_owned()).unwrap());
    let written = String::from_utf8(mcp_wire::error(None, &error)).unwrap();
    let expected =
        r#""error":{"code":-1,"message":"m","data":null,"x":1.50,"retryAfter":{"a":1e2},"Code":3}}"#;
    assert!(written.ends_with(expected), "{written}");

    let many: Vec<String> = (0..100).map(|n| format!(r#""m{n}":{n}"#)).collect();
    let many = raw_json::RawJson::parse(format!("{{{}}}", many.join(","))).unwrap();
    assert_eq!(mcp_wire::RpcError::from_raw(&many).more.len(), 16);
    let long = format!(r#"{{"a":1,"long":"{}","b":2}}"#, "x".repeat(20_000));
    let long = mcp_wire::RpcError::from_raw(&raw_json::RawJson::parse(long).unwrap());
    let keys: Vec<&str> = long.more.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a", "b"]);
}
