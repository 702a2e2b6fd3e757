//! The reader of servers' messages, in builds with the strict reader and without it.

use mcp_wire::{Message, ParseErrorKind};

fn read(text: &str) -> Result<Message, ParseErrorKind> {
    Message::from_server(text.to_owned()).map_err(|error| error.kind().clone())
}

#[test]
fn a_look_alike_of_a_key_of_the_message_is_refused_in_every_build() {
    for key in ["Id", "RESULT", "r\u{435}sult", "id\u{200b}"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"{key}":2}}"#);
        let expected = ParseErrorKind::LookAlikeKey(key.to_owned());
        assert_eq!(read(&text), Err(expected), "{key}");
    }
}

#[test]
fn a_key_that_looks_like_no_other_is_passed_over_in_every_build() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"\u0435":1},"vendor":2}"#;
    assert!(matches!(read(text), Ok(Message::Response(response)) if response.outcome.is_ok()));
}

#[test]
fn an_unusual_key_is_passed_over_only_if_it_can_be_looked_up() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{},"größe":2}"#;
    assert_eq!(read(text).is_ok(), cfg!(feature = "strict"));
}
