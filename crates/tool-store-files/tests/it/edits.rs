//! Edits of other programs: editors and version control.

use std::{fs, path::Path, process::Command, sync::Arc};

use tool_registry::{OfferedTool, Store, StoreError, ToolAlias, VersionState};
use tool_store_files::FileStore;

use crate::support::{first, latest, open, put, version};

async fn prepare(directory: &Path) -> FileStore {
    let store = open(directory);
    store
        .apply("greet", 0, first("greet", "1.0.0"))
        .await
        .expect("applied");
    store
        .apply("other", 0, first("other", "1.0.0"))
        .await
        .expect("applied");
    store
}

/// Replaces a part of a document, as an editor does.
fn edit(directory: &Path, path: &str, from: &str, to: &str) {
    let path = directory.join(path);
    let text = fs::read_to_string(&path).expect("readable");
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).expect("written");
}

/// Returns what changed since a revision.
async fn changes(store: &FileStore, since: u64) -> Vec<OfferedTool> {
    store.changes(since).await.expect("readable").tools
}

#[tokio::test]
async fn an_edited_document_is_a_change_for_every_handle() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = prepare(directory.path()).await;
    let other = open(directory.path());
    let seen = other.revision().await.expect("readable");
    let path = "tools/greet/tool.json";
    edit(
        directory.path(),
        path,
        r#""published""#,
        r#""yanked", "reason": "it leaks""#,
    );
    other.changed(seen).await;
    for handle in [&store, &other, &open(directory.path())] {
        let changed = changes(handle, seen).await;
        assert_eq!(changed.len(), 1, "{changed:?}");
        let head = &changed[0].latest.as_ref().expect("offered").head;
        let reason = "it leaks".to_owned();
        assert_eq!(head.state, VersionState::Yanked { reason });
        let revision = handle.revision().await.expect("readable");
        assert!(revision > seen);
        assert_eq!(
            handle
                .tool("greet")
                .await
                .expect("readable")
                .expect("known")
                .revision,
            revision
        );
        assert_eq!(
            handle.revision().await.expect("readable"),
            revision,
            "it is counted once"
        );
    }
    let outdated = store.apply("greet", seen - 1, vec![latest("1.0.0")]).await;
    assert!(
        matches!(outdated, Err(StoreError::Conflict { .. })),
        "{outdated:?}"
    );
}

#[tokio::test]
async fn a_conflict_that_meets_an_edit_does_not_hide_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = prepare(directory.path()).await;
    let (seen, others) = (store.revision().await.expect("readable"), open(directory.path()));
    edit(directory.path(), "tools/greet/tool.json", r#""ada""#, r#""bob""#);
    let refused = store.apply("other", 77, vec![latest("1.0.0")]).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    for handle in [&store, &others] {
        let names: Vec<_> = changes(handle, seen)
            .await
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        assert_eq!(names, [Arc::<str>::from("greet")]);
    }
}

#[tokio::test]
async fn content_of_a_version_that_was_changed_is_refused_and_the_rest_is_offered() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path()).await;
    edit(
        directory.path(),
        "tools/greet/1.0.0/manifest.json",
        "Greets.",
        "Steals.",
    );
    let store = open(directory.path());
    let error = store
        .version("greet", &version("1.0.0"))
        .await
        .expect_err("changed");
    assert!(
        error.to_string().contains("`greet@1.0.0` never changes"),
        "{error}"
    );
    let offered = changes(&store, 0).await;
    let problem = offered[0].problem.as_deref().expect("not offered");
    assert!(problem.contains("manifest.json"), "{problem}");
    assert!(offered[1].latest.is_some(), "the other tool is");
    // Restored, it is offered again.
    let seen = store.revision().await.expect("readable");
    edit(
        directory.path(),
        "tools/greet/1.0.0/manifest.json",
        "Steals.",
        "Greets.",
    );
    store.changed(seen).await;
    let offered = changes(&store, seen).await;
    assert_eq!(offered.len(), 1, "{offered:?}");
    assert!(offered[0].latest.is_some(), "{offered:?}");
    // A file beside the manifest counts as well.
    edit(
        directory.path(),
        "tools/other/1.0.0/files/lib/main.py",
        "1.0.0",
        "evil",
    );
    store
        .version("other", &version("1.0.0"))
        .await
        .expect_err("changed");
    // Spaces do not: a formatter changes nothing.
    edit(directory.path(), "tools/greet/1.0.0/manifest.json", "  ", "\t");
    store.version("greet", &version("1.0.0")).await.expect("the same");
}

#[tokio::test]
async fn a_document_that_cannot_be_read_leaves_the_others_usable() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path()).await;
    for (from, to, reason) in [
        ("{", "<<<<<<< HEAD\n{", "expected value"),
        (r#""published""#, r#""public""#, "`public` is no state"),
        (
            r#""latest": "1.0.0""#,
            r#""latest": "9.0.0""#,
            "`9.0.0`, which is not published",
        ),
        (r#""name": "greet""#, r#""name": "hello""#, "it describes `hello`"),
        ("sha256:", "md5:", "is no SHA-256"),
        ("lib/main.py", "../main.py", "is no path of a file"),
        ("2023-11-14T", "2023-11-34T", "is no time"),
        (r#""owner""#, r#""owners""#, "unknown field `owners`"),
    ] {
        edit(directory.path(), "tools/greet/tool.json", from, to);
        let store = open(directory.path());
        let error = store.tool("greet").await.expect_err("unreadable");
        assert!(error.to_string().contains("tools/greet/tool.json"), "{error}");
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        let offered = changes(&store, 0).await;
        assert!(
            offered[0].problem.is_some() && offered[1].latest.is_some(),
            "{offered:?}"
        );
        assert!(store.tool("other").await.expect("readable").is_some());
        edit(directory.path(), "tools/greet/tool.json", to, from);
        assert!(
            open(directory.path())
                .tool("greet")
                .await
                .expect("readable")
                .is_some()
        );
    }
}

#[tokio::test]
async fn a_tool_whose_folder_is_removed_is_not_offered_and_may_come_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = prepare(directory.path()).await;
    let seen = store.revision().await.expect("readable");
    let (folder, away) = (
        directory.path().join("tools/greet"),
        directory.path().join("away"),
    );
    fs::rename(&folder, &away).expect("moved");
    let changed = changes(&store, seen).await;
    assert_eq!((changed.len(), &*changed[0].name), (1, "greet"));
    assert!(changed[0].latest.is_none() && changed[0].problem.is_none());
    assert_eq!(store.tool("greet").await.expect("readable"), None);
    let names: Vec<_> = changes(&store, 0)
        .await
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, [Arc::<str>::from("other")]);
    let seen = store.revision().await.expect("readable");
    fs::rename(&away, &folder).expect("moved");
    assert!(changes(&store, seen).await[0].latest.is_some());
}

#[tokio::test]
async fn revisions_go_on_when_those_of_the_machine_are_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = prepare(directory.path()).await;
    let seen = store.revision().await.expect("readable");
    fs::remove_dir_all(directory.path().join(".toolplane")).expect("removed");
    edit(directory.path(), "tools/greet/tool.json", r#""ada""#, r#""bob""#);
    let changed = changes(&store, seen).await;
    assert!(changed.iter().any(|tool| &*tool.name == "greet"), "{changed:?}");
    let revision = store.revision().await.expect("readable");
    assert!(revision > seen);
    assert_eq!(
        open(directory.path()).revision().await.expect("readable"),
        revision
    );
}

#[tokio::test]
async fn a_directory_that_disappears_is_an_error_and_loses_no_tools() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let store = prepare(&path).await;
    let away = directory.path().join("away");
    fs::rename(&path, &away).expect("moved");
    let error = store.changes(1).await.expect_err("gone");
    assert!(error.to_string().contains("the directory is gone"), "{error}");
    fs::rename(&away, &path).expect("moved");
    assert_eq!(store.tools().await.expect("readable").len(), 2);
}

/// Without the right to write, the lock cannot be opened: here, since it would be a file of the kernel.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_directory_that_may_not_be_written_is_read_and_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path()).await;
    let local = directory.path().join(".toolplane");
    fs::remove_dir_all(&local).expect("removed");
    fs::create_dir(&local).expect("created");
    std::os::unix::fs::symlink("/sys/kernel/lock-of-toolplane", local.join("lock")).expect("linked");
    let store = open(directory.path());
    assert_eq!(store.tools().await.expect("readable").len(), 2);
    let seen = store.revision().await.expect("readable");
    assert_eq!(store.revision().await.expect("readable"), seen);
    edit(directory.path(), "tools/greet/tool.json", r#""ada""#, r#""bob""#);
    store.changed(seen).await;
    let changed = changes(&store, seen).await;
    assert_eq!((changed.len(), &*changed[0].name), (1, "greet"));
    let alias = ToolAlias::new("hello", "greet", "^1");
    let refused = store
        .set_alias("hello", Some(alias))
        .await
        .expect_err("not written");
    assert!(refused.to_string().contains("may not write"), "{refused}");
    assert!(!local.join("revisions.json").exists());
}

#[tokio::test]
async fn a_symbolic_link_is_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path()).await;
    let manifest = directory.path().join("tools/greet/1.0.0/manifest.json");
    let outside = directory.path().join("outside");
    fs::rename(&manifest, &outside).expect("moved");
    std::os::unix::fs::symlink(&outside, &manifest).expect("linked");
    let error = open(directory.path())
        .version("greet", &version("1.0.0"))
        .await
        .expect_err("a link");
    assert!(error.to_string().contains("symbolic link"), "{error}");
}

/// Two people publish on branches of their own, and git merges them.
#[tokio::test]
async fn git_merges_publications_of_two_tools_and_a_clone_offers_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    let git = |place: &Path, arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(place)
            .args(["-c", "user.name=ada", "-c", "user.email=ada@example.com"]);
        let output = command.args(arguments).output()?;
        assert!(output.status.success(), "{output:?}");
        std::io::Result::Ok(output)
    };
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let store = prepare(&ours).await;
    git(&ours, &["init", "--quiet", "--initial-branch=main"]).expect("git");
    git(&ours, &["add", "."]).expect("git");
    git(&ours, &["commit", "--quiet", "--message=first"]).expect("git");
    let copied = git(directory.path(), &["clone", "--quiet", "ours", "theirs"]).expect("git");
    assert!(copied.status.success() && !theirs.join(".toolplane").exists());
    let clone = open(&theirs);
    let revision = clone
        .tool("other")
        .await
        .expect("readable")
        .expect("cloned")
        .revision;
    let next = |tool: &str| vec![put(tool, "1.1.0", VersionState::Published), latest("1.1.0")];
    clone
        .apply("other", revision, next("other"))
        .await
        .expect("applied");
    git(&theirs, &["add", "."]).expect("git");
    git(&theirs, &["commit", "--quiet", "--message=theirs"]).expect("git");
    let revision = store
        .tool("greet")
        .await
        .expect("readable")
        .expect("known")
        .revision;
    let seen = store
        .apply("greet", revision, next("greet"))
        .await
        .expect("applied");
    git(&ours, &["add", "."]).expect("git");
    git(&ours, &["commit", "--quiet", "--message=ours"]).expect("git");
    git(
        &ours,
        &["pull", "--quiet", "--no-rebase", "--no-edit", "../theirs", "main"],
    )
    .expect("git");
    store.changed(seen).await;
    let changed = changes(&store, seen).await;
    assert_eq!((changed.len(), &*changed[0].name), (1, "other"));
    for tool in ["greet", "other"] {
        let record = store.tool(tool).await.expect("readable").expect("known");
        assert_eq!(record.latest, Some(version("1.1.0")), "{tool}");
        store
            .version(tool, &version("1.1.0"))
            .await
            .expect("readable")
            .expect("content");
    }
}
