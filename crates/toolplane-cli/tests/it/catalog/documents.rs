//! Documents of the official registry as entries of a catalog.

use super::{STORE, json, lock, refused};
use crate::binary::Place;

const DATABASE: &str =
    include_str!("../../../../tool-catalog/tests/fixtures/server-json/database-manager.json");
pub(super) const HYBRID: &str =
    include_str!("../../../../tool-catalog/tests/fixtures/server-json/hybrid.json");
const MCPB: &str = include_str!("../../../../tool-catalog/tests/fixtures/server-json/mcpb.json");

#[test]
fn documents_of_the_registry_are_installed() {
    let place = Place::with(STORE);
    for (name, content) in [
        ("a.server.json", DATABASE),
        ("b.server.json", HYBRID),
        ("c.server.json", MCPB),
    ] {
        place.write(&format!("c/{name}"), content);
    }
    place.run(&["catalog", "add", "registry", "c", "-q"]).data();
    let listed = json(&place, &["catalog", "search"]);
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "io.github.example/database-manager",
            "io.modelcontextprotocol.anonymous/hybrid-mcp",
            "io.modelcontextprotocol/text-editor",
        ]
    );
    let database = "registry/io.github.example/database-manager@3.1.0";
    let installed = place.run(&[
        "catalog",
        "install",
        database,
        "--set",
        "db_type=redis",
        "--set",
        "DB_USERNAME=ada",
        "-o",
        "json",
    ]);
    let value = installed.json();
    assert_eq!(value["server"], "database-manager");
    assert_eq!(value["settings"]["env"]["DB_PASSWORD"], "${DB_PASSWORD}");
    assert_eq!(value["pinned"], "the tag 3.1.0, which may move");
    let asked: Vec<_> = value["asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| input["name"].as_str().unwrap())
        .collect();
    assert_eq!(asked, ["DB_PASSWORD", "database_name"]);
    let secrets: Vec<_> = value["needs"]["secrets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| secret["name"].as_str().unwrap())
        .collect();
    assert_eq!(secrets, ["DATABASE_NAME", "DB_PASSWORD"]);
    assert!(
        installed
            .stderr
            .contains("the container reaches more than its own files: `--network`"),
        "{installed:?}"
    );

    let remote = json(
        &place,
        &[
            "catalog",
            "install",
            "io.modelcontextprotocol.anonymous/hybrid-mcp@1.5.0",
            "--package",
            "remote",
        ],
    );
    assert_eq!(remote["settings"]["type"], "http");
    assert_eq!(
        remote["needs"]["hosts"],
        json!(["mcp.anonymous.modelcontextprotocol.io"])
    );
    let servers = json(&place, &["servers", "ls", "--no-start"]);
    assert_eq!(servers.as_array().unwrap().len(), 2);
    let pins = lock(&place)["installed"]["servers"].clone();
    assert!(
        pins["io.github.example/database-manager@3.1.0"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );

    for (arguments, code, expected) in [
        (
            &["io.modelcontextprotocol/text-editor@1.0.2"][..],
            2,
            "bundles of the form MCPB are not unpacked here",
        ),
        (
            &[database, "--set", "db_type=oracle"],
            2,
            "`oracle` is none of its values",
        ),
        (
            &[database, "--set", "DB_PASSWORD=abc"],
            2,
            "it is a secret, and would be stored as it is written",
        ),
        (&[database, "--set", "dbtype=redis"], 3, "did you mean `db_type`?"),
        (&[database, "--set", "db_type"], 2, "has no value"),
        (&[database, "--package", "pypi"], 3, "it has no package `pypi`"),
    ] {
        refused(
            &place.run(&[&["catalog", "install"], arguments].concat()),
            code,
            expected,
        );
    }
    let shown = json(
        &place,
        &["catalog", "show", "io.modelcontextprotocol/text-editor"],
    );
    assert_eq!(shown["packages"][0]["type"], "mcpb");
}
