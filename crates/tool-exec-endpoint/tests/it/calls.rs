//! Calls of tools.

use std::{fs, path::Path, time::Duration};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tool_core::{
    Arguments, CallContext, Descriptor, DispatchState, ErrorKind, Executor, ExecutorSpec, Invoke,
    TargetBackend, ToolBuilder,
};
use tool_exec_endpoint::{EndpointExecutor, EndpointKeyPlace};

use crate::harness::{call, call_with_mark, endpoint, failure, script, text};

/// A script that answers with its input, as the text `request`.
const SHOWS_REQUEST: &str = r#"python3 -I -c '
import json, sys
print(json.dumps({"type": "result", "tool": "t", "result": {"request": json.load(sys.stdin)}}))'"#;

#[tokio::test]
async fn a_call_is_one_request_and_its_result() {
    let arguments = json!({"message": "$(id) \"quoted\"\nline", "n": 12345678901234567890_u64});
    let reply = call(SHOWS_REQUEST, arguments.clone()).await.unwrap();
    let expected = json!({"request": {"action": "call_tool", "tool": "t", "arguments": arguments}});
    assert_eq!(reply.raw().to::<Value>().unwrap(), expected);
    let own = r#"echo '{"type": "result", "tool": "t", "result": {"n": 1.50, "a":1 } }'"#;
    let reply = call(own, json!({})).await.unwrap();
    assert_eq!(
        reply.raw().as_str(),
        r#"{"n": 1.50, "a":1 }"#,
        "with its own bytes"
    );
}

#[tokio::test]
async fn an_idempotency_key_has_the_place_that_the_operator_names() {
    let schema = json!({"type": "object", "properties": {"request_id": {"type": "string"}}});
    for (place, has_property, expected) in [
        (None, true, None),
        (
            Some(EndpointKeyPlace::Meta("key".to_owned())),
            true,
            Some("/_meta/key"),
        ),
        (
            Some(EndpointKeyPlace::Argument("request_id".to_owned())),
            true,
            Some("/arguments/request_id"),
        ),
        (
            Some(EndpointKeyPlace::Argument("request_id".to_owned())),
            false,
            None,
        ),
    ] {
        let mut settings = script(SHOWS_REQUEST);
        settings.key_place = place;
        let executor = EndpointExecutor::new([endpoint(settings)]);
        let mut tool = Descriptor::new("t", ExecutorSpec::new("endpoint"));
        if has_property {
            tool.input_schema = RawJson::from(&schema);
        }
        assert_eq!(executor.passes_key(&tool), expected.is_some());
        let backend = executor
            .prepare(&tool)
            .map_err(|problems| format!("{problems:?}"))
            .unwrap();
        let tool = ToolBuilder::from_descriptor(tool).run_on_dyn(backend);
        let mut cx = CallContext::local(&tool, Arguments::none());
        cx.extras.idempotency_key = Some("order 7".into());
        let key = cx.upstream_idempotency_key().unwrap();
        let reply = TargetBackend.invoke(&mut cx).await.unwrap().into_reply().unwrap();
        let request = reply.raw().to::<Value>().unwrap()["request"].clone();
        let sent = expected.map(|pointer| request.pointer(pointer).cloned().unwrap());
        assert_eq!(sent, expected.map(|_| json!(key)), "{request}");
        assert_eq!(
            request.to_string().contains(&key),
            expected.is_some(),
            "{request}"
        );
    }
}

#[tokio::test]
async fn statements_about_a_result_are_kept() {
    let reply = call(
        r#"echo '{"type": "result", "tool": "t", "result": {}, "_meta": {"dev.toolplane/degraded": {"by": "x"}}}'"#,
        json!({}),
    );
    let reply = reply.await.unwrap();
    let (key, meta) = &reply.meta()[0];
    assert_eq!(*key, "dev.toolplane/endpoint");
    assert_eq!(meta.as_str(), r#"{"dev.toolplane/degraded": {"by": "x"}}"#);
}

#[tokio::test]
async fn categories_are_kinds() {
    for (category, kind, expected, retries) in [
        ("usage", "", ErrorKind::InvalidArguments, true),
        ("pipeline", "", ErrorKind::UpstreamError, true),
        ("fatal", "", ErrorKind::UpstreamError, false),
        ("weather", "", ErrorKind::UpstreamError, true),
        ("usage", "not_found", ErrorKind::NotFound, true),
        ("pipeline", "timeout", ErrorKind::Timeout, true),
        // A kind of another category, or of none, does not count.
        ("usage", "timeout", ErrorKind::InvalidArguments, true),
        ("weather", "not_found", ErrorKind::UpstreamError, true),
        ("pipeline", "nonsense", ErrorKind::UpstreamError, true),
    ] {
        let error = json!({"name": "n", "category": category, "message": "went wrong", "kind": kind});
        let reply = json!({"type": "error", "error": error});
        // The exit code of an endpoint that reports an error does not matter.
        for exit in [0, 1] {
            let error = call(&format!("echo '{reply}'; exit {exit}"), json!({}))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), expected, "{category} {kind}");
            assert_eq!(error.allows_retry(), retries, "{category}");
            assert!(error.message().ends_with(": went wrong"), "{error}");
            let is_named = error.message().contains("category `weather`");
            assert_eq!(is_named, category == "weather", "{error}");
            let detail: Value = error.detail().unwrap().to().unwrap();
            assert_eq!(detail, json!({"name": "n", "category": category}));
        }
    }
}

#[tokio::test]
async fn what_is_no_reply_is_a_clear_error() {
    let (kind, message) = failure(call("echo ready; echo detail >&2", json!({})).await);
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(
        message.contains("endpoint `e`") && message.contains("no JSON value"),
        "{message}"
    );
    assert!(message.ends_with("it wrote:\ndetail"), "{message}");
    for (output, said) in [
        ("", "it wrote nothing"),
        (r#"{"type": "result"}"#, "no text `tool`"),
        (
            r#"{"type": "result", "tool": "other", "result": {}}"#,
            "another tool",
        ),
        (
            r#"{"type": "result", "tool": "t", "result": [1]}"#,
            "no object `result`",
        ),
        (
            r#"{"type": "result", "tool": "t", "result": {}} {}"#,
            "no JSON value",
        ),
        (
            r#"{"type": "result", "type": "error", "tool": "t", "result": {}}"#,
            "no JSON value",
        ),
        (r#"{"type": "error", "error": "no"}"#, "`error` is no object"),
        (
            r#"{"type": "error", "error": {"message": "m"}}"#,
            "no text `name`",
        ),
        (r#"{"tool": "t", "result": {}}"#, "no `type`"),
        ("[]", "no `type`"),
    ] {
        let (kind, message) = failure(call(&format!("echo '{output}'"), json!({})).await);
        assert_eq!(kind, ErrorKind::Protocol, "{output}");
        assert!(message.contains(said), "{output}: {message}");
    }
}

#[tokio::test]
async fn a_program_that_fails_is_an_error_with_the_end_of_its_stderr() {
    let result = r#"echo '{"type": "result", "tool": "t", "result": {}}'; echo broken >&2; exit 3"#;
    for text in [result, "echo broken >&2; exit 3", "echo broken >&2; kill -9 $$"] {
        let (reply, mark) = call_with_mark(&endpoint(script(text)), json!({})).await;
        assert_eq!(mark, DispatchState::Answered);
        let error = reply.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UpstreamError, "{text}");
        assert!(
            error.message().contains("without a reply; it wrote:\nbroken"),
            "{error}"
        );
        assert_eq!(error.detail().unwrap().as_str(), r#"{"stderr":"broken"}"#);
    }
    let secret = "echo token=s3cret-value-123 >&2; exit 1";
    let (_, message) = failure(call(secret, json!({})).await);
    assert!(!message.contains("s3cret-value-123"), "{message}");
}

#[tokio::test]
async fn a_program_that_does_not_start_has_not_run() {
    let mut settings = script("");
    settings.command.program = text("/nowhere/program");
    let (reply, mark) = call_with_mark(&endpoint(settings), json!({})).await;
    let error = reply.unwrap_err();
    assert_eq!(
        (error.kind(), error.may_have_run()),
        (ErrorKind::Unavailable, false)
    );
    assert_eq!(
        mark,
        DispatchState::Answered,
        "the answer says that it was not taken"
    );
    assert!(!error.message().contains("/nowhere"), "{error}");
}

#[tokio::test]
async fn only_declared_variables_reach_the_program() {
    let mut settings = script(
        r#"env | sort | python3 -I -c '
import json, sys
print(json.dumps({"type": "result", "tool": "t", "result": {"env": sys.stdin.read().split()}}))'"#,
    );
    settings.command = settings
        .command
        .env("GIVEN", tool_core::Template::parse("${secret:token}").unwrap());
    settings.command.inherit = vec!["SHARED".to_owned(), "MISSING".to_owned()];
    let reply = call_with_mark(&endpoint(settings), json!({})).await.0.unwrap();
    let env = reply.raw().to::<Value>().unwrap()["env"].clone();
    let names: Vec<String> = env
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| Some(line.as_str()?.split_once('=')?.0.to_owned()))
        .collect();
    let known = [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "USER",
        "TMPDIR",
        "GIVEN",
        "SHARED",
        "MCP_CLIENT_TREE",
        "TOOLPLANE_ENDPOINT_DEPTH",
        // Of the shell.
        "PWD",
        "SHLVL",
        "OLDPWD",
        "_",
    ];
    assert!(
        names.iter().all(|name| known.contains(&name.as_str())),
        "{names:?}"
    );
    let text = env.to_string();
    assert!(
        text.contains("GIVEN=s3cret-value-123") && text.contains("SHARED=from"),
        "{text}"
    );
    assert!(text.contains("TOOLPLANE_ENDPOINT_DEPTH=1"), "{text}");
}

#[tokio::test]
async fn a_reply_that_is_too_large_ends_the_program() {
    let mut settings = script("yes '{\"type\": \"result\"}'");
    settings.max_reply_bytes = 10_000;
    let (kind, message) = failure(call_with_mark(&endpoint(settings), json!({})).await.0);
    assert_eq!(kind, ErrorKind::ResultTooLarge);
    assert!(message.contains("10000 bytes"), "{message}");
}

#[tokio::test]
async fn a_program_need_not_read_a_large_request() {
    let big = "x".repeat(1 << 20);
    let reply = call(
        r#"exec 0<&-; echo '{"type": "result", "tool": "t", "result": {"ok": true}}'"#,
        json!({"big": big}),
    );
    assert_eq!(reply.await.unwrap().raw().as_str(), r#"{"ok": true}"#);
}

/// Waits until a process is gone.
async fn is_gone(pid: &str) {
    let stat = format!("/proc/{pid}/stat");
    for _ in 0..2_000 {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        let state = text
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .chars()
            .next();
        if matches!(state, None | Some('Z')) {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("the process {pid} lives");
}

/// Waits until these files have the ids of processes.
async fn pids(files: &[&Path]) -> Vec<String> {
    for _ in 0..2_000 {
        let texts = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap_or_default());
        let texts: Vec<String> = texts.map(|text| text.trim().to_owned()).collect();
        if texts.iter().all(|text| !text.is_empty()) {
            return texts;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("the program did not start");
}

#[tokio::test]
async fn a_cancelled_call_kills_the_program_and_all_that_it_started() {
    let place = tempfile::tempdir().unwrap();
    let (own, child, daemon) = (
        place.path().join("own"),
        place.path().join("child"),
        place.path().join("daemon"),
    );
    // It ignores SIGTERM, has a child in its group, and one that left it.
    let text = format!(
        "trap '' TERM; sleep 600 & echo $! > {}; setsid sh -c 'echo $$ > {}; exec sleep 600' & echo $$ > {}; wait",
        child.display(),
        daemon.display(),
        own.display()
    );
    let endpoint = endpoint(script(&text));
    let call = call_with_mark(&endpoint, json!({}));
    let files = [own.as_path(), &child, &daemon];
    let started = pids(&files);
    let started = tokio::select! {
        _ = call => panic!("it does not end by itself"),
        started = started => started,
    };
    for pid in started {
        is_gone(&pid).await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let left = place.path().join("left");
    let text = format!(
        "sleep 600 & echo $! > {}; echo '{{\"type\": \"result\", \"tool\": \"t\", \"result\": {{}}}}'",
        left.display()
    );
    let endpoint = endpoint(script(&text));
    let done = timeout(Duration::from_secs(60), call_with_mark(&endpoint, json!({})));
    assert!(
        done.await.unwrap().0.is_ok(),
        "the descendant holds the output open"
    );
    is_gone(&pids(&[&left]).await[0]).await;
}

#[tokio::test]
async fn endpoints_that_start_one_another_are_stopped() {
    let mut settings = script("touch started");
    settings.depth = 3;
    let (reply, mark) = call_with_mark(&endpoint(settings), json!({})).await;
    let error = reply.unwrap_err();
    assert_eq!(
        (error.kind(), mark),
        (ErrorKind::Unavailable, DispatchState::NotSent)
    );
    assert!(
        !error.allows_retry() && error.message().contains("start one another"),
        "{error}"
    );
}
