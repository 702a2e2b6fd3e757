use mcp_wire::{Id, Message, Params, RpcError, code};
use proptest::prelude::*;
use raw_json::RawJson;

use crate::{deterministic, raw};

fn text(frame: Vec<u8>) -> String {
    String::from_utf8(frame).unwrap()
}

#[test]
fn frames_as_they_are_written() {
    let params = raw(r#"{ "a": 1e2 }"#);
    assert_eq!(
        text(mcp_wire::request(1, "tools/call", &Params::from(&params))),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{ "a": 1e2 }}"#
    );
    assert_eq!(
        text(mcp_wire::notification("a\"b", None)),
        r#"{"jsonrpc":"2.0","method":"a\"b"}"#
    );
    let id = Id::new(&raw(r#""x""#)).unwrap();
    assert_eq!(
        text(mcp_wire::result(&id, &params)),
        r#"{"jsonrpc":"2.0","id":"x","result":{ "a": 1e2 }}"#
    );
    let error = RpcError::new(code::METHOD_NOT_FOUND, "no \"x\"").with_data(raw("[1]"));
    assert_eq!(
        text(mcp_wire::error(None, &error)),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no \"x\"","data":[1]}}"#
    );
}

#[test]
fn a_payload_over_several_lines_becomes_one() {
    let frame = mcp_wire::request(1, "m", &raw("{\r\n\t\"a\": \"x\\ny\"\n}").into());
    let line = mcp_wire::into_line(frame);
    assert_eq!(
        &line[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{  \t\"a\": \"x\\ny\" }}\n"
    );
}

#[test]
fn an_event_is_one_line_of_data() {
    assert_eq!(
        mcp_wire::sse_event(b"{\n}", Some("message"), Some("7")),
        b"event: message\nid: 7\ndata: { }\n\n"
    );
    assert_eq!(
        mcp_wire::sse_event(b"{}", Some("a\nb"), Some("c\rd")),
        b"data: {}\n\n"
    );
}

proptest! {
    #![proptest_config(deterministic(256))]

    #[test]
    fn what_is_written_reads_back(id: u64, method in ".{1,40}", message in ".{0,60}", number: i32) {
        let params = raw(&format!(r#"{{"n":{number},"s":{}}}"#, RawJson::from(message.as_str())));
        let Ok(Message::Request(request)) = Message::from_client(mcp_wire::request(id, &method, &Params::from(&params))) else {
            return Err(TestCaseError::fail("no request"));
        };
        prop_assert_eq!(request.id, Id::from(id));
        prop_assert_eq!(request.method, method);
        prop_assert_eq!(request.params.as_ref(), Some(&params));
        let error = RpcError::new(number.into(), message).with_data(params);
        let Ok(Message::Response(response)) = Message::from_server(mcp_wire::error(Some(&RawJson::from(id)), &error)) else {
            return Err(TestCaseError::fail("no response"));
        };
        prop_assert_eq!(response.outcome, Err(error));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = mcp_wire::id_in_head(&bytes);
        drop(Message::from_client(bytes.clone()));
        drop(Message::from_server(bytes));
    }

    #[test]
    fn no_json_soup_makes_the_reader_panic(text in r#"[{}\[\]",:a-d\\0-9. ]{0,80}"#) {
        let _ = mcp_wire::id_in_head(text.as_bytes());
        drop(Message::from_client(text.clone()));
        drop(Message::from_server(format!(r#"{{"id":{text},"result":{text}}}"#)));
    }
}
