//! Catalogs in directories: nothing outside of the directory is read.

use std::{fs, os::unix::fs::symlink, path::Path};

use tempfile::TempDir;
use tool_catalog::{Bundle, CatalogDirectory, CatalogErrorKind, CatalogIndex, EntryKind};

use crate::bundles::greet;

const SERVER: &str = include_str!("../fixtures/server-json/brave-search.json");

fn catalog() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bundle = Bundle::of_tool(&greet("1.0.0", "hello"), "Greets people.").unwrap();
    let mut index = CatalogIndex::default();
    index.add(bundle.entry()).unwrap();
    fs::write(directory.path().join("index.json"), index.to_text()).unwrap();
    fs::write(directory.path().join("greet-1.0.0.json"), bundle.to_text()).unwrap();
    directory
}

fn open(path: &Path) -> CatalogDirectory {
    CatalogDirectory::open(path).unwrap()
}

#[test]
fn documents_of_the_registry_are_entries_beside_the_index() {
    let directory = catalog();
    fs::write(directory.path().join("brave.server.json"), SERVER).unwrap();
    fs::write(directory.path().join("broken.server.json"), "{}").unwrap();
    fs::write(directory.path().join("other.json"), "{}").unwrap();
    let (index, problems) = open(directory.path()).index().unwrap();
    let listed: Vec<_> = index
        .entries()
        .iter()
        .map(|entry| (entry.kind, entry.place.as_str()))
        .collect();
    assert_eq!(
        listed,
        [
            (EntryKind::Tool, "greet-1.0.0.json"),
            (EntryKind::McpServer, "brave.server.json")
        ]
    );
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].place(), "broken.server.json");
}

#[test]
fn a_directory_with_documents_of_the_registry_alone_is_a_catalog() {
    let directory = tempfile::tempdir().unwrap();
    let error = open(directory.path()).index().unwrap_err();
    assert!(error.to_string().contains("it is no catalog"), "{error}");
    fs::write(directory.path().join("server.json"), SERVER).unwrap();
    let (index, _) = open(directory.path()).index().unwrap();
    assert_eq!(
        index.entries()[0].name,
        "io.modelcontextprotocol.anonymous/brave-search"
    );
}

#[test]
fn nothing_outside_of_the_directory_is_read() {
    let directory = catalog();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.json"), "{}").unwrap();
    let inside = directory.path();
    symlink(outside.path().join("secret.json"), inside.join("link.json")).unwrap();
    symlink(outside.path(), inside.join("folder")).unwrap();
    symlink("greet-1.0.0.json", inside.join("within.json")).unwrap();
    symlink("nowhere.json", inside.join("dangling.json")).unwrap();
    let catalog = open(inside);
    for path in ["link.json", "folder/secret.json"] {
        let error = catalog.read(path, 1000).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{path}`: it is a link that leads out of the catalog")
        );
    }
    for path in ["../secret.json", "/etc/hostname", "a/../../b", "", "."] {
        let error = catalog.read(path, 1000).unwrap_err();
        assert!(
            error.to_string().contains("it is no path inside the catalog"),
            "{path}: {error}"
        );
    }
    assert!(catalog.read("within.json", 1000).unwrap().is_some());
    assert!(catalog.read("dangling.json", 1000).unwrap().is_none());
    // A link to the index is followed no further either.
    fs::remove_file(inside.join("index.json")).unwrap();
    symlink(outside.path().join("secret.json"), inside.join("index.json")).unwrap();
    assert!(catalog.index().is_err());
}

#[test]
fn sizes_and_kinds_are_checked() {
    let directory = catalog();
    fs::create_dir(directory.path().join("folder.json")).unwrap();
    fs::write(directory.path().join("large.json"), "x".repeat(101)).unwrap();
    let catalog = open(directory.path());
    let error = catalog.read("large.json", 100).unwrap_err();
    assert_eq!(error.to_string(), "`large.json`: it has more than 100 bytes");
    assert!(catalog.read("large.json", 101).unwrap().is_some());
    assert_eq!(
        catalog.read("folder.json", 100).unwrap_err().to_string(),
        "`folder.json`: it is no file"
    );
    let error = catalog.required("nothing.json", 100).unwrap_err();
    assert_eq!(error.kind(), CatalogErrorKind::NotFound);
    let error = CatalogDirectory::open(&directory.path().join("large.json")).unwrap_err();
    assert!(error.to_string().ends_with("it is no directory"), "{error}");
    let error = CatalogDirectory::open(&directory.path().join("nothing")).unwrap_err();
    assert_eq!(error.kind(), CatalogErrorKind::NotFound);
}
