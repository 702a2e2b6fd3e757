//! Tests of the selection of steps and of the mark of a green run.

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::{CiOptions, Repository, ci};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn git(root: &Path, args: &[&str]) {
    let done = Command::new("git").current_dir(root).args(args).status().unwrap();
    assert!(done.success(), "git {args:?}");
}

#[test]
fn an_unknown_step_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let repository = Repository::at(root.path()).unwrap();
    let options = CiOptions {
        skip: names(&["tests"]),
        ..CiOptions::default()
    };
    let error = ci(&repository, &options).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("there is no step `tests`; the steps are fmt, layers,"),
        "{error}"
    );
}

#[test]
fn a_partial_run_writes_no_mark() {
    let root = tempfile::tempdir().unwrap();
    git(root.path(), &["init", "--quiet"]);
    git(
        root.path(),
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "a",
        ],
    );
    fs::create_dir(root.path().join("target")).unwrap();
    let repository = Repository::at(root.path()).unwrap();
    ci(
        &repository,
        &CiOptions {
            only: names(&["book"]),
            ..CiOptions::default()
        },
    )
    .unwrap();
    assert!(!root.path().join("target/ci-green").exists());
}

#[test]
fn the_step_that_fails_is_named() {
    let root = tempfile::tempdir().unwrap();
    let repository = Repository::at(root.path()).unwrap();
    let error = ci(
        &repository,
        &CiOptions {
            only: names(&["docs"]),
            ..CiOptions::default()
        },
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "step `docs` failed");
}
