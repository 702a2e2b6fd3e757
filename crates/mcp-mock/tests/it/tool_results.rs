//! Results of tools as the client reads them, over all transports and in both eras.

use mcp_client::{ClientErrorKind, Handlers, RequestOptions, ToolResult};
use mcp_mock::{MockReply, MockServer, MockTool};
use raw_json::RawJson;
use serde_json::json;

use crate::support::{Client, WAYS, raw, soon, speaking};

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Forecast {
    celsius: f64,
}

fn server() -> MockServer {
    let schema = raw(r#"{"type":"object","properties":{"city":{"type":"string","default":"Riga"}}}"#);
    let typed = MockReply::structured(raw(r#"{"celsius":21.50}"#));
    let failed = raw(r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#);
    let asking = MockReply::template("{{ $answers.where.content.city }}").elicit("where", "Where?", &schema);
    MockServer::builder()
        .tool(MockTool::new("typed").reply(typed))
        .tool(MockTool::new("failed").reply(MockReply::result(failed)))
        .tool(MockTool::new("asking").reply(asking))
        .build()
}

async fn call(client: &Client, tool: &str) -> ToolResult {
    let arguments = json!({});
    let called = client
        .connection
        .call_tool(tool, &arguments, RequestOptions::default());
    soon(called).await.unwrap()
}

#[tokio::test]
async fn results_are_alike_in_both_eras() {
    let accept =
        |content| RawJson::from_members(&[("action", RawJson::from("accept")), ("content", content)]);
    for (transport, era) in WAYS {
        let server = server();
        let handlers = Handlers::new().elicitation(RawJson::object(), move |asked| async move {
            Ok(accept(asked.defaults()))
        });
        let options = speaking(era).handlers(handlers);
        let client = Client::open(&server, transport, options).await.unwrap();
        let about = format!("{transport:?} {era:?}");

        let typed = call(&client, "typed").await;
        let forecast = typed.structured::<Forecast>().unwrap();
        assert_eq!(forecast, Forecast { celsius: 21.5 }, "{about}");
        assert!(typed.raw().as_str().contains("21.50"), "{about}: {typed:?}");

        let failed = call(&client, "failed").await;
        assert!(failed.is_error(), "{about}");
        let error = failed.structured::<Forecast>().unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::ToolFailed(text) if text == "no such city"),
            "{about}: {error:?}"
        );

        assert_eq!(call(&client, "asking").await.text(), "Riga", "{about}");
    }
}
