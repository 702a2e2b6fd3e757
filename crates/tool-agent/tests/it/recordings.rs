//! Record and replay.

use std::{fs, path::Path, sync::Arc};

use tool_agent::{
    RawJson, RecordLayer, Replay, ReplayLayer, ReplayMode,
    serde_json::{Value, json},
    tool_core::{
        CallContext, DynInvoke, ErrorKind, Invoke, Layer as _, Outcome, PendingCall, RedactedFields, Reply,
        SystemClock, TargetBackend, ToolError,
    },
};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

/// Runs a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits for something"),
    }
}

/// Returns the context of a call of a tool with this script.
fn cx(name: &str, steps: Vec<ScriptStep>, arguments: Value) -> CallContext {
    let tool = TestTool::new(name).build(ScriptedExecutor::new(steps));
    call(tool, arguments, Arc::new(SystemClock::new()))
}

fn invoke(stack: &dyn DynInvoke, cx: &mut CallContext) -> Result<Outcome, ToolError> {
    now(stack.invoke_boxed(cx))
}

fn reply(result: Result<Outcome, ToolError>) -> Reply {
    result.and_then(Outcome::into_reply).expect("it answers")
}

fn recorded(folder: &Path) -> impl Invoke {
    RecordLayer::begin(folder)
        .expect("it can begin")
        .layer(TargetBackend)
}

fn replayed(folder: &Path, mode: ReplayMode) -> (Arc<Replay>, impl Invoke) {
    let replay = Arc::new(Replay::open(folder, mode).expect("it can be read"));
    (replay.clone(), ReplayLayer::new(replay).layer(TargetBackend))
}

#[test]
fn calls_are_recorded_as_readable_files_and_answered_from_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = recorded(folder.path());
    let limited = ToolError::new(ErrorKind::RateLimited, "too often")
        .with_retry_after(std::time::Duration::from_secs(3));
    let mcp = RawJson::parse(r#"{"content":[{"type":"text","text":"hi"}],"n":12345678901234567890.10}"#);
    let result = Reply::result(mcp.expect("JSON"), true);
    let calls = [
        (
            "weather",
            ScriptStep::Value(json!({"sky": "clear"})),
            json!({"city": "Oslo"}),
        ),
        (
            "weather",
            ScriptStep::FailAnswered(limited),
            json!({"city": "Bergen"}),
        ),
        ("other", ScriptStep::Reply(result), json!({})),
    ];
    for (name, step, arguments) in calls {
        // As the caller gets it, so that a replay is the same.
        let _ = invoke(&record, &mut cx(name, vec![step], arguments));
    }
    // A call that waits has no file yet.
    let pending = Outcome::Pending(Box::new(PendingCall::new("7f", "a person decides")));
    let waits = invoke(
        &record,
        &mut cx("weather", vec![ScriptStep::Outcome(pending)], json!({})),
    );
    assert!(matches!(waits, Ok(Outcome::Pending(_))));

    let file = fs::read_to_string(folder.path().join("calls/000001-weather.json")).expect("it is there");
    let lines: Vec<_> = file
        .lines()
        .filter(|line| !line.contains("_ms") && !line.contains("\"at\""))
        .collect();
    let definition = lines[2].to_owned();
    assert!(definition.starts_with(r#"  "definition": ""#), "{file}");
    assert_eq!(
        lines
            .iter()
            .filter(|line| **line != definition)
            .copied()
            .collect::<Vec<_>>()
            .join("\n"),
        "{\n  \"tool\": \"weather\",\n  \"principal\": \"local\",\n  \"arguments\": {\n    \"city\": \"Oslo\"\n  },\n  \"value\": {\n    \"sky\": \"clear\"\n  }\n}"
    );
    let files = fs::read_dir(folder.path().join("calls")).expect("it is there");
    assert_eq!(files.count(), 3);
    assert!(folder.path().join("tools/weather.json").exists());

    let (replay, stack) = replayed(folder.path(), ReplayMode::Strict);
    let hang = || vec![ScriptStep::Hang(true)];
    let bergen = invoke(&stack, &mut cx("weather", hang(), json!({"city": "Bergen"})));
    let error = bergen.expect_err("it failed");
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::RateLimited, "too often")
    );
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(3)));
    let oslo = reply(invoke(
        &stack,
        &mut cx("weather", hang(), json!({"city": "Oslo"})),
    ));
    assert_eq!(oslo.text(), r#"{"sky":"clear"}"#);
    assert_eq!(replay.unused(), ["000003-other.json"]);
    let other = reply(invoke(&stack, &mut cx("other", hang(), json!({}))));
    assert!(other.is_error && other.raw().as_str().contains("12345678901234567890.10"));
    assert!(replay.unused().is_empty());
}

#[test]
fn an_answer_is_replayed_byte_for_byte() {
    let texts = [
        r#"{"wrens": [1e2, 12345678901234567890123]}"#,
        r#"{"a":{"b":[],"c":{}},"d":[{"e":"\u00e9"}]}"#,
        "{\n  \"a\": [\n    1\n  ]\n}",
        "[ ]",
        "\"a  b\"",
        r#"{"\u0061": 1,"a":1}"#,
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let record = recorded(folder.path());
    let values: Vec<_> = texts
        .iter()
        .map(|text| RawJson::parse((*text).to_owned()).expect("JSON"))
        .collect();
    let replies = |value: &RawJson| [Reply::value(value.clone()), Reply::result(value.clone(), false)];
    for given in values.iter().flat_map(replies) {
        reply(invoke(
            &record,
            &mut cx("a", vec![ScriptStep::Reply(given)], json!({})),
        ));
    }
    let (_, stack) = replayed(folder.path(), ReplayMode::Strict);
    for given in values.iter().flat_map(replies) {
        let again = reply(invoke(
            &stack,
            &mut cx("a", vec![ScriptStep::Hang(true)], json!({})),
        ));
        assert_eq!(again.raw().as_str(), given.raw().as_str());
    }
}

#[test]
fn what_was_not_recorded_is_a_clear_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = recorded(folder.path());
    let step = || vec![ScriptStep::Value(json!("done"))];
    for n in [1, 2] {
        reply(invoke(&record, &mut cx("a", step(), json!({"n": n}))));
    }
    let (_, stack) = replayed(folder.path(), ReplayMode::Strict);
    for (name, arguments, message) in [
        ("b", json!({}), "the recording has no further call of `b`"),
        (
            "a",
            json!({"n": 3}),
            "the recording has no further call of `a` with these arguments; the next one is `000001-a.json` with {\"n\":1}",
        ),
    ] {
        let error = invoke(&stack, &mut cx(name, step(), arguments)).expect_err("it is not there");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unavailable, message));
        assert!(!error.allows_retry());
    }
    reply(invoke(&stack, &mut cx("a", step(), json!({"n": 1}))));
    invoke(&stack, &mut cx("a", step(), json!({"n": 1}))).expect_err("it answers once");
    // A tool with another schema is another tool.
    let changed = TestTool::new("a").input(json!({"type": "object", "required": ["n"]}));
    let changed = changed.build(ScriptedExecutor::new(step()));
    let mut changed = call(changed, json!({"n": 2}), Arc::new(SystemClock::new()));
    let error = invoke(&stack, &mut changed).expect_err("its definition differs");
    assert_eq!(error.kind(), ErrorKind::ToolChanged);
    // By position, arguments do not matter.
    let (_, stack) = replayed(folder.path(), ReplayMode::ByPosition);
    reply(invoke(&stack, &mut cx("a", step(), json!({"n": 9}))));
    reply(invoke(&stack, &mut cx("a", step(), json!({}))));
    invoke(&stack, &mut cx("a", step(), json!({}))).expect_err("there were two");
}

#[test]
fn secrets_are_not_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = recorded(folder.path());
    let arguments =
        json!({"api_key": "abc-123", "list": [{"password": "hunter2"}], "q": "token=xyz789 please"});
    let step = vec![ScriptStep::Value(
        json!({"access_token": "t0k3n", "url": "https://ada:pw@host/x"}),
    )];
    reply(invoke(&record, &mut cx("a", step, arguments.clone())));
    let file = fs::read_to_string(folder.path().join("calls/000001-a.json")).expect("it is there");
    for secret in ["abc-123", "hunter2", "xyz789", "t0k3n", "ada:pw"] {
        assert!(!file.contains(secret), "{secret}: {file}");
    }
    // The same call is found all the same.
    let (_, stack) = replayed(folder.path(), ReplayMode::Strict);
    reply(invoke(&stack, &mut cx("a", vec![], arguments)));
}

#[test]
fn fields_that_a_tool_hides_are_not_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = recorded(folder.path());
    let arguments = json!({"person": {"ssn": "078-05-1120"}, "n": 1});
    let hiding = || {
        let mut tool = TestTool::new("a");
        tool.settings.set(RedactedFields(["ssn".to_owned()].into()));
        let tool = tool.build(ScriptedExecutor::new(vec![ScriptStep::Value(json!("done"))]));
        call(tool, arguments.clone(), Arc::new(SystemClock::new()))
    };
    reply(invoke(&record, &mut hiding()));
    let file = fs::read_to_string(folder.path().join("calls/000001-a.json")).expect("it is there");
    assert!(
        !file.contains("078-05-1120") && file.contains("\"n\": 1"),
        "{file}"
    );
    // Also the tool of a server that is not started, whose settings are not known, finds the call.
    for mut cx in [hiding(), cx("a", vec![], arguments.clone())] {
        let (_, stack) = replayed(folder.path(), ReplayMode::Strict);
        reply(invoke(&stack, &mut cx));
    }
}

#[test]
fn a_recording_is_not_overwritten_and_a_damaged_one_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = recorded(folder.path());
    reply(invoke(&record, &mut cx("a", vec![ScriptStep::Echo], json!({}))));
    let error = RecordLayer::begin(folder.path()).expect_err("there is one");
    assert!(
        error.to_string().contains("there is a recording already"),
        "{error}"
    );
    let path = folder.path().join("calls/000002-a.json");
    for (content, problem) in [
        ("{", "expected"),
        ("{}", "it has no `value`, `result` or `error`"),
        (r#"{"value": 1}"#, "`tool` is missing"),
        (r#"{"error": {"kind": "x"}}"#, "the kind of its error is unknown"),
    ] {
        fs::write(&path, content).expect("it can be written");
        let error = Replay::open(folder.path(), ReplayMode::Strict).expect_err("it is damaged");
        assert!(error.to_string().contains("000002-a.json"), "{error}");
        assert!(error.problem.contains(problem), "{problem}: {error}");
    }
    assert!(Replay::open(Path::new("/nowhere"), ReplayMode::Strict).is_err());
}
