//! Indexes: entries are found by name and version, and foreign ones are checked.

use tool_catalog::{CatalogEntry, CatalogErrorKind, CatalogIndex, EntryKind, EntrySignature, search};
use tool_core::serde_json::{Value, json};

fn entry(name: &str, version: &str, description: &str) -> CatalogEntry {
    let place = format!("{}-{version}.json", name.replace('/', "_"));
    let mut entry = CatalogEntry::new(EntryKind::Tool, name, version, place, [7; 32]);
    entry.description = description.to_owned();
    entry
}

fn index() -> CatalogIndex {
    let mut index = CatalogIndex::default();
    for entry in [
        entry("greet", "1.0.0", "Greets people."),
        entry("greet", "1.10.0", "Greets people."),
        entry("greet", "1.9.0", "Greets people."),
        entry("greet", "2.0.0-rc.1", "Greets people."),
        entry("io.github.ada/weather", "0.1.0", "The weather at a place."),
    ] {
        assert!(index.add(entry).unwrap());
    }
    index
}

#[test]
fn an_index_is_the_same_after_its_journey() {
    let mut index = index();
    let mut signed = entry("signed", "1.0.0", "");
    signed.title = Some("Signed".to_owned());
    signed.tags = vec!["a".to_owned()];
    signed.signature = Some(EntrySignature::Ed25519("AA==".to_owned()));
    index.add(signed).unwrap();
    let text = index.to_text();
    let read = CatalogIndex::parse("index.json", text.as_bytes()).unwrap();
    assert_eq!(read, index);
    assert_eq!(read.to_text(), text);
    let empty = CatalogIndex::default();
    assert_eq!(
        CatalogIndex::parse("index.json", empty.to_text().as_bytes()).unwrap(),
        empty
    );
}

#[test]
fn a_request_without_a_version_finds_the_newest_release() {
    let index = index();
    let found = |request: &str| {
        index
            .find(&request.parse().unwrap())
            .map(|entry| entry.version.clone())
    };
    assert_eq!(found("greet").unwrap(), "1.10.0");
    assert_eq!(found("greet@latest").unwrap(), "1.10.0");
    assert_eq!(found("greet@1.9.0").unwrap(), "1.9.0");
    assert_eq!(found("greet@2.0.0-rc.1").unwrap(), "2.0.0-rc.1");
    assert_eq!(found("io.github.ada/weather").unwrap(), "0.1.0");
}

#[test]
fn unknown_names_and_versions_are_told_with_what_there_is() {
    let index = index();
    for (request, message, hint) in [
        (
            "gret",
            "there is no `gret` in the catalog",
            "did you mean `greet`?",
        ),
        (
            "weater",
            "there is no `weater` in the catalog",
            "did you mean `io.github.ada/weather`?",
        ),
        (
            "zzz",
            "there is no `zzz` in the catalog",
            "`toolplane catalog search` lists what there is",
        ),
        (
            "greet@3.0.0",
            "`greet` has no version `3.0.0` in the catalog",
            "there are `1.0.0`, `1.9.0`, `1.10.0`, `2.0.0-rc.1`",
        ),
    ] {
        let error = index.find(&request.parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), CatalogErrorKind::NotFound);
        assert_eq!(error.to_string(), message);
        // Versions are listed in the order of the index.
        assert_eq!(error.hint(), Some(hint));
    }
    assert!("a b".parse::<tool_catalog::EntryRequest>().is_err());
    assert!("greet@".parse::<tool_catalog::EntryRequest>().is_err());
}

#[test]
fn a_version_never_changes() {
    let mut index = index();
    assert!(!index.add(entry("greet", "1.0.0", "")).unwrap());
    let mut other = entry("greet", "1.0.0", "");
    other.digest = [8; 32];
    let error = index.add(other).unwrap_err();
    assert_eq!(error.kind(), CatalogErrorKind::Mismatch);
    assert_eq!(error.hint(), Some("export the new content under a new version"));
}

#[test]
fn a_search_finds_the_newest_version_by_what_it_does() {
    let index = index();
    let entries: Vec<&CatalogEntry> = index.entries().iter().collect();
    let found = |query: &str| -> Vec<String> {
        let found = search(&entries, query);
        found
            .iter()
            .map(|entry| format!("{}@{}", entry.name, entry.version))
            .collect()
    };
    assert_eq!(found("how is the weather"), ["io.github.ada/weather@0.1.0"]);
    assert_eq!(found("greet"), ["greet@1.10.0"]);
    assert_eq!(found("transfer money"), Vec::<String>::new());
    assert_eq!(found(""), ["greet@1.10.0", "io.github.ada/weather@0.1.0"]);
}

#[test]
fn foreign_indexes_are_refused_with_the_reason() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let good =
        json!({"kind": "tool", "name": "greet", "version": "1.0.0", "bundle": "a.json", "digest": digest});
    let parse = |entries: Value| {
        let text = json!({"catalogVersion": 1, "entries": entries}).to_string();
        CatalogIndex::parse("index.json", text.as_bytes())
    };
    assert_eq!(parse(json!([good])).unwrap().entries().len(), 1);
    for (member, value, expected) in [
        ("kind", json!("agent"), "its kind is `agent`"),
        ("name", json!("a b"), "`a b` is no name"),
        ("name", json!("a//b"), "`a//b` is no name"),
        ("version", json!(""), "`` of `greet` is no version"),
        (
            "bundle",
            json!("../a.json"),
            "its bundle `../a.json` is no path inside the catalog",
        ),
        ("bundle", json!("/a.json"), "is no path inside the catalog"),
        (
            "bundle",
            json!("https://evil.example.com/a.json"),
            "is no path inside the catalog",
        ),
        (
            "bundle",
            json!("//evil.example.com/a.json"),
            "is no path inside the catalog",
        ),
        ("bundle", json!("a\\..\\b"), "is no path inside the catalog"),
        (
            "digest",
            json!("sha256:AB"),
            "its `digest` is not `sha256:` and 64 hexadecimal digits",
        ),
        ("signature", json!({"rsa": "x"}), "its `signature` is neither"),
        ("url", json!("x"), "it has an unknown member `url`"),
    ] {
        let mut entry = good.clone();
        entry[member] = value;
        let error = parse(json!([good, entry])).unwrap_err();
        assert!(
            error.to_string().starts_with("`index.json: entry 2`: "),
            "{error}"
        );
        assert!(error.to_string().contains(expected), "{member}: {error}");
    }
    let twice = parse(json!([good, good])).unwrap_err();
    assert_eq!(twice.to_string(), "`index.json`: `greet@1.0.0` is there twice");
    for (text, expected) in [
        ("{}", "it has no `catalogVersion`"),
        (r#"{"catalogVersion": 2}"#, "this program reads version 1"),
        (r#"{"catalogVersion": 1}"#, "it has no list `entries`"),
        (r#"{"catalogVersion": 1, "entries": [1]}"#, "it is no object"),
        (
            r#"{"catalogVersion": 1, "entries": [], "next": ""}"#,
            "it has an unknown member `next`",
        ),
    ] {
        let error = CatalogIndex::parse("index.json", text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}
