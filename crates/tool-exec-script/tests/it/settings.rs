//! Settings.

use bytes::Bytes;
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::Origin;

use crate::harness::{descriptor, problems};

/// Places and messages of the problems of these settings.
fn found(kind: &str, config: Value) -> Vec<(String, String)> {
    let problems = problems(&descriptor(kind, config));
    let mut found: Vec<_> = problems
        .into_iter()
        .map(|problem| {
            let hint = problem.hint.unwrap_or_default();
            (problem.pointer, format!("{} | {hint}", problem.message))
        })
        .collect();
    found.sort();
    found
}

#[track_caller]
fn refused(kind: &str, config: Value, pointer: &str, text: &str) {
    let found = found(kind, config);
    let hit = found
        .iter()
        .any(|(place, message)| place == pointer && message.contains(text));
    assert!(hit, "{found:?}");
}

#[test]
fn every_problem_has_its_place() {
    refused("bash", json!({"cod": "x"}), "/cod", "did you mean `code`?");
    refused(
        "bash",
        json!({"code": "x", "stateless": true}),
        "/stateless",
        "unknown setting",
    );
    refused(
        "bash",
        json!({"code": "x", "requires": ["y"]}),
        "/requires",
        "unknown setting",
    );
    refused("bash", json!({}), "", "no code");
    refused(
        "bash",
        json!({"code": "x", "variables": {"query": "LD_PRELOAD"}}),
        "/variables/query",
        "programs interpret",
    );
    refused(
        "python",
        json!({"code": "x", "output": "process"}),
        "/output",
        "unknown variant `process`",
    );
    refused(
        "bash",
        json!({"code": "x", "script": "y"}),
        "/script",
        "exclude each other",
    );
    refused(
        "python",
        json!({"entrypoint": "main.py"}),
        "/entrypoint",
        "no file `main.py`",
    );
    refused(
        "bash",
        json!({"code": "x", "limits": {"memry": "1GiB"}}),
        "/limits/memry",
        "did you mean `memory`?",
    );
    refused(
        "bash",
        json!({"code": "x", "limits": {"memory": "much"}}),
        "/limits/memory",
        "write it like",
    );
    refused(
        "bash",
        json!({"code": "x", "limits": {"wall_time": "0s"}}),
        "/limits/wall_time",
        "longer than 0",
    );
    refused(
        "bash",
        json!({"code": "x", "network": "on"}),
        "/network",
        "expected `off`",
    );
    refused(
        "bash",
        json!({"code": "x", "network": ["https://a.org"]}),
        "/network",
        "`https://a.org` is no host",
    );
    for path in ["data", "/", "/srv/../etc", "/proc/self"] {
        refused(
            "bash",
            json!({"code": "x", "reads": [path]}),
            "/reads/0",
            "sandbox refuses path",
        );
        refused(
            "bash",
            json!({"code": "x", "writes": [path]}),
            "/writes/0",
            "sandbox refuses path",
        );
    }
    refused(
        "bash",
        json!({"code": "x", "sandbox": "none", "reads": ["/srv"]}),
        "/reads",
        "in a sandbox",
    );
    refused(
        "bash",
        json!({"code": "x", "interpreter": "/bin/bash"}),
        "/interpreter",
        "`bash`, `python`, `sh`",
    );
    refused(
        "bash",
        json!({"code": "x", "exit_codes": {"0": "timeout"}}),
        "/exit_codes/0",
        "no exit code",
    );
    refused(
        "bash",
        json!({"code": "x", "exit_codes": {"3": "tmeout"}}),
        "/exit_codes/3",
        "unknown kind",
    );
    refused(
        "bash",
        json!({"code": "x", "env": {"LD_PRELOAD": "x"}}),
        "/env/LD_PRELOAD",
        "interpret",
    );
    refused(
        "bash",
        json!({"code": "x", "env": {"A": "${"}}),
        "/env/A",
        "without a closing",
    );
    refused(
        "bash",
        json!({"files": {"../x": "y", "main.sh": ""}}),
        "/files",
        "no path",
    );
    refused(
        "bash",
        json!({"files": {".toolplane/run.py": "y", "main.sh": ""}}),
        "/files",
        "outside of `.toolplane`",
    );
    refused(
        "python",
        json!({"code": "x", "requires": ["httpx"]}),
        "/requires",
        "toolplane lock",
    );
    refused(
        "python",
        json!({"code": "x", "sandbox": "none", "stateless": true}),
        "/stateless",
        "without a sandbox",
    );
    refused(
        "bash",
        json!({"code": "x", "sandbox": "none", "network": ["a.example"]}),
        "/network",
        "in a sandbox",
    );
    refused("bash", json!([1]), "", "must be an object");
}

#[test]
fn parameters_of_a_script_need_variables_of_their_own() {
    let with = |schema: &str| {
        let mut descriptor = descriptor("bash", json!({"code": "x"}));
        descriptor.input_schema = RawJson::parse(schema.to_owned()).unwrap();
        problems(&descriptor)
    };
    assert!(with(r#"{"type":"object","properties":{"a":{},"b-c":{}}}"#).is_empty());
    for schema in [
        r#"{"type":"object","properties":{"PATH":{}}}"#,
        r#"{"type":"object","properties":{"a-b":{},"a_b":{}}}"#,
    ] {
        let problems = with(schema);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].message.contains("cannot be given to the program"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_tool_of_a_store_gets_no_more_than_the_operator_gives() {
    let stored = |config: Value| {
        let mut descriptor = descriptor("bash", config);
        descriptor.origin = Origin::stored("store: tool@1.0.0");
        problems(&descriptor)
    };
    assert!(stored(json!({"code": "x", "env": {"A": "${secret:token}"}})).is_empty());
    for (config, pointer) in [
        (json!({"code": "x", "sandbox": "none"}), "/sandbox"),
        (json!({"code": "x", "env": {"A": "${HOME}"}}), "/env/A"),
        (
            json!({"code": "x", "env": {"A": "${file:/etc/shadow}"}}),
            "/env/A",
        ),
        (json!({"code": "x", "network": ["evil.example"]}), "/network/0"),
        (json!({"code": "x", "reads": ["/srv"]}), "/reads"),
        (json!({"code": "x", "writes": ["/srv"]}), "/writes"),
        (
            json!({"code": "x", "limits": {"memory": "64GiB"}}),
            "/limits/memory",
        ),
        (
            json!({"code": "x", "limits": {"processes": 100_000}}),
            "/limits/processes",
        ),
    ] {
        let problems = stored(config);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].pointer, pointer);
    }
    // The operator's own file may.
    let own = json!({"code": "x", "network": ["10.0.0.1", "a.example"], "reads": ["/usr"], "limits": {"processes": 4096}});
    assert!(found("bash", own).is_empty());
    assert!(
        found(
            "bash",
            json!({"code": "x", "sandbox": "none", "env": {"A": "${HOME}"}})
        )
        .is_empty()
    );
}

#[test]
fn what_a_stored_tool_reaches_is_named_by_its_permissions() {
    let stored = |config: Value, permissions: &[&str]| {
        let mut descriptor = descriptor("bash", config);
        descriptor.origin = Origin::stored("store: tool@1.0.0");
        descriptor.metadata.required_permissions =
            permissions.iter().map(|name| (*name).to_owned()).collect();
        problems(&descriptor)
    };
    let hosts = json!({"code": "x", "network": ["api.example.com", "10.0.0.7:80", "localhost:3000"]});
    let found = stored(hosts.clone(), &["network.external"]);
    let pointers: Vec<_> = found.iter().map(|problem| problem.pointer.as_str()).collect();
    assert_eq!(pointers, ["/network/1", "/network/2"], "{found:?}");
    assert!(found[0].message.contains("`network.internal`"), "{found:?}");
    let found = stored(hosts.clone(), &["network.internal"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .message
            .contains("`api.example.com` requires the permission `network.external`"),
        "{found:?}"
    );
    assert!(stored(hosts, &["network.internal", "network.external"]).is_empty());
    let many = json!({"code": "x", "limits": {"processes": 65}});
    let found = stored(many.clone(), &["network.external"]);
    assert!(
        found[0].message.contains("requires the permission `process`"),
        "{found:?}"
    );
    assert!(stored(many, &["process"]).is_empty());
    assert!(stored(json!({"code": "x", "limits": {"processes": 64}}), &[]).is_empty());
    // No permission names a path.
    for permission in ["filesystem", "filesystem.read"] {
        assert_eq!(
            stored(json!({"code": "x", "reads": ["/srv"]}), &[permission]).len(),
            1
        );
    }
}

#[test]
fn files_of_a_version_are_the_code() {
    let mut descriptor = descriptor("python", json!({"entrypoint": "main.py"}));
    descriptor
        .files
        .insert("main.py".to_owned(), Bytes::from_static(b"def run(): return 1"));
    assert!(problems(&descriptor).is_empty());
    // By its usual name, without being named.
    descriptor.executor.config = json!({});
    assert!(problems(&descriptor).is_empty());
}

/// The settings read hosts in the forms that the sandbox reads: each accepts what the other one does.
#[test]
fn hosts_are_read_as_the_sandbox_reads_them() {
    let pieces = [
        "",
        "*",
        "*.",
        ".",
        "a",
        "a-b_c",
        "A.org",
        "a..b",
        "10.0.0.1",
        "::1",
        "[::1]",
        "localhost",
        "a b",
        "ä",
    ];
    let ends = [
        "", ".", "..", ":", ":0", ":80", ":65536", ":x", "]", "/", ":80:90",
    ];
    for first in pieces {
        for second in pieces {
            for end in ends {
                let host = format!("{first}{second}{end}");
                let sandboxed = tool_sandbox::NetworkAccess::Hosts(vec![host.clone()]).check();
                assert_eq!(
                    tool_settings::NetworkHosts::is_host(&host),
                    sandboxed.is_ok(),
                    "{host}"
                );
            }
        }
    }
}
