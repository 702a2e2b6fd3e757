//! The test that the page on mock servers shows.

use std::time::Duration;

use mcp_client::{Connection, ConnectionOptions, RequestOptions};
use mcp_mock::{MockReply, MockServer, MockTool, RawJson};

// ANCHOR: guide
#[tokio::test(start_paused = true)]
async fn a_slow_forecast_is_waited_for() {
    let slow = MockReply::text("sunny").delay(Duration::from_secs(5));
    let server = MockServer::builder()
        .tool(MockTool::new("forecast").reply(slow))
        .build();
    // The client under test; one that speaks HTTP gets `server.http().await?.url()`.
    let (reader, writer) = tokio::io::split(server.connect());
    let client = Connection::from_streams(reader, writer, ConnectionOptions::default())
        .await
        .unwrap();
    let call = RawJson::parse(r#"{"name":"forecast","arguments":{"city":"Riga"}}"#).unwrap();
    let result = client
        .request("tools/call", Some(call), RequestOptions::default())
        .await
        .unwrap();
    assert!(result.as_str().contains("sunny"));

    let limit = Duration::from_secs(10);
    let calls = server.wait_for_calls_within("forecast", 1, limit).await.unwrap();
    assert_eq!(calls[0].arguments().as_str(), r#"{"city":"Riga"}"#);
    server.assert_called("forecast", 1);
}
// ANCHOR_END: guide
