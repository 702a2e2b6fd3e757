//! `toolplane catalog` and `toolplane export`: what one place exports, another one installs.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    thread,
};

use serde_json::{Value, json};
use toolplane::{
    catalog::{Bundle, CatalogIndex},
    registry::NewVersion,
};

use crate::{
    binary::{Place, Run},
    versions::{ANY, greet, publish},
};

const SIGNED: &str = include_str!("../../../tool-catalog/tests/fixtures/signed/bundle.json");
const MINISIG: &str = include_str!("../../../tool-catalog/tests/fixtures/signed/bundle.json.minisig");
const OTHER_MINISIG: &str = include_str!("../../../tool-catalog/tests/fixtures/signed/other.minisig");
const RAW_SIGNATURE: &str = include_str!("../../../tool-catalog/tests/fixtures/signed/bundle.json.sig");
const MINISIGN_KEY: &str = include_str!("../../../tool-catalog/tests/fixtures/signed/minisign.pub");
const ED25519_KEY: &str = include_str!("../../../tool-catalog/tests/fixtures/signed/ed25519.pem");
const DATABASE: &str = include_str!("../../../tool-catalog/tests/fixtures/server-json/database-manager.json");
const HYBRID: &str = include_str!("../../../tool-catalog/tests/fixtures/server-json/hybrid.json");
const MCPB: &str = include_str!("../../../tool-catalog/tests/fixtures/server-json/mcpb.json");

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

/// Writes a catalog with the bundle that other programs signed.
fn signed_catalog(place: &Place, signatures: &[(&str, &str)]) -> PathBuf {
    let bundle: Value = serde_json::from_str(SIGNED).unwrap();
    let index = json!({"catalogVersion": 1, "entries": [{
        "kind": "tool", "name": "greet", "version": "1.0.0", "bundle": "bundle.json", "digest": bundle["digest"],
    }]});
    place.write("signed/index.json", index.to_string());
    for (name, content) in signatures {
        place.write(&format!("signed/{name}"), content);
    }
    place
        .write("signed/bundle.json", SIGNED)
        .parent()
        .unwrap()
        .to_owned()
}

#[test]
fn signatures_are_checked_where_a_key_is_configured() {
    for (key, name, signature, kind) in [
        (MINISIGN_KEY, "bundle.json.minisig", MINISIG, "minisign"),
        (ED25519_KEY, "bundle.json.sig", RAW_SIGNATURE, "ed25519"),
    ] {
        let place = Place::with(STORE);
        let catalog = signed_catalog(&place, &[(name, signature)]);
        place.write("team.pub", key);
        let added = place.run(&["catalog", "add", "team", "signed", "--key-file", "team.pub"]);
        added.data();
        let listed = json(&place, &["catalog", "ls"]);
        assert_eq!(listed[0]["key_kind"], kind);
        let installed = json(&place, &["catalog", "install", "greet@1.0.0", "--dry-run"]);
        assert_eq!(
            (
                &installed["signature"]["checked"],
                &installed["signature"]["kind"]
            ),
            (&json!(true), &json!(kind))
        );

        fs::write(catalog.join("bundle.json"), SIGNED.replace("\n}", "\n }")).unwrap();
        let run = place.run(&["catalog", "install", "greet@1.0.0"]);
        refused(&run, 4, "its signature is wrong");
        fs::write(catalog.join("bundle.json"), SIGNED).unwrap();
        fs::remove_file(catalog.join(name)).unwrap();
        let run = place.run(&["catalog", "install", "greet@1.0.0"]);
        refused(
            &run,
            4,
            &format!("it has no {kind} signature, and the catalog has a key"),
        );
        refused(&place.run(&["catalog", "show", "greet"]), 4, "it has no");
        fs::write(catalog.join(name), OTHER_MINISIG).unwrap();
        assert_eq!(place.run(&["catalog", "install", "greet@1.0.0"]).code, 4);
        assert!(!place.path().join("toolplane.lock").exists());
    }
}

#[test]
fn without_a_key_the_output_says_that_nothing_was_checked() {
    let place = Place::with(STORE);
    signed_catalog(&place, &[("bundle.json.minisig", OTHER_MINISIG)]);
    let added = place.run(&["catalog", "add", "team", "signed"]);
    assert!(
        added
            .stderr
            .contains("no key: signatures of its bundles will not be checked"),
        "{added:?}"
    );
    let shown = place.run(&["catalog", "show", "greet"]);
    assert!(
        shown
            .data()
            .contains("signature   not checked: the catalog has no key"),
        "{shown:?}"
    );
    let installed = place.run(&["catalog", "install", "greet@1.0.0"]);
    assert!(
        installed
            .data()
            .contains("signature not checked: the catalog has no key"),
        "{installed:?}"
    );
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
    place.run(&["tools", "accept", "calm@1.0.0", "-q"]).data();
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

#[test]
fn documents_of_the_registry_are_installed() {
    let place = Place::with(STORE);
    for (name, content) in [
        ("a.server.json", DATABASE),
        ("b.server.json", HYBRID),
        ("c.server.json", MCPB),
    ] {
        place.write(&format!("c/{name}"), content);
    }
    place.run(&["catalog", "add", "registry", "c", "-q"]).data();
    let listed = json(&place, &["catalog", "search"]);
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "io.github.example/database-manager",
            "io.modelcontextprotocol.anonymous/hybrid-mcp",
            "io.modelcontextprotocol/text-editor",
        ]
    );
    let database = "registry/io.github.example/database-manager@3.1.0";
    let installed = place.run(&[
        "catalog",
        "install",
        database,
        "--set",
        "db_type=redis",
        "--set",
        "DB_USERNAME=ada",
        "-o",
        "json",
    ]);
    let value = installed.json();
    assert_eq!(value["server"], "database-manager");
    assert_eq!(value["settings"]["env"]["DB_PASSWORD"], "${DB_PASSWORD}");
    assert_eq!(value["pinned"], "the tag 3.1.0, which may move");
    let asked: Vec<_> = value["asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| input["name"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["DB_PASSWORD", "database_name"]);
    let secrets: Vec<_> = value["needs"]["secrets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| secret["name"].as_str().unwrap())
        .collect();
    assert_eq!(secrets, ["DATABASE_NAME", "DB_PASSWORD"]);
    assert!(
        installed
            .stderr
            .contains("the container reaches more than its own files: `--network`"),
        "{installed:?}"
    );

    let remote = json(
        &place,
        &[
            "catalog",
            "install",
            "io.modelcontextprotocol.anonymous/hybrid-mcp@1.5.0",
            "--package",
            "remote",
        ],
    );
    assert_eq!(remote["settings"]["type"], "http");
    assert_eq!(
        remote["needs"]["hosts"],
        json!(["mcp.anonymous.modelcontextprotocol.io"])
    );
    let servers = json(&place, &["servers", "ls", "--no-start"]);
    assert_eq!(servers.as_array().unwrap().len(), 2);
    let pins = lock(&place)["installed"]["servers"].clone();
    assert!(
        pins["io.github.example/database-manager@3.1.0"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );

    for (arguments, code, expected) in [
        (
            &["io.modelcontextprotocol/text-editor@1.0.2"][..],
            2,
            "bundles of the form MCPB are not unpacked here",
        ),
        (
            &[database, "--set", "db_type=oracle"],
            2,
            "`oracle` is none of its values",
        ),
        (
            &[database, "--set", "DB_PASSWORD=abc"],
            2,
            "it is a secret, and would be stored as it is written",
        ),
        (&[database, "--set", "dbtype=redis"], 3, "did you mean `db_type`?"),
        (&[database, "--set", "db_type"], 2, "has no value"),
        (&[database, "--package", "pypi"], 3, "it has no package `pypi`"),
    ] {
        refused(
            &place.run(&[&["catalog", "install"], arguments].concat()),
            code,
            expected,
        );
    }
    let shown = json(
        &place,
        &["catalog", "show", "io.modelcontextprotocol/text-editor"],
    );
    assert_eq!(shown["packages"][0]["type"], "mcpb");
}

/// Web server for the files of a directory, which tells the paths that it was asked for.
struct Files {
    url: String,
    asked: Receiver<String>,
    /// Answers instead of files, by their paths.
    answers: Arc<Mutex<Vec<(String, String)>>>,
}

impl Files {
    fn serve(directory: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/shared", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        let answers: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let own = answers.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = String::new();
                while reader.read_line(&mut head).unwrap_or(0) > 2 {}
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                if tell.send(path.clone()).is_err() {
                    return;
                }
                let own = own
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|(known, _)| *known == path)
                    .cloned();
                let file = path.strip_prefix("/shared/").map(|name| directory.join(name));
                let answer = match (own, file.and_then(|file| fs::read(file).ok())) {
                    (Some((_, answer)), _) => answer.into_bytes(),
                    (None, Some(content)) => {
                        let mut answer = format!(
                            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                            content.len()
                        )
                        .into_bytes();
                        answer.extend(content);
                        answer
                    }
                    (None, None) => {
                        b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_vec()
                    }
                };
                // The client may have closed the connection.
                let _ = stream.write_all(&answer);
            }
        });
        Self { url, asked, answers }
    }
}

#[test]
fn a_catalog_behind_a_web_server_is_the_same() {
    let publisher = publisher();
    let files = Files::serve(catalog(&publisher));
    let place = Place::with(STORE);
    place.run(&["catalog", "add", "web", &files.url, "-q"]).data();
    assert_eq!(
        json(&place, &["catalog", "ls"])[0]["place"],
        format!("{}/", files.url)
    );
    let installed = json(&place, &["catalog", "install", "greet@1.0.0"]);
    assert_eq!(installed["digest"], installed["tool"]["digest"]);
    assert_eq!(place.run(&["call", "greet", "name=Ada"]).data().trim(), "hello");
    let asked: Vec<_> = files.asked.try_iter().collect();
    assert_eq!(
        asked,
        [
            "/shared/index.json",
            "/shared/index.json",
            "/shared/greet-1.0.0.json"
        ]
    );

    let answer = |path: &str, answer: &str| {
        files
            .answers
            .lock()
            .unwrap()
            .push((path.to_owned(), answer.to_owned()));
    };
    answer(
        "/shared/greet-1.1.0.json",
        "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",
    );
    let run = place.run(&["catalog", "show", "greet@1.1.0"]);
    refused(&run, 6, "it answered 302 Found, and redirects are not followed");
    answer(
        "/shared/files-1.0.0.server-bundle.json",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99999999\r\n\r\n",
    );
    refused(
        &place.run(&["catalog", "show", "files"]),
        6,
        "the connection broke",
    );
    answer(
        "/shared/greet-1.0.0.json",
        "HTTP/1.1 500 Oops\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    refused(
        &place.run(&["catalog", "show", "greet@1.0.0"]),
        6,
        "it answered 500",
    );
    assert!(!files.asked.try_iter().any(|path| path == "/other"));
    answer(
        "/shared/index.json",
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
    refused(&place.run(&["catalog", "search"]), 3, "it has no `index.json`");
    let large = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}",
        " ".repeat(9 << 20)
    );
    files.answers.lock().unwrap().clear();
    answer("/shared/index.json", &large);
    refused(
        &place.run(&["catalog", "search"]),
        6,
        "it has more than 8388608 bytes",
    );
}

#[test]
fn signatures_are_read_from_a_web_server() {
    let place = Place::with(STORE);
    let catalog = signed_catalog(&place, &[("bundle.json.minisig", MINISIG)]);
    let files = Files::serve(catalog.clone());
    place.write("team.pub", MINISIGN_KEY);
    place
        .run(&[
            "catalog",
            "add",
            "web",
            &format!("{}/index.json", files.url),
            "--key-file",
            "team.pub",
        ])
        .data();
    let installed = json(&place, &["catalog", "install", "greet@1.0.0"]);
    assert_eq!(
        installed["signature"],
        json!({"checked": true, "kind": "minisign", "comment": "greet 1.0.0"})
    );
    fs::remove_file(catalog.join("bundle.json.minisig")).unwrap();
    refused(
        &place.run(&["catalog", "install", "greet@1.0.0"]),
        4,
        "it has no minisign signature",
    );
}

/// A web server has no list of its files: the index lists the documents of the registry.
#[test]
fn documents_of_the_registry_are_listed_by_an_index() {
    let place = Place::with(STORE);
    let mut entry = Bundle::parse("a.json", HYBRID.as_bytes()).unwrap().entry();
    entry.place = "servers/hybrid.json".to_owned();
    let mut index = CatalogIndex::default();
    index.add(entry).unwrap();
    let file = place.write("c/index.json", index.to_text());
    place.write("c/servers/hybrid.json", HYBRID);
    let files = Files::serve(file.parent().unwrap().to_owned());
    place.run(&["catalog", "add", "web", &files.url, "-q"]).data();
    let installed = json(
        &place,
        &[
            "catalog",
            "install",
            "io.modelcontextprotocol.anonymous/hybrid-mcp@1.5.0",
        ],
    );
    assert_eq!(installed["server"], "hybrid-mcp");
    assert_eq!(
        installed["settings"]["args"],
        json!(["-y", "@example/hybrid-mcp-server@1.5.0", "--mode=local"])
    );
    place.write("c/servers/hybrid.json", HYBRID.replace("1.5.0", "1.5.1"));
    let run = place.run(&["catalog", "show", "io.modelcontextprotocol.anonymous/hybrid-mcp"]);
    refused(&run, 7, "its version is `1.5.1`, and the index lists `1.5.0`");
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

#[test]
fn nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    refused(
        &Place::with(STORE).run(&["catalog", "add", "web", &url]),
        6,
        "it cannot be reached",
    );
}
