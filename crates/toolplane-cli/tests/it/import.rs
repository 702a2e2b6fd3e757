//! `toolplane import`.

use std::fs;

use serde_json::json;

use crate::binary::Place;

/// Document with an operation that is imported, one that changes things and one that cannot be sent.
const DOCUMENT: &str = r##"
openapi: 3.0.3
info: {title: "Pets: a # store", version: 1.0}
servers: [{url: 'https://pets.example.com/v1'}]
security: [{petKey: []}]
paths:
  /pets:
    get:
      operationId: listPets
      tags: [pets]
      summary: Lists pets.
      parameters:
        - {name: limit, in: query, schema: {type: integer, minimum: 0, exclusiveMinimum: true}}
        - {name: status, in: query, explode: false, schema: {type: array, items: {type: string, enum: ["on", "no", "1"]}}}
      responses: {200: {description: ok}}
    post:
      operationId: addPet
      tags: [admin]
      description: |
        Adds a pet.

          - {indented}: ${HOME}
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [name]
              properties: {name: {type: string, pattern: '^\d+#: $'}, "on": {type: boolean}}
      responses: {201: {description: ok}}
  /pets/{petId}/photo:
    put:
      operationId: setPhoto
      tags: [admin]
      requestBody: {required: true, content: {image/png: {}}}
      responses: {204: {description: ok}}
components:
  securitySchemes:
    petKey: {type: apiKey, in: header, name: X-Pet-Key}
"##;

fn place() -> Place {
    let place = Place::empty().variable("PET_KEY", "k-1");
    place.write("pets.yaml", DOCUMENT);
    place
}

#[test]
fn a_dry_run_prints_the_tools() {
    let run = place().run(&["import", "openapi", "pets.yaml", "--dry-run"]);
    insta::assert_snapshot!(run.transcript(&["import", "openapi", "pets.yaml", "--dry-run"]));
    let again = place().run(&["import", "openapi", "pets.yaml", "--dry-run", "-o", "json"]);
    let configuration = again.json();
    assert_eq!(configuration["secrets"], json!({"pet_key": "${PET_KEY}"}));
    assert_eq!(
        configuration["tools"]["listPets"]["executor"]["query"]["status"],
        json!({"argument": "status", "join": ","})
    );
}

#[test]
fn the_tools_are_written_to_a_file_that_is_a_configuration() {
    let place = place();
    let arguments = ["import", "openapi", "pets.yaml", "--out", "tools.yaml"];
    let run = place.run(&arguments);
    insta::assert_snapshot!(run.transcript(&arguments));
    let check = place.run(&["-c", "tools.yaml", "check"]);
    assert_eq!(check.code, 0, "{check:?}");
    assert_eq!(check.stdout, "tools.yaml: ok, 2 tools, 0 servers\n");
    let called = place.run(&[
        "-c",
        "tools.yaml",
        "call",
        "listPets",
        "limit=5",
        "status=on,no",
        "--dry-run",
        "-o",
        "json",
    ]);
    assert_eq!(called.code, 0, "{called:?}");
    let text = called.stdout.replace(' ', "");
    assert!(
        text.contains("https://pets.example.com/v1/pets?limit=5&status=on,no"),
        "{called:?}"
    );
    assert!(!called.stdout.contains("k-1"), "{called:?}");
    let refused = place.run(&["-c", "tools.yaml", "call", "listPets", "limit=0", "--dry-run"]);
    assert_ne!(refused.code, 0, "{refused:?}");
}

#[test]
fn an_existing_file_is_kept_without_force() {
    let place = place();
    place.write("tools.yaml", "mine");
    let arguments = ["import", "openapi", "pets.yaml", "--out", "tools.yaml"];
    let run = place.run(&arguments);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("`tools.yaml` exists already"), "{run:?}");
    assert_eq!(
        fs::read_to_string(place.path().join("tools.yaml")).unwrap(),
        "mine"
    );
    let forced = place.run(&[
        "import",
        "openapi",
        "pets.yaml",
        "--out",
        "tools.yaml",
        "--force",
        "-o",
        "json",
    ]);
    let report = forced.json();
    assert_eq!(report["file"], "tools.yaml");
    assert_eq!(report["tools"][1]["name"], "addPet");
    assert_eq!(report["skipped"][0]["path"], "/pets/{petId}/photo");
    assert!(
        fs::read_to_string(place.path().join("tools.yaml"))
            .unwrap()
            .starts_with("# Tools of")
    );
}

#[test]
fn a_selection_and_a_document_that_is_none() {
    let place = place();
    let selected = [
        "import",
        "openapi",
        "pets.yaml",
        "--tag",
        "pets",
        "--prefix",
        "shop_",
        "--dry-run",
        "-o",
        "json",
    ];
    let run = place.run(&selected);
    let tools = run.json()["tools"].clone();
    let names: Vec<&String> = tools.as_object().unwrap().keys().collect();
    assert_eq!(names, ["shop_listPets"]);
    for (arguments, code, message) in [
        (
            vec!["pets.yaml", "--tag", "none", "--dry-run"],
            1,
            "no operation has the tag `none`",
        ),
        (
            vec!["pets.yaml", "--operation", "setPhoto", "--dry-run"],
            1,
            "its body cannot be sent: it is `image/png`",
        ),
        (vec!["none.yaml", "--dry-run"], 1, "cannot read `none.yaml`"),
        (vec!["pets.yaml"], 2, "--out <FILE>"),
        (
            vec!["pets.yaml", "--server", "pets", "--dry-run"],
            2,
            "the server `pets` is relative",
        ),
        (
            vec!["other.yaml", "--dry-run"],
            2,
            "the file is no OpenAPI document",
        ),
    ] {
        place.write("other.yaml", "tools: {}");
        let all: Vec<&str> = ["import", "openapi"].into_iter().chain(arguments).collect();
        let run = place.run(&all);
        assert_eq!(run.code, code, "{run:?}");
        assert!(run.stderr.contains(message), "{run:?}");
    }
    let piped = place.run_with(&["import", "openapi", "-", "--dry-run", "-q"], DOCUMENT);
    assert_eq!(piped.code, 0, "{piped:?}");
    assert_eq!(piped.stderr, "");
}

#[test]
fn a_loopback_server_needs_the_permission_of_the_operator() {
    let place = place();
    let local = [
        "import",
        "openapi",
        "pets.yaml",
        "--server",
        "http://127.0.0.1:9",
        "--dry-run",
        "-o",
        "json",
    ];
    let run = place.run(&local);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("not public"), "{run:?}");
    let permitted: Vec<&str> = local.into_iter().chain(["--allow-private"]).collect();
    let tools = place.run(&permitted).json()["tools"].clone();
    assert_eq!(tools["listPets"]["executor"]["allow_private"], true);
}

/// Tests that many operations are imported, and that a file which would be too large is refused before it is written.
#[test]
fn a_file_that_nothing_could_load_is_not_written() {
    let place = Place::empty();
    let text = "x".repeat(8000);
    let operation = |index: usize| {
        let operation = json!({"operationId": format!("op{index}"), "description": text, "responses": {}});
        (format!("/a{index}"), json!({"get": operation}))
    };
    let paths: serde_json::Map<String, serde_json::Value> = (0..600).map(operation).collect();
    let document = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"},
        "servers": [{"url": "https://api.example.com"}], "paths": paths});
    place.write("large.json", document.to_string());
    let printed = place.run(&["import", "openapi", "large.json", "--dry-run", "-q", "-o", "json"]);
    assert_eq!(printed.json()["tools"].as_object().unwrap().len(), 600);
    let run = place.run(&["import", "openapi", "large.json", "--out", "large.yaml", "-q"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("import fewer operations"), "{run:?}");
    assert!(!place.path().join("large.yaml").exists());
}
