//! Signatures of the bundles of a catalog.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::{STORE, json, refused};
use crate::binary::Place;

const OTHER_MINISIG: &str = include_str!("../../../../tool-catalog/tests/fixtures/signed/other.minisig");
const RAW_SIGNATURE: &str = include_str!("../../../../tool-catalog/tests/fixtures/signed/bundle.json.sig");
const ED25519_KEY: &str = include_str!("../../../../tool-catalog/tests/fixtures/signed/ed25519.pem");
const SIGNED: &str = include_str!("../../../../tool-catalog/tests/fixtures/signed/bundle.json");
pub(super) const MINISIG: &str =
    include_str!("../../../../tool-catalog/tests/fixtures/signed/bundle.json.minisig");
pub(super) const MINISIGN_KEY: &str =
    include_str!("../../../../tool-catalog/tests/fixtures/signed/minisign.pub");

/// Writes a catalog with the bundle that other programs signed.
pub(super) fn signed_catalog(place: &Place, signatures: &[(&str, &str)]) -> PathBuf {
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
