//! Settings that are refused, with the place and what to write.

use serde_json::{Value, json};
use tool_core::{Executor, serde_json};
use tool_exec_container::ContainerExecutor;

use crate::{
    fake::IMAGE,
    harness::{descriptor, problems},
};

#[track_caller]
fn refused(config: Value, place: &str, said: &str) {
    let shown = config.to_string();
    let problems = problems(&descriptor(config));
    let [problem] = problems.as_slice() else {
        panic!("{shown}: {problems:?}");
    };
    assert_eq!(problem.pointer, place, "{problem:?}");
    let text = format!(
        "{}; {}",
        problem.message,
        problem.hint.as_deref().unwrap_or_default()
    );
    assert!(text.contains(said), "{text}");
}

#[test]
fn the_smallest_tool() {
    assert!(problems(&descriptor(json!({"image": IMAGE}))).is_empty());
}

#[test]
fn images_have_a_digest() {
    refused(json!({}), "", "add `image: NAME@sha256:…`");
    refused(json!({"image": "alpine:3"}), "/image", "write `alpine@sha256:…`");
    refused(json!({"image": 7}), "/image", "invalid type");
}

/// Every option that would reach the host, in the spelling of engines and of compose files, alone.
#[test]
fn nothing_of_the_host_can_be_asked_for() {
    for (key, reason) in [
        ("privileged", "no privileges"),
        ("cap_add", "no privileges"),
        ("CapAdd", "no privileges"),
        ("security_opt", "no privileges"),
        ("userns_mode", "no privileges"),
        ("volumes", "no path of the host"),
        ("binds", "no path of the host"),
        ("mounts", "no path of the host"),
        ("volumes-from", "no path of the host"),
        ("tmpfs", "no path of the host"),
        ("devices", "no devices"),
        ("gpus", "no devices"),
        ("runtime", "no devices"),
        ("pid", "no namespace"),
        ("ipc_mode", "no namespace"),
        ("uts", "no namespace"),
        ("cgroup_parent", "no namespace"),
        ("network_mode", "no network"),
        ("ports", "no network"),
        ("read_only", "always read-only"),
        ("restart", "a container of its own"),
        ("pull", "the operator decides"),
        ("socket", "that of the operator"),
    ] {
        for value in [json!(true), json!(false), json!(["x"]), json!("host")] {
            let mut config = json!({"image": IMAGE});
            config[key] = value;
            refused(config, &format!("/{key}"), reason);
        }
    }
    refused(
        json!({"image": IMAGE, "network": "host"}),
        "/network",
        "a container has no network",
    );
    refused(
        json!({"image": IMAGE, "network": ["example.com"]}),
        "/network",
        "a container has no network",
    );
    assert!(problems(&descriptor(json!({"image": IMAGE, "network": "off"}))).is_empty());
}

#[test]
fn commands_are_lists() {
    refused(
        json!({"image": IMAGE, "command": "rm -rf /"}),
        "/command",
        "no shell splits a command",
    );
    refused(
        json!({"image": IMAGE, "command": []}),
        "/command",
        "names no program",
    );
    refused(
        json!({"image": IMAGE, "command": [""]}),
        "/command",
        "names no program",
    );
    refused(
        json!({"image": IMAGE, "command": ["a", ["b"]]}),
        "/command",
        "expected a list of texts",
    );
    refused(json!({"image": IMAGE, "args": ["a\u{0}b"]}), "/args", "no NUL");
    refused(
        json!({"image": IMAGE, "args": ["x".repeat(70_000)]}),
        "",
        "at most 65536 bytes",
    );
    refused(
        json!({"image": IMAGE, "entrypoint": ["x"]}),
        "/entrypoint",
        "did you mean `command`?",
    );
}

#[test]
fn users_are_numbers_above_0() {
    for user in [
        "0",
        "root",
        "0:0",
        "1000:0",
        "-1",
        "",
        "1:",
        "4294967296",
        "1000:x",
    ] {
        refused(json!({"image": IMAGE, "user": user}), "/user", "a number above 0");
    }
    for user in ["1", "1000:1000", "65534"] {
        assert!(
            problems(&descriptor(json!({"image": IMAGE, "user": user}))).is_empty(),
            "{user}"
        );
    }
    refused(
        json!({"image": IMAGE, "workdir": "tmp"}),
        "/workdir",
        "an absolute path",
    );
}

#[test]
fn limits_have_the_names_of_other_tools_and_a_maximum_for_stores() {
    refused(
        json!({"image": IMAGE, "limits": {"memry": "1GiB"}}),
        "/limits/memry",
        "did you mean `memory`?",
    );
    refused(
        json!({"image": IMAGE, "limits": {"memory": "lots"}}),
        "/limits/memory",
        "is no number of bytes",
    );
    refused(
        json!({"image": IMAGE, "limits": {"memory": "1MiB"}}),
        "/limits/memory",
        "less than 6MiB",
    );
    refused(
        json!({"image": IMAGE, "limits": {"processes": 0}}),
        "/limits/processes",
        "a limit of 0",
    );
    refused(
        json!({"image": IMAGE, "memory": "1GiB"}),
        "/memory",
        "did you mean `limits`?",
    );
    refused(json!({"image": IMAGE, "cpus": 0}), "/cpus", "from 0.01");
    refused(json!({"image": IMAGE, "cpus": "all"}), "/cpus", "invalid type");
    for (config, place) in [
        (
            json!({"image": IMAGE, "limits": {"memory": "3GiB"}}),
            "/limits/memory",
        ),
        (
            json!({"image": IMAGE, "limits": {"processes": 257}}),
            "/limits/processes",
        ),
        (json!({"image": IMAGE, "cpus": 4}), "/cpus"),
        (json!({"image": IMAGE, "env": {"X": "${env:HOME}"}}), "/env/X"),
    ] {
        let mut tool = descriptor(config);
        assert!(problems(&tool).is_empty(), "an operator may: {place}");
        tool.origin.is_stored = true;
        let problems = problems(&tool);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].pointer, place);
        assert!(problems[0].message.contains("a tool of a store"), "{problems:?}");
    }
}

#[test]
fn parameters_have_variables() {
    let mut tool = descriptor(json!({"image": IMAGE}));
    let schema = json!({"type": "object", "properties": {"LD_PRELOAD": {"type": "string"}}});
    tool.input_schema = serde_json::from_value(schema).unwrap();
    let problems = problems(&tool);
    assert!(problems[0].message.contains("programs interpret"), "{problems:?}");
    refused(
        json!({"image": IMAGE, "env": {"PATH": "/x"}}),
        "/env/PATH",
        "programs interpret",
    );
}

#[test]
fn the_schema_is_closed() {
    let schema: Value = serde_json::from_str(ContainerExecutor::default().config_schema().as_str()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let names: Vec<_> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let mut expected = vec![
        "args",
        "command",
        "cpus",
        "env",
        "exit_codes",
        "image",
        "init",
        "limits",
        "network",
        "output",
        "user",
        "workdir",
    ];
    expected.sort_unstable();
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
}
