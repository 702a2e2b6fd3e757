//! Bundles: what is written is read again, and what was changed is refused.

use std::collections::BTreeMap;

use tool_catalog::{Bundle, BundleContent, CatalogErrorKind, CatalogNeeds, EntryKind};
use tool_core::{RawJson, serde_json::json};
use tool_registry::{NewVersion, ToolFile};

pub(crate) fn manifest(result: &str) -> RawJson {
    RawJson::from(json!({
        "apiVersion": "toolplane.dev/v1", "kind": "Tool", "metadata": {"name": "greet"},
        "spec": {"description": "Greets people.", "executor": {"kind": "mock", "result": result}},
    }))
}

pub(crate) fn greet(version: &str, result: &str) -> NewVersion {
    NewVersion::new("greet", version.parse().unwrap(), manifest(result))
}

#[test]
fn a_tool_is_the_same_after_its_journey() {
    let files = BTreeMap::from([
        ("lib/words.py".to_owned(), ToolFile::new("print(\"ä\\n\")\n")),
        ("logo.bin".to_owned(), ToolFile::new(vec![0, 159, 146, 150])),
    ]);
    let version = greet("1.2.0-rc.1", "hello \u{202e} ${X}").with_files(files);
    let bundle = Bundle::of_tool(&version, "Greets people.")
        .unwrap()
        .with_tags(["people".to_owned()])
        .with_needs(
            CatalogNeeds::of_settings(&RawJson::from(json!({"url": "https://a.example.com/${X}"}))).unwrap(),
        );
    let text = bundle.to_text();
    let read = Bundle::parse("greet.json", text.as_bytes()).unwrap();
    assert_eq!(read, bundle);
    assert_eq!(read.to_text(), text);
    assert_eq!(read.digest(), version.digest());
    read.check(&bundle.entry()).unwrap();
    let BundleContent::Tool(content) = read.content else {
        panic!("it is a tool")
    };
    assert_eq!(content.files, version.files);
    assert_eq!(content.manifest, version.manifest);
}

#[test]
fn white_space_of_a_document_is_not_part_of_it() {
    let spaced = RawJson::parse(manifest("a b").as_str().replace(':', " : ")).unwrap();
    let version = NewVersion::new("greet", "1.0.0".parse().unwrap(), spaced);
    let bundle = Bundle::of_tool(&version, "").unwrap();
    assert_eq!(bundle.digest(), version.digest());
    let BundleContent::Tool(content) = bundle.content else {
        panic!("it is a tool")
    };
    assert_eq!(content.manifest.as_str(), manifest("a b").as_str());
}

#[test]
fn a_server_is_the_same_after_its_journey() {
    let settings = RawJson::from(json!({"command": "npx", "args": ["-y", "a@1.0.0"], "env": {"T": "${T}"}}));
    let bundle = Bundle::of_server("io.github.ada/files", "1.0.0", &settings, "Files.").unwrap();
    let read = Bundle::parse("a.json", bundle.to_text().as_bytes()).unwrap();
    assert_eq!(read, bundle);
    assert_eq!(read.kind(), EntryKind::Server);
    assert_eq!(read.entry().place, "io.github.ada_files-1.0.0.server-bundle.json");
}

#[test]
fn a_changed_bundle_is_refused() {
    let text = Bundle::of_tool(&greet("1.0.0", "hello"), "").unwrap().to_text();
    let changed = text.replace("hello", "HELLO");
    let error = Bundle::parse("greet.json", changed.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), CatalogErrorKind::Mismatch);
    assert!(
        error
            .to_string()
            .starts_with("`greet.json`: its content has the digest `sha256:"),
        "{error}"
    );
}

#[test]
fn a_bundle_with_another_name_version_or_content_than_its_entry_is_refused() {
    let bundle = Bundle::of_tool(&greet("1.0.0", "hello"), "").unwrap();
    let entry = bundle.entry();
    let other = |version: &str, result: &str| Bundle::of_tool(&greet(version, result), "").unwrap();
    let mut renamed = NewVersion::new("greet2", "1.0.0".parse().unwrap(), manifest("hello"));
    renamed.files = BTreeMap::new();
    let server = Bundle::of_server("greet", "1.0.0", &RawJson::object(), "").unwrap();
    for (bundle, expected) in [
        (
            Bundle::of_tool(&renamed, "").unwrap(),
            "its name is `greet2`, and the index lists `greet`",
        ),
        (
            other("1.0.1", "hello"),
            "its version is `1.0.1`, and the index lists `1.0.0`",
        ),
        (other("1.0.0", "bye"), "its digest is `sha256:"),
        (server, "its kind is `server`, and the index lists `tool`"),
    ] {
        let error = bundle.check(&entry).unwrap_err();
        assert_eq!(error.kind(), CatalogErrorKind::Mismatch);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn foreign_bundles_are_refused_with_the_reason() {
    let whole = json!({
        "bundleVersion": 1, "kind": "tool", "name": "greet", "version": "1.0.0", "digest": "sha256:00",
        "manifest": {},
    });
    for (member, value, expected) in [
        (
            "bundleVersion",
            json!(2),
            "its `bundleVersion` is 2; this program reads version 1",
        ),
        (
            "kind",
            json!("workflow"),
            "its kind is `workflow`, which is neither `tool` nor `server`",
        ),
        ("name", json!("../greet"), "`../greet` is no name"),
        ("name", json!(5), "it has no text `name`"),
        ("version", json!("latest"), "`latest` of `greet` is no version"),
        ("version", json!("1.0"), "`1.0` is no semantic version"),
        ("digest", json!("sha256:00"), "its content has the digest"),
        ("extra", json!(1), "it has an unknown member `extra`"),
        ("manifest", json!([]), "it has no object `manifest`"),
        (
            "files",
            json!({"../x": {"text": ""}}),
            "`../x` is no path of a file",
        ),
        ("files", json!({"/x": {"text": ""}}), "`/x` is no path of a file"),
        (
            "files",
            json!({"x": {"text": "", "base64": ""}}),
            "the file `x` has neither `text` nor `base64`",
        ),
        (
            "files",
            json!({"x": {"base64": "%"}}),
            "the file `x` has neither `text` nor `base64`",
        ),
        ("files", json!([]), "its `files` are no object"),
        (
            "description",
            json!("x".repeat(5000)),
            "the description of `greet` has more than 4096 bytes",
        ),
        ("tags", json!([1]), "its `tags` are no list"),
    ] {
        let mut document = whole.clone();
        document[member] = value;
        let error = Bundle::parse("a.json", document.to_string().as_bytes()).unwrap_err();
        assert!(error.to_string().contains(expected), "{member}: {error}");
    }
    for (text, expected) in [
        ("", "line 1: "),
        ("[]", "it is no JSON object"),
        ("{\"a\": 1,\n\"a\": 2}", "line 2: "),
        ("{}", "it is neither a bundle nor a `server.json`"),
        (&"[".repeat(200), "line 1: "),
    ] {
        let error = Bundle::parse("a.json", text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}
