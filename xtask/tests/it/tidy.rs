//! Tests of the project rules, on this repository and on files that break them.

use std::fs;
use std::path::Path;

use xtask::{Repository, check_tidy, tidy_file};

#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let shown: Vec<_> = tidy_file(Path::new(path), text)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn this_repository_is_tidy() {
    let problems = check_tidy(&Repository::open().unwrap()).unwrap();
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown, Vec::<String>::new());
}

#[test]
fn files_and_functions_have_a_length() {
    let lines = "// a line\n".repeat(800);
    check("crates/a/src/lib.rs", &lines, &[]);
    check(
        "crates/a/src/lib.rs",
        &format!("{lines}// one more\n"),
        &["crates/a/src/lib.rs: 801 lines without tests, 800 at most"],
    );
    check(
        "crates/a/src/lib.rs",
        &format!("{lines}#[cfg(test)]\nmod tests {{\n}}\n"),
        &[],
    );
    check("crates/a/tests/it/main.rs", &format!("{lines}// one more\n"), &[]);

    let function = |n_lines: usize| {
        format!(
            "\nfn long(a: [u8; 2]) {{\n{}}}\n",
            "    a();\n".repeat(n_lines - 2)
        )
    };
    check("crates/a/src/lib.rs", &function(80), &[]);
    check(
        "crates/a/src/lib.rs",
        &function(81),
        &["crates/a/src/lib.rs:2: `long` has 81 lines, 80 at most"],
    );
    check(
        "crates/a/src/lib.rs",
        &format!("#[cfg(test)]\nmod tests {{{}}}\n", function(81)),
        &[],
    );
    // A brace in a literal does not end the function, and a declaration without a body has no length.
    check(
        "crates/a/src/lib.rs",
        &format!("fn declared();\nconst A: char = '{{';\n{}", function(80)),
        &[],
    );
}

#[test]
fn some_words_are_not_written() {
    let path = "crates/a/tests/it/main.rs";
    check(
        path,
        "#![allow(dead_code)]\n#[allow(unused)]\nfn a() { todo!() }\n#[test]\n#[should_panic(expected = \"b\")]\nfn b() { dbg!(1); }\n#[ignore]\n#[ignore = \"slow\"]\n",
        &[
            "crates/a/tests/it/main.rs:1: `#[allow(` is not written: `#[expect(lint, reason = \"...\")]` says why and complains when it is no longer needed",
            "crates/a/tests/it/main.rs:2: `#[allow(` is not written: `#[expect(lint, reason = \"...\")]` says why and complains when it is no longer needed",
            "crates/a/tests/it/main.rs:7: `#[ignore]` is not written: a test that does not run is not a test; report a skip with its reason",
            "crates/a/tests/it/main.rs:8: `#[ignore =` is not written: a test that does not run is not a test; report a skip with its reason",
            "crates/a/tests/it/main.rs:5: `#[should_panic(` is not written: assert on the error that is returned",
            "crates/a/tests/it/main.rs:3: `todo!` is not left in the code",
            "crates/a/tests/it/main.rs:6: `dbg!` is not left in the code",
        ],
    );
    check(
        path,
        "// todo!() and #[allow(x)]\nconst A: &str = \"#[ignore] dbg!\";\nfn allow() { mytodo!() }\n",
        &[],
    );
}

#[test]
fn no_registry_no_machine_no_white_space() {
    let host = ["crates", "io"].join(".");
    check(
        "docs/a.md",
        "a \nb",
        &[
            "docs/a.md:1: white space at the end of the line",
            "docs/a.md: no line end at the end of the file",
        ],
    );
    check(
        "docs/a.md",
        &format!("see {host}\n"),
        &[&format!(
            "docs/a.md:1: names the package registry `{host}`; a mirror may stand in its place"
        )],
    );
    check("Cargo.lock", &format!("{host}\n"), &[]);
    check("tests/peers/package-lock.json", &format!("{host} \n"), &[]);

    let folder = ["", "work", "main"].join("/");
    check(
        "README.md",
        &format!("cd {folder}\nhttps://example.com{folder}\n./a{folder}\n"),
        &["README.md:1: names `/work/`, a folder of one machine"],
    );
    check(
        "crates/a/tests/fixtures/a.yaml",
        &format!("cwd: {folder} \n"),
        &[],
    );
    let temporary = ["", "tmp", "file"].join("/");
    check(
        "crates/a/src/lib.rs",
        &format!("// {temporary}\n"),
        &["crates/a/src/lib.rs:1: names `/tmp/`, a folder of one machine"],
    );
    check("README.md", &format!("{temporary}\n"), &[]);
}

#[test]
fn invariants_hold_outside_of_tests() {
    let environment = "the environment is read by `tool-manifest`, `toolplane-cli`, `mcp-client` only";
    check(
        "crates/tool-core/src/clock.rs",
        "//! Free of tokio.\nuse tokio::time;\nconst A: &str = \"http\";\n",
        &["crates/tool-core/src/clock.rs:2: `tool-core` knows no `tokio`"],
    );
    check(
        "crates/tool-policy/src/lib.rs",
        "use std::env::var;\nfn a() { env::var_os(\"A\"); std::env::temp_dir(); env!(\"B\"); }\n",
        &[
            &format!("crates/tool-policy/src/lib.rs:1: {environment}"),
            &format!("crates/tool-policy/src/lib.rs:2: {environment}"),
        ],
    );
    check(
        "crates/tool-exec-mcp/src/lib.rs",
        "// jsonrpc\nconst A: &str = \"{\\\"jsonrpc\\\":\\\"2.0\\\"}\";\n",
        &["crates/tool-exec-mcp/src/lib.rs:2: only `mcp-*` and the gateway know JSON-RPC"],
    );
    check(
        "crates/tool-observe/src/lib.rs",
        "fn a() { eprintln!(\"a\"); sprintln!(); }\n",
        &["crates/tool-observe/src/lib.rs:1: `eprintln!`: only the command line talks to the terminal"],
    );
    check(
        "crates/mcp-wire/src/lib.rs",
        "const A: &str = \"jsonrpc\";\n",
        &[],
    );
    check(
        "crates/toolplane-cli/src/main.rs",
        "fn a() { println!(); std::env::var(\"A\"); }\n",
        &[],
    );
    check(
        "crates/tool-policy/src/lib.rs",
        "#[cfg(test)]\nmod tests {\n    fn a() { println!(\"jsonrpc\"); }\n}\n",
        &[],
    );
    check(
        "crates/tool-policy/tests/it/main.rs",
        "fn a() { println!(\"jsonrpc\"); }\n",
        &[],
    );
}

#[test]
fn examples_in_the_documentation_are_compiled() {
    check(
        "crates/a/src/lib.rs",
        "//! ```no_run\n//! ```\n    /// ```rust,ignore\n/// ```text\n",
        &[
            "crates/a/src/lib.rs:3: an example that is not compiled goes stale: `no_run`, or `text` if it is no Rust",
        ],
    );
}

/// Creates a checkout with a crate without any metadata, and pages with broken links.
fn untidy_checkout(root: &Path) {
    let write = |file: &str, text: &str| {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\n    \"crates/tool-a\",\n]\n",
    );
    write("crates/tool-a/Cargo.toml", "[package]\nname = \"tool-a\"\n");
    write("crates/tool-a/src/lib.rs", "//! Nothing.\n");
    write(
        "docs/src/code.rs",
        "// ANCHOR: open\n// ANCHOR: whole\nfn main() {}\n// ANCHOR_END: whole\n",
    );
    write(
        "ARCHITECTURE.md",
        "# Map\n\n[adr](docs/adr/001-a.md#why) [top](#map) [web](https://example.com)\n",
    );
    write(
        "docs/adr/001-a.md",
        "# A\n\n## Why\n\n```text\n[code](nowhere.md)\n```\n[gone](gone.md) `[span](no.md)`\n",
    );
    write(
        "docs/src/SUMMARY.md",
        "# Summary\n\n[out](../../../out.md)\n[heading](../../ARCHITECTURE.md#none)\n\n[ref]: lost.md\n\n```rust\n{{#include lost.rs}}\n{{#include code.rs:open}}\n{{#include code.rs:whole}}\n```\n",
    );
}

#[test]
fn crates_describe_themselves_and_links_lead_somewhere() {
    let root = tempfile::tempdir().unwrap();
    untidy_checkout(root.path());
    let problems = check_tidy(&Repository::at(root.path()).unwrap()).unwrap();
    let mut shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            "ARCHITECTURE.md: does not name `tool-a`; `cargo xtask docs` writes the table",
            "crates/tool-a/Cargo.toml: does not take the lints of the workspace: `[lints]`, `workspace = true`",
            "crates/tool-a/Cargo.toml: is not published, and `unpublished` in `[package.metadata.toolplane]` does not say why",
            "crates/tool-a/Cargo.toml: no `description`",
            "crates/tool-a/Cargo.toml: no `layer` in `[package.metadata.toolplane]`",
            "docs/adr/001-a.md:8: the link `gone.md` leads to nothing: `docs/adr/gone.md` is missing",
            "docs/src/SUMMARY.md: does not list the decision `001-a.md`",
            "docs/src/SUMMARY.md:10: the page includes the anchor `open`, which `code.rs` does not have from begin to end",
            "docs/src/SUMMARY.md:3: the link `../../../out.md` leads out of the repository",
            "docs/src/SUMMARY.md:4: the link `../../ARCHITECTURE.md#none` leads to a heading that `ARCHITECTURE.md` has not",
            "docs/src/SUMMARY.md:6: the link `lost.md` leads to nothing: `docs/src/lost.md` is missing",
            "docs/src/SUMMARY.md:9: the page includes `lost.rs`, which is missing",
        ],
    );
}

#[test]
fn published_packages_are_complete() {
    let root = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let common = "edition = \"2024\"\ndescription = \"A crate.\"\n";
    let metadata = "[package.metadata.toolplane]\nlayer = \"core\"\n[lints]\nworkspace = true\n";
    write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\n    \"crates/tool-a\",\n    \"crates/tool-b\",\n    \"crates/tool-c\",\n]\n\
         [workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
    );
    write(
        "crates/tool-a/Cargo.toml",
        &format!(
            "[package]\nname = \"tool-a\"\nversion = \"0.1.0\"\n{common}readme = \"README.md\"\ndocumentation = \"https://example.com\"\n\
             keywords = [\"a\", \"more than one word\"]\ncategories = [\"asynchronous\", \"nonsense\"]\n\
             [dependencies]\ntool-b = {{ path = \"../tool-b\" }}\n\
             [dev-dependencies]\ntool-c = {{ path = \"../tool-c\" }}\n{metadata}"
        ),
    );
    write(
        "crates/tool-b/Cargo.toml",
        &format!(
            "[package]\nname = \"tool-b\"\nversion = \"0.1.0\"\n{common}readme = \"README.md\"\ndocumentation = \"https://example.com\"\n\
             keywords = [\"b\"]\ncategories = [\"asynchronous\"]\n\
             [dependencies]\ntool-c = {{ path = \"../tool-c\", version = \"0.1.0\" }}\n{metadata}"
        ),
    );
    write(
        "crates/tool-c/Cargo.toml",
        &format!("[package]\nname = \"tool-c\"\nversion = \"0.1.0\"\npublish = false\n{common}{metadata}"),
    );
    for name in ["tool-a", "tool-b", "tool-c"] {
        write(&format!("crates/{name}/src/lib.rs"), "//! Nothing.\n");
        write(&format!("crates/{name}/README.md"), "# A crate\n");
        write(&format!("crates/{name}/LICENSE-MIT"), "MIT\n");
    }
    write("LICENSE-MIT", "MIT\n");
    write("LICENSE-APACHE", "Apache\n");
    write("crates/tool-b/LICENSE-APACHE", "Apache\n");
    write(
        "crates/tool-b/src/lib.rs",
        "//! Grows.\n\n/// Two of them.\npub enum Side {\n    /// One.\n    Left,\n}\n",
    );
    let problems = check_tidy(&Repository::at(root.path()).unwrap()).unwrap();
    let mut shown: Vec<_> = problems
        .iter()
        .map(ToString::to_string)
        .filter(|problem| !problem.contains("glossary"))
        .collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            "crates/tool-a/Cargo.toml: `LICENSE-APACHE` beside it is missing or is no copy of the root's",
            "crates/tool-a/Cargo.toml: depends on `tool-b` *: a path needs the version 0.1.0",
            "crates/tool-a/Cargo.toml: the category `nonsense` is not in the list of `xtask`",
            "crates/tool-a/Cargo.toml: the package index refuses the keyword `more than one word`",
            "crates/tool-b/Cargo.toml: depends on `tool-c`, which is not published",
            "crates/tool-b/src/lib.rs:4: `tool-b::Side` cannot grow: `#[non_exhaustive]`, or a row with the reason in `docs/src/reference/closed-types.md`",
            "crates/tool-c/Cargo.toml: is not published, and `unpublished` in `[package.metadata.toolplane]` does not say why",
        ],
    );
}

#[test]
fn promises_name_tests_that_there_are() {
    let root = tempfile::tempdir().unwrap();
    untidy_checkout(root.path());
    let write = |file: &str, text: &str| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let tests =
        "#[test]\nfn one() {}\n\n#[tokio::test(start_paused = true)]\nasync fn two() {}\n\nfn three() {}\n";
    write("crates/tool-a/tests/it/main.rs", tests);
    write(
        "docs/src/reference/promises.md",
        "# Promises\n\n## R01 Kept\n\n- `crates/tool-a/tests/it/main.rs`: `one`, `two`\n\n## R02 Broken\n\n\
         - `crates/tool-a/tests/it/main.rs`: `three`\n- `crates/tool-a/tests/it/gone.rs`: `one`\n- `crates/tool-a/tests/it/main.rs`\n\n\
         ## R03 Forgotten\n\nNothing.\n\n## What is no promise\n",
    );
    let problems = check_tidy(&Repository::at(root.path()).unwrap()).unwrap();
    let shown: Vec<_> = problems
        .iter()
        .map(ToString::to_string)
        .filter(|problem| problem.contains("promises.md"))
        .collect();
    assert_eq!(
        shown,
        [
            "docs/src/reference/promises.md:9: there is no test `three` in `crates/tool-a/tests/it/main.rs`",
            "docs/src/reference/promises.md:10: `crates/tool-a/tests/it/gone.rs` is missing",
            "docs/src/reference/promises.md:11: names no test in `crates/tool-a/tests/it/main.rs`",
            "docs/src/reference/promises.md:13: `R03 Forgotten` names no test",
        ],
    );
}
