//! Python.

use serde_json::json;
use tool_core::{DispatchState, ErrorKind};

use crate::harness::{call, call_with_mark, failure, tool, value};

#[tokio::test]
async fn a_function_gets_arguments_by_name_and_returns_its_result() {
    let code = "def run(a, b=2, **rest):\n    print('to the log')\n    return {'sum': a + b, 'rest': rest, 'text': 'Zoë'}\n";
    let tool = tool("python", json!({"code": code}));
    let result = value(call(&tool, json!({"a": 40, "x": [1]})).await);
    assert_eq!(result, json!({"sum": 42, "rest": {"x": [1]}, "text": "Zoë"}));
}

#[tokio::test]
async fn a_coroutine_runs_to_its_end() {
    let code =
        "import asyncio\nasync def run(n: int) -> dict:\n    await asyncio.sleep(0)\n    return {'n': n}\n";
    let tool = tool(
        "python",
        json!({"files": {"main.py": code}, "entrypoint": "main.py"}),
    );
    assert_eq!(value(call(&tool, json!({"n": 7})).await), json!({"n": 7}));
}

#[tokio::test]
async fn large_numbers_keep_their_digits() {
    let tool = tool("python", json!({"code": "def run(n):\n    return n + 1\n"}));
    let reply = call(&tool, json!({"n": 9_007_199_254_740_993_u64}))
        .await
        .unwrap();
    assert_eq!(reply.raw().as_str(), "9007199254740994");
}

#[tokio::test]
async fn files_import_one_another() {
    let config = json!({
        "entrypoint": "app/main.py",
        "files": {
            "app/main.py": "from words import greeting\nimport top\ndef run(name):\n    return greeting(name) + top.END\n",
            "app/words.py": "def greeting(name):\n    return 'Hello, ' + name\n",
            "top.py": "END = '!'\n",
        },
    });
    assert_eq!(
        value(call(&tool("python", config), json!({"name": "Ada"})).await),
        "Hello, Ada!"
    );
}

#[tokio::test]
async fn exceptions_name_the_lines_of_the_tool_alone() {
    let code = "import json\n\ndef load(text):\n    return json.loads(text)\n\ndef run(text):\n    return load(text)\n";
    let tool = tool("python", json!({"code": code}));
    let (reply, mark) = call_with_mark(&tool, json!({"text": "{"})).await;
    assert_eq!(mark, DispatchState::Answered);
    let error = reply.expect_err("a failure");
    assert_eq!(error.kind(), ErrorKind::UpstreamError);
    let expected = "the code failed with json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: \
                    line 1 column 2 (char 1)\n  main.py:7, in run: return load(text)\n  main.py:4, in load: return json.loads(text)";
    assert_eq!(error.message(), expected);
    let detail = error.detail().unwrap();
    let frames = detail.get("traceback").unwrap();
    assert!(
        !frames.as_str().contains("decoder.py") && !frames.as_str().contains("run.py"),
        "{frames:?}"
    );
}

#[tokio::test]
async fn code_that_does_not_compile_shows_its_line() {
    let (kind, message) =
        failure(call(&tool("python", json!({"code": "x = 1\ndef run(:\n"})), json!({})).await);
    assert_eq!(kind, ErrorKind::UpstreamError);
    assert!(
        message.contains("SyntaxError") && message.contains("main.py:2"),
        "{message}"
    );
}

#[tokio::test]
async fn arguments_that_are_no_parameters_are_invalid() {
    let tool = tool("python", json!({"code": "def run(a):\n    return a()\n"}));
    let (kind, message) = failure(call(&tool, json!({"b": 1})).await);
    assert_eq!(kind, ErrorKind::InvalidArguments, "{message}");
    // Its own mistake is one of the code.
    let (kind, message) = failure(call(&tool, json!({"a": 1})).await);
    assert_eq!(kind, ErrorKind::UpstreamError, "{message}");
}

#[tokio::test]
async fn a_result_that_is_no_json_is_an_error() {
    for result in ["{1, 2}", "float('nan')", "object()"] {
        let code = format!("def run():\n    return {result}\n");
        let (kind, message) = failure(call(&tool("python", json!({"code": code})), json!({})).await);
        assert_eq!(kind, ErrorKind::Protocol, "{message}");
        assert!(message.contains("cannot be written as JSON"), "{message}");
    }
}

#[tokio::test]
async fn a_program_reads_json_and_writes_its_result() {
    let code = "import json, sys\narguments = json.load(sys.stdin)\nprint(json.dumps({'got': arguments}))\n";
    let json_tool = tool("python", json!({"code": code, "output": "json"}));
    assert_eq!(
        value(call(&json_tool, json!({"a": 1})).await),
        json!({"got": {"a": 1}})
    );
    let text = tool("python", json!({"code": "print('plain')"}));
    assert_eq!(value(call(&text, json!({})).await), "plain");
    let exits = tool(
        "python",
        json!({"code": "import sys\nprint('no', file=sys.stderr)\nsys.exit(3)"}),
    );
    let (_, message) = failure(call(&exits, json!({})).await);
    assert!(
        message.contains("exit code 3") && message.contains("no"),
        "{message}"
    );
}

#[tokio::test]
async fn the_code_sees_nothing_of_the_gateway() {
    let code = "
import os, sys
def run():
    seen = []
    for path in ['/root', '/etc/shadow', '/home']:
        try:
            os.listdir(path) if os.path.isdir(path) else open(path).read()
            seen.append(path)
        except OSError:
            pass
    fds = sorted(int(fd) for fd in os.listdir('/proc/self/fd'))
    return {'seen': seen, 'fds': len(fds), 'path': [p for p in sys.path if 'site-packages' in p], 'uid': os.getuid()}
";
    let result = value(call(&tool("python", json!({"code": code})), json!({})).await);
    assert_eq!(result["seen"], json!([]), "{result}");
    assert_ne!(result["uid"], 0, "{result}");
    // The standard streams, the channel of the result, and the listing itself.
    assert!(result["fds"].as_u64().unwrap() <= 5, "{result}");
}

#[tokio::test]
async fn memory_is_limited() {
    let config = json!({"code": "def run():\n    return len(bytearray(400_000_000))\n", "limits": {"memory": "128MiB"}});
    let (kind, message) = failure(call(&tool("python", config), json!({})).await);
    assert_eq!(kind, ErrorKind::UpstreamError);
    assert!(message.contains("128 MiB of memory"), "{message}");
}

#[tokio::test]
async fn an_interpreter_waits_for_the_next_call_and_answers_one_alone() {
    let code = "import os\nstate = {'calls': 0}\ndef run(n):\n    state['calls'] += 1\n    open('left', 'a').write('x')\n    return [n, state['calls'], os.path.getsize('left')]\n";
    let tool = tool("python", json!({"code": code, "stateless": true}));
    for n in 0..4 {
        // Cold, then warm: nothing of a call is seen by the next one.
        assert_eq!(value(call(&tool, json!({"n": n})).await), json!([n, 1, 1]));
    }
    let calls = (10..14).map(|n| {
        let tool = tool.clone();
        tokio::spawn(async move { value(call(&tool, json!({"n": n})).await) })
    });
    for (n, task) in (10..14).zip(calls.collect::<Vec<_>>()) {
        assert_eq!(task.await.unwrap(), json!([n, 1, 1]));
    }
}

#[tokio::test]
async fn a_warm_interpreter_keeps_the_limits() {
    let code = "import time\ndef run(what):\n    if what == 'sleep':\n        time.sleep(60)\n    if what == 'print':\n        print('x' * 100_000)\n    return what\n";
    let config =
        json!({"code": code, "stateless": true, "limits": {"wall_time": "800ms", "output": "64KiB"}});
    let tool = tool("python", config);
    assert_eq!(value(call(&tool, json!({"what": "ok"})).await), "ok");
    assert_eq!(
        failure(call(&tool, json!({"what": "sleep"})).await).0,
        ErrorKind::Timeout
    );
    assert_eq!(value(call(&tool, json!({"what": "ok"})).await), "ok");
    assert_eq!(
        failure(call(&tool, json!({"what": "print"})).await).0,
        ErrorKind::ResultTooLarge
    );
}
