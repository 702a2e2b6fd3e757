//! The operators' socket of a gateway.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    RawJson, Toolplane,
    core::{DisabledTool, Instant},
    observe::Metrics,
};
use toolplane_gateway::{Gateway, GatewayOptions, OperatorClient, OperatorClientError};

use crate::support::ChangingSource;

fn values(records: &[RawJson]) -> Vec<Value> {
    let values = records.iter().map(|record| record.to().expect("JSON"));
    values.collect()
}

#[tokio::test]
async fn operators_see_servers_and_enable_tools() {
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Echo])))
        .source(ChangingSource::new(&["a"]))
        .tool(TestTool::new("t").descriptor)
        .build()
        .expect("it can be set up");
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("s.sock");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let metrics = Arc::new(Metrics::new());
    let mut options = GatewayOptions::default();
    options.metrics = Some(metrics.clone());
    let gateway = Gateway::new(plane.clone(), options);
    let off = r#"toolplane_tool_disabled{tool="t"} 1"#;
    assert!(!metrics.render().contains(off));
    tokio::spawn(async move { gateway.serve_operator(listener, std::future::pending()).await });
    let connect = async || OperatorClient::connect(&path).await.expect("somebody listens");

    let servers = values(&connect().await.servers().await.expect("a list"));
    assert_eq!(servers.len(), 1, "the configuration is no server");
    assert_eq!(
        (&servers[0]["state"], &servers[0]["attempts"]),
        (&json!("ready"), &json!(0))
    );

    assert!(connect().await.disabled().await.expect("a list").is_empty());
    let refused = async |tool: &str| match connect().await.enable(tool).await {
        Err(OperatorClientError::Refused { kind, .. }) => kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("t").await, "not_found", "it is on");
    assert_eq!(refused("none").await, "not_found");
    assert_eq!(refused("").await, "usage");
    let tool = plane.known_tool("t").expect("it is there");
    tool.state().disable(DisabledTool::new(
        "the credentials were refused".to_owned(),
        SystemTime::UNIX_EPOCH,
        Instant::since_start(Duration::from_secs(3600)),
    ));
    let disabled = values(&connect().await.disabled().await.expect("a list"));
    assert_eq!(disabled.len(), 1);
    assert_eq!(
        (
            &disabled[0]["tool"],
            &disabled[0]["reason"],
            &disabled[0]["since"]
        ),
        (
            &json!("t"),
            &json!("the credentials were refused"),
            &json!("1970-01-01T00:00:00Z")
        )
    );
    assert_eq!(disabled[0]["digest"].as_str().map(str::len), Some(64));
    assert!(metrics.render().lines().any(|line| line == off));
    let left = disabled[0]["retry_in_ms"].as_u64().expect("a number");
    assert!((1..=3_600_000).contains(&left), "{left}");
    connect().await.enable("t").await.expect("it is on now");
    assert!(plane.disabled().is_empty());
    assert_eq!(refused("t").await, "not_found");
}
