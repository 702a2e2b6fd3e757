//! Lines that are reported while code runs.

use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};
use tool_core::{
    Arguments, CallContext, ErrorKind, Invoke, Outcome, Progress, Reply, TargetBackend, Tool, ToolError,
};

use crate::harness::{descriptor, failure, problems, tool, value};

const LONG: Duration = Duration::from_secs(60);

/// Passes on the messages of reports.
struct Reports(mpsc::UnboundedSender<String>);

impl Progress for Reports {
    fn report(&self, report: RawJson) {
        let message = report.get("message").and_then(|message| message.string());
        // Fails if the test is over.
        let _ = self.0.send(message.unwrap_or_default());
    }
}

async fn call_with(tool: &Arc<Tool>, reports: mpsc::UnboundedSender<String>) -> Result<Reply, ToolError> {
    let arguments = Arguments::from_value(json!({})).unwrap();
    let mut cx = CallContext::local(tool, arguments);
    cx.origin.progress = Some(Arc::new(Reports(reports)));
    TargetBackend.invoke(&mut cx).await.and_then(Outcome::into_reply)
}

/// Makes a call. Returns its result and everything that it reported.
async fn called(tool: &Arc<Tool>) -> (Result<Reply, ToolError>, Vec<String>) {
    let (sender, mut reports) = mpsc::unbounded_channel();
    let result = call_with(tool, sender).await;
    let mut messages = Vec::new();
    while let Ok(message) = reports.try_recv() {
        messages.push(message);
    }
    (result, messages)
}

/// Code of each kind that writes two lines and then goes on for an hour.
fn endless() -> [(&'static str, Value); 4] {
    [
        (
            "bash",
            json!({"stream": "text", "code": "echo one; echo two; sleep 3600"}),
        ),
        (
            "python",
            json!({"stream": "text", "code": "import time\nprint('one')\nprint('two')\ntime.sleep(3600)"}),
        ),
        (
            "python",
            json!({"stream": "text", "code": "import time\ndef run():\n    print('one')\n    print('two')\n    time.sleep(3600)"}),
        ),
        (
            "python",
            json!({"stream": "text", "stateless": true,
                "code": "import time\ndef run():\n    print('one')\n    print('two')\n    time.sleep(3600)"}),
        ),
    ]
}

/// A call that is cancelled after a report shows that the report came while the code ran.
#[tokio::test]
async fn lines_are_reported_while_the_code_runs() {
    for (kind, settings) in endless() {
        let tool = tool(kind, settings.clone());
        let (sender, mut reports) = mpsc::unbounded_channel();
        let call = tokio::spawn(async move { call_with(&tool, sender).await });
        for expected in ["one", "two"] {
            let message = timeout(LONG, reports.recv()).await.expect("nothing is reported");
            assert_eq!(message.as_deref(), Some(expected), "{settings}");
        }
        call.abort();
        let end = timeout(LONG, reports.recv()).await.expect("the call goes on");
        assert_eq!(end, None, "{settings}");
    }
}

#[tokio::test]
async fn the_result_is_that_of_the_settings() {
    for (kind, settings, expected, lines) in [
        (
            "bash",
            json!({"stream": "text", "code": "echo one; echo two"}),
            json!("one\ntwo"),
            vec!["one", "two"],
        ),
        (
            "bash",
            json!({"stream": "text", "output": "json", "code": "echo '['; echo '1]'"}),
            json!([1]),
            vec!["[", "1]"],
        ),
        (
            "bash",
            json!({"stream": "text", "output": "process", "code": "echo one; exit 3"}),
            json!({"stdout": "one\n", "exit_code": 3}),
            vec!["one"],
        ),
        (
            "bash",
            json!({"stream": "ndjson", "code": "echo '{\"n\":1}'; echo; echo '\"two\"'"}),
            json!([{"n": 1}, "two"]),
            vec!["{\"n\":1}", "\"two\""],
        ),
        (
            "python",
            json!({"stream": "ndjson", "code": "print(1)\nprint('[2]')"}),
            json!([1, [2]]),
            vec!["1", "[2]"],
        ),
        (
            "python",
            json!({"stream": "text", "code": "def run():\n    print('half', end='')\n    return {'n': 1}"}),
            json!({"n": 1}),
            vec!["half"],
        ),
        (
            "python",
            json!({"stream": "ndjson", "stateless": true, "code": "def run():\n    print(1)\n    return 2"}),
            json!(2),
            vec!["1"],
        ),
    ] {
        let tool = tool(kind, settings.clone());
        // A tool that is stateless answers from a waiting interpreter the second time.
        for _ in 0..2 {
            let (result, messages) = called(&tool).await;
            assert_eq!(value(result), expected, "{settings}");
            assert_eq!(messages, lines, "{settings}");
        }
    }
}

#[tokio::test]
async fn secrets_and_hidden_fields_are_in_no_report() {
    let settings = json!({
        "stream": "ndjson", "env": {"TOKEN": "${secret:token}"},
        "code": "echo \"{\\\"echo\\\":\\\"$TOKEN\\\"}\""
    });
    let (result, messages) = called(&tool("bash", settings)).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].contains("echo") && !messages[0].contains("s3cret-value"),
        "{messages:?}"
    );
}

#[tokio::test]
async fn lines_that_are_no_json_fail_with_their_number() {
    let settings = json!({"stream": "ndjson", "code": "echo 1; echo no; echo 3"});
    let (result, messages) = called(&tool("bash", settings)).await;
    let (kind, message) = failure(result);
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(message.contains("line 2"), "{message}");
    assert_eq!(messages, ["1", "no", "3"]);

    // A failure of the code is told as ever.
    let settings =
        json!({"stream": "text", "code": "def run():\n    print('one')\n    raise ValueError('no')"});
    let (result, messages) = called(&tool("python", settings)).await;
    let (kind, message) = failure(result);
    assert!(
        kind == ErrorKind::UpstreamError && message.contains("ValueError: no"),
        "{message}"
    );
    assert_eq!(messages, ["one"]);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (settings, place) in [
        (
            json!({"code": "true", "stream": "ndjson", "output": "text"}),
            "/output",
        ),
        (json!({"code": "true", "stream": "sse"}), "/stream"),
    ] {
        let found = problems(&descriptor("bash", settings.clone()));
        let places: Vec<_> = found.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(places, [place], "{settings}: {found:?}");
    }
}
