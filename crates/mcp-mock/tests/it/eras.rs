//! Servers of one era, and the opening of connections.

use mcp_client::{ClientErrorKind, EraChoice};
use mcp_mock::{MockReply, MockServer, MockTool};
use mcp_wire::{Era, RpcError};
use serde_json::json;

use crate::support::{Client, Transport, raw, speaking};

#[tokio::test]
async fn a_server_of_one_era_speaks_no_other() {
    for transport in [Transport::Stdio, Transport::Http] {
        for (era, spoken, other) in [
            (Era::Legacy, EraChoice::Legacy, EraChoice::Modern),
            (Era::Modern, EraChoice::Modern, EraChoice::Legacy),
        ] {
            let server = MockServer::builder().era(era).tool(MockTool::new("echo")).build();
            for choice in [spoken, EraChoice::Auto, EraChoice::Newest] {
                let client = Client::open(&server, transport, speaking(choice)).await.unwrap();
                assert_eq!(client.connection.server().era(), era, "{transport:?} {choice:?}");
                assert_eq!(client.says("echo", json!({})).await, "{}");
            }
            let refused = Client::open(&server, transport, speaking(other)).await;
            assert!(refused.is_err(), "{transport:?} {other:?}");
        }
    }
}

#[tokio::test]
async fn the_opening_can_be_scripted() {
    for transport in [Transport::Stdio, Transport::Http] {
        let server = MockServer::builder()
            .on("initialize", MockReply::error(RpcError::new(-32000, "no license")))
            .on(
                "initialize",
                MockReply::result(raw(
                    r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"other","version":"7"}}"#,
                )),
            )
            .build();
        let refused = Client::open(&server, transport, speaking(EraChoice::Legacy))
            .await
            .err()
            .unwrap();
        assert!(
            matches!(refused.kind(), ClientErrorKind::StartFailed { reason, .. } if reason.contains("no license")),
            "{refused:?}"
        );
        let client = Client::open(&server, transport, speaking(EraChoice::Legacy))
            .await
            .unwrap();
        assert_eq!(client.connection.server().name().unwrap(), "other");
        assert_eq!(client.connection.server().revision.as_str(), "2025-06-18");
    }
}
