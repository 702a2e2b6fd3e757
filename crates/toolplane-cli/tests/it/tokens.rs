//! `toolplane tokens`, and a gateway that asks for tokens.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{Place, Run, end_of, signal},
    serve::{Served, call},
};

const CONFIGURATION: &str = "
gateway: {auth: tokens, metrics: true}
policy:
  roles: {writer: [files.write]}
  principals:
    ada: {roles: [writer]}
    bob: {tenant: acme}
  required_permissions: {delete: [files.write]}
tools:
  delete: {description: Deletes, executor: {kind: mock, result: {deleted: true}}}
";

/// File of the tokens, below the user's home.
const FILE: &str = ".local/share/toolplane/toolplane.db";

/// Creates a token and returns its text.
#[track_caller]
pub(crate) fn create(place: &Place, arguments: &[&str]) -> String {
    let run = place.run(&[&["tokens", "create"], arguments].concat());
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("it is shown this once"), "{run:?}");
    run.stdout.trim_end().to_owned()
}

/// Returns the lines of `tokens ls -o json`.
fn list(place: &Place) -> Vec<Value> {
    let run = place.run(&["tokens", "ls", "-o", "json"]);
    run.data();
    run.json().as_array().unwrap().clone()
}

/// Calls `delete` with this token. Returns status and body.
fn delete(served: &Served, token: &str) -> (u16, String) {
    let authorization = format!("Authorization: Bearer {token}\r\n");
    let answer = served.post_with(&authorization, &call(1, "delete", &json!({})));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[test]
fn a_token_is_created_used_listed_and_revoked() {
    let place = Place::with(CONFIGURATION);
    let empty = place.run(&["tokens", "ls"]);
    assert_eq!((empty.code, &*empty.stdout), (0, ""), "{empty:?}");
    let ada = create(&place, &["ada", "--expires", "30d", "--label", "laptop \u{202e}"]);
    let bob = create(&place, &["bob", "--role", "writer"]);
    let other = create(&place, &["bob"]);
    let file = place.path().join(FILE);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let stored = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
    for token in [&ada, &bob, &other] {
        let (_, secret) = token.rsplit_once('_').unwrap();
        assert!(
            token.starts_with("tp_") && !stored.contains(&secret[..64]),
            "{stored}"
        );
    }
    let listed = list(&place);
    assert_eq!(listed.len(), 3, "{listed:?}");
    let of_ada = listed.iter().find(|token| token["principal"] == "ada").unwrap();
    assert_eq!(of_ada["id"].as_str(), ada.split('_').nth(1));
    assert_eq!(
        (&of_ada["state"], &of_ada["roles"]),
        (&json!("active"), &json!([]))
    );
    assert_ne!(of_ada["expires_at"], Value::Null);
    let table = place.run(&["tokens", "ls"]);
    assert!(table.data().contains("laptop \\u{202e}"), "{table:?}");

    let served = Served::start(&place);
    for (token, may) in [(&ada, true), (&bob, true), (&other, false)] {
        let (status, body) = delete(&served, token);
        assert_eq!((status, body.contains(r#""deleted":true"#)), (200, may), "{body}");
    }
    assert_eq!(delete(&served, "tp_0").0, 401);
    assert_eq!(served.page("/health").0, 401);
    assert_eq!(served.page("/metrics").0, 401);
    assert_eq!(served.page("/healthz").0, 200);

    // The running gateway refuses the token from now on. The whole token may be given instead of its id.
    let revoked = place.run(&["tokens", "revoke", &bob]);
    let (_, secret) = bob.rsplit_once('_').unwrap();
    assert!(
        revoked.data().starts_with("revoked ") && !revoked.stdout.contains(secret),
        "{revoked:?}"
    );
    let (status, body) = delete(&served, &bob);
    assert_eq!(status, 401, "{body}");
    assert!(body.contains("the token was revoked"), "{body}");
    assert_eq!(delete(&served, &ada).0, 200);
    // So does a token that is created meanwhile work at once.
    let new = create(&place, &["ada"]);
    assert_eq!(delete(&served, &new).0, 200);

    // Nobody gets in while others may write the store, or while it cannot be read.
    let mut served = served;
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let served = Served::start(&place);
    assert_eq!(delete(&served, &ada).0, 503);
    drop(served);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // What the log of writes still has would be read instead of the file.
    let _ = fs::remove_file(file.with_extension("db-wal"));
    fs::write(
        &file,
        "this is a text of some length and no database at all".repeat(100),
    )
    .unwrap();
    let served = Served::start(&place);
    assert_eq!(delete(&served, &ada).0, 503);
    let broken = place.run(&["tokens", "ls"]);
    assert_eq!(broken.code, 6, "{broken:?}");
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, 2, "{checked:?}");
    assert!(checked.stderr.contains("nobody can authenticate"), "{checked:?}");
    let mut served = served;
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
}

#[test]
fn the_health_of_such_a_gateway_needs_a_token_in_the_environment() {
    let place = Place::with(CONFIGURATION);
    let token = create(&place, &["ada"]);
    let served = Served::start(&place);
    let ask = ["health", "--address", &*served.address];
    let refused = place.run(&ask);
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("TOOLPLANE_TOKEN"), "{refused:?}");
    let answered = place
        .command(&ask)
        .env("TOOLPLANE_TOKEN", &token)
        .output()
        .unwrap();
    let answered = Run::new(answered);
    assert!(answered.data().starts_with("ready\n"), "{answered:?}");
    let bad = place
        .command(&ask)
        .env("TOOLPLANE_TOKEN", "a\nb")
        .output()
        .unwrap();
    let bad = Run::new(bad);
    assert_eq!(bad.code, 2, "{bad:?}");
    let mut served = served;
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
}

#[test]
fn tokens_that_would_have_no_use_are_refused() {
    let place = Place::with(CONFIGURATION);
    for (arguments, code, said) in [
        (
            &["create", "anonymous"][..],
            2,
            "is the principal of clients without a token",
        ),
        (&["create", "a b"], 2, "contains white space"),
        (&["create", ""], 2, "is empty"),
        (
            &["create", "ada", "--role", "writre"],
            2,
            "did you mean `writer`?",
        ),
        (
            &["create", "bob", "--tenant", "other"],
            2,
            "belongs to the tenant `acme`",
        ),
        (&["create", "ada", "--expires", "30"], 2, "such as `12h` or `30d`"),
        (
            &["create", "ada", "--expires", "9999999d"],
            2,
            "after the year 9999",
        ),
        (&["revoke", "0123"], 3, "no token has the id `0123`"),
    ] {
        let run = place.run(&[&["tokens"], arguments].concat());
        assert_eq!((run.code, &*run.stdout), (code, ""), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(said), "{arguments:?}: {run:?}");
    }
    assert!(!place.path().join(FILE).exists());
    // A token that has no effect yet is created with a warning.
    let eve = place.run(&["tokens", "create", "eve"]);
    assert!(
        eve.code == 0 && eve.stderr.contains("`eve` has no permissions"),
        "{eve:?}"
    );
    place.write("toolplane.yaml", CONFIGURATION.replace("auth: tokens, ", ""));
    let ada = place.run(&["tokens", "create", "ada"]);
    assert!(
        ada.code == 0 && ada.stderr.contains("set `gateway.auth: tokens`"),
        "{ada:?}"
    );
}

#[test]
fn check_reports_principals_and_roles_that_do_not_fit_the_tokens() {
    let place = Place::with(CONFIGURATION);
    create(&place, &["ada"]);
    create(&place, &["bob", "--role", "writer"]);
    let good = place.run(&["check", "--strict"]);
    assert_eq!(good.code, 0, "{good:?}");
    place.write(
        "toolplane.yaml",
        CONFIGURATION.replace("writer", "author").replace(
            "required_permissions:",
            "permissions: {adaa: [x]}\n  required_permissions:",
        ),
    );
    let checked = place.run(&["check", "-o", "json"]);
    let problems = checked.json()["problems"].clone();
    let messages: Vec<_> = problems
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| &problem["message"])
        .collect();
    assert_eq!(messages.len(), 2, "{checked:?}");
    assert_eq!(
        messages[0],
        "`policy.permissions` has `adaa`, but no client can authenticate as that principal"
    );
    assert_eq!(problems[0]["hint"], "did you mean `ada`?");
    let message = messages[1].as_str().unwrap();
    assert!(
        message.ends_with("of `bob` has the role `writer`, which is not defined"),
        "{message}"
    );
    // Without authentication, no client is one of the principals.
    place.write("toolplane.yaml", CONFIGURATION.replace("auth: tokens, ", ""));
    let checked = place.run(&["check"]);
    assert!(
        checked.stderr.contains("`policy.principals` has `bob`"),
        "{checked:?}"
    );
}

/// Binds an address that is not loopback, which is reachable from this machine too.
#[test]
fn other_machines_are_served_with_authentication_only() {
    let place = Place::with(CONFIGURATION);
    let token = create(&place, &["ada"]);
    let mut served = Served::start_at(&place, "0.0.0.0:0", &[]);
    assert!(served.said.contains("unencrypted"), "{}", served.said);
    let (_, port) = served.address.rsplit_once(':').unwrap();
    served.address = format!("127.0.0.1:{port}");
    assert_eq!(served.page("/mcp").0, 401);
    assert_eq!(delete(&served, &token).0, 200);
    signal(served.child.id(), Signal::TERM);
    assert_eq!(end_of(&mut served.child), 0);
    // The metrics have no authentication of their own.
    let refused = place.run(&["serve", "--http", "127.0.0.1:0", "--metrics", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    place.write(
        "toolplane.yaml",
        CONFIGURATION.replace("auth: tokens", "auth: none"),
    );
    let refused = place.run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("set `gateway.auth: tokens`"),
        "{refused:?}"
    );
}
