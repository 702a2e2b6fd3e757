//! Lock files: their text, what makes them unusable, their drift, and pins that are stored in one.

use std::{fs, path::PathBuf};

use raw_json::RawJson;
use serde_json::{Value, json};
use tempfile::TempDir;
use tool_core::Feature;
use tool_registry::{InstalledKind, LockFile, LockFilePins, Pin, PinKey, Pins, PinsError};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("it is JSON")
}

fn key(source: &str, name: &str) -> PinKey {
    PinKey::new(source, Feature::Tool, name)
}

fn described(name: &str, description: &str) -> Pin {
    let definition = json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    Pin::new(key("files", name), RawJson::from(definition))
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("toolplane.lock");
    (folder, path)
}

/// The text is sorted, shows hidden characters, and keeps numbers.
#[test]
fn the_text_is_for_review() {
    let mut lock = LockFile::default();
    lock.set_server("files", &raw(r#"{"command":"npx","args":["-y","files"]}"#));
    lock.insert(Pin::new(
        key("files", "b"),
        raw(r#"{"name": "b", "n": 12345678901234567890123, "description": "a\u202eb", "list": [1, 2], "none": {}}"#),
    ));
    lock.insert(Pin::new(key("files", "a"), raw(r#"{"name":"a"}"#)).with_version(Some("1.2.0")));
    lock.insert(Pin::new(
        PinKey::new("files", Feature::Resource, "x://a"),
        raw(r#"{"uri":"x://a"}"#),
    ));
    let text = lock.to_text();
    let expected = r#"{
  "lockVersion": 1,
  "sources": {
    "files": {
      "server": {
        "args": ["-y", "files"],
        "command": "npx"
      },
      "tools": {
        "a": {
          "version": "1.2.0",
          "sha256": "DIGEST",
          "definition": {
            "name": "a"
          }
        },
        "b": {
          "sha256": "DIGEST",
          "definition": {
            "description": "a\u202eb",
            "list": [1, 2],
            "n": 12345678901234567890123,
            "name": "b",
            "none": {}
          }
        }
      },
      "resources": {
        "x://a": {
          "sha256": "DIGEST",
          "definition": {
            "uri": "x://a"
          }
        }
      }
    }
  }
}
"#;
    let mut shown = text.clone();
    for pin in lock.iter() {
        shown = shown.replace(&raw_json::hex(pin.digest()), "DIGEST");
    }
    assert_eq!(shown, expected);
    let again = LockFile::parse(&text).expect("it is a lock file");
    assert_eq!(again, lock);
    assert_eq!(again.to_text(), text);
}

#[test]
fn a_definition_of_any_depth_and_with_duplicate_keys_can_be_locked() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(126), "]".repeat(126));
    for definition in [&*deep, r#"{"name":"a","name":"b"}"#] {
        let mut lock = LockFile::default();
        lock.insert(Pin::new(key("files", "a"), raw(definition)));
        let again = LockFile::parse(&lock.to_text()).expect("it is a lock file");
        assert!(
            again
                .get(&key("files", "a"))
                .expect("it is locked")
                .matches(&raw(definition), None)
        );
    }
}

#[test]
fn a_damaged_file_is_refused_with_the_reason() {
    let mut lock = LockFile::default();
    lock.insert(described("read", "Reads."));
    let text = lock.to_text();
    for (damaged, reason) in [
        (text.replace("Reads.", "Reads all."), "does not fit its `sha256`"),
        (
            text.replace("\"sha256\": \"", "\"sha256\": \"x"),
            "64 hexadecimal digits",
        ),
        (text.replace("sha256", "sha1"), "has no `sha256`"),
        (
            text.replace("lockVersion\": 1", "lockVersion\": 2"),
            "reads version 1",
        ),
        (
            text.replace("\"sources\"", "\"servers\""),
            "unknown member `servers`",
        ),
        (text.replace("\"tools\"", "\"tool\""), "unknown member `tool`"),
        (text.replace("\"sources\"", "<<<<<<< ours\n\"sources\""), "line 3"),
        (String::new(), "line 1"),
        ("{}".to_owned(), "no `lockVersion`"),
    ] {
        let error = LockFile::parse(&damaged).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn drift_is_new_missing_changed_and_moved() {
    let (mut locked, mut present) = (LockFile::default(), LockFile::default());
    locked.set_server("files", &raw(r#"{"command":"a"}"#));
    present.set_server("files", &raw(r#"{"command":"b"}"#));
    for (lock, tools) in [
        (&mut locked, [("same", "s"), ("changed", "one"), ("missing", "m")]),
        (&mut present, [("same", "s"), ("changed", "two"), ("new", "n")]),
    ] {
        for (name, description) in tools {
            lock.insert(described(name, description));
        }
    }
    let drift = locked.drift(&present);
    assert_eq!(drift.new, [key("files", "new")]);
    assert_eq!(drift.missing, [key("files", "missing")]);
    let (changed, changes) = &drift.changed[0];
    assert_eq!(*changed, key("files", "changed"));
    assert_eq!(changes[0].to_string(), r#"`/description`: "one" -> "two""#);
    assert_eq!(drift.servers[0].1[0].to_string(), r#"`/command`: "a" -> "b""#);
    assert!(locked.drift(&locked).is_empty() && !drift.is_empty());
}

#[tokio::test]
async fn accepted_definitions_are_written_and_those_of_first_use_are_not() {
    let (_folder, path) = folder();
    let pins = LockFilePins::open(&path).expect("a missing file is empty");
    pins.add_first_used(vec![described("first", "used")]);
    assert_eq!(pins.snapshot().len(), 1);
    assert!(!path.exists());
    pins.accept(vec![described("read", "Reads.")])
        .await
        .expect("it is written");
    assert_eq!(pins.snapshot().len(), 2);
    let written = LockFile::read(&path).expect("it is read").expect("it is there");
    assert_eq!(written.iter().count(), 1);
    let left_over = fs::read_dir(path.parent().expect("a folder"))
        .expect("it is read")
        .count();
    assert_eq!(left_over, 1);
}

#[tokio::test]
async fn without_a_file_acceptance_is_for_this_run() {
    let (_folder, path) = folder();
    let pins = LockFilePins::open(&path).expect("empty").without_creation();
    pins.add_first_used(vec![described("read", "one")]);
    pins.accept(vec![described("read", "two")])
        .await
        .expect("it is accepted");
    assert!(!path.exists());
    let pin = pins
        .snapshot()
        .get("files", Feature::Tool, "read")
        .cloned()
        .expect("it is pinned");
    assert_eq!(*pin, described("read", "two"));
    // A file that is created later goes first.
    let mut file = LockFile::default();
    file.insert(described("read", "three"));
    file.write(&path).expect("it is written");
    assert_eq!(pins.refresh().await, Ok(true));
    let pin = pins
        .snapshot()
        .get("files", Feature::Tool, "read")
        .cloned()
        .expect("it is pinned");
    assert_eq!(*pin, described("read", "three"));
}

/// Two processes that accept different definitions lose none.
#[tokio::test]
async fn the_changes_of_others_stay() {
    let (_folder, path) = folder();
    let (one, other) = (
        LockFilePins::open(&path).expect("empty"),
        LockFilePins::open(&path).expect("empty"),
    );
    one.accept(vec![described("a", "A")])
        .await
        .expect("it is written");
    other
        .accept(vec![described("b", "B")])
        .await
        .expect("it is written");
    assert_eq!(other.snapshot().len(), 2);
    assert_eq!(one.refresh().await, Ok(true));
    assert_eq!(one.refresh().await, Ok(false));
    assert_eq!(one.snapshot().len(), 2);
}

#[tokio::test]
async fn a_file_that_becomes_unusable_changes_nothing() {
    let (_folder, path) = folder();
    let pins = LockFilePins::open(&path).expect("empty");
    pins.accept(vec![described("a", "A")])
        .await
        .expect("it is written");
    fs::write(&path, "{").expect("it is written");
    let error = pins.refresh().await.expect_err("it is not JSON");
    assert!(matches!(error, PinsError::Read { .. }) && error.to_string().contains("toolplane.lock"));
    pins.accept(vec![described("b", "B")])
        .await
        .expect_err("nothing of others is overwritten");
    assert_eq!(pins.snapshot().len(), 1);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "{");
    LockFilePins::open(&path).expect_err("a damaged file is not an empty one");
}

/// A file that is replaced by way of its removal, or was deleted by mistake, unlocks nothing.
#[tokio::test]
async fn a_file_that_is_gone_changes_nothing() {
    let (_folder, path) = folder();
    let pins = LockFilePins::open(&path).expect("empty");
    assert_eq!(pins.refresh().await, Ok(false), "there was none");
    pins.accept(vec![described("a", "A")])
        .await
        .expect("it is written");
    fs::remove_file(&path).expect("it is there");
    let error = pins.refresh().await.expect_err("it is gone");
    assert!(error.to_string().contains("the file is gone"), "{error}");
    assert_eq!(pins.snapshot().len(), 1);
    pins.accept(vec![described("b", "B")])
        .await
        .expect("it is written");
    let written = LockFile::read(&path).expect("it is read").expect("it is there");
    assert_eq!(written.iter().count(), 2);
}

#[tokio::test]
async fn secrets_are_not_written_and_the_digest_is_of_the_definition() {
    let (_folder, path) = folder();
    let redact = |definition: &RawJson| {
        let text = definition.as_str();
        text.contains("hunter2")
            .then(|| raw(&text.replace("hunter2", "[redacted]")))
    };
    let pins = LockFilePins::open(&path).expect("empty").with_redaction(redact);
    let pin = described("a", "Uses hunter2.");
    let definition = pin.definition().expect("it has one").clone();
    pins.accept(vec![pin]).await.expect("it is written");
    let text = fs::read_to_string(&path).expect("it is there");
    assert!(
        !text.contains("hunter2") && text.contains("Uses [redacted]."),
        "{text}"
    );
    let read = LockFile::parse(&text).expect("it is a lock file");
    let pin = read.get(&key("files", "a")).expect("it is locked");
    assert!(pin.matches(&definition, None));
    assert!(!pin.matches(pin.definition().expect("it has one"), None));
    let _: Value = pin.definition().expect("it has one").to().expect("it is JSON");
}

/// Digests of what was installed from catalogs are in the file, pin no definition, and survive another lock file.
#[test]
fn what_was_installed_is_kept() {
    let mut lock = LockFile::default();
    lock.set_installed(InstalledKind::Tool, "greet@1.10.0", [0xab; 32]);
    lock.set_installed(InstalledKind::Tool, "greet@1.0.0", [1; 32]);
    lock.set_installed(InstalledKind::Server, "io.github.ada/weather@0.1.0", [2; 32]);
    let text = lock.to_text();
    let digest = |byte: &str| format!("sha256:{}", byte.repeat(32));
    let parsed: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        parsed,
        json!({
            "lockVersion": 1,
            "sources": {},
            "installed": {
                "servers": {"io.github.ada/weather@0.1.0": digest("02")},
                "tools": {"greet@1.0.0": digest("01"), "greet@1.10.0": digest("ab")},
            },
        })
    );
    let read = LockFile::parse(&text).expect("it is a lock file");
    assert_eq!(read, lock);
    assert_eq!(read.to_text(), text);
    assert_eq!(read.installed(InstalledKind::Tool, "greet@1.0.0"), Some(&[1; 32]));
    assert_eq!(read.installed(InstalledKind::Server, "greet@1.0.0"), None);
    assert!(read.has_no_sources() && read.pins().is_empty());
    let all: Vec<_> = read.all_installed().map(|(_, version, _)| version).collect();
    assert_eq!(
        all,
        ["io.github.ada/weather@0.1.0", "greet@1.0.0", "greet@1.10.0"]
    );

    let mut present = LockFile::default();
    present.insert(described("a", "x"));
    let drift = read.drift(&present);
    assert_eq!((drift.new.len(), drift.missing.len()), (1, 0));
    let updated = present.with_installed_of(&read);
    assert!(!updated.has_no_sources());
    assert_eq!(
        updated.installed(InstalledKind::Tool, "greet@1.10.0"),
        Some(&[0xab; 32])
    );
    assert_eq!(LockFile::parse(&updated.to_text()), Ok(updated));
}

#[test]
fn installed_digests_are_checked() {
    for (installed, expected) in [
        ("1", "`installed` is not an object"),
        (r#"{"agents": {}}"#, "`installed` has an unknown member `agents`"),
        (r#"{"tools": []}"#, "`tools` of `installed` is not an object"),
        (
            r#"{"tools": {"a@1": "sha256:00"}}"#,
            "the digest of `a@1` in `installed` is not `sha256:` and 64",
        ),
        (
            r#"{"tools": {"a@1": 5}}"#,
            "the digest of `a@1` in `installed` is not",
        ),
    ] {
        let text = format!(r#"{{"lockVersion": 1, "sources": {{}}, "installed": {installed}}}"#);
        let error = LockFile::parse(&text).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
