//! Tests of the layer table, on this workspace and on workspaces that break it.

use serde_json::{Value, json};
use xtask::{Repository, Violation, WorkspaceMembers, check_edges, check_layers, check_order, check_purity};

/// Creates a member from its name, its layer, and its edges as `(name, kind)`.
fn member(name: &str, layer: Option<&str>, edges: &[(&str, Option<&str>)]) -> Value {
    json!({
        "name": name,
        "manifest_path": format!("/checkout/crates/{name}/Cargo.toml"),
        "metadata": layer.map(|layer| json!({ "toolplane": { "layer": layer } })),
        "dependencies": edges.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect::<Vec<_>>(),
    })
}

fn members(packages: &[Value]) -> WorkspaceMembers {
    let answer = json!({ "packages": packages, "workspace_root": "/checkout" });
    WorkspaceMembers::parse(&answer.to_string()).unwrap()
}

#[track_caller]
fn check(problems: &[Violation], expected: &[&str]) {
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected);
}

#[test]
fn this_workspace_keeps_its_layers() {
    let repository = Repository::open().unwrap();
    check(&check_layers(repository.root()).unwrap(), &[]);
}

#[test]
fn siblings_do_not_depend_on_each_other() {
    for kind in [None, Some("build")] {
        let members = members(&[
            member(
                "tool-policy",
                Some("policy"),
                &[("tool-runtime", kind), ("tool-core", None)],
            ),
            member("tool-runtime", Some("execution"), &[]),
            member("tool-core", Some("core"), &[]),
        ]);
        check(
            &check_edges(&members),
            &[
                "crates/tool-policy/Cargo.toml: `tool-policy` (policy) depends on `tool-runtime` (execution); \
               policy may depend on core only",
            ],
        );
    }
}

#[test]
fn edges_for_tests_are_free_and_only_they_reach_development() {
    let testkit = member("tool-testkit", Some("development"), &[]);
    let tested = member("tool-core", Some("core"), &[("tool-testkit", Some("dev"))]);
    check(&check_edges(&members(&[tested, testkit.clone()])), &[]);

    let shipped = member("toolplane", Some("composition"), &[("tool-testkit", None)]);
    check(
        &check_edges(&members(&[shipped, testkit])),
        &[
            "crates/toolplane/Cargo.toml: `toolplane` (composition) depends on `tool-testkit` (development); \
           composition may depend on core, abstraction, execution, executor, policy, observability, agent only",
        ],
    );
}

#[test]
fn what_a_team_takes_alone_knows_no_tool() {
    let members = members(&[
        member("raw-json", Some("core"), &[]),
        member("tool-core", Some("core"), &[("raw-json", None)]),
        member("tool-sandbox", Some("core"), &[]),
        member(
            "mcp-client",
            Some("core"),
            &[("raw-json", None), ("tool-sandbox", None), ("tool-core", None)],
        ),
    ]);
    check(
        &check_edges(&members),
        &["crates/mcp-client/Cargo.toml: `mcp-client` knows no tool, yet it depends on `tool-core`"],
    );
}

#[test]
fn every_crate_says_a_known_layer_and_stands_in_its_folder() {
    let mut moved = member("tool-flow", Some("execution"), &[]);
    moved["manifest_path"] = json!("/checkout/crates/flow/Cargo.toml");
    let members = members(&[
        member("tool-a", None, &[]),
        member("tool-b", Some("middle"), &[]),
        moved,
    ]);
    check(
        &check_edges(&members),
        &[
            "crates/tool-a/Cargo.toml: no `layer` in `[package.metadata.toolplane]`",
            "crates/tool-b/Cargo.toml: unknown layer `middle`; the layers are `core`, `abstraction`, `execution`, \
             `executor`, `policy`, `observability`, `agent`, `composition`, `surface`, `development`",
            "crates/flow/Cargo.toml: package `tool-flow` is in the folder `crates/flow`",
        ],
    );
}

#[test]
fn members_stand_in_layer_order() {
    let members = members(&[
        member("tool-core", Some("core"), &[]),
        member("tool-policy", Some("policy"), &[]),
        member("tool-runtime", Some("execution"), &[]),
    ]);
    let manifest = |folders: [&str; 3]| {
        let lines = folders
            .map(|folder| format!("    \"crates/{folder}\",\n"))
            .concat();
        format!("[workspace]\nmembers = [\n{lines}]\n")
    };
    check(
        &check_order(&members, &manifest(["tool-core", "tool-runtime", "tool-policy"])),
        &[],
    );
    check(
        &check_order(&members, &manifest(["tool-core", "tool-policy", "tool-runtime"])),
        &["Cargo.toml:5: member `crates/tool-runtime` (execution) stands after a member of layer policy"],
    );
}

#[test]
fn small_crates_pull_in_nothing_heavy() {
    let tree = "tool-core v0.1.0 (/checkout/crates/tool-core)\nbytes v1.12.1\nhttparse v1.0.0\n";
    check(&check_purity("tool-core", tree, &["tokio"]), &[]);
    let tree =
        format!("{tree}tokio v1.54.1\nhyper v1.0.0 (*)\nmcp-wire v0.1.0 (/checkout/crates/mcp-wire)\n");
    check(
        &check_purity("tool-core", &tree, &["tokio"]),
        &[
            "crates/tool-core/Cargo.toml: `tool-core` builds without HTTP, TLS, SQL, MCP and tokio, yet it pulls `hyper`",
            "crates/tool-core/Cargo.toml: `tool-core` builds without HTTP, TLS, SQL, MCP and tokio, yet it pulls `mcp-wire`",
            "crates/tool-core/Cargo.toml: `tool-core` builds without HTTP, TLS, SQL, MCP and tokio, yet it pulls `tokio`",
        ],
    );
}
