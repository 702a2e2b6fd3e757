//! Tests of the generated parts of the documentation.

use std::fs;
use std::path::Path;

use xtask::{Repository, docs};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_stale_part_is_refused_and_written_between_its_markers() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\n    \"crates/tool-a\",\n]\n",
    );
    write(
        root.path(),
        "crates/tool-a/Cargo.toml",
        "[package]\nname = \"tool-a\"\ndescription = \"A tool.\"\n",
    );
    write(root.path(), "crates/tool-a/src/lib.rs", "");
    write(
        root.path(),
        "ARCHITECTURE.md",
        "before\n<!-- begin crates -->\nold\n<!-- end crates -->\nafter\n",
    );
    let repository = Repository::at(root.path()).unwrap();

    let parts = ["crates".to_owned()];
    assert!(
        docs(&repository, true, &parts).is_err(),
        "the table is out of date"
    );
    docs(&repository, false, &parts).unwrap();
    docs(&repository, true, &parts).unwrap();
    assert_eq!(
        repository.text("ARCHITECTURE.md").unwrap(),
        "before\n<!-- begin crates -->\n| layer | crate | what it is |\n|---|---|---|\n\
         | ? | [`tool-a`](crates/tool-a) | A tool. |\n<!-- end crates -->\nafter\n",
    );

    write(root.path(), "ARCHITECTURE.md", "no markers\n");
    assert!(
        docs(&repository, false, &parts).is_err(),
        "there is no place for the table"
    );
}
