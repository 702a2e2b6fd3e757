//! Idempotency keys in requests to the upstream.

use serde_json::json;
use tool_core::{Caller, Executor as _, Trust};

use crate::{
    server::Server,
    support::{Values, descriptor, executor, prepare},
};

#[tokio::test]
async fn the_upstream_is_told_a_key_of_its_own() {
    let server = Server::json("{}").await;
    let config = json!({
        "url": server.url("/pay"),
        "method": "POST",
        "idempotency": {"header": "Idempotency-Key"},
    });
    let tool = prepare(config);
    let mut told = Vec::new();
    for (principal, key) in [
        ("ada", Some("k")),
        ("ada", Some("k")),
        ("bob", Some("k")),
        ("ada", Some("l")),
        ("ada", None),
    ] {
        let mut cx = tool.context("{}");
        cx.origin.caller = Caller::new(principal).into();
        cx.extras.idempotency_key = key.map(Into::into);
        tool.invoke().invoke_boxed(&mut cx).await.unwrap();
        told.push(server.last().header("idempotency-key"));
    }
    assert_eq!(told[0], told[1], "the same call has the same key");
    assert_eq!(told[4], None);
    let distinct: std::collections::HashSet<_> = told.iter().flatten().collect();
    assert_eq!(
        distinct.len(),
        3,
        "what two principals call the same is not the same"
    );
    for key in distinct {
        let is_uuid = uuid_like(key);
        assert!(is_uuid, "{key}");
    }
}

/// Returns `true` if a text has the form of a UUID of version 8.
fn uuid_like(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.as_bytes()[14] == b'8' && b"89ab".contains(&text.as_bytes()[19])
}

#[test]
fn only_the_operator_says_that_a_key_is_passed_on() {
    let executor = executor(Values::new(&[]));
    let mut tool = descriptor(json!({"url": "https://a.example", "idempotency": {"header": "X-Key"}}));
    assert!(executor.passes_key(&tool));
    tool.origin.trust = Trust::Upstream;
    assert!(!executor.passes_key(&tool));
    assert!(!executor.passes_key(&descriptor(json!({"url": "https://a.example"}))));
}
