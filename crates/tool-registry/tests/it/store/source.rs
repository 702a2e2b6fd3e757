//! The source that offers the tools of a store.

use std::{future::poll_fn, sync::Arc, task::Poll};

use serde_json::json;
use tool_core::{RawJson, Source, SourceState};
use tool_registry::{
    Deprecation, MemoryStore, NewVersion, PublishOptions, StoreSource, ToolAlias, VersionRequest,
};

use super::{Manifests, publish, publisher, version};

fn source(store: &Arc<MemoryStore>) -> StoreSource {
    StoreSource::new(store.clone(), Arc::new(Manifests))
}

/// Names and versions of the offered tools.
fn offered(source: &StoreSource) -> Vec<String> {
    let catalogue = source.snapshot();
    let tools = catalogue.tools.iter();
    tools
        .map(|tool| format!("{}@{}", tool.name, tool.version.as_deref().unwrap_or_default()))
        .collect()
}

#[tokio::test]
async fn the_latest_version_is_offered_and_follows_every_change() {
    let store = Arc::new(MemoryStore::new());
    let (source, publisher) = (source(&store), publisher(&store));
    assert_eq!(source.status().state, SourceState::NotStarted);
    source.load().await;
    assert!(offered(&source).is_empty());
    let next = async || {
        let seen = source.snapshot().revision;
        source.changed(seen).await;
        offered(&source)
    };
    publish(&publisher, "1.0.0").await;
    assert_eq!(next().await, ["greet@1.0.0"]);
    publish(&publisher, "1.1.0").await;
    assert_eq!(next().await, ["greet@1.1.0"]);
    publisher
        .rollback("greet", None, "ada")
        .await
        .expect("rolled back");
    assert_eq!(next().await, ["greet@1.0.0"]);
    publisher
        .set_alias(ToolAlias::new("hello", "greet", "^1.1"))
        .await
        .expect("set");
    assert_eq!(next().await, ["greet@1.0.0", "hello@1.1.0"]);
    publisher
        .yank("greet", &version("1.0.0"), "it leaks", "ada")
        .await
        .expect("yanked");
    assert_eq!(next().await, ["greet@1.1.0", "hello@1.1.0"]);
}

/// A draft changes its tool in the store, and nothing that anybody is offered.
#[tokio::test]
async fn a_draft_makes_no_new_catalogue() {
    let store = Arc::new(MemoryStore::new());
    let (source, publisher) = (source(&store), publisher(&store));
    source.load().await;
    publish(&publisher, "1.0.0").await;
    source.changed(source.snapshot().revision).await;
    let store_draft = async |tool: &str, number: &str| {
        let manifest = RawJson::from(json!({"name": tool, "description": "D"}));
        let new = NewVersion::new(tool, version(number), manifest);
        let options = PublishOptions::default().draft(true).by_agent(true);
        publisher.publish(new, "ada", options).await.expect("stored");
    };
    // The first draft beside published versions: what there was of them is not known.
    store_draft("greet", "2.0.0").await;
    source.changed(source.snapshot().revision).await;
    let seen = source.snapshot().revision;
    let mut changed = source.changed(seen);
    for (tool, number) in [("greet", "2.0.1"), ("new", "1.0.0"), ("new", "1.1.0")] {
        store_draft(tool, number).await;
        for _ in 0..10 {
            let poll = poll_fn(|cx| Poll::Ready(changed.as_mut().poll(cx))).await;
            assert!(poll.is_pending(), "{tool}@{number}");
            tokio::task::yield_now().await;
        }
    }
    drop(changed);
    publish(&publisher, "1.1.0").await;
    source.changed(seen).await;
    assert_eq!(source.snapshot().revision, seen + 1);
    assert_eq!(offered(&source), ["greet@1.1.0"]);
}

#[tokio::test]
async fn an_unchanged_tool_keeps_its_descriptor() {
    let store = Arc::new(MemoryStore::new());
    let (source, publisher) = (source(&store), publisher(&store));
    publish(&publisher, "1.0.0").await;
    source.load().await;
    let before = source.snapshot();
    let other = NewVersion::new(
        "other",
        version("1.0.0"),
        RawJson::from(json!({"description": "x"})),
    );
    publisher
        .publish(other, "ada", PublishOptions::default())
        .await
        .expect("published");
    source.changed(before.revision).await;
    let after = source.snapshot();
    assert_eq!(after.tools.len(), 2);
    assert!(Arc::ptr_eq(&before.tools[0], &after.tools[0]));
}

#[tokio::test]
async fn agents_are_told_of_a_deprecation_with_its_replacement_and_day() {
    let store = Arc::new(MemoryStore::new());
    let (source, publisher) = (source(&store), publisher(&store));
    publish(&publisher, "1.0.0").await;
    let deprecation = Deprecation::default()
        .with_replacement(Some("hello".to_owned()))
        .with_until(Some("2027-01-31".to_owned()));
    publisher
        .deprecate("greet", &VersionRequest::Latest, Some(deprecation))
        .await
        .expect("deprecated");
    source.load().await;
    let tool = source.snapshot().tools[0].clone();
    let notice = "Greets, in version 1.0.0. Deprecated, to be removed on 2027-01-31; use `hello` instead.";
    assert_eq!(tool.description, notice);
    let definition = tool.definition.as_ref().expect("with a notice");
    let state = definition
        .get("_meta")
        .and_then(|meta| meta.get("dev.toolplane/state"))
        .expect("a state");
    assert_eq!(
        state
            .get("replacement")
            .and_then(|value| value.string())
            .as_deref(),
        Some("hello")
    );
}

#[tokio::test]
async fn a_version_that_cannot_be_read_is_left_out_with_the_reason_and_the_others_stay() {
    let store = Arc::new(MemoryStore::new());
    publish(&publisher(&store), "1.0.0").await;
    /// Reader of another program version, which does not know `greet`.
    struct Newer;
    impl tool_registry::ReadManifest for Newer {
        fn read(&self, tool: &str, manifest: &RawJson) -> Result<tool_core::Descriptor, String> {
            match tool {
                "greet" => Err("unknown key `colour`".to_owned()),
                _ => Manifests.read(tool, manifest),
            }
        }
    }
    let other = NewVersion::new(
        "other",
        version("1.0.0"),
        RawJson::from(json!({"description": "x"})),
    );
    publisher(&store)
        .publish(other, "ada", PublishOptions::default())
        .await
        .expect("published");
    let source = StoreSource::new(store, Arc::new(Newer));
    source.load().await;
    let catalogue = source.snapshot();
    assert_eq!(catalogue.tools.len(), 1);
    assert_eq!(
        (
            catalogue.rejected[0].name.as_str(),
            catalogue.rejected[0].reason.as_str()
        ),
        ("greet", "unknown key `colour`")
    );
}
