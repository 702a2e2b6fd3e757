//! Files of tools with code.

use std::path::Path;

use tool_manifest::{Diagnostics, LoadOptions, Loaded, load};
use tool_settings::Sections;

fn loaded(directory: &Path, executor: &str) -> Result<Loaded, Diagnostics> {
    let text = format!("tools: {{run: {{description: Runs., executor: {executor}}}}}");
    std::fs::write(directory.join("toolplane.yaml"), text).unwrap();
    let options = LoadOptions::new()
        .path(directory.join("toolplane.yaml"))
        .kinds_with_files(&["bash", "python"]);
    load(&options, &Sections::default())
}

/// Paths and contents of the files of the only tool.
fn files(loaded: &Loaded) -> Vec<(String, String)> {
    let files = loaded.configuration.tools[0].files.iter();
    files
        .map(|(path, content)| (path.clone(), String::from_utf8(content.to_vec()).unwrap()))
        .collect()
}

fn pair(path: &str, content: &str) -> (String, String) {
    (path.to_owned(), content.to_owned())
}

#[test]
fn files_are_read_beside_the_manifest_and_watched() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("lib")).unwrap();
    std::fs::write(place.path().join("main.py"), "import words").unwrap();
    std::fs::write(place.path().join("lib/words.py"), "WORDS = 1").unwrap();
    std::os::unix::fs::symlink("main.py", place.path().join("link.py")).unwrap();
    let both = loaded(
        place.path(),
        "{kind: python, entrypoint: main.py, files: [lib/words.py]}",
    )
    .unwrap();
    let expected = [pair("lib/words.py", "WORDS = 1"), pair("main.py", "import words")];
    assert_eq!(files(&both), expected);
    assert!(
        both.files.contains(&place.path().join("lib/words.py")),
        "{:?}",
        both.files
    );
    let linked = loaded(place.path(), "{kind: bash, file: link.py}").unwrap();
    assert_eq!(files(&linked), [pair("link.py", "import words")]);
    // Texts in the manifest, and other kinds of executors, read nothing.
    let written = loaded(
        place.path(),
        "{kind: bash, entrypoint: a.sh, files: {a.sh: 'true'}}",
    )
    .unwrap();
    assert_eq!(files(&written), []);
    let other = loaded(place.path(), "{kind: own, entrypoint: main.py}").unwrap();
    assert_eq!(files(&other), []);
}

#[test]
fn a_lock_belongs_to_the_tool_that_requires_packages() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("run.requirements.lock"), "locked").unwrap();
    let requiring = loaded(place.path(), "{kind: python, code: '', requires: [x]}").unwrap();
    assert_eq!(files(&requiring), [pair("requirements.lock", "locked")]);
    let path = requiring.requirements_file("run").unwrap();
    assert_eq!(path, place.path().join("run.requirements.lock"));
    let other = loaded(place.path(), "{kind: python, code: ''}").unwrap();
    assert_eq!(files(&other), []);
}

#[test]
fn files_outside_of_the_directory_are_refused() {
    let outer = tempfile::tempdir().unwrap();
    std::fs::write(outer.path().join("secret"), "secret").unwrap();
    let place = outer.path().join("inner");
    std::fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink("../secret", place.join("link")).unwrap();
    for (file, expected) in [
        ("../secret", "is no path of a tool's file"),
        ("/etc/passwd", "is no path of a tool's file"),
        ("link", "leads out of the directory"),
        ("none", "No such file"),
        (".", "is no path of a tool's file"),
    ] {
        let problems = loaded(&place, &format!("{{kind: bash, file: {file:?}}}")).unwrap_err();
        let problem = problems.into_iter().next().unwrap();
        assert!(problem.message.contains(expected), "{}", problem.message);
        assert_eq!(problem.location.unwrap().line, 1);
    }
}
