//! Publication of tools by a program.

use std::sync::Arc;

use toolplane::{
    RawJson, StoredManifests, Toolplane,
    core::SystemClock,
    registry::{MemoryStore, NewVersion, PublishError, PublishOptions, Publisher},
};

fn version(executor: &str) -> NewVersion {
    let manifest = format!(
        r#"{{"apiVersion": "toolplane.dev/v1", "kind": "Tool", "metadata": {{"name": "greet"}},
            "spec": {{"description": "Greets.", "version": "1.0.0", "executor": {executor}}}}}"#
    );
    NewVersion::new(
        "greet",
        "1.0.0".parse().expect("a version"),
        RawJson::parse(manifest).expect("JSON"),
    )
}

#[tokio::test]
async fn a_tool_that_cannot_run_here_stays_a_draft() {
    let plane = Toolplane::builder()
        .store(Arc::new(MemoryStore::new()))
        .build()
        .unwrap();
    let publisher = plane.publisher().unwrap();
    let usual = PublishOptions::default();
    for (executor, reason) in [
        (
            r#"{"kind": "smoke-signal"}"#,
            "there is no executor `smoke-signal` here",
        ),
        (
            r#"{"kind": "mcp", "server": "nobody", "tool": "greet"}"#,
            "there is no server `nobody`",
        ),
    ] {
        let refused = publisher.publish(version(executor), "ada", usual).await;
        let Err(PublishError::Invalid(message)) = refused else {
            panic!("{refused:?}");
        };
        assert!(message.starts_with("`greet` cannot run here: "), "{message}");
        assert!(message.contains(reason), "{message}");
    }
    let absent = version(r#"{"kind": "smoke-signal"}"#);
    publisher
        .publish(absent.clone(), "ada", usual.draft(true))
        .await
        .unwrap();
    let number = absent.version;
    let refused = publisher.publish_draft("greet", &number, "ada", usual).await;
    assert!(matches!(refused, Err(PublishError::Invalid(_))), "{refused:?}");
    let mock = version(r#"{"kind": "mock", "result": "hello"}"#);
    let published = publisher.publish(mock, "ada", usual).await.unwrap();
    assert_eq!(published.latest, Some(number));
}

/// Another gateway, which has the executor, may have published it.
#[tokio::test]
async fn what_is_published_already_may_be_published_again() {
    let store = Arc::new(MemoryStore::new());
    let other = Publisher::new(
        store.clone(),
        Arc::new(StoredManifests),
        Arc::new(SystemClock::new()),
    );
    let plane = Toolplane::builder().store(store).build().unwrap();
    let (tool, usual) = (version(r#"{"kind": "smoke-signal"}"#), PublishOptions::default());
    other.publish(tool.clone(), "ada", usual).await.unwrap();
    let again = plane.publisher().unwrap().publish(tool, "ada", usual).await;
    assert!(!again.unwrap().is_new);
}
