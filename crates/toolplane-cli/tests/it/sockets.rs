//! Discovery of gateways by the same user, whichever variables they were started with.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    approvals::{Gateway, SOCKETS},
    binary::{BINARY, Place, Run},
};

const GUARDED: &str = "
store: {enabled: false}
policy: {approval: {required: [x]}}
tools:
  x: {description: Waits for approval, executor: {kind: mock, result: {done: true}}}
";

/// Returns a gateway with another gateway as its server.
fn outer() -> Place {
    let place = Place::with(&format!(
        "servers: {{b: {{command: {BINARY}, args: [serve, --stdio, --config, b.yaml]}}}}"
    ));
    place.write("b.yaml", GUARDED);
    place
}

/// Returns the command with the environment that the TypeScript SDK gives to servers over stdio.
fn by_an_sdk(place: &Place) -> Command {
    let mut command = place.command(&["serve", "--stdio"]);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", place.path())
        .envs([
            ("LOGNAME", "ann"),
            ("USER", "ann"),
            ("SHELL", "/bin/sh"),
            ("TERM", "xterm"),
        ]);
    command
}

fn with(place: &Place, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = place.command(arguments);
    Run::new(command.envs(variables.iter().copied()).output().unwrap())
}

fn handles(run: &Run) -> Vec<String> {
    assert_eq!(run.code, 0, "{run:?}");
    let list = run.json();
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| row["handle"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the sockets of a directory.
fn sockets(directory: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn an_approval_of_a_gateway_that_another_one_started_is_found() {
    let place = outer();
    let runtime = tempfile::Builder::new().prefix("tp").tempdir().unwrap();
    let state = tempfile::Builder::new().prefix("tp").tempdir().unwrap();
    let path = |directory: &tempfile::TempDir| directory.path().to_str().unwrap().to_owned();
    let (runtime_path, state_path) = (path(&runtime), path(&state));
    let mut gateway = Gateway::new(by_an_sdk(&place));
    let pending = gateway.call("b__x", &json!({}));
    let text = pending["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("approval"), "{pending}");

    let mut seen = Vec::new();
    for variables in [
        vec![],
        vec![("XDG_RUNTIME_DIR", runtime_path.as_str())],
        vec![("XDG_STATE_HOME", state_path.as_str())],
        vec![
            ("XDG_RUNTIME_DIR", runtime_path.as_str()),
            ("XDG_STATE_HOME", state_path.as_str()),
        ],
    ] {
        let list = with(&place, &variables, &["approvals", "ls", "-o", "json"]);
        seen.push(handles(&list));
    }
    assert_eq!(seen[0].len(), 1);
    assert!(seen.iter().all(|handles| *handles == seen[0]), "{seen:?}");
    let arguments = ["approvals", "approve", &seen[0][0], "--as", "boss"];
    let approved = with(&place, &[("XDG_RUNTIME_DIR", &runtime_path)], &arguments);
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = gateway.call("b__x", &json!({}));
    assert_eq!(done["structuredContent"], json!({"done": true}));
    assert_eq!(gateway.end(), 0);
}

#[test]
fn several_gateways_are_found_also_where_earlier_versions_had_their_sockets() {
    let place = Place::with(GUARDED);
    let runtime = tempfile::Builder::new().prefix("tp").tempdir().unwrap();
    let runtime_path = runtime.path().to_str().unwrap().to_owned();
    let mut gateways = [(); 3].map(|()| Gateway::start(&place));
    for gateway in &mut gateways {
        gateway.call("x", &json!({}));
    }
    // Earlier versions had them here with `XDG_RUNTIME_DIR`, and there without.
    let directory = place.path().join(SOCKETS);
    let of_process = |n: usize| {
        let process = format!("gateway-{}-", gateways[n].child.id());
        let paths = sockets(&directory);
        let is_it = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&process);
        paths.iter().find(is_it).unwrap().clone()
    };
    let earlier = [
        runtime.path().join("toolplane"),
        place.path().join(".local/state/toolplane"),
    ];
    for (n, directory) in earlier.iter().enumerate() {
        fs::create_dir_all(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        let name = format!("gateway-{}.sock", gateways[n].child.id());
        fs::rename(of_process(n), directory.join(name)).unwrap();
    }
    let run = with(
        &place,
        &[("XDG_RUNTIME_DIR", &runtime_path)],
        &["approvals", "ls", "-o", "json"],
    );
    assert_eq!(handles(&run).len(), 3, "{run:?}");
    for gateway in gateways {
        assert_eq!(gateway.end(), 0);
    }
}

#[test]
fn a_socket_without_a_gateway_is_removed_and_one_of_another_host_is_kept() {
    let place = Place::with(GUARDED);
    let gateway = Gateway::start(&place);
    let directory = place.path().join(SOCKETS);
    let own = sockets(&directory).remove(0);
    let host = own.to_str().unwrap().rsplit_once('-').unwrap().1.to_owned();
    let mut ended = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    ended.wait().unwrap();
    let stale = directory.join(format!("gateway-{}-{host}", ended.id()));
    let foreign = directory.join(format!("gateway-{}-ffffffff.sock", ended.id()));
    let file = directory.join(format!("gateway-{}0-{host}", ended.id()));
    for path in [&stale, &foreign] {
        drop(UnixListener::bind(path).unwrap());
    }
    fs::write(&file, "no socket").unwrap();
    let run = place.run(&["approvals", "ls"]);
    assert_eq!(run.code, 0, "{run:?}");
    let mut left = vec![own, foreign, file];
    left.sort();
    assert_eq!(sockets(&directory), left);
    assert_eq!(gateway.end(), 0);
}

#[test]
fn no_gateway_is_told_as_no_gateway() {
    let place = Place::with(GUARDED);
    for arguments in [
        vec!["approvals", "ls"],
        vec!["approvals", "ls", "-o", "json"],
        vec!["approvals", "show", "abc"],
        vec!["approvals", "approve", "abc"],
        vec!["ledger", "ls"],
        vec!["ledger", "show", "00000000000000000000000000000001"],
        vec!["servers", "ls", "--gateway"],
        vec!["tools", "enable", "x"],
    ] {
        let run = place.run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (6, ""), "{arguments:?}: {run:?}");
        for said in [
            "no gateway of this user was reached",
            "`toolplane serve` starts one",
            SOCKETS,
        ] {
            assert!(run.stderr.contains(said), "{arguments:?}: {said}: {run:?}");
        }
    }
    let health = place.run(&["health", "--address", "127.0.0.1:1"]);
    assert_eq!(health.code, 6, "{health:?}");
    assert!(
        health.stderr.contains("`toolplane serve` starts one"),
        "{health:?}"
    );
    // Lists that only add the state of gateways work without one.
    assert_eq!(place.run(&["tools", "ls"]).code, 0);
}

#[test]
fn a_directory_that_others_can_open_or_that_is_elsewhere_is_not_trusted() {
    let place = Place::with(GUARDED);
    let directory = place.path().join(SOCKETS);
    fs::create_dir_all(&directory).unwrap();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    for is_link in [false, true] {
        if is_link {
            fs::remove_dir(&directory).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &directory).unwrap();
        } else {
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let gateway = Gateway::start(&place);
        assert_eq!(
            fs::read_dir(&directory).unwrap().count(),
            0,
            "no socket is put there"
        );
        let run = place.run(&["approvals", "ls", "-o", "json"]);
        assert_eq!(run.code, 6, "{run:?}");
        assert!(
            run.stderr
                .contains("must be a directory that only this user can open"),
            "{run:?}"
        );
        assert_eq!(gateway.end(), 0);
    }
}
