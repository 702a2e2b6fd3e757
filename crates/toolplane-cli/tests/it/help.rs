//! Help and reference of the binary.

use crate::binary::Place;

#[test]
fn help() {
    let place = Place::empty();
    for verb in [
        "",
        "init",
        "check",
        "doctor",
        "add",
        "import openapi",
        "import mcp-json",
        "connect",
        "disconnect",
        "catalog",
        "catalog add",
        "catalog install",
        "export",
        "tools ls",
        "tools show",
        "tools disable",
        "tools enable",
        "servers ls",
        "call",
        "serve",
        "endpoint",
        "health",
        "approvals",
        "approvals approve",
        "approvals deny",
        "ledger",
        "ledger show",
        "tokens",
        "tokens create",
        "usage",
        "sandbox",
        "sandbox probe",
        "mock-server",
        "schema",
    ] {
        let mut arguments: Vec<&str> = verb.split_whitespace().collect();
        arguments.push("-h");
        let name = if verb.is_empty() {
            "toolplane".to_owned()
        } else {
            verb.replace(' ', "_")
        };
        insta::assert_snapshot!(format!("help_{name}"), place.run(&arguments).data());
    }
}

#[test]
fn the_exit_codes_are_in_the_help() {
    let help = Place::empty().run(&["--help"]);
    for exit in toolplane_cli::Exit::ALL {
        let line = format!("{:>3}  {}", exit.code(), exit.meaning());
        assert!(help.data().contains(&line), "{line}");
    }
}

#[test]
fn the_reference_of_the_command_line() {
    insta::assert_snapshot!(Place::empty().run(&["docs", "cli"]).data());
}

#[test]
fn the_reference_of_the_configuration_names_every_part_once() {
    let page = Place::empty().run(&["docs", "configuration"]);
    for heading in [
        "## Configuration\n",
        "## Server\n",
        "## Tool\n",
        "## Policy\n",
        "## Defaults\n",
        "## Gateway\n",
        "## Executor\n",
    ] {
        assert_eq!(page.data().matches(heading).count(), 1, "{heading}");
    }
    // Every link leads to a section.
    let headings = page.data().lines().filter_map(|line| line.strip_prefix("## "));
    let anchors: Vec<String> = headings
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect();
    let links = page
        .data()
        .split("](#")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    for link in links {
        assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
    }
}

#[test]
fn the_version() {
    let place = Place::empty();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(place.run(&["version"]).data(), format!("toolplane {version}\n"));
    assert_eq!(place.run(&["--version"]).data(), format!("toolplane {version}\n"));
    assert_eq!(place.run(&["version", "-o", "json"]).json()["version"], version);
}

#[test]
fn completions_of_every_shell() {
    let place = Place::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.run(&["completions", shell]);
        assert!(
            script.data().contains("doctor") && !script.data().contains("docs-"),
            "{shell}"
        );
    }
}

#[test]
fn manual_pages_of_the_program_and_of_every_shown_command() {
    let place = Place::empty();
    let printed = place.run(&["man"]);
    assert!(printed.data().contains(".TH toolplane 1"), "{}", printed.data());
    place.run(&["man", "--out", "share/man1", "--quiet"]).data();
    let folder = place.path().join("share/man1");
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    assert_eq!(page("toolplane.1"), printed.data());
    assert!(page("toolplane-call.1").contains(r"\-\-explain"));
    assert!(page("toolplane-tools-ls.1").contains(".TH toolplane-tools-ls 1"));
    for hidden in ["toolplane-docs.1", "toolplane-man.1", "toolplane-help.1"] {
        assert!(!folder.join(hidden).exists(), "{hidden}");
    }
}

#[test]
fn a_file_is_no_directory_of_manual_pages() {
    let place = Place::empty();
    place.write("pages", "text");
    let run = place.run(&["man", "--out", "pages"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("cannot write manual pages into `pages`"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("hint: `--out` names a directory"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_schema_is_one() {
    let schema = Place::empty().run(&["schema"]).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["$defs"]["executor.http"]["properties"]["url"].is_object());
    assert!(schema["$defs"]["Tool"]["properties"]["description"].is_object());
}
