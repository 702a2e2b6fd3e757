//! The directory as people and version control see it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use raw_json::RawJson;
use tool_registry::{Deprecation, ServerRecord, Store, StoreError, StoreOperation, ToolAlias, VersionState};

use crate::support::{first, open, put, stored, version};

fn read(directory: &Path, path: &str) -> String {
    fs::read_to_string(directory.join(path)).expect(path)
}

#[tokio::test]
async fn reading_creates_nothing_and_a_change_creates_a_private_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("deep/er");
    let store = open(&path);
    assert!(store.tools().await.expect("readable").is_empty());
    assert!(!directory.path().join("deep").exists());
    store
        .apply("greet", 0, first("greet", "1.0.0"))
        .await
        .expect("applied");
    assert_eq!(
        path.metadata().expect("there").permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(read(&path, ".toolplane/.gitignore"), "*\n");
}

#[tokio::test]
async fn documents_are_indented_and_have_one_fact_on_each_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let store = open(directory);
    let mut operations = first("greet", "1.0.0");
    let deprecation = Deprecation::default().with_replacement(Some("hello@^2".to_owned()));
    operations.push(StoreOperation::SetState {
        version: version("1.0.0"),
        state: VersionState::Deprecated(deprecation),
    });
    let spaced = stored("greet", "2.0.0-rc.1", VersionState::Draft, "{ \"a\": 1.50}");
    operations.push(StoreOperation::Put(Box::new(spaced.clone())));
    store.apply("greet", 0, operations).await.expect("applied");
    let digest = |number: &str, manifest: &str| {
        raw_json::hex(&stored("greet", number, VersionState::Draft, manifest).head.digest)
    };
    let (first, second) = (
        digest("1.0.0", r#"{"description":"Greets."}"#),
        digest("2.0.0-rc.1", "{ \"a\": 1.50}"),
    );
    let document = format!(
        r#"{{
  "name": "greet",
  "owner": "ada",
  "latest": "1.0.0",
  "versions": {{
    "1.0.0": {{
      "state": "deprecated",
      "replacement": "hello@^2",
      "digest": "sha256:{first}",
      "files": {{
        "lib/main.py": "sha256:99a2ca6c3c2f22a0a620e09212dfb8254e97925493fb48cee4b503cca3246d6a"
      }},
      "created_at": "2023-11-14T22:13:20.250Z",
      "created_by": "ada"
    }},
    "2.0.0-rc.1": {{
      "state": "draft",
      "digest": "sha256:{second}",
      "files": {{
        "lib/main.py": "sha256:38f105bdebad68ff4d5cef32c28b7e223aaa30b4d5a3c7478ec2a4b49a73f40f"
      }},
      "as_written": true,
      "created_at": "2023-11-14T22:13:20.250Z",
      "created_by": "ada"
    }}
  }},
  "history": [
    {{
      "version": "1.0.0",
      "at": "2023-11-14T22:13:20Z",
      "by": "ada"
    }}
  ]
}}
"#
    );
    assert_eq!(read(directory, "tools/greet/tool.json"), document);
    assert_eq!(
        read(directory, "tools/greet/1.0.0/manifest.json"),
        "{\n  \"description\": \"Greets.\"\n}\n"
    );
    assert_eq!(
        read(directory, "tools/greet/2.0.0-rc.1/manifest.json"),
        "{ \"a\": 1.50}"
    );
    assert_eq!(
        read(directory, "tools/greet/1.0.0/files/lib/main.py"),
        "print('1.0.0')\n"
    );
    assert_eq!(read(directory, "tools/.gitattributes"), "* -text\n");
    assert_eq!(read(directory, "store.json"), "{\"format\": 1}\n");
    let found = open(directory).version("greet", &version("2.0.0-rc.1")).await;
    assert_eq!(found.expect("readable"), Some(spaced));
    let alias = ToolAlias::new("hello", "greet", "^1");
    store.set_alias("hello", Some(alias)).await.expect("applied");
    assert_eq!(
        read(directory, "aliases.json"),
        "{\n  \"hello\": {\n    \"tool\": \"greet\",\n    \"version\": \"^1\"\n  }\n}\n"
    );
    let settings = RawJson::parse(r#"{"command":"npx","args":["-y"]}"#).expect("JSON");
    let server = ServerRecord::new("git.hub", settings, std::time::UNIX_EPOCH);
    store.set_server("git.hub", Some(server)).await.expect("applied");
    assert!(read(directory, "servers/git.hub.json").contains("\n    \"command\": \"npx\",\n"));
}

#[tokio::test]
async fn a_name_or_a_path_never_leads_out_of_the_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let store = open(&path);
    for (name, folder) in [
        ("../../evil", "%2E.%2F..%2Fevil"),
        (".git", "%2Egit"),
        ("a b", "a%20b"),
    ] {
        store.apply(name, 0, first(name, "1.0.0")).await.expect("applied");
        assert!(
            path.join("tools").join(folder).join("tool.json").is_file(),
            "{name}"
        );
    }
    let names: Vec<_> = open(&path)
        .tools()
        .await
        .expect("readable")
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(
        names,
        [
            "../../evil".into(),
            ".git".into(),
            std::sync::Arc::<str>::from("a b")
        ]
    );
    let mut content = stored("greet", "1.0.0", VersionState::Draft, "{}");
    let file = content.files.remove("lib/main.py").expect("a file");
    content.files.insert("../../tool.json".to_owned(), file);
    let operations = vec![
        StoreOperation::Create { owner: "ada".into() },
        StoreOperation::Put(Box::new(content)),
    ];
    let refused = store
        .apply("greet", 0, operations)
        .await
        .expect_err("a path outside");
    assert!(refused.to_string().contains("is no path of a file"), "{refused}");
    assert_eq!(store.tool("greet").await.expect("readable"), None);
    let nameless = store
        .apply("", 0, vec![StoreOperation::Create { owner: "ada".into() }])
        .await;
    nameless.expect_err("no name");
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[tokio::test]
async fn a_directory_that_everybody_may_write_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    open(directory.path())
        .apply("greet", 0, first("greet", "1.0.0"))
        .await
        .expect("applied");
    for path in ["", "tools", "tools/greet", "tools/greet/tool.json"] {
        let path = directory.path().join(path);
        let mode = path.metadata().expect("there").permissions().mode();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o002)).expect("changed");
        let error = open(directory.path())
            .tools()
            .await
            .expect_err("everybody may write it");
        assert!(error.to_string().contains("chmod o-w"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
    }
    assert_eq!(open(directory.path()).tools().await.expect("readable").len(), 1);
}

#[tokio::test]
async fn a_directory_of_a_newer_program_is_refused_with_both_formats() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(
        directory.path().join("store.json"),
        r#"{"format": 7, "new": true}"#,
    )
    .expect("written");
    let error = open(directory.path()).tools().await.expect_err("newer");
    assert!(
        matches!(error, StoreError::Newer { found: 7, known: 1 }),
        "{error}"
    );
    let refused = open(directory.path())
        .apply("greet", 0, vec![put("greet", "1.0.0", VersionState::Draft)])
        .await;
    assert!(matches!(refused, Err(StoreError::Newer { .. })), "{refused:?}");
}
