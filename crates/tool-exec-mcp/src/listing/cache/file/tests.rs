use std::{
    fs::File,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    time::{Duration, SystemTime},
};

use mcp_client::ServerInfo;
use mcp_wire::Revision;
use raw_json::RawJson;
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;
use tool_core::{Feature, Template};

use super::*;
use crate::{HttpTarget, ServerSettings, ServerTarget, StdioTarget};

fn key_of(server: &str, command: &str) -> ListCacheKey {
    ListCacheKey::new(&ServerSettings::new(
        server,
        StdioTarget::new(Template::parse(command).expect("a template")),
    ))
}

fn key() -> ListCacheKey {
    key_of("box", "run")
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("JSON")
}

fn lists(tools: &[&str]) -> CachedLists {
    let mut info = ServerInfo::new(Revision::V2025_11_25);
    info.capabilities = raw(r#"{"tools":{"listChanged":true}}"#);
    info.implementation = Some(raw(r#"{"name":"f","version":"1"}"#));
    info.instructions = Some(raw(r#""Say \"please\".""#));
    let tools = tools.iter().map(|tool| raw(tool)).collect();
    CachedLists::new(
        info,
        [(Feature::Tool, tools), (Feature::Prompt, Vec::new())].into(),
    )
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("cache/lists")
    }

    /// A store with one list in it, and the list's file.
    fn with_list(&self) -> (Inner, PathBuf) {
        let store = self.store();
        store
            .save(&key(), &lists(&[r#"{"name":"a"}"#]))
            .expect("it is saved");
        let file = self.path().join(file_name(&key()));
        (store, file)
    }

    fn store(&self) -> Inner {
        Inner {
            folder: PrivateFolder::new(self.path()),
            n_saved: AtomicU64::new(0),
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("a folder");
        let names = entries.map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        names.collect()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn lists_come_back_byte_for_byte_from_files_of_this_user_alone() {
    let folder = Folder::new();
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let kept = lists(&[
        r#"{"name":"a","inputSchema":{"type":"object"}}"#,
        r#"{ "n": 12345678901234567890123, "e" : 1e2, "n": "twice" }"#,
        "\"\\u0000\u{202e}\u{1f98a}\"",
        &deep,
        "null",
    ]);
    let store = folder.store();
    assert_eq!(store.load(&[key()]), [None], "there is not even a folder");
    store.save(&key(), &kept).expect("it is saved");
    let other = key_of("box", "another program");
    assert_eq!(store.load(&[other.clone(), key()]), [None, Some(kept.clone())]);
    assert_eq!(
        (mode(&folder.path()), mode(&folder.path().join(file_name(&key())))),
        (0o700, 0o600)
    );

    let changed = lists(&[]);
    store.save(&key(), &changed).expect("it is saved");
    store.save(&other, &kept).expect("it is saved");
    assert_eq!(store.load(&[key(), other]), [Some(changed), Some(kept)]);
    assert_eq!(
        folder.names().len(),
        2,
        "nothing is left over: {:?}",
        folder.names()
    );
}

/// Checks that the key covers every setting that decides the server's lists, and no value of a reference.
#[test]
fn another_configuration_has_another_file() {
    let text = |text: &str| Template::parse(text).expect("a template");
    let http = |url: &str, header: &str, transport| {
        let target = HttpTarget::new(text(url)).header("Authorization", text(header));
        ServerTarget::from(target.transport(transport))
    };
    let stdio = |args: &[&str], env: &str, cwd: Option<&str>| {
        let target = StdioTarget::new(text("run"))
            .args(args.iter().map(|arg| text(arg)))
            .env("KEY", text(env));
        ServerTarget::from(match cwd {
            Some(cwd) => target.cwd(text(cwd)),
            None => target,
        })
    };
    let mut settings: Vec<_> = [
        http("http://one/", "${env:A}", crate::HttpTransport::Either),
        http("http://two/", "${env:A}", crate::HttpTransport::Either),
        http("http://one/", "${env:B}", crate::HttpTransport::Either),
        http("http://one/", "${env:A}", crate::HttpTransport::Sse),
        stdio(&["a", "b"], "1", None),
        stdio(&["a b"], "1", None),
        stdio(&["a", "b"], "2", None),
        stdio(&["a", "b"], "1", Some("/tmp")),
    ]
    .map(|target| ServerSettings::new("box", target))
    .into();
    let first = settings[0].clone();
    settings.push(ServerSettings {
        era: crate::EraChoice::Modern,
        ..first.clone()
    });
    settings.push(ServerSettings {
        isolation: crate::Isolation::Session,
        ..first.clone()
    });
    settings.push(ServerSettings {
        name: "b.x".to_owned(),
        ..first.clone()
    });
    settings.push(ServerSettings {
        name: "b x".to_owned(),
        ..first.clone()
    });
    let mut names: Vec<_> = settings
        .iter()
        .map(|settings| file_name(&ListCacheKey::new(settings)))
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), settings.len());
    // Filters and names are applied when a list is loaded.
    let filtered = ServerSettings {
        exclude: vec!["a".into()],
        prefix: String::new(),
        ..first.clone()
    };
    assert_eq!(ListCacheKey::new(&filtered), ListCacheKey::new(&first));
}

#[test]
fn a_file_that_is_not_as_we_wrote_it_is_ignored() {
    let folder = Folder::new();
    let (store, file) = folder.with_list();
    let good = fs::read_to_string(&file).expect("it was written");
    let is_ignored = |what: &str| assert_eq!(store.load(&[key()]), [None], "{what}");
    let replace = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    for end in 0..good.len() {
        fs::write(&file, &good[..end]).expect("it is ours");
        is_ignored(&good[..end]);
    }
    for text in [
        replace("kept-lists/1", "kept-lists/2"),
        replace(r#""server":"box""#, r#""server":"bag""#),
        replace(&key().digest()[..60], &"0".repeat(60)),
        replace("2025-11-25", "2099-01-01"),
        replace(r#""capabilities":{"#, r#""capabilities":[],"x":{"#),
        replace(r#""tools":["#, r#""others":["#),
        replace(r#""prompts":[]"#, r#""prompts":{}"#),
        format!("{good}x"),
        "[1]".to_owned(),
    ] {
        fs::write(&file, &text).expect("it is ours");
        is_ignored(&text);
    }
    fs::write(&file, &good).expect("it is ours");
    assert!(
        store.load(&[key()])[0].is_some(),
        "nothing but its content was at fault"
    );
}

#[test]
fn a_file_that_others_could_have_written_is_ignored() {
    let folder = Folder::new();
    let (store, file) = folder.with_list();
    let is_ignored = |what: &str| assert_eq!(store.load(&[key()]), [None], "{what}");
    for bits in [0o660, 0o606, 0o640, 0o604, 0o777] {
        set_mode(&file, bits);
        is_ignored(&format!("{bits:o}"));
    }
    set_mode(&file, 0o600);
    for bits in [0o755, 0o770, 0o707, 0o777] {
        set_mode(&folder.path(), bits);
        is_ignored(&format!("{bits:o} of the folder"));
        store
            .save(&key(), &lists(&[]))
            .expect_err("nothing is written there either");
        store.forget(None).expect_err("nothing is deleted there either");
    }
    set_mode(&folder.path(), 0o700);
    // Only root can give a file away.
    if chown(&file, Some(1), None).is_ok() {
        is_ignored("of another user");
        chown(&file, Some(0), None).expect("it was possible before");
    }
    assert!(store.load(&[key()])[0].is_some(), "nothing else was at fault");

    let elsewhere = folder.0.path().join("elsewhere");
    fs::rename(&file, &elsewhere).expect("it is ours");
    symlink(&elsewhere, &file).expect("it is gone");
    is_ignored("a link");
    fs::remove_file(&file).expect("it is ours");
    rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    is_ignored("a pipe that nobody writes");
    fs::remove_file(&file).expect("it is ours");
    fs::create_dir(&file).expect("it is gone");
    is_ignored("a folder");
    fs::remove_dir(&file).expect("it is empty");

    fs::rename(folder.path(), folder.0.path().join("real")).expect("it is ours");
    symlink(folder.0.path().join("real"), folder.path()).expect("it is gone");
    fs::copy(&elsewhere, folder.0.path().join("real").join(file_name(&key()))).expect("it is ours");
    is_ignored("the folder is a link");
}

#[test]
fn too_large_files_are_neither_read_nor_written() {
    let folder = Folder::new();
    let (store, file) = folder.with_list();
    let size = usize::try_from(MAX_BYTES).expect("it fits");
    let padded = fs::read_to_string(&file).expect("it was written") + &" ".repeat(size);
    fs::write(&file, padded).expect("it is ours");
    assert_eq!(store.load(&[key()]), [None]);
    let large = format!("\"{}\"", "x".repeat(size));
    store.save(&key(), &lists(&[&large])).expect("it is no error");
    assert!(
        folder.names().is_empty(),
        "a list from before is not what the server has now"
    );
}

#[test]
fn the_oldest_files_go_first_and_unfinished_ones_are_cleared_away() {
    let folder = Folder::new();
    let store = folder.store();
    let keys: Vec<_> = (0..5).map(|n| key_of(&format!("s{n}"), "run")).collect();
    let age = |path: &Path, seconds: u64| {
        let file = File::options().write(true).open(path).expect("it is there");
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
            .expect("it is ours");
    };
    for (n, key) in (0..).zip(&keys) {
        store.save(key, &lists(&[])).expect("it is saved");
        age(&folder.path().join(file_name(key)), 1000 * n);
    }
    for (name, seconds) in [("1-1.tmp", 7200), ("2-2.tmp", 10), ("other.json", 9999)] {
        fs::write(folder.path().join(name), "").expect("it is ours");
        age(&folder.path().join(name), seconds);
    }
    store.sweep(3).expect("it is ours");
    let found = store.load(&keys);
    let found: Vec<_> = found.iter().map(Option::is_some).collect();
    assert_eq!(found, [true, true, true, false, false]);
    let names = folder.names();
    assert!(!names.contains(&"1-1.tmp".to_owned()), "{names:?}");
    assert!(
        names.contains(&"2-2.tmp".to_owned()),
        "somebody may be writing it: {names:?}"
    );
    assert!(
        names.contains(&"other.json".to_owned()),
        "it is not ours: {names:?}"
    );
}

/// The time of the directory tells that nothing has changed, and the file is not among the oldest ones.
#[test]
fn an_unchanged_list_keeps_its_file_and_gets_a_new_time() {
    let folder = Folder::new();
    let (store, file) = folder.with_list();
    let old = SystemTime::now() - Duration::from_secs(5000);
    for path in [&file, &folder.path()] {
        let opened = File::open(path).expect("it is there");
        opened.set_modified(old).expect("it is ours");
    }
    let inode = |path: &Path| fs::metadata(path).expect("it is there").ino();
    let time = |path: &Path| {
        fs::metadata(path)
            .and_then(|file| file.modified())
            .expect("it is there")
    };
    let before = inode(&file);
    store
        .save(&key(), &lists(&[r#"{"name":"a"}"#]))
        .expect("it is saved");
    assert_eq!((inode(&file), time(&folder.path())), (before, old));
    assert!(time(&file) > old);
    store
        .save(&key(), &lists(&[r#"{"name":"b"}"#]))
        .expect("it is saved");
    assert!(time(&folder.path()) > old);
    let found = store.load(&[key()]);
    let tool = found[0]
        .as_ref()
        .map(|kept| kept.lists[&Feature::Tool][0].as_str());
    assert_eq!(tool, Some(r#"{"name":"b"}"#));
}

#[test]
fn the_number_of_files_is_bounded_while_lists_are_saved() {
    let folder = Folder::new();
    let store = folder.store();
    for n in 0..=SWEEP {
        if n == 1 {
            for other in 0..MAX_FILES {
                let name = format!("old-{other:016x}.json");
                fs::write(folder.path().join(name), "").expect("it is ours");
            }
        }
        store
            .save(&key_of(&format!("s{n}"), "run"), &lists(&[]))
            .expect("it is saved");
    }
    assert_eq!(folder.names().len(), MAX_FILES);
}

#[test]
fn lists_are_forgotten_by_server_or_all() {
    let folder = Folder::new();
    let store = folder.store();
    assert_eq!(store.forget(None).expect("there is nothing"), 0);
    for (server, command) in [("a", "x"), ("a", "y"), ("a-b", "x"), ("c", "x")] {
        store
            .save(&key_of(server, command), &lists(&[]))
            .expect("it is saved");
    }
    fs::write(folder.path().join("notes.txt"), "").expect("it is ours");
    assert_eq!(store.forget(Some("a")).expect("it is ours"), 2);
    assert_eq!(store.forget(Some("b")).expect("it is ours"), 0);
    assert_eq!(store.forget(None).expect("it is ours"), 2);
    assert_eq!(folder.names(), ["notes.txt"]);
}

#[tokio::test]
async fn many_servers_are_loaded_at_once_in_their_order() {
    let folder = Folder::new();
    let store = FileListCache::new(folder.path());
    let keys: Vec<_> = (0..50).map(|n| key_of(&format!("s{n}"), "run")).collect();
    for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 3 != 0) {
        store.save(key.clone(), lists(&[&n.to_string()])).await;
    }
    let found = store.load(&keys).await;
    for (n, found) in found.iter().enumerate() {
        let tool = found
            .as_ref()
            .map(|kept| kept.lists[&Feature::Tool][0].to_string());
        assert_eq!(tool, (n % 3 != 0).then(|| n.to_string()));
    }
    assert!(store.load(&[]).await.is_empty());
}
