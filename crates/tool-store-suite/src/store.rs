//! Tests of stores of tools.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use raw_json::RawJson;
use semver::Version;
use serde_json::json;
use tool_core::SecretUse;
use tool_registry::{
    Acceptance, AgentVersion, Deprecation, LatestChange, NewVersion, SecretGrant, ServerRecord, Store,
    StoreError, StoreOperation, StoredVersion, ToolAlias, ToolChange, ToolFile, VersionHead, VersionState,
};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn version(text: &str) -> Version {
    text.parse().expect("a version")
}

/// Content of a version whose manifest says its number.
fn stored(number: &str, state: VersionState) -> StoredVersion {
    let manifest = RawJson::from(json!({"description": format!("é {number}"), "deep": [1, 1.50, "\u{0}"]}));
    let files = BTreeMap::from([
        ("main.py".to_owned(), ToolFile::new(b"print(1)\n".to_vec())),
        ("data/raw".to_owned(), ToolFile::new(vec![0, 255, 1])),
    ]);
    let new = NewVersion::new("greet", version(number), manifest.clone()).with_files(files.clone());
    let head = VersionHead::new(version(number), new.digest(), state, at(60), "ada".into());
    StoredVersion::new(head.with_change(Some("compatible".to_owned())), manifest, files)
}

fn create() -> StoreOperation {
    StoreOperation::Create { owner: "ada".into() }
}

fn put(number: &str, state: VersionState) -> StoreOperation {
    StoreOperation::Put(Box::new(stored(number, state)))
}

fn latest(number: &str, seconds: u64) -> StoreOperation {
    StoreOperation::SetLatest(LatestChange::new(
        Some(version(number)),
        at(seconds),
        "ada".into(),
    ))
}

/// Publishes the tool `greet` in this version as a first one.
async fn first(store: &Arc<dyn Store>, number: &str) -> u64 {
    let operations = vec![create(), put(number, VersionState::Published), latest(number, 60)];
    store.apply("greet", 0, operations).await.expect("applied")
}

/// A store without changes has nothing and no revision.
pub async fn a_new_store_is_empty(first: Arc<dyn Store>, _: Arc<dyn Store>) {
    assert_eq!(first.tool("greet").await.expect("readable"), None);
    assert!(first.tools().await.expect("readable").is_empty());
    assert_eq!(
        first.version("greet", &version("1.0.0")).await.expect("readable"),
        None
    );
    assert_eq!(first.revision().await.expect("readable"), 0);
    let changes = first.changes(0).await.expect("readable");
    assert_eq!((changes.revision, changes.tools.len()), (0, 0));
    assert!(first.aliases().await.expect("readable").is_empty());
    assert!(first.servers().await.expect("readable").is_empty());
}

/// A version has all its fields, its manifest byte for byte, and its files.
pub async fn a_version_comes_back_as_it_was_stored(writer: Arc<dyn Store>, reader: Arc<dyn Store>) {
    let revision = first(&writer, "1.0.0-rc.1").await;
    let expected = stored("1.0.0-rc.1", VersionState::Published);
    let number = version("1.0.0-rc.1");
    assert_eq!(
        reader.version("greet", &number).await.expect("readable"),
        Some(expected.clone())
    );
    let record = reader.tool("greet").await.expect("readable").expect("known");
    assert_eq!(
        (&*record.name, &*record.owner, record.revision),
        ("greet", "ada", revision)
    );
    assert_eq!(record.latest, Some(number.clone()));
    assert_eq!(record.versions, [expected.head]);
    assert_eq!(
        record.history,
        [LatestChange::new(Some(number), at(60), "ada".into())]
    );
    assert_eq!(reader.tools().await.expect("readable"), [record]);
}

/// A change that is based on an older revision fails as a whole.
pub async fn an_outdated_change_is_a_conflict_and_changes_nothing(
    one: Arc<dyn Store>,
    other: Arc<dyn Store>,
) {
    let revision = first(&one, "1.0.0").await;
    for outdated in [0, revision - 1, revision + 1] {
        let operations = vec![put("2.0.0", VersionState::Published), latest("2.0.0", 70)];
        let refused = other.apply("greet", outdated, operations).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict { .. })),
            "{outdated}: {refused:?}"
        );
    }
    let record = other.tool("greet").await.expect("readable").expect("known");
    assert_eq!(
        (record.versions.len(), record.latest),
        (1, Some(version("1.0.0")))
    );
    assert_eq!(record.revision, revision);
    assert_eq!(
        other.version("greet", &version("2.0.0")).await.expect("readable"),
        None
    );
}

/// Of two changes that are based on the same revision, one is made and the other one is a conflict.
pub async fn of_two_writers_one_wins(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let mut revision = 0;
    for round in 1..=8_u64 {
        let write = |store: Arc<dyn Store>, number: String| async move {
            let mut operations = vec![put(&number, VersionState::Published), latest(&number, round)];
            if revision == 0 {
                operations.insert(0, create());
            }
            store.apply("greet", revision, operations).await
        };
        let (a, b) = (format!("{round}.0.0"), format!("{round}.1.0"));
        let writes = tokio::join!(
            tokio::spawn(write(one.clone(), a)),
            tokio::spawn(write(other.clone(), b))
        );
        let results = [writes.0.expect("no panic"), writes.1.expect("no panic")];
        let n_conflicts = results
            .iter()
            .filter(|result| matches!(result, Err(StoreError::Conflict { .. })));
        assert_eq!(n_conflicts.count(), 1, "{results:?}");
        revision = results.into_iter().find_map(Result::ok).expect("one won");
        let record = one.tool("greet").await.expect("readable").expect("known");
        assert_eq!(record.revision, revision);
        assert_eq!(u64::try_from(record.versions.len()), Ok(round));
        assert_eq!(
            record.latest,
            record.versions.last().map(|head| head.version.clone())
        );
    }
}

/// If one operation of a change cannot be applied, none is.
pub async fn a_change_that_fails_in_the_middle_changes_nothing(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let revision = first(&one, "1.0.0").await;
    let unknown = StoreOperation::SetState {
        version: version("9.9.9"),
        state: VersionState::Published,
    };
    let operations = vec![
        put("2.0.0", VersionState::Published),
        latest("2.0.0", 70),
        unknown,
    ];
    one.apply("greet", revision, operations)
        .await
        .expect_err("an unknown version");
    let record = other.tool("greet").await.expect("readable").expect("known");
    assert_eq!((record.versions.len(), record.history.len()), (1, 1));
    assert_eq!(record.latest, Some(version("1.0.0")));
    assert_eq!(
        other.version("greet", &version("2.0.0")).await.expect("readable"),
        None
    );
    let retried = vec![put("2.0.0", VersionState::Published)];
    one.apply("greet", revision, retried)
        .await
        .expect("the revision is still the same");
}

/// Changes of several tools are made together, or not at all.
pub async fn changes_of_several_tools_are_made_together(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let change = |tool: &str, expected: u64, number: &str| {
        let mut operations = vec![put(number, VersionState::Published), latest(number, 60)];
        if expected == 0 {
            operations.insert(0, create());
        }
        ToolChange::new(tool, expected, operations)
    };
    let both = vec![change("greet", 0, "1.0.0"), change("other", 0, "1.0.0")];
    let revision = one.apply_all(both).await.expect("applied");
    let records = other.tools().await.expect("readable");
    assert_eq!(
        records.iter().map(|record| record.revision).collect::<Vec<_>>(),
        [revision; 2]
    );
    let outdated = vec![change("greet", revision, "2.0.0"), change("other", 0, "2.0.0")];
    let refused = one.apply_all(outdated).await;
    assert!(
        matches!(&refused, Err(StoreError::Conflict { tool }) if tool == "other"),
        "{refused:?}"
    );
    assert_eq!(other.tools().await.expect("readable"), records);
    assert_eq!(
        other.version("greet", &version("2.0.0")).await.expect("readable"),
        None
    );
}

/// The content of a published version stays as it is.
pub async fn a_published_version_is_not_replaced(one: Arc<dyn Store>, _: Arc<dyn Store>) {
    let revision = first(&one, "1.0.0").await;
    let mut other = stored("1.0.0", VersionState::Published);
    other.manifest = RawJson::object();
    let replaced = one
        .apply("greet", revision, vec![StoreOperation::Put(Box::new(other))])
        .await;
    replaced.expect_err("it is published");
    let kept = one.version("greet", &version("1.0.0")).await.expect("readable");
    assert_eq!(kept, Some(stored("1.0.0", VersionState::Published)));
}

/// A draft is replaced by content with the same number, and can be removed.
pub async fn a_draft_is_replaced_and_removed(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let operations = vec![create(), put("1.0.0", VersionState::Draft)];
    let revision = one.apply("greet", 0, operations).await.expect("applied");
    let mut second = stored("1.0.0", VersionState::Draft);
    second.manifest = RawJson::object();
    second.files = BTreeMap::from([("only".to_owned(), ToolFile::new("it"))]);
    let operation = StoreOperation::Put(Box::new(second.clone()));
    let revision = one
        .apply("greet", revision, vec![operation])
        .await
        .expect("applied");
    let number = version("1.0.0");
    assert_eq!(
        other.version("greet", &number).await.expect("readable"),
        Some(second)
    );
    let changes = other.changes(0).await.expect("readable");
    assert!(
        changes.tools.iter().all(|tool| tool.latest.is_none()),
        "drafts are not offered"
    );
    let remove = StoreOperation::RemoveDraft {
        version: number.clone(),
    };
    one.apply("greet", revision, vec![remove]).await.expect("applied");
    assert_eq!(other.version("greet", &number).await.expect("readable"), None);
    let record = other.tool("greet").await.expect("readable").expect("known");
    assert!(record.versions.is_empty());
}

/// Acceptance, test and grants belong to the content of a version: a draft with other content has none of them.
pub async fn what_operators_allow_an_agents_version_comes_back(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let mut draft = stored("1.0.0", VersionState::Draft);
    draft.head.agent = Some(AgentVersion::default());
    let operations = vec![create(), StoreOperation::Put(Box::new(draft.clone()))];
    let revision = one.apply("greet", 0, operations).await.expect("applied");
    let number = version("1.0.0");
    let mut agent = AgentVersion::default();
    agent.accepted = Some(Acceptance::new("grace", at(5)));
    agent.tested_at = Some(at(6));
    for (secret, field) in [("${A}", "/url"), ("${A}", "/headers/X"), ("${secret:b}", "/url")] {
        let needed = SecretUse::new(secret, field, "https://api.example.com");
        agent
            .grants
            .push(SecretGrant::new(needed, draft.head.digest, "grace", at(7)));
    }
    agent
        .grants
        .sort_by(|a, b| (&a.secret, &a.field).cmp(&(&b.secret, &b.field)));
    let set = |agent: &AgentVersion| StoreOperation::SetAgent {
        version: version("1.0.0"),
        agent: agent.clone(),
    };
    let revision = one
        .apply("greet", revision, vec![set(&agent)])
        .await
        .expect("applied");
    let expected = Some(agent.clone());
    let found = other
        .version("greet", &number)
        .await
        .expect("readable")
        .expect("known");
    assert_eq!(found.head.agent, expected);
    let record = other.tool("greet").await.expect("readable").expect("known");
    assert_eq!(record.version(&number).expect("known").agent, expected);

    let publish = vec![
        StoreOperation::SetState {
            version: number.clone(),
            state: VersionState::Published,
        },
        latest("1.0.0", 60),
    ];
    let published = one.apply("greet", revision, publish).await.expect("applied");
    for since in [0, revision] {
        let changes = other.changes(since).await.expect("readable");
        let offered = changes.tools[0].latest.as_ref().expect("published");
        assert_eq!(offered.head.agent, expected, "since {since}");
    }
    agent.grants.remove(0);
    one.apply("greet", published, vec![set(&agent)])
        .await
        .expect("applied");
    let changes = other.changes(published).await.expect("readable");
    let offered = changes.tools[0].latest.as_ref().expect("published");
    assert_eq!(
        offered.head.agent,
        Some(agent),
        "a revocation is a change of the tool"
    );

    let mut second = stored("2.0.0", VersionState::Draft);
    second.head.agent = Some(AgentVersion::default());
    let record = one.tool("greet").await.expect("readable").expect("known");
    let put = StoreOperation::Put(Box::new(second));
    let revision = one
        .apply("greet", record.revision, vec![put])
        .await
        .expect("applied");
    let remove = StoreOperation::RemoveDraft {
        version: version("2.0.0"),
    };
    one.apply("greet", revision, vec![remove]).await.expect("applied");
}

/// An author sees its own versions with their sizes, and nobody else's.
pub async fn versions_of_an_agent_are_found_by_their_author(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    first(&one, "1.0.0").await;
    let mut draft = stored("1.0.0", VersionState::Draft);
    draft.head.agent = Some(AgentVersion::default());
    draft.manifest = RawJson::parse(r#"{"description": "Grüße"}"#).expect("JSON");
    draft.files = BTreeMap::from([("main.py".to_owned(), ToolFile::new("12345"))]);
    let new = NewVersion::new("hello", version("1.0.0"), draft.manifest.clone());
    draft.head.digest = new.with_files(draft.files.clone()).digest();
    let author = draft.head.created_by.clone();
    let operations = vec![create(), StoreOperation::Put(Box::new(draft.clone()))];
    one.apply("hello", 0, operations).await.expect("applied");
    let found = other.versions_by(&author).await.expect("readable");
    assert_eq!(found.len(), 1, "versions of operators are nobody's");
    assert_eq!(&*found[0].tool, "hello");
    assert_eq!(found[0].head, draft.head);
    assert_eq!(found[0].n_bytes, draft.n_bytes());
    let none = other.versions_by("nobody").await.expect("readable");
    assert!(none.is_empty());
}

/// States keep their reasons, replacements and days.
pub async fn every_state_comes_back_with_its_details(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let mut revision = first(&one, "1.0.0").await;
    let deprecation = Deprecation::default()
        .with_replacement(Some("hello@^2".to_owned()))
        .with_until(Some("2027-01-31".to_owned()))
        .with_reason(Some("it is \"slow\"".to_owned()));
    for state in [
        VersionState::Deprecated(deprecation),
        VersionState::Deprecated(Deprecation::default()),
        VersionState::Published,
        VersionState::Yanked {
            reason: "it leaks".to_owned(),
        },
    ] {
        let operation = StoreOperation::SetState {
            version: version("1.0.0"),
            state: state.clone(),
        };
        revision = one
            .apply("greet", revision, vec![operation])
            .await
            .expect("applied");
        let record = other.tool("greet").await.expect("readable").expect("known");
        assert_eq!(record.versions[0].state, state);
        let changes = other.changes(0).await.expect("readable");
        let offered = changes.tools[0].latest.as_ref().expect("still the latest");
        assert_eq!(offered.head.state, state);
    }
}

/// Each step back restores the latest version before it, and at last there is none.
pub async fn the_latest_version_goes_back_through_its_history(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let mut revision = first(&one, "1.0.0").await;
    for (number, seconds) in [("1.1.0", 61), ("2.0.0", 62)] {
        let operations = vec![put(number, VersionState::Published), latest(number, seconds)];
        revision = one.apply("greet", revision, operations).await.expect("applied");
    }
    for expected in [Some("1.1.0"), Some("1.0.0"), None] {
        revision = one
            .apply("greet", revision, vec![StoreOperation::PopLatest])
            .await
            .expect("applied");
        let record = other.tool("greet").await.expect("readable").expect("known");
        assert_eq!(record.latest, expected.map(version));
        assert_eq!(
            record.history.last().and_then(|change| change.version.clone()),
            record.latest
        );
        assert_eq!(record.versions.len(), 3, "no version is lost");
    }
}

/// A report since a revision has the tools that changed after it, with their latest version and its files.
pub async fn changes_hold_only_what_changed(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let before = first(&one, "1.0.0").await;
    let operations = vec![
        create(),
        put("3.0.0", VersionState::Published),
        latest("3.0.0", 61),
    ];
    let after = one.apply("other", 0, operations).await.expect("applied");
    let all = other.changes(0).await.expect("readable");
    let names: Vec<&str> = all.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!((all.revision, names), (after, vec!["greet", "other"]));
    let since = other.changes(before).await.expect("readable");
    let names: Vec<&str> = since.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["other"]);
    let offered = since.tools[0].latest.as_ref().expect("published");
    assert_eq!(offered.head.version, version("3.0.0"));
    assert_eq!(offered.files, stored("3.0.0", VersionState::Published).files);
    assert_eq!(since.aliases, None);
    assert!(!since.servers_changed);
    assert!(other.changes(after).await.expect("readable").tools.is_empty());
}

/// A waiter on one handle returns after a change on another one, also if the store was empty before.
pub async fn a_waiter_learns_of_the_change_of_another_handle(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let wait = |store: Arc<dyn Store>, seen: u64| {
        tokio::spawn(async move {
            while store.revision().await.expect("readable") == seen {
                store.changed(seen).await;
            }
        })
    };
    let waiting = wait(other.clone(), 0);
    let revision = first(&one, "1.0.0").await;
    waiting.await.expect("no panic");
    let waiting = wait(other, revision);
    let operations = vec![StoreOperation::PopLatest];
    one.apply("greet", revision, operations).await.expect("applied");
    waiting.await.expect("no panic");
}

/// Aliases and servers are replaced by name, removed once, and reported as changes.
pub async fn aliases_and_servers_are_set_and_removed(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let revision = first(&one, "1.0.0").await;
    let alias = ToolAlias::new("hello", "greet", "^1");
    assert!(
        one.set_alias("hello", Some(alias.clone()))
            .await
            .expect("applied")
    );
    let moved = ToolAlias::new("hello", "greet", "1.0.0");
    assert!(
        one.set_alias("hello", Some(moved.clone()))
            .await
            .expect("applied")
    );
    assert_eq!(
        other.aliases().await.expect("readable"),
        std::slice::from_ref(&moved)
    );
    let changes = other.changes(revision).await.expect("readable");
    assert_eq!(
        (changes.aliases, changes.servers_changed),
        (Some(vec![moved]), false)
    );
    assert!(one.set_alias("hello", None).await.expect("applied"));
    assert!(!one.set_alias("hello", None).await.expect("applied"));
    assert!(other.aliases().await.expect("readable").is_empty());

    let revision = other.changes(0).await.expect("readable").revision;
    let settings = RawJson::from(json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "${A}"}}));
    let server = ServerRecord::new("github", settings, at(60)).with_official(true);
    assert!(
        one.set_server("github", Some(server.clone()))
            .await
            .expect("applied")
    );
    assert_eq!(other.servers().await.expect("readable"), [server]);
    let changes = other.changes(revision).await.expect("readable");
    assert!(changes.servers_changed && changes.aliases.is_none() && changes.tools.is_empty());
    let moved = ServerRecord::new(
        "github",
        RawJson::from(json!({"url": "http://127.0.0.1:9/mcp"})),
        at(61),
    );
    let moved = moved.with_proposed_by(Some("ada".into()));
    assert!(one.set_server("github", Some(moved)).await.expect("applied"));
    let listed = other.servers().await.expect("readable");
    assert_eq!(
        (listed.len(), listed[0].created_at),
        (1, at(60)),
        "the time of creation stays"
    );
    assert_eq!(listed[0].proposed_by.as_deref(), Some("ada"));
    assert!(one.set_server("github", None).await.expect("applied"));
    assert!(!one.set_server("github", None).await.expect("applied"));
}
