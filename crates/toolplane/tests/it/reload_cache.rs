//! Content of the cache across a reload.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use mcp_mock::{MockServer, MockTool};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolplane::{
    CallRequest, Toolplane,
    core::Outcome,
    manifest::{LoadOptions, Loaded, Syntax, load},
};

fn loaded(yaml: &str) -> Loaded {
    load(&LoadOptions::new().text("configuration", Syntax::Yaml, yaml)).expect("usable")
}

/// Returns the cache status of each tool's answer; `null` if the tool was called.
async fn statuses(plane: &Toolplane) -> Vec<Value> {
    let mut statuses = Vec::new();
    for tool in ["mock", "file", "plain", "valued", "served"] {
        let reply = match plane.call(CallRequest::new(tool)).await {
            Ok(Outcome::Reply(reply)) => reply,
            other => panic!("no reply: {other:?}"),
        };
        let mut meta = reply.meta().iter();
        let told = meta.find(|(key, _)| *key == "dev.toolplane/cache");
        let status = told.map(|(_, value)| value.to::<Value>().expect("JSON")["status"].clone());
        statuses.push(status.unwrap_or_default());
    }
    statuses
}

/// An API that answers with how often it was called.
async fn api() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let n_calls = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let n_calls = n_calls.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 16 * 1024];
                while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {
                    let n = n_calls.fetch_add(1, Ordering::SeqCst) % 10;
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1";
                    let answer = format!("{head}\r\n\r\n{n}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn text(api: &str, server: &str, file: &Path) -> String {
    let mut text = format!("servers: {{up: {{url: '{server}'}}}}\ntools:\n");
    for (name, executor) in [
        ("mock", "{kind: mock, result: 1}".to_owned()),
        (
            "file",
            format!("{{kind: mock, result_file: '{}'}}", file.display()),
        ),
        (
            "plain",
            format!("{{kind: http, url: '{api}', allow_private: true}}"),
        ),
        (
            "valued",
            format!("{{kind: http, url: '{api}', allow_private: true, headers: {{x-who: '${{env:PATH}}'}}}}"),
        ),
        ("served", "{kind: mcp, server: up, tool: search}".to_owned()),
    ] {
        let tool = format!("  {name}: {{description: d, cache: {{ttl: 1h}}, executor: {executor}}}\n");
        text.push_str(&tool);
    }
    text
}

#[tokio::test]
async fn answers_are_kept_of_tools_that_stay_the_same_and_of_no_others() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = directory.path().join("result.json");
    std::fs::write(&file, "1").expect("written");
    let mock = || {
        let tool = MockTool::new("search").reply(mcp_mock::MockReply::text("found"));
        MockServer::builder().tool(tool).build()
    };
    let (mocks, api) = ([mock(), mock()], api().await);
    let servers = [
        mocks[0].http().await.expect("it listens"),
        mocks[1].http().await.expect("it listens"),
    ];
    let text = text(&api, &servers[0].url(), &file);
    let plane = Toolplane::builder()
        .loaded(&loaded(&text))
        .build()
        .expect("can be set up");
    let (hit, called) = (json!("hit"), Value::Null);
    assert_eq!(statuses(&plane).await, vec![called.clone(); 5]);
    assert_eq!(statuses(&plane).await, vec![hit.clone(); 5]);
    plane.reload(&loaded(&text)).expect("usable");
    // The file and the value may be others than before.
    let same = [&hit, &called, &hit, &called, &hit].map(Clone::clone);
    assert_eq!(statuses(&plane).await, same);
    for other in [
        text.replace("result: 1", "result: 2")
            .replace("/v1", "/v2")
            .replace(&servers[0].url(), &servers[1].url()),
        text.replace("description: d", "description: other"),
        text.replace("ttl: 1h", "ttl: 2h"),
    ] {
        plane.reload(&loaded(&other)).expect("usable");
        assert_eq!(statuses(&plane).await, vec![called.clone(); 5], "{other}");
        assert_eq!(statuses(&plane).await, vec![hit.clone(); 5]);
    }
    plane.shutdown().await;
}
