//! Servers from npm.

use std::fs;

use serde_json::json;
use tool_testkit::Peers;

use super::{call, relayed};
use crate::support::installed;

#[test]
fn server_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    // Servers return real paths.
    let root = folder.path().canonicalize().unwrap();
    let Some(peer) = installed(|peers| peers.filesystem(&root)) else {
        return;
    };
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    // Made once, so that its metadata does not change.
    fs::write(root.join("fixed.bin"), [0, 1, 2, 255]).unwrap();
    let prepare = || {
        for name in ["work", "new"] {
            let _ = fs::remove_dir_all(root.join(name));
        }
        fs::create_dir_all(root.join("work/deep/er")).unwrap();
        fs::write(root.join("work/a.txt"), "one\ntwo\r\nthree \u{1f980}\n").unwrap();
        fs::write(root.join("work/deep/b.md"), "# Title\n").unwrap();
        fs::write(root.join("work/pixel.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    };
    let edit = json!({"path": path("work/a.txt"), "edits": [{"oldText": "two", "newText": "2"}]});
    let calls = [
        call("list_allowed_directories", "{}"),
        call("get_file_info", json!({"path": path("fixed.bin")})),
        call("read_file", json!({"path": path("work/a.txt")})),
        call("read_text_file", json!({"path": path("work/a.txt"), "head": 2})),
        call("read_text_file", json!({"path": path("missing.txt")})),
        call("read_media_file", json!({"path": path("work/pixel.png")})),
        call(
            "read_multiple_files",
            json!({"paths": [path("work/a.txt"), path("nothing")]}),
        ),
        call("directory_tree", json!({"path": path("work")})),
        call("list_directory", json!({"path": path("work")})),
        call(
            "list_directory_with_sizes",
            json!({"path": path("work"), "sortBy": "size"}),
        ),
        call(
            "search_files",
            json!({"path": path("work"), "pattern": "**/*.md"}),
        ),
        call("create_directory", json!({"path": path("new/dir")})),
        call(
            "write_file",
            json!({"path": path("new/dir/c.txt"), "content": "x".repeat(100_000)}),
        ),
        call("edit_file", edit),
        call(
            "move_file",
            json!({"source": path("new/dir/c.txt"), "destination": path("new/d.txt")}),
        ),
        call("read_file", json!({"path": path("new/d.txt")})),
        call("read_file", json!({"path": path("work/a.txt")})),
        call("read_file", json!({"path": "/etc/hostname"})),
    ];
    relayed(&peer, &calls, prepare);
}

#[test]
fn server_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let Some(peer) = installed(|peers| peers.memory(&file)) else {
        return;
    };
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["counts", "löscht \"nichts\""]});
    let engine = json!({"name": "Engine", "entityType": "machine", "observations": []});
    let relation = json!({"from": "Ada", "to": "Engine", "relationType": "programs"});
    let calls = [
        call("create_entities", json!({"entities": [ada, engine]})),
        call("create_relations", json!({"relations": [relation]})),
        call(
            "add_observations",
            json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]}),
        ),
        call(
            "add_observations",
            json!({"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
        ),
        call("read_graph", "{}"),
        call("search_nodes", json!({"query": "counts"})),
        call("open_nodes", json!({"names": ["Engine"]})),
        call(
            "delete_observations",
            json!({"deletions": [{"entityName": "Ada", "observations": ["counts"]}]}),
        ),
        call("delete_relations", json!({"relations": [relation]})),
        call("delete_entities", json!({"entityNames": ["Engine"]})),
        call("read_graph", "{}"),
    ];
    relayed(&peer, &calls, || {
        let _ = fs::remove_file(&file);
    });
}

#[test]
fn server_sequential_thinking() {
    let Some(peer) = installed(Peers::sequential_thinking) else {
        return;
    };
    let thought = |thought: &str, number: u32| {
        json!({
            "thought": thought, "thoughtNumber": number, "totalThoughts": 3, "nextThoughtNeeded": number < 3,
        })
    };
    // The server counts over all clients of one process: branches exist from the first call on.
    let mut branch = thought("It is \u{1f4a1} \"here\"", 1);
    branch["branchFromThought"] = json!(1);
    branch["branchId"] = json!("b");
    let calls = [
        call("sequentialthinking", branch).at_some_time(),
        call("sequentialthinking", thought("", 2)).at_some_time(),
        call("sequentialthinking", thought("or elsewhere", 4)).at_some_time(),
    ];
    relayed(&peer, &calls, || {});
}
