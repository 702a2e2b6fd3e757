//! The rules of versions.

use std::{collections::BTreeMap, sync::Arc};

use raw_json::RawJson;
use serde_json::json;
use tool_registry::{
    Deprecation, MemoryStore, NewVersion, PublishError, PublishOptions, Store, StoreError, ToolAlias,
    ToolFile, VersionRequest, VersionState,
};

use super::{greet, publish, publisher, version};

fn options() -> PublishOptions {
    PublishOptions::default()
}

fn with_input(number: &str, input: &serde_json::Value) -> NewVersion {
    let manifest = json!({"description": "Greets.", "input": input});
    NewVersion::new("greet", version(number), RawJson::from(manifest))
}

#[tokio::test]
async fn the_greatest_release_becomes_the_latest_version() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    for (number, latest) in [
        ("1.0.0-rc.1", "1.0.0-rc.1"),
        ("1.0.0-rc.2", "1.0.0-rc.2"),
        ("1.0.0", "1.0.0"),
        ("2.0.0-rc.1", "1.0.0"),
        ("2.0.0", "2.0.0"),
        ("1.0.1", "2.0.0"),
        ("2.0.1-rc.1", "2.0.0"),
    ] {
        let published = publisher
            .publish(greet(number), "ada", options())
            .await
            .expect("published");
        assert_eq!(published.latest, Some(version(latest)), "{number}");
    }
    let record = publisher.record("greet").await.expect("known");
    let history: Vec<_> = record
        .history
        .iter()
        .filter_map(|change| change.version.clone())
        .collect();
    assert_eq!(
        history,
        ["1.0.0-rc.1", "1.0.0-rc.2", "1.0.0", "2.0.0"].map(version)
    );
}

#[tokio::test]
async fn a_published_version_never_changes_and_publishing_it_again_repeats_nothing() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    publish(&publisher, "1.0.0").await;
    let revision = store.changes(0).await.expect("readable").revision;
    let again = publisher
        .publish(greet("1.0.0"), "bob", options())
        .await
        .expect("the same");
    assert!(!again.is_new);
    let other = NewVersion::new(
        "greet",
        version("1.0.0"),
        RawJson::from(json!({"description": "Other."})),
    );
    let refused = publisher.publish(other, "ada", options()).await;
    assert!(
        matches!(refused, Err(PublishError::Immutable { .. })),
        "{refused:?}"
    );
    let files = BTreeMap::from([("main.py".to_owned(), ToolFile::new("print(1)"))]);
    let refused = publisher
        .publish(greet("1.0.0").with_files(files), "ada", options())
        .await;
    assert!(
        matches!(refused, Err(PublishError::Immutable { .. })),
        "the digest covers files"
    );
    assert_eq!(store.changes(0).await.expect("readable").revision, revision);
}

#[tokio::test]
async fn a_version_must_be_newer_than_those_of_its_major_line() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    for number in ["1.0.0", "1.2.0", "2.0.0"] {
        publish(&publisher, number).await;
    }
    for (number, newest) in [
        ("1.1.9", Some("1.2.0")),
        ("2.0.0-rc.1", Some("2.0.0")),
        ("1.2.1", None),
        ("0.9.0", None),
    ] {
        let result = publisher.publish(greet(number), "ada", options()).await;
        match (newest, result) {
            (None, Ok(published)) => assert!(published.is_new),
            (Some(expected), Err(PublishError::NotNewer { newest, .. })) => {
                assert_eq!(newest, version(expected));
            }
            (_, other) => panic!("{number}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_breaking_change_needs_the_next_major_number() {
    let string = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let required = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for (before, number, needed) in [
        ("1.4.2", "1.5.0", Some("2.0.0")),
        ("1.4.2", "2.0.0", None),
        ("1.4.2", "2.0.0-rc.1", None),
        ("0.4.2", "0.4.3", Some("0.5.0")),
        ("0.4.2", "0.5.0", None),
        ("0.0.2", "0.0.3", None),
    ] {
        let publisher = publisher(&Arc::new(MemoryStore::new()));
        publisher
            .publish(with_input(before, &string), "ada", options())
            .await
            .expect("published");
        let result = publisher
            .publish(with_input(number, &required), "ada", options())
            .await;
        match (needed, result) {
            (None, Ok(published)) => assert_eq!(published.before, Some(version(before))),
            (Some(expected), Err(error @ PublishError::Breaking(_))) => {
                assert!(
                    error
                        .to_string()
                        .contains(&format!("must be at least {expected}")),
                    "{error}"
                );
                assert!(error.to_string().contains('a'), "it names the property: {error}");
            }
            (_, other) => panic!("{before} -> {number}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_compatible_change_needs_no_major_number_and_is_recorded() {
    let publisher = publisher(&Arc::new(MemoryStore::new()));
    let integer = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let number = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    publisher
        .publish(with_input("1.0.0", &integer), "ada", options())
        .await
        .expect("published");
    let published = publisher
        .publish(with_input("1.1.0", &number), "ada", options())
        .await
        .expect("compatible");
    assert_eq!(published.change.phrase().as_deref(), Some("compatible"));
    let record = publisher.record("greet").await.expect("known");
    assert_eq!(record.versions[1].change.as_deref(), Some("compatible"));
}

#[tokio::test]
async fn a_change_that_is_not_proven_is_published_only_if_declared_compatible() {
    let publisher = publisher(&Arc::new(MemoryStore::new()));
    let before = json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a|b)+$"}}});
    let after = json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^[ab]+$"}}});
    publisher
        .publish(with_input("1.0.0", &before), "ada", options())
        .await
        .expect("published");
    let new = with_input("1.1.0", &after);
    let refused = publisher.publish(new.clone(), "ada", options()).await;
    assert!(matches!(refused, Err(PublishError::Unproven(_))), "{refused:?}");
    let declared = options().declared_compatible(true);
    publisher.publish(new, "ada", declared).await.expect("declared");
}

#[tokio::test]
async fn a_draft_changes_until_it_is_published_and_moves_nothing_before() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    publish(&publisher, "1.0.0").await;
    let draft = options().draft(true);
    publisher
        .publish(greet("2.0.0"), "ada", draft)
        .await
        .expect("a draft");
    let mut changed = greet("2.0.0");
    changed.manifest = RawJson::from(json!({"description": "Better."}));
    let stored = publisher.publish(changed, "ada", draft).await.expect("replaced");
    assert_eq!(
        (stored.state, stored.latest),
        (VersionState::Draft, Some(version("1.0.0")))
    );
    let published = publisher
        .publish_draft("greet", &version("2.0.0"), "bob", options())
        .await
        .expect("published");
    assert_eq!(
        (published.digest, published.latest),
        (stored.digest, Some(version("2.0.0")))
    );
    let again = publisher
        .publish_draft("greet", &version("2.0.0"), "bob", options())
        .await;
    assert!(matches!(again, Err(PublishError::State { .. })), "{again:?}");
    let removed = publisher.remove_draft("greet", &version("2.0.0")).await;
    assert!(matches!(removed, Err(PublishError::State { .. })), "{removed:?}");
}

#[tokio::test]
async fn yanking_the_latest_version_makes_the_greatest_remaining_one_the_latest() {
    let publisher = publisher(&Arc::new(MemoryStore::new()));
    for number in ["1.0.0", "1.1.0", "2.0.0"] {
        publish(&publisher, number).await;
    }
    let yank = async |number: &str| publisher.yank("greet", &version(number), "it leaks", "ada").await;
    assert_eq!(yank("2.0.0").await.expect("yanked"), Some(version("1.1.0")));
    assert!(matches!(yank("2.0.0").await, Err(PublishError::State { .. })));
    assert_eq!(yank("1.0.0").await.expect("yanked"), Some(version("1.1.0")));
    assert_eq!(yank("1.1.0").await.expect("yanked"), None);
    let record = publisher.record("greet").await.expect("known");
    for (request, expected) in [
        ("latest", None),
        ("^1", None),
        ("1.1.0", Some("1.1.0")),
        (
            &format!("sha256:{}", raw_json::hex(&record.versions[0].digest)),
            Some("1.0.0"),
        ),
    ] {
        let request: VersionRequest = request.parse().expect("a request");
        let selected = request.select(&record).map(|head| head.version.clone());
        assert_eq!(selected, expected.map(version), "{request}");
    }
}

#[tokio::test]
async fn a_rollback_goes_back_one_step_each_time_and_skips_yanked_versions() {
    let publisher = publisher(&Arc::new(MemoryStore::new()));
    for number in ["1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
        publish(&publisher, number).await;
    }
    publisher
        .yank("greet", &version("1.1.0"), "it leaks", "ada")
        .await
        .expect("yanked");
    for expected in ["1.2.0", "1.0.0"] {
        let latest = publisher
            .rollback("greet", None, "ada")
            .await
            .expect("rolled back");
        assert_eq!(latest, version(expected));
        assert_eq!(
            publisher.record("greet").await.expect("known").latest,
            Some(latest)
        );
    }
    let more = publisher.rollback("greet", None, "ada").await;
    assert!(matches!(more, Err(PublishError::NoFormer { .. })), "{more:?}");
    let named = publisher
        .rollback("greet", Some(&version("1.3.0")), "ada")
        .await
        .expect("a named version");
    assert_eq!(named, version("1.3.0"));
    let yanked = publisher.rollback("greet", Some(&version("1.1.0")), "ada").await;
    assert!(matches!(yanked, Err(PublishError::State { .. })), "{yanked:?}");
}

#[tokio::test]
async fn names_paths_and_manifests_are_checked_before_anything_is_stored() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    let manifest = RawJson::from(json!({"description": "Greets."}));
    let file = |path: &str| {
        let files = BTreeMap::from([(path.to_owned(), ToolFile::new("x"))]);
        greet("1.0.0").with_files(files)
    };
    let with =
        |manifest: serde_json::Value| NewVersion::new("greet", version("1.0.0"), RawJson::from(manifest));
    for (new, expected) in [
        (
            NewVersion::new("no name", version("1.0.0"), manifest.clone()),
            "`no name` is no tool name",
        ),
        (
            NewVersion::new("greet", version("1.0.0+b1"), manifest),
            "leave out `+b1`",
        ),
        (file("/etc/passwd"), "`/etc/passwd` is no path"),
        (file("a/../b"), "`a/../b` is no path"),
        (file(""), "`` is no path"),
        (file("a\\b"), "is no path"),
        (with(json!({})), "it has no description"),
        (
            with(json!({"description": "x", "name": "other"})),
            "describes `other`, not `greet`",
        ),
        (
            with(json!({"description": "x", "version": "3.0.0"})),
            "has the version `3.0.0`, not `1.0.0`",
        ),
    ] {
        let error = publisher
            .publish(new, "ada", options())
            .await
            .expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(store.tools().await.expect("readable").is_empty());
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_published_and_changes_nothing() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    let published = publisher
        .publish(greet("1.0.0"), "ada", options().dry_run(true))
        .await
        .expect("possible");
    assert!(published.is_new && published.latest == Some(version("1.0.0")));
    assert_eq!(store.changes(0).await.expect("readable").revision, 0);
}

#[tokio::test]
async fn of_two_publishers_that_read_the_same_record_one_gets_a_conflict() {
    let store = Arc::new(MemoryStore::new());
    let publisher = publisher(&store);
    publish(&publisher, "1.0.0").await;
    let record = publisher.record("greet").await.expect("known");
    publish(&publisher, "1.1.0").await;
    let outdated = store.apply("greet", record.revision, Vec::new()).await;
    assert!(
        matches!(outdated, Err(StoreError::Conflict { .. })),
        "{outdated:?}"
    );
}

#[tokio::test]
async fn deprecations_and_aliases_name_existing_versions() {
    let publisher = publisher(&Arc::new(MemoryStore::new()));
    publish(&publisher, "1.0.0").await;
    let deprecation = Deprecation::default().with_replacement(Some("hello".to_owned()));
    let request = VersionRequest::Latest;
    let head = publisher
        .deprecate("greet", &request, Some(deprecation))
        .await
        .expect("deprecated");
    assert_eq!(head.state.as_str(), "deprecated");
    let head = publisher
        .deprecate("greet", &request, None)
        .await
        .expect("published again");
    assert_eq!(head.state, VersionState::Published);
    let missing = publisher
        .deprecate("greet", &"^3".parse().expect("a request"), None)
        .await;
    let message = missing.expect_err("there is none").to_string();
    assert!(message.contains("no version `^3`; there are 1.0.0"), "{message}");
    let unknown = publisher.set_alias(ToolAlias::new("hi", "greet", "^3")).await;
    assert!(
        matches!(unknown, Err(PublishError::UnknownVersion { .. })),
        "{unknown:?}"
    );
    let taken = publisher.set_alias(ToolAlias::new("greet", "greet", "^1")).await;
    assert!(matches!(taken, Err(PublishError::Invalid(_))), "{taken:?}");
}
