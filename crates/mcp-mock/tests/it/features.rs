//! Scripted features, over both transports and in both eras.

use std::time::Duration;

use mcp_mock::{MockPrompt, MockReply, MockResource, MockServer, MockTool};
use mcp_wire::{RpcError, code};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{Client, Transport, WAYS, raw, speaking, text};

fn everything() -> MockServer {
    MockServer::builder()
        .tool(MockTool::new("echo").description("Gives back what it gets"))
        .tool(MockTool::new("greet").reply(MockReply::template(
            "Hello, {{ name }} of {{ place.city }}! #{{ $call }}{{ nothing }}",
        )))
        .tool(MockTool::new("exact").reply(MockReply::result(raw(
            r#"{"content":[],"n":12345678901234567890123,"rate":1e2}"#,
        ))))
        .tool(MockTool::new("measure").reply(MockReply::structured(raw(r#"{"value":1e2}"#))))
        .prompt(
            MockPrompt::new("ask")
                .argument("city", true)
                .complete("city", ["Riga", "Rome", "Oslo"])
                .reply(MockReply::template("What of {{ city }}?")),
        )
        .resource(MockResource::new("mock://notes").mime_type("text/plain"))
        .resource(
            MockResource::template("mock://{city}/{year}.txt")
                .reply(MockReply::template("{{ city }} in {{ year }}")),
        )
        .build()
}

#[tokio::test]
async fn every_feature_every_way() {
    for (transport, era) in WAYS {
        let server = everything();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        let way = format!("{transport:?} {era:?}");

        let tools = client.connection.list_tools().await.unwrap();
        let names: Vec<String> = tools
            .iter()
            .map(|tool| tool.get("name").unwrap().string().unwrap())
            .collect();
        assert_eq!(names, ["echo", "greet", "exact", "measure"], "{way}");
        assert_eq!(
            client.says("echo", json!({"a": [1]})).await,
            r#"{"a":[1]}"#,
            "{way}"
        );
        let said = client
            .says("greet", json!({"name": "Ada", "place": {"city": "Riga"}}))
            .await;
        assert_eq!(said, "Hello, Ada of Riga! #1", "{way}");
        let exact = raw(r#"{"name":"exact"}"#);
        let exact = client
            .connection
            .request("tools/call", Some(exact), Default::default())
            .await
            .unwrap();
        assert!(
            exact
                .as_str()
                .ends_with(r#""content":[],"n":12345678901234567890123,"rate":1e2}"#),
            "{exact}"
        );
        let measured = client.call("measure", json!({})).await.unwrap();
        assert_eq!(measured["structuredContent"], json!({"value": 100.0}), "{way}");
        assert_eq!(text(&measured), r#"{"value":1e2}"#, "{way}");

        let prompt = client
            .request(
                "prompts/get",
                json!({"name": "ask", "arguments": {"city": "Rome"}}),
            )
            .await
            .unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "What of Rome?", "{way}");
        let notes = client
            .request("resources/read", json!({"uri": "mock://notes"}))
            .await
            .unwrap();
        assert_eq!(
            notes["contents"],
            json!([{"uri": "mock://notes", "text": "mock://notes", "mimeType": "text/plain"}]),
            "{way}"
        );
        let read = client
            .request("resources/read", json!({"uri": "mock://Riga/1984.txt"}))
            .await
            .unwrap();
        assert_eq!(read["contents"][0]["text"], "Riga in 1984", "{way}");
        assert_eq!(
            client.connection.list_resource_templates().await.unwrap().len(),
            1,
            "{way}"
        );
        let completion =
            json!({"ref": {"type": "ref/prompt", "name": "ask"}, "argument": {"name": "city", "value": "R"}});
        let completion = client.request("completion/complete", completion).await.unwrap();
        assert_eq!(
            completion["completion"]["values"],
            json!(["Riga", "Rome"]),
            "{way}"
        );

        for (method, params) in [
            ("tools/call", json!({"name": "nothing"})),
            ("prompts/get", json!({"name": "nothing"})),
            ("resources/read", json!({"uri": "mock://nothing"})),
        ] {
            let error = client.request(method, params).await.unwrap_err();
            assert_eq!(
                error.as_rpc().unwrap().code,
                code::INVALID_PARAMS,
                "{way} {method}"
            );
        }
        assert_eq!(
            server.calls("greet")[0].arguments().as_str(),
            r#"{"name":"Ada","place":{"city":"Riga"}}"#
        );
    }
}

#[tokio::test]
async fn replies_come_in_order_and_the_last_one_stays() {
    for (transport, era) in WAYS {
        let server = MockServer::builder()
            .tool(
                MockTool::new("flaky")
                    .reply(MockReply::error(RpcError::new(-32000, "busy")))
                    .reply(MockReply::failure("not yet"))
                    .reply(MockReply::text("there you are")),
            )
            .build();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        let error = client.call("flaky", json!({})).await.unwrap_err();
        assert_eq!(error.as_rpc(), Some(&RpcError::new(-32000, "busy")));
        let failed = client.call("flaky", json!({})).await.unwrap();
        assert_eq!(
            (&failed["isError"], text(&failed).as_str()),
            (&json!(true), "not yet")
        );
        for _ in 0..2 {
            assert_eq!(client.says("flaky", json!({})).await, "there you are");
        }
        server.set_replies("flaky", [MockReply::text("new"), MockReply::text("newer")]);
        server.set_replies("other", [MockReply::text("added")]);
        assert_eq!(client.says("other", json!({})).await, "added");
        assert_eq!(client.says("flaky", json!({})).await, "new");
        assert_eq!(client.says("flaky", json!({})).await, "newer");
        assert_eq!(server.calls("flaky").len(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn delays_cost_nothing_on_a_paused_clock() {
    let hour = Duration::from_secs(3600);
    let server = MockServer::builder()
        .tool(MockTool::new("slow").reply(MockReply::text("at last").delay(hour)))
        .tool(MockTool::new("fast").reply(MockReply::text("at once")))
        .on("ping", MockReply::usual().delay(hour))
        .build();
    // The limits of the connection must not apply.
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = crate::broken_stdio::Lines::new(reader, writer);
    let start = Instant::now();
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    client
        .send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}"#)
        .await;
    client
        .send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fast"}}"#)
        .await;
    // A delayed answer does not delay others.
    assert!(client.line().await.unwrap().contains("at once"));
    assert!(start.elapsed() < hour);
    let mut later = [client.line().await.unwrap(), client.line().await.unwrap()];
    later.sort();
    assert!(
        later[0].contains(r#""id":1,"result":{}"#) && later[1].contains("at last"),
        "{later:?}"
    );
    assert!(start.elapsed() >= hour);
}

#[tokio::test]
async fn lists_have_pages() {
    for (transport, era) in WAYS {
        let mut builder = MockServer::builder().page_size(2);
        for n in 0..5 {
            builder = builder.tool(MockTool::new(format!("tool{n}")));
        }
        let server = builder.build();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        assert_eq!(client.connection.list_tools().await.unwrap().len(), 5);
        assert_eq!(server.requests("tools/list").len(), 3);
    }
}

#[tokio::test]
async fn what_a_method_is_answered_with_comes_before_what_a_tool_says() {
    let server = MockServer::builder()
        .tool(MockTool::new("a").reply(MockReply::text("a")))
        .tool(MockTool::new("b").reply(MockReply::text("b")))
        .on("tools/call", MockReply::failure("the first call fails"))
        .on("tools/call", MockReply::usual())
        .build();
    let client = Client::open(&server, Transport::Http, speaking(Default::default()))
        .await
        .unwrap();
    assert_eq!(client.says("b", json!({})).await, "the first call fails");
    assert_eq!(client.says("a", json!({})).await, "a");
    assert_eq!(client.says("b", json!({})).await, "b");
}

#[tokio::test]
async fn a_client_of_the_library_is_served_in_the_same_process_as_often_as_it_likes() {
    let server = everything();
    let clients = [
        Client::open(&server, Transport::Stdio, speaking(Default::default()))
            .await
            .unwrap(),
        Client::open(&server, Transport::Http, speaking(Default::default()))
            .await
            .unwrap(),
    ];
    for client in &clients {
        assert_eq!(client.says("echo", json!({})).await, "{}");
    }
    assert_eq!(server.calls("echo").len(), 2);
    server.clear();
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn arguments_are_mirrored_in_headers_and_checked() {
    let schema =
        raw(r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#);
    let server = MockServer::builder()
        .tool(MockTool::new("near").input_schema(schema))
        .build();
    let client = Client::open(&server, Transport::Http, speaking(mcp_client::EraChoice::Modern))
        .await
        .unwrap();
    client.connection.list_tools().await.unwrap();
    assert_eq!(
        client.says("near", json!({"region": "north"})).await,
        r#"{"region":"north"}"#
    );
    assert_eq!(server.calls("near")[0].headers["mcp-param-region"], "north");
}

/// Only 2026-07-28 has cache members; a scripted result is sent verbatim.
#[tokio::test]
async fn members_of_the_modern_era_are_sent_to_its_clients_alone() {
    for (transport, era) in WAYS {
        let scripted = r#"{"contents":[{"uri":"mock://exact","text":"x"}],"ttlMs":5,"cacheScope":"public"}"#;
        let server = MockServer::builder()
            .tool(MockTool::new("echo"))
            .prompt(MockPrompt::new("ask"))
            .resource(MockResource::new("mock://notes"))
            .resource(MockResource::new("mock://exact").reply(MockReply::result(raw(scripted))))
            .resource(MockResource::template("mock://{city}/year.txt"))
            .build();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        let is_modern = client.connection.server().era() == mcp_wire::Era::Modern;
        for (method, params) in [
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": "mock://notes"})),
            ("tools/call", json!({"name": "echo", "arguments": {}})),
            ("prompts/get", json!({"name": "ask"})),
        ] {
            let result = client.request(method, params).await.unwrap();
            let is_kept = !matches!(method, "tools/call" | "prompts/get");
            for key in ["ttlMs", "cacheScope"] {
                let is_there = result.get(key).is_some();
                assert_eq!(
                    is_there,
                    is_modern && is_kept,
                    "{transport:?} {era:?} {method} {key}: {result}"
                );
            }
            assert!(
                is_modern || result.get("resultType").is_none(),
                "{method}: {result}"
            );
        }
        let exact = client
            .request("resources/read", json!({"uri": "mock://exact"}))
            .await
            .unwrap();
        assert_eq!(
            (&exact["ttlMs"], &exact["cacheScope"]),
            (&json!(5), &json!("public"))
        );
    }
}
