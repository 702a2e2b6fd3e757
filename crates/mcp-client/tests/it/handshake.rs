//! Tests of the handshake and of lists.

use mcp_client::{
    ClientError, ClientErrorKind, Connection, ConnectionOptions, EraChoice, ListTruncation, PageLimits,
};
use mcp_wire::Era;
use serde_json::Value;

use crate::support::peer::{Peer, connect, pair, raw, within};

async fn open(era: EraChoice, script: impl AsyncFnOnce(&mut Peer)) -> Result<Connection, ClientError> {
    let (ours, mut peer) = pair(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let options = ConnectionOptions::default().era(era);
    let (connection, ()) = tokio::join!(Connection::from_streams(reader, writer, options), async {
        script(&mut peer).await;
        // Stays until the end of the test.
        std::mem::drop(tokio::spawn(async move {
            while peer.next_or_end().await.is_some() {}
        }));
    });
    connection
}

#[tokio::test(start_paused = true)]
async fn what_initialize_says() {
    let connection = open(EraChoice::Legacy, async |peer: &mut Peer| {
        let message = peer.next().await;
        assert_eq!(message["method"], "initialize");
        assert_eq!(message["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(message["params"]["capabilities"], serde_json::json!({}));
        assert_eq!(message["params"]["clientInfo"]["name"], "mcp-client");
        let id = message["id"].as_u64().unwrap();
        peer.answer(id, r#"{"protocolVersion":"2024-11-05","capabilities":{"x":1e2}}"#)
            .await;
        peer.notification("notifications/initialized").await;
    })
    .await
    .unwrap();
    let server = connection.server();
    assert_eq!(
        (server.revision.as_str(), server.era()),
        ("2024-11-05", Era::Legacy)
    );
    assert_eq!(server.capabilities.as_str(), r#"{"x":1e2}"#);
    assert!(server.has_capability("x") && !server.has_capability("tools"));
    assert_eq!((server.name(), server.instructions.as_ref()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn openings_that_fail() {
    for (answer, expected) in [
        (
            r#""result":{"protocolVersion":"1999-01-01","capabilities":{}}"#,
            "revision `1999-01-01`",
        ),
        (
            r#""result":{"protocolVersion":"2026-07-28","capabilities":{}}"#,
            "revision `2026-07-28`",
        ),
        (r#""result":{}"#, "no `protocolVersion`"),
        (r#""result":null"#, "no `protocolVersion`"),
        (r#""error":{"code":-32000,"message":"no license"}"#, "no license"),
    ] {
        let error = open(EraChoice::Legacy, async |peer: &mut Peer| {
            let id = peer.request("initialize").await;
            peer.send(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#))
                .await;
        })
        .await
        .unwrap_err();
        let ClientErrorKind::StartFailed { reason, .. } = error.kind() else {
            panic!("{error}")
        };
        assert!(reason.contains(expected), "{reason}");
        assert!(!error.was_sent());
    }
    let silent = open(EraChoice::Auto, async |peer: &mut Peer| {
        peer.request("initialize").await;
    });
    assert!(
        silent
            .await
            .unwrap_err()
            .to_string()
            .contains("no answer within 20 s")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_of_the_other_era_is_found_out() {
    let (ours, mut peer) = pair(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let using = tokio::spawn(async move {
        let connection = Connection::from_streams(reader, writer, ConnectionOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (connection.server().era(), connection.server().name().as_deref()),
            (Era::Modern, Some("m"))
        );
        let params = raw(r#"{"name":"t","_meta":{"mine":1}}"#);
        connection
            .request("tools/call", Some(params), within(5))
            .await
            .unwrap()
    });
    let id = peer.request("initialize").await;
    peer.send(format!(
        r#"{{"id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#
    ))
    .await;
    let message = peer.next().await;
    assert_eq!(message["method"], "server/discover");
    let meta = &message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        serde_json::json!({})
    );
    let result = r#"{"supportedVersions":["2099-01-01","2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"2"}}}"#;
    peer.answer(message["id"].as_u64().unwrap(), result).await;
    // Every request carries its own metadata in addition to the caller's; there is no `initialized`.
    let call = peer.next().await;
    assert_eq!(call["method"], "tools/call");
    assert_eq!(
        call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(call["params"]["_meta"]["mine"], 1);
    peer.answer(call["id"].as_u64().unwrap(), r#"{"resultType":"complete"}"#)
        .await;
    assert_eq!(using.await.unwrap().as_str(), r#"{"resultType":"complete"}"#);
}

#[tokio::test(start_paused = true)]
async fn lists_are_followed_to_their_end() {
    let (connection, mut peer) = connect().await;
    let listing = tokio::spawn({
        let connection = connection.clone();
        async move { connection.list_tools().await }
    });
    let first = peer.next().await;
    assert_eq!(first["params"], Value::Null);
    let id = first["id"].as_u64().unwrap();
    peer.answer(
        id,
        r#"{"tools":[ {"name":"a","x":1e2} , {"name":"b"}],"nextCursor":""}"#,
    )
    .await;
    let second = peer.next().await;
    assert_eq!(second["params"]["cursor"], "");
    peer.answer(second["id"].as_u64().unwrap(), r#"{"tools":[],"nextCursor":"x"}"#)
        .await;
    let third = peer.next().await;
    assert_eq!(third["params"]["cursor"], "x");
    peer.answer(
        third["id"].as_u64().unwrap(),
        r#"{"tools":[{"name":"c","t":"\ud800"}],"nextCursor":null}"#,
    )
    .await;
    let tools = listing.await.unwrap().unwrap();
    let texts: Vec<&str> = tools.iter().map(raw_json::RawJson::as_str).collect();
    assert_eq!(
        texts,
        [
            r#"{"name":"a","x":1e2}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"c","t":"\ud800"}"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn lists_without_end() {
    let limits = PageLimits::default().pages(5).entries(20).bytes(1000);
    let long = format!(r#"{{"tools":["{}"]}}"#, "x".repeat(1000));
    let many = format!(r#"{{"tools":[{}1]}}"#, "1,".repeat(20));
    let padded = format!(r#"{{"tools":[],"nextCursor":"N","_meta":"{}"}}"#, "x".repeat(300));
    for (page, expected) in [
        (r#"{"tools":[1],"nextCursor":"same"}"#, "repeats a cursor"),
        (r#"{"tools":[1],"nextCursor":"N"}"#, "has more pages than allowed"),
        (long.as_str(), "is longer than allowed"),
        (many.as_str(), "is longer than allowed"),
        (padded.as_str(), "is longer than allowed"),
        (r#"{"tools":{}}"#, "has no list `tools`"),
        ("null", "has no list `tools`"),
    ] {
        let (connection, mut peer) = connect().await;
        let listing = tokio::spawn(async move { connection.list("tools/list", "tools", limits).await });
        let mut count = 0;
        while let Some(message) = peer.next_or_end().await {
            count += 1;
            peer.answer(
                message["id"].as_u64().unwrap(),
                &page.replace('N', &count.to_string()),
            )
            .await;
        }
        let error = listing.await.unwrap().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// A truncated list keeps the entries read before, and no further page is fetched.
#[tokio::test(start_paused = true)]
async fn lists_are_read_as_far_as_allowed() {
    let limits = PageLimits::default().pages(3).entries(5).bytes(300);
    let long = format!(r#"{{"tools":[1,2,"{}",3],"nextCursor":"N"}}"#, "x".repeat(300));
    let padded = format!(
        r#"{{"tools":[1],"nextCursor":"N","_meta":"{}"}}"#,
        "x".repeat(300)
    );
    for (page, cut, n_entries, n_pages) in [
        (
            r#"{"tools":[1,2],"nextCursor":"same"}"#,
            Some(ListTruncation::RepeatedCursor),
            4,
            2,
        ),
        (
            r#"{"tools":[1],"nextCursor":"N"}"#,
            Some(ListTruncation::Pages),
            3,
            3,
        ),
        (
            r#"{"tools":[1,2,3],"nextCursor":"N"}"#,
            Some(ListTruncation::Entries),
            5,
            2,
        ),
        (
            r#"{"tools":[1,2,3,4,5,6,7]}"#,
            Some(ListTruncation::Entries),
            5,
            1,
        ),
        (long.as_str(), Some(ListTruncation::Bytes), 2, 1),
        (padded.as_str(), Some(ListTruncation::Bytes), 1, 1),
        (r#"{"tools":[1,2,3,4,5]}"#, None, 5, 1),
    ] {
        let (connection, mut peer) = connect().await;
        let listing =
            tokio::spawn(async move { connection.list_partial("tools/list", "tools", limits).await });
        let mut count = 0;
        while let Some(message) = peer.next_or_end().await {
            count += 1;
            let page = page.replace('N', &count.to_string());
            peer.answer(message["id"].as_u64().unwrap(), &page).await;
        }
        let listed = listing.await.unwrap().unwrap();
        assert_eq!(
            (listed.truncation, listed.entries.len(), count),
            (cut, n_entries, n_pages),
            "{page}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn payloads_over_several_lines_are_sent_as_one() {
    let (connection, mut peer) = connect().await;
    let params = raw("{\n  \"name\": \"t\"\r\n}");
    let (result, ()) = tokio::join!(
        connection.request("tools/call", Some(params), within(5)),
        peer.serve_one()
    );
    result.unwrap();
}

const DISCOVERED: &str = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
const METHOD_NOT_FOUND: &str = r#""error":{"code":-32601,"message":"Method not found"}"#;
const INVALID_PARAMS: &str = r#""error":{"code":-32602,"message":"Invalid request parameters"}"#;

/// Responses to both openings (`None` is silence), and the era that is then spoken.
#[tokio::test(start_paused = true)]
async fn the_newest_era_that_a_stdio_server_speaks() {
    let initialized: &'static str =
        Box::leak(format!(r#""result":{}"#, crate::support::peer::OPENED).into_boxed_str());
    let opened = Some(initialized);
    let wrong_era = Some(r#""error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"]}}"#);
    let too_new = Some(r#""error":{"code":-32022,"message":"m","data":{"supported":["2099-01-01"]}}"#);
    for (discover, initialize, late, spoken) in [
        (Some(DISCOVERED), None, false, Some(Era::Modern)),
        (Some(METHOD_NOT_FOUND), opened, false, Some(Era::Legacy)),
        (Some(INVALID_PARAMS), opened, false, Some(Era::Legacy)),
        (Some(r#""result":{}"#), opened, false, Some(Era::Legacy)),
        (too_new, opened, false, None),
        // A legacy server that ignores unknown methods, and slow servers of each era.
        (None, opened, false, Some(Era::Legacy)),
        (Some(DISCOVERED), wrong_era, true, Some(Era::Modern)),
        (Some(METHOD_NOT_FOUND), opened, true, Some(Era::Legacy)),
        (None, None, false, None),
    ] {
        let (ours, mut peer) = pair(64 * 1024);
        let (reader, writer) = tokio::io::split(ours);
        let options = ConnectionOptions::default().era(EraChoice::Newest);
        let serving = tokio::spawn(async move {
            if late {
                tokio::time::sleep(std::time::Duration::from_secs(6)).await;
            }
            while let Some(message) = peer.next_or_end().await {
                let answer = match message["method"].as_str() {
                    Some("server/discover") => discover.map(str::to_owned),
                    Some("initialize") => initialize.map(str::to_owned),
                    Some(other) => {
                        assert_eq!(other, "notifications/initialized");
                        None
                    }
                    None => panic!("{message}"),
                };
                if let Some(answer) = answer {
                    peer.send(format!(r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#, message["id"]))
                        .await;
                }
            }
        });
        let connection = Connection::from_streams(reader, writer, options).await;
        let era = connection
            .as_ref()
            .ok()
            .map(|connection| connection.server().era());
        assert_eq!(era, spoken, "{discover:?} {initialize:?} {late}");
        drop(connection);
        serving.await.unwrap();
    }
}
