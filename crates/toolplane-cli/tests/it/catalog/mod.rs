//! `toolplane catalog` and `toolplane export`: what one place exports, another one installs.

mod documents;
mod signatures;
mod web;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use toolplane::{
    catalog::{Bundle, CatalogIndex},
    registry::NewVersion,
};

use self::{documents::HYBRID, signatures::MINISIGN_KEY};
use crate::{
    binary::{Place, Run},
    versions::{ANY, greet, publish},
};

const STORE: &str = "store: {sqlite: store.db}\n";
/// Servers of the place that exports.
const SERVERS: &str = "store: {sqlite: store.db}\nservers:\n  files: {command: npx, args: [-y, files@1.0.0], env: {TOKEN: '${FILES_TOKEN}'}}\n";

/// Place with a catalog in `catalog`: `greet` in two versions, and the server `files`.
fn publisher() -> Place {
    let place = Place::with(SERVERS);
    publish(&place, &greet(&place, "1.0.0", "hello", ANY));
    publish(&place, &greet(&place, "1.1.0", "good morning", ANY));
    let exported = place.run(&[
        "export",
        "greet@1.0.0",
        "greet@1.1.0",
        "--server",
        "files@1.0.0",
        "--description",
        "Reads files.",
        "--to",
        "catalog",
        "-q",
    ]);
    exported.data();
    place
}

fn catalog(place: &Place) -> PathBuf {
    place.path().join("catalog")
}

/// Another place, to which the catalog was added.
fn installer(catalog: &Path) -> Place {
    let place = Place::with(STORE);
    let added = place.run(&["catalog", "add", "team", catalog.to_str().unwrap(), "-q"]);
    assert_eq!(added.code, 0, "{added:?}");
    place
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let run = place.run(&[arguments, &["-o", "json"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    run.json()
}

#[track_caller]
fn refused(run: &Run, code: i32, expected: &str) {
    assert_eq!(run.code, code, "{run:?}");
    assert!(run.stderr.contains(expected), "{expected}: {run:?}");
}

fn lock(place: &Place) -> Value {
    let text = fs::read_to_string(place.path().join("toolplane.lock")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_one_exports_another_installs_and_calls() {
    let publisher = publisher();
    let place = installer(&catalog(&publisher));
    let published = json(&publisher, &["tools", "versions", "greet"]);
    let digest = published[1]["digest"].clone();
    assert_eq!(published[1]["version"], "1.0.0");

    let found = json(&place, &["catalog", "search", "greet people"]);
    assert_eq!(
        (&found[0]["name"], &found[0]["version"]),
        (&json!("greet"), &json!("1.1.0"))
    );

    let installed = json(&place, &["catalog", "install", "greet@1.0.0"]);
    assert_eq!(installed["digest"], digest);
    assert_eq!(installed["tool"]["digest"], digest);
    assert_eq!(installed["tool"]["new"], true);
    assert_eq!(installed["signature"], json!({"checked": false}));
    assert_eq!(
        installed["needs"],
        json!({"secrets": [], "hosts": [], "programs": [], "others": []})
    );
    assert_eq!(
        lock(&place)["installed"],
        json!({"tools": {"greet@1.0.0": digest}})
    );
    assert_eq!(place.run(&["call", "greet", "name=Ada"]).data().trim(), "hello");
    assert_eq!(json(&place, &["tools", "versions", "greet"])[0]["digest"], digest);

    let again = json(&place, &["catalog", "install", "team/greet@1.0.0"]);
    assert_eq!(
        (&again["tool"]["new"], &again["pinned_now"]),
        (&json!(false), &json!(false))
    );
    json(&place, &["catalog", "install", "greet@1.1.0"]);
    assert_eq!(
        place.run(&["call", "greet", "name=Ada"]).data().trim(),
        "good morning"
    );
    assert_eq!(lock(&place)["installed"]["tools"].as_object().unwrap().len(), 2);
}

#[test]
fn a_dry_run_changes_nothing() {
    let publisher = publisher();
    let place = installer(&catalog(&publisher));
    for entry in ["greet@1.0.0", "files@1.0.0"] {
        let shown = json(&place, &["catalog", "install", entry, "--dry-run"]);
        assert_eq!(shown["dry_run"], true);
    }
    assert!(!place.path().join("toolplane.lock").exists());
    assert_eq!(json(&place, &["servers", "ls", "--no-start"]), json!([]));
    refused(
        &place.run(&["tools", "versions", "greet"]),
        3,
        "there is no tool `greet` in the store",
    );
}

#[test]
fn a_server_is_installed_with_what_it_needs() {
    let publisher = publisher();
    let place = installer(&catalog(&publisher));
    let installed = json(&place, &["catalog", "install", "files@1.0.0"]);
    assert_eq!(
        installed["needs"],
        json!({
            "secrets": [{"name": "FILES_TOKEN", "reference": "${FILES_TOKEN}", "field": "/env/TOKEN", "destination": null, "default": false}],
            "hosts": [],
            "programs": ["npx -y files@1.0.0"],
            "others": [],
        })
    );
    let servers = json(&place, &["servers", "ls", "--no-start"]);
    assert_eq!(servers[0]["name"], "files");
    assert_eq!(json(&place, &["catalog", "install", "files@1.0.0"])["new"], false);

    // Another version of the same server has other settings.
    publisher.write("toolplane.yaml", SERVERS.replace("files@1.0.0", "files@1.1.0"));
    publisher
        .run(&["export", "--server", "files@1.1.0", "--to", "catalog", "-q"])
        .data();
    let other = place.run(&["catalog", "install", "files@1.1.0"]);
    refused(&other, 1, "the store has a server `files` with other settings");
    let replaced = json(&place, &["catalog", "install", "files@1.1.0", "--replace"]);
    assert_eq!(replaced["replaced"], true);
    let beside = json(
        &place,
        &["catalog", "install", "files@1.0.0", "--name", "old files"],
    );
    assert_eq!(
        (&beside["server"], &beside["new"]),
        (&json!("old files"), &json!(true))
    );
    assert_eq!(lock(&place)["installed"]["servers"].as_object().unwrap().len(), 2);

    let configured = place.run(&["catalog", "install", "files@1.0.0", "--name", "a/b"]);
    refused(&configured, 2, "the settings of the server `a/b` cannot be used");
    place.write("toolplane.yaml", SERVERS);
    let configured = place.run(&["catalog", "install", "files@1.0.0"]);
    refused(&configured, 1, "the configuration has a server `files`");
}

#[test]
fn a_catalog_that_was_changed_installs_nothing() {
    let publisher = publisher();
    let catalog = catalog(&publisher);
    let place = installer(&catalog);
    json(&place, &["catalog", "install", "greet@1.0.0"]);
    let (index, bundle) = (catalog.join("index.json"), catalog.join("greet-1.0.0.json"));
    let (good_index, good) = (
        fs::read_to_string(&index).unwrap(),
        fs::read_to_string(&bundle).unwrap(),
    );

    // The content alone.
    fs::write(&bundle, good.replace("hello", "HELLO")).unwrap();
    let run = place.run(&["catalog", "install", "greet@1.0.0"]);
    refused(&run, 7, "its content has the digest");
    // Another version, with its own digest, under this one's name.
    fs::copy(catalog.join("greet-1.1.0.json"), &bundle).unwrap();
    let run = place.run(&["catalog", "install", "greet@1.0.0"]);
    refused(&run, 7, "its version is `1.1.0`, and the index lists `1.0.0`");
    fs::remove_file(&bundle).unwrap();
    refused(
        &place.run(&["catalog", "show", "greet@1.0.0"]),
        3,
        "the catalog has no such file",
    );

    // Content, digest and index: the lock file knows better, also where the store is empty.
    let elsewhere = Place::with(SERVERS);
    publish(&elsewhere, &greet(&elsewhere, "1.0.0", "EVIL", ANY));
    elsewhere
        .run(&["export", "greet@1.0.0", "--to", "catalog", "-q"])
        .data();
    fs::copy(elsewhere.path().join("catalog/greet-1.0.0.json"), &bundle).unwrap();
    fs::copy(elsewhere.path().join("catalog/index.json"), &index).unwrap();
    fs::remove_file(place.path().join("store.db")).unwrap();
    let run = place.run(&["catalog", "install", "greet@1.0.0"]);
    refused(&run, 7, "and `toolplane.lock` pins `sha256:");
    refused(
        &place.run(&["tools", "versions", "greet"]),
        3,
        "there is no tool `greet`",
    );

    // Without the lock file the store knows it.
    fs::write(&index, good_index).unwrap();
    fs::write(&bundle, good).unwrap();
    json(&place, &["catalog", "install", "greet@1.0.0"]);
    fs::remove_file(place.path().join("toolplane.lock")).unwrap();
    fs::copy(elsewhere.path().join("catalog/greet-1.0.0.json"), &bundle).unwrap();
    fs::copy(elsewhere.path().join("catalog/index.json"), &index).unwrap();
    let run = place.run(&["catalog", "install", "greet@1.0.0"]);
    refused(&run, 1, "`greet@1.0.0` is published with other content");
    assert!(!place.path().join("toolplane.lock").exists());
}

#[test]
fn the_lock_file_keeps_what_was_installed() {
    let publisher = publisher();
    let place = installer(&catalog(&publisher));
    json(&place, &["catalog", "install", "greet@1.0.0"]);
    let installed = lock(&place)["installed"].clone();
    // Written as if there were no file: no definition was accepted yet.
    place.run(&["lock", "-q"]).data();
    assert_eq!(lock(&place)["installed"], installed);
    place.run(&["lock", "--update", "-q"]).data();
    assert_eq!(lock(&place)["installed"], installed);
    assert_eq!(place.run(&["lock", "--check"]).code, 0);
    // Other content under the same version, in a store that was made anew.
    fs::remove_file(place.path().join("store.db")).unwrap();
    assert_eq!(place.run(&["lock", "--check"]).code, 0);
    publish(&place, &greet(&place, "1.0.0", "EVIL", ANY));
    let check = place.run(&["lock", "--check"]);
    assert_eq!(
        (check.code, check.stdout.as_str()),
        (7, "replaced `greet@1.0.0` in the store\n"),
        "{check:?}"
    );
    let check = place.run(&["lock", "--check", "-o", "json"]);
    assert_eq!(
        (check.code, &check.json()["replaced"]),
        (7, &json!(["greet@1.0.0"])),
        "{check:?}"
    );
    let text = fs::read_to_string(place.path().join("toolplane.lock")).unwrap();
    place.write("toolplane.lock", text.replace("sha256:", "sha1:"));
    let run = place.run(&["catalog", "install", "greet@1.0.0"]);
    refused(&run, 2, "is not `sha256:` and 64 hexadecimal digits");
}

#[test]
fn catalogs_are_added_listed_and_removed() {
    let publisher = publisher();
    let catalog = catalog(&publisher);
    let place = installer(&catalog);
    let path = catalog.canonicalize().unwrap();
    assert_eq!(
        json(&place, &["catalog", "ls"]),
        json!([{"name": "team", "place": path, "key": null, "key_kind": null}])
    );
    assert!(place.path().join(".config/toolplane/catalogs.json").exists());
    let again = json(&place, &["catalog", "add", "team", catalog.to_str().unwrap()]);
    assert_eq!(again["new"], false);
    let other = place.run(&[
        "catalog",
        "add",
        "team",
        catalog.to_str().unwrap(),
        "--key",
        MINISIGN_KEY,
    ]);
    refused(&other, 1, "there is another catalog `team`");
    for (arguments, code, expected) in [
        (
            &["catalog", "add", "a b", "catalog"][..],
            2,
            "`a b` is no name of a catalog",
        ),
        (
            &["catalog", "add", "x", "nowhere"],
            3,
            "the catalog `nowhere` cannot be read",
        ),
        (&["catalog", "add", "x", "."], 3, "it is no catalog"),
        (
            &["catalog", "add", "x", ".", "--key", "zzz"],
            2,
            "`zzz` is no public key",
        ),
        (
            &["catalog", "add", "x", "http://tools.example.com/"],
            2,
            "`http` is for this machine alone",
        ),
        (&["catalog", "remove", "teem"], 3, "did you mean `team`?"),
        (
            &["catalog", "search", "--catalog", "teem"],
            3,
            "did you mean `team`?",
        ),
        (&["catalog", "install", "greet"], 2, "write `greet@1.1.0`"),
        (&["catalog", "install", "gret@1.0.0"], 3, "did you mean `greet`?"),
        (
            &["catalog", "install", "greet@9.0.0"],
            3,
            "there are `1.0.0`, `1.1.0`",
        ),
        (
            &["catalog", "install", "greet@1.0.0", "--set", "a=b"],
            2,
            "belong to a `server.json`",
        ),
        (
            &["catalog", "install", "greet@1.0.0", "--name", "a"],
            2,
            "belong to servers",
        ),
    ] {
        refused(&place.run(arguments), code, expected);
    }
    place.run(&["catalog", "remove", "team"]).data();
    refused(&place.run(&["catalog", "search"]), 3, "no catalog was added");
    place.write(".config/toolplane/catalogs.json", "{\"catalogs\": 1}");
    refused(&place.run(&["catalog", "ls"]), 2, "catalogs.json` cannot be used");
}

#[test]
fn an_entry_of_several_catalogs_is_named_with_its_catalog() {
    let publisher = publisher();
    let place = installer(&catalog(&publisher));
    place
        .run(&[
            "catalog",
            "add",
            "copy",
            catalog(&publisher).to_str().unwrap(),
            "-q",
        ])
        .data();
    let run = place.run(&["catalog", "install", "greet@1.0.0", "--dry-run"]);
    refused(&run, 2, "several catalogs have it: `copy`, `team`");
    json(&place, &["catalog", "install", "team/greet@1.0.0", "--dry-run"]);
    // One that is gone does not hide the other.
    let gone = Place::empty();
    fs::create_dir(gone.path().join("c")).unwrap();
    fs::write(gone.path().join("c/server.json"), HYBRID).unwrap();
    place
        .run(&[
            "catalog",
            "add",
            "gone",
            gone.path().join("c").to_str().unwrap(),
            "-q",
        ])
        .data();
    drop(gone);
    let found = place.run(&["catalog", "search", "greet", "-o", "json"]);
    assert_eq!(
        (found.code, found.json().as_array().unwrap().len()),
        (0, 1),
        "{found:?}"
    );
    assert!(found.stderr.contains("left out: the catalog `gone`"), "{found:?}");
}

#[test]
fn an_export_keeps_what_is_there() {
    let publisher = publisher();
    let catalog = catalog(&publisher);
    let before = fs::read(catalog.join("greet-1.0.0.json")).unwrap();
    // A signature is over these bytes: the same export changes none of them.
    let again = json(&publisher, &["export", "greet@1.0.0", "--to", "catalog"]);
    assert_eq!(again[0]["new"], false);
    assert_eq!(fs::read(catalog.join("greet-1.0.0.json")).unwrap(), before);

    publisher.write("toolplane.yaml", SERVERS.replace("files@1.0.0", "files@2.0.0"));
    let run = publisher.run(&["export", "--server", "files@1.0.0", "--to", "catalog"]);
    refused(&run, 7, "the catalog has this version with another content");
    let draft = greet(&publisher, "2.0.0", "hi", ANY);
    publisher
        .run(&["tools", "publish", &draft, "--draft", "-q"])
        .data();
    refused(
        &publisher.run(&["export", "greet@2.0.0", "--to", "catalog"]),
        1,
        "is draft and cannot be shared",
    );
    refused(
        &publisher.run(&["export", "greet@3.0.0", "--to", "catalog"]),
        3,
        "`greet` has no version `3.0.0`",
    );
    refused(
        &publisher.run(&["export", "--server", "fils", "--to", "catalog"]),
        3,
        "did you mean `files`?",
    );

    publisher.write(
        "toolplane.yaml",
        "store: {sqlite: store.db}\nservers:\n  web: {url: 'https://a.example.com', headers: {X-Api-Key: abc, Authorization: 'Bearer ${T}'}}\n",
    );
    let run = publisher.run(&["export", "--server", "web", "--to", "catalog"]);
    assert!(
        run.stderr
            .contains("`web` has a credential in /headers/X-Api-Key"),
        "{run:?}"
    );
    assert!(!run.stderr.contains("Authorization"), "{run:?}");
    publisher.write(
        "toolplane.yaml",
        "store: {sqlite: store.db}\nservers:\n  web: {url: 'https://a.example.com', headers: {K: '${file:/etc/passwd}'}}\n",
    );
    let run = publisher.run(&["export", "--server", "web@2.0.0", "--to", "catalog"]);
    refused(&run, 2, "`${file:/etc/passwd}` names a file of the machine");
}

#[test]
fn a_foreign_bundle_may_not_name_files_of_the_machine() {
    let place = Place::with(STORE);
    let settings = json!({"url": "https://a.example.com/mcp", "headers": {"K": "${file:/etc/passwd}"}});
    let text = settings.to_string();
    let digest = raw_json::hex(&raw_json::digest(&raw_json::RawJson::parse(text).unwrap()));
    let digest = format!("sha256:{digest}");
    let bundle = json!({
        "bundleVersion": 1, "kind": "server", "name": "web", "version": "1.0.0", "digest": digest, "settings": settings,
    });
    let index = json!({"catalogVersion": 1, "entries": [{
        "kind": "server", "name": "web", "version": "1.0.0", "bundle": "web.json", "digest": digest,
    }]});
    place.write("c/web.json", bundle.to_string());
    place.write("c/index.json", index.to_string());
    place.run(&["catalog", "add", "team", "c", "-q"]).data();
    let run = place.run(&["catalog", "install", "web@1.0.0"]);
    refused(
        &run,
        2,
        "`/headers/K`: `${file:/etc/passwd}` names a file of the machine",
    );
    assert_eq!(json(&place, &["servers", "ls", "--no-start"]), json!([]));
}

/// The executor of a tool says what it needs: settings without `${..}` that name a variable count, and text of a script does not.
#[test]
fn a_tool_with_secrets_is_a_draft_until_they_are_granted() {
    let publisher = Place::with(STORE).variable("TENANT", "t").variable("KEY", "k");
    let tool = "apiVersion: toolplane.dev/v1\nkind: Tool\nmetadata: {name: web}\nspec:\n  description: Asks.\n  version: 1.0.0\n  \
                executor: {kind: http, method: GET, url: 'https://api.example.com/${TENANT}', headers_from_env: [X-Key=KEY]}\n";
    publisher.write("web.yaml", tool);
    publish(&publisher, "web.yaml");
    publisher
        .run(&["export", "web@1.0.0", "--to", "catalog", "-q"])
        .data();
    let place = installer(&catalog(&publisher));
    let run = place.run(&["catalog", "install", "web@1.0.0"]);
    let needs = "grants it needs:\n  secret ${TENANT} in /url for https://api.example.com\n  \
                 secret ${KEY} in /headers_from_env/0 for https://api.example.com\n  host api.example.com\n  the method GET\n";
    assert!(
        run.data()
            .starts_with("draft: web@1.0.0\nit is a draft until its secrets are granted"),
        "{run:?}"
    );
    assert!(run.data().ends_with(needs), "{run:?}");
    assert_eq!(place.run(&["call", "web"]).code, 3, "nobody is offered it");
    // A secret without a value is named, and the tool stays a draft.
    refused(
        &place.run(&["catalog", "install", "web@1.0.0", "--grant"]),
        2,
        "`${TENANT}` is not set",
    );
    let place = place.variable("TENANT", "t").variable("KEY", "k");
    let installed = place.run(&["catalog", "install", "web@1.0.0", "--grant"]);
    assert!(
        installed
            .data()
            .starts_with("published: web@1.0.0; it is the latest version\ngranted 2 secrets to it"),
        "{installed:?}"
    );
    let grants = json(&place, &["secrets", "grants", "web"]);
    assert_eq!(grants.as_array().map(Vec::len), Some(2), "{grants}");
    let again = place.run(&["catalog", "install", "web@1.0.0"]);
    assert!(
        again.data().starts_with("web@1.0.0 is published already"),
        "{again:?}"
    );
}

/// Installed tools are as foreign as those of agents: what they declare counts after an operator accepted it.
#[test]
fn what_an_installed_tool_declares_counts_after_its_acceptance() {
    let publisher = Place::with(STORE);
    let tool = "apiVersion: toolplane.dev/v1\nkind: Tool\nmetadata: {name: calm}\nspec:\n  description: Waits.\n  version: 1.0.0\n  \
                read_only: true\n  executor: {kind: mock, result: calm}\n";
    publisher.write("calm.yaml", tool);
    publish(&publisher, "calm.yaml");
    publisher
        .run(&["export", "calm@1.0.0", "--to", "catalog", "-q"])
        .data();
    let place = installer(&catalog(&publisher));
    place.run(&["catalog", "install", "calm@1.0.0", "-q"]).data();
    let declares = || {
        json(&place, &["tools", "show", "calm"])
            .to_string()
            .contains("readOnlyHint")
    };
    assert!(!declares());
    let accept = |digest: &str| place.run(&["tools", "accept", "calm@1.0.0", "-q", "--digest", digest]);
    refused(&accept("sha256:00"), 7, "has the digest");
    assert!(!declares());
    let digest = json(&place, &["tools", "versions", "calm"])[0]["digest"].clone();
    accept(digest.as_str().unwrap()).data();
    assert!(declares());
}

#[test]
fn text_of_a_script_is_no_reference() {
    let place = Place::with(STORE);
    let manifest = json!({
        "apiVersion": "toolplane.dev/v1", "kind": "Tool", "metadata": {"name": "words"},
        "spec": {"description": "Counts.", "version": "1.0.0", "executor": {"kind": "bash", "code": "echo ${file:0} ${#NAME}"}},
    });
    let version = NewVersion::new("words", "1.0.0".parse().unwrap(), manifest.into());
    let bundle = Bundle::of_tool(&version, "Counts.").unwrap();
    let mut index = CatalogIndex::default();
    index.add(bundle.entry()).unwrap();
    place.write("c/index.json", index.to_text());
    place.write("c/words-1.0.0.json", bundle.to_text());
    place.run(&["catalog", "add", "team", "c", "-q"]).data();
    let shown = json(&place, &["catalog", "show", "words"]);
    assert_eq!(shown["needs"]["secrets"], json!([]));
}

/// An export can be read again: deep schemas, and files whose text is larger as JSON.
#[test]
fn large_and_deep_tools_are_shared() {
    let publisher = Place::with(STORE);
    let mut schema = json!({"type": "string"});
    for _ in 0..28 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let tool = json!({
        "apiVersion": "toolplane.dev/v1", "kind": "Tool", "metadata": {"name": "deep"},
        "spec": {
            "description": "x".repeat(9000), "version": "1.0.0", "input_schema": schema,
            "executor": {"kind": "mock", "result": "deep"},
        },
    });
    publisher.write("deep.json", tool.to_string());
    publisher.write("files/control.txt", "\u{1}".repeat(4 << 20));
    let run = publisher.run(&["tools", "publish", "deep.json", "--files", "files", "-q"]);
    run.data();
    publisher
        .run(&["export", "deep@1.0.0", "--to", "catalog", "-q"])
        .data();
    let place = installer(&catalog(&publisher));
    let installed = json(&place, &["catalog", "install", "deep@1.0.0"]);
    assert_eq!(
        installed["digest"],
        json(&publisher, &["tools", "versions", "deep"])[0]["digest"]
    );
    assert_eq!(installed["digest"], installed["tool"]["digest"]);
}
