//! A server that a program starts with one call, and the arguments and the progress of its tools.

use std::net::SocketAddr;

use mcp_server::{ServerIdentity, ServerListener, ToolCall, ToolDefinition, Tools};

use crate::support::{Connection, Head, META, soon};

fn tools() -> Tools {
    Tools::new(ServerIdentity::new("desk", "1.0.0"))
        .tool(ToolDefinition::new("count"), async |call: ToolCall| {
            let to: u32 = call.argument("to")?;
            let unit: Option<String> = call.argument("unit")?;
            (1..=to).for_each(|step| call.report_progress(step, to));
            Ok(format!("{to} {}", unit.as_deref().unwrap_or("steps")))
        })
        .unwrap()
}

fn call(arguments: &str) -> String {
    let meta = META.replacen('{', r#"{"progressToken":7,"#, 1);
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"count","arguments":{arguments},{meta}}}}}"#
    )
}

#[tokio::test]
async fn a_listener_serves_over_http_at_the_url_that_it_shows() {
    let listener = ServerListener::bind(Some("127.0.0.1:0")).await.unwrap();
    let url = listener.to_string();
    let place = url
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix("/mcp"));
    let address: SocketAddr = place.unwrap().parse().unwrap();
    let served = tokio::spawn(listener.serve(tools()));
    for (arguments, expected) in [
        (
            r#"{"to":2}"#,
            vec![
                r#""progress":1,"total":2"#,
                r#""progress":2,"total":2"#,
                "2 steps",
            ],
        ),
        (r#"{"to":0,"unit":"miles"}"#, vec!["0 miles"]),
        (
            r#"{"unit":"miles"}"#,
            vec!["invalid arguments: missing field `to`"],
        ),
        (
            r#"{"to":1,"unit":7}"#,
            vec!["invalid arguments: `/unit`: invalid type: integer `7`, expected a string"],
        ),
    ] {
        let mut connection = Connection::open(address).await;
        let head = Head::modern("tools/call").with("Mcp-Name", "count");
        connection.send(&head, &call(arguments)).await;
        let received = soon(connection.receive()).await;
        let mut rest = &*received.body;
        for text in expected {
            let at = rest.find(text);
            assert!(at.is_some(), "`{text}` in {}", received.body);
            rest = &rest[at.unwrap() + text.len()..];
        }
    }
    served.abort();
}

#[tokio::test]
async fn a_listener_without_an_address_is_stdio() {
    let listener = ServerListener::bind(None::<&str>).await.unwrap();
    assert_eq!(listener.to_string(), "stdio");
    assert_eq!(ServerListener::stdio().to_string(), "stdio");
    assert!(ServerListener::bind(Some("127.0.0.1:70000")).await.is_err());
}
