//! Questions to the client, in both eras.

use mcp_client::{ClientErrorKind, Handlers, RequestOptions};
use mcp_mock::{Misbehavior, MockReply, MockServer, MockTool};
use raw_json::RawJson;
use serde_json::json;

use crate::support::{Client, Transport, WAYS, raw, soon, speaking};

fn curious() -> MockServer {
    let schema = raw(r#"{"type":"object","properties":{"city":{"type":"string","default":"Riga"}}}"#);
    MockServer::builder()
        .tool(
            MockTool::new("plan")
                .reply(MockReply::text("the first call asks nothing"))
                .reply(
                    MockReply::template(
                        "{{ what }} in {{ $answers.where.content.city }} from {{ $answers.roots.roots.0.uri }}, call {{ $call }}",
                    )
                    .elicit("where", "Where to?", &schema)
                    .add_tool(MockTool::new("planned"))
                    .ask("roots", "roots/list", None),
                ),
        )
        .build()
}

#[tokio::test]
async fn what_the_client_gives_is_put_into_the_answer() {
    for (transport, era) in WAYS {
        let options = speaking(era).handlers(
            Handlers::new()
                .elicitation(RawJson::object(), |asked| async move {
                    let content = asked.defaults();
                    Ok(RawJson::object()
                        .with_members(&[("action", "accept".into()), ("content", content)])
                        .unwrap())
                })
                .roots(RawJson::object(), |_| async {
                    Ok(raw(r#"{"roots":[{"uri":"file:///home"}]}"#))
                }),
        );
        let server = curious();
        let client = Client::open(&server, transport, options).await.unwrap();
        assert_eq!(
            client.says("plan", json!({})).await,
            "the first call asks nothing"
        );
        for call in 2..4 {
            let said = client.says("plan", json!({"what": "lunch"})).await;
            let expected = format!("lunch in Riga from file:///home, call {call}");
            assert_eq!(said, expected, "{transport:?} {era:?}");
        }
        let rounds = if era == mcp_client::EraChoice::Modern {
            3
        } else {
            1
        };
        assert_eq!(server.calls("plan").len(), 1 + 2 * rounds);
    }
}

#[tokio::test]
async fn a_client_that_declares_nothing_is_asked_nothing() {
    for (transport, era) in WAYS {
        let server = curious();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        client.call("plan", json!({})).await.unwrap();
        let error = client.call("plan", json!({})).await.unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Rpc(error) if error.message.contains("elicitation")),
            "{transport:?} {era:?} {error:?}"
        );
    }
}

#[tokio::test]
async fn questions_side_by_side_are_asked_in_one_round() {
    let server = MockServer::builder()
        .tool(
            MockTool::new("ask").reply(
                MockReply::template("{{ $answers.a.roots.0.name }} {{ $answers.b.roots.0.name }}")
                    .ask("a", "roots/list", None)
                    .ask("b", "roots/list", None),
            ),
        )
        .build();
    for (transport, era) in WAYS {
        let options = speaking(era).handlers(Handlers::new().roots(RawJson::object(), |_| async {
            Ok(raw(r#"{"roots":[{"uri":"file:///home","name":"home"}]}"#))
        }));
        let client = Client::open(&server, transport, options).await.unwrap();
        server.clear();
        assert_eq!(client.says("ask", json!({})).await, "home home");
        let rounds = if era == mcp_client::EraChoice::Modern {
            2
        } else {
            1
        };
        assert_eq!(server.calls("ask").len(), rounds);
    }
}

#[tokio::test]
async fn the_answer_misbehaves_and_the_question_does_not() {
    for (transport, era) in WAYS {
        let server = MockServer::builder()
            .tool(
                MockTool::new("ask").reply(
                    MockReply::text("unheard")
                        .ask("a", "roots/list", None)
                        .misbehave(Misbehavior::Close),
                ),
            )
            .build();
        let options = speaking(era)
            .handlers(Handlers::new().roots(RawJson::object(), |_| async { Ok(raw(r#"{"roots":[]}"#)) }));
        let client = Client::open(&server, transport, options).await.unwrap();
        let connection = client.connection.clone();
        let call = tokio::spawn(async move {
            let params = Some(raw(r#"{"name":"ask"}"#));
            connection
                .request_with_input("tools/call", params, RequestOptions::default())
                .await
        });
        let rounds = if era == mcp_client::EraChoice::Modern {
            2
        } else {
            1
        };
        soon(server.wait_for_calls("ask", rounds)).await;
        let result = soon(call).await.unwrap();
        // A legacy client resumes a stream that broke off.
        let comes_back = (transport, era) == (Transport::Http, mcp_client::EraChoice::Legacy);
        assert_eq!(result.is_ok(), comes_back, "{transport:?} {era:?} {result:?}");
    }
}
