//! Scripts.

use raw_json::RawJson;
use serde_json::json;
use tool_core::{DispatchState, ErrorKind, Reply};

use crate::harness::{call, call_with_mark, descriptor, failure, runtime, tool, tool_of, value};

#[tokio::test]
async fn arguments_are_variables_and_json_and_never_code() {
    let script = r#"printf '%s|%s|%s|%s\n' "$name" "$n" "$max_results" "${missing-unset}"; cat"#;
    let tool = tool("bash", json!({"code": script}));
    let arguments = json!({"name": "$(id); `id`\"'", "n": 1.5, "max-results": [1, 2], "missing": null});
    let reply = call(&tool, arguments.clone()).await;
    let meta = reply.as_ref().unwrap().meta().to_vec();
    assert_eq!(meta[0].0, Reply::SANDBOX_KEY);
    assert_eq!(meta[0].1.get("network").unwrap().string().as_deref(), Some("off"));
    assert_ne!(meta[0].1.get("level").unwrap().string().as_deref(), Some("none"));
    let text = value(reply);
    let (first, rest) = text.as_str().unwrap().split_once('\n').unwrap();
    assert_eq!(first, "$(id); `id`\"'|1.5|[1,2]|unset");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(rest).unwrap(),
        arguments
    );
}

#[tokio::test]
async fn declared_json_is_the_result() {
    let json_tool = tool("bash", json!({"code": "echo '{\"a\": 1.10}'", "output": "json"}));
    let reply = call(&json_tool, json!({})).await.unwrap();
    assert_eq!(
        reply.raw().as_str().trim(),
        r#"{"a": 1.10}"#,
        "with its own bytes"
    );
    let text = tool("bash", json!({"code": "echo not json", "output": "json"}));
    let (kind, message) = failure(call(&text, json!({})).await);
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(message.contains("is no JSON"), "{message}");
}

/// A local handler of okso: its argument is `TOOL_QUERY`, and its output and its exit code are the result.
#[tokio::test]
async fn a_handler_reports_its_output_and_its_exit_code() {
    let script = r#"printf '%s\n' "$TOOL_QUERY"; echo detail >&2; test "$TOOL_QUERY" != no || exit 7"#;
    let config = json!({"code": script, "output": "process", "variables": {"query": "TOOL_QUERY"}});
    let mut described = descriptor("bash", config.clone());
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    described.input_schema = RawJson::from(schema);
    let handler = tool_of(described, &runtime());
    for (query, code) in [("$(id)", 0), ("no", 7)] {
        let result = value(call(&handler, json!({"query": query})).await);
        assert_eq!(result, json!({"stdout": format!("{query}\n"), "exit_code": code}));
    }
    // A code that is declared to be a failure stays one, and so does a signal.
    let mut declared = config.clone();
    declared["exit_codes"] = json!({"7": "not_found"});
    let (kind, message) = failure(call(&tool("bash", declared), json!({"query": "no"})).await);
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(message.ends_with("detail"), "{message}");
    let killed = json!({"code": "kill -9 $$", "output": "process"});
    let (kind, _) = failure(call(&tool("bash", killed), json!({})).await);
    assert_eq!(kind, ErrorKind::UpstreamError);
}

#[tokio::test]
async fn exit_codes_are_kinds_of_errors() {
    let script = "echo partial; echo \"went wrong: $code\" >&2; exit $code";
    let tool = tool("bash", json!({"code": script, "exit_codes": {"3": "not_found"}}));
    for (code, expected) in [
        (1, ErrorKind::UpstreamError),
        (3, ErrorKind::NotFound),
        (65, ErrorKind::InvalidArguments),
        (75, ErrorKind::Unavailable),
    ] {
        let (reply, mark) = call_with_mark(&tool, json!({"code": code})).await;
        assert_eq!(mark, DispatchState::Answered);
        let error = reply.expect_err("a failure");
        assert_eq!(error.kind(), expected, "{code}");
        assert!(
            error.message().contains(&format!("exit code {code}")),
            "{error:?}"
        );
        assert!(
            error.message().contains(&format!("went wrong: {code}")),
            "{error:?}"
        );
        let detail = error.detail().unwrap();
        assert_eq!(detail.get("exit_code").unwrap().as_str(), code.to_string());
    }
}

#[tokio::test]
async fn files_are_beside_the_script_and_are_exactly_these_bytes() {
    let config = json!({
        "entrypoint": "run/start.sh",
        "files": {"run/start.sh": ". ./lib/words.sh; greet; echo x >> run/start.sh || echo unchanged", "lib/words.sh": "greet() { echo hello; }"},
    });
    let text = value(call(&tool("bash", config), json!({})).await);
    assert_eq!(text, "hello\nunchanged");
}

#[tokio::test]
async fn each_call_has_a_directory_of_its_own_and_nothing_of_the_gateway() {
    let script = r#"ls -A "$TMPDIR"; ls -A | grep -v '^main.sh$'; echo left > left.txt; echo left > "$TMPDIR/left.txt"
env | cut -d= -f1 | sort"#;
    let tool = tool(
        "bash",
        json!({"code": script, "env": {"TOKEN": "Bearer ${secret:token}"}}),
    );
    for _ in 0..2 {
        let text = value(call(&tool, json!({})).await);
        let text = text.as_str().unwrap();
        assert!(!text.contains("left.txt"), "{text}");
        let known = [
            "HOME", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "TMPDIR", "TOKEN", "_",
        ];
        for name in text.split_whitespace() {
            assert!(known.contains(&name), "{text}");
        }
        assert!(text.contains("TOKEN"), "{text}");
    }
}

#[tokio::test]
async fn secrets_are_given_by_name_and_hidden_in_errors() {
    let script = "test \"$TOKEN\" = 'Bearer s3cret-value' && echo given";
    let config = json!({"code": script, "env": {"TOKEN": "Bearer ${secret:token}"}});
    assert_eq!(value(call(&tool("bash", config), json!({})).await), "given");
    let config = json!({"code": "true", "env": {"TOKEN": "${secret:unknown}"}});
    let (reply, mark) = call_with_mark(&tool("bash", config), json!({})).await;
    assert_eq!(failure(reply).0, ErrorKind::Auth);
    assert_eq!(mark, DispatchState::NotSent);
    // An argument cannot replace a variable of the operator.
    let config = json!({"code": "echo $TOKEN", "env": {"TOKEN": "${secret:token}"}});
    let (kind, message) = failure(call(&tool("bash", config), json!({"TOKEN": "mine"})).await);
    assert_eq!(kind, ErrorKind::InvalidArguments, "{message}");
}

#[tokio::test]
async fn a_script_ends_at_its_limits() {
    let slow = tool(
        "bash",
        json!({"code": "sleep 60", "limits": {"wall_time": "300ms"}}),
    );
    let (reply, mark) = call_with_mark(&slow, json!({})).await;
    assert_eq!(failure(reply).0, ErrorKind::Timeout);
    assert_eq!(mark, DispatchState::Sent, "what it did before is not known");
    let loud = tool("bash", json!({"code": "yes", "limits": {"output": "64KiB"}}));
    let (kind, message) = failure(call(&loud, json!({})).await);
    assert_eq!(kind, ErrorKind::ResultTooLarge);
    assert!(message.contains("65536"), "{message}");
    let full = json!({"code": "head -c 8000000 /dev/zero > big || exit 7", "limits": {"disk": "4MiB"}});
    let (_, message) = failure(call(&tool("bash", full), json!({})).await);
    assert!(message.contains("exit code 7"), "{message}");
}

#[tokio::test]
async fn there_is_no_network_unless_the_tool_names_hosts() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = "exec 3<>/dev/tcp/127.0.0.1/$port && echo connected";
    let (kind, _) = failure(call(&tool("bash", json!({"code": script})), json!({"port": port})).await);
    assert_eq!(kind, ErrorKind::UpstreamError);
    assert!(listener.accept().is_err(), "nobody has connected");
}

#[tokio::test]
async fn the_operators_interpreter_runs() {
    let text = value(
        call(
            &tool("bash", json!({"code": "echo $0", "interpreter": "sh"})),
            json!({}),
        )
        .await,
    );
    assert_eq!(text, "./main.sh");
}

/// Both levels give the same results.
#[tokio::test]
async fn the_weaker_level_runs_when_it_is_asked_for() {
    for (level, kind, code) in [
        ("landlock", "bash", "echo \"$name\"; ls"),
        ("bwrap", "bash", "echo \"$name\"; ls"),
        (
            "landlock",
            "python",
            "import os\ndef run(name):\n    return name + '\\n' + 'main.py'\n",
        ),
    ] {
        let reply = call(
            &tool(kind, json!({"code": code, "sandbox": level})),
            json!({"name": "Ada"}),
        )
        .await;
        let reply = reply.unwrap_or_else(|error| panic!("{level} {kind}: {error:?}"));
        assert_eq!(reply.sandbox_level().as_deref(), Some(level));
        let file = if kind == "bash" { "main.sh" } else { "main.py" };
        assert_eq!(value(Ok(reply)), format!("Ada\n{file}"));
    }
}
