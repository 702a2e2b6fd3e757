//! Work that becomes a task.

use std::time::Duration;

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tool_core::{ErrorKind, Outcome, Target, Task, TaskHandle, TaskMode, TaskRequest, ToolError};

use super::{Api, SHORT, fast, invoke};
use crate::support::{LONG, Prepared, prepare_with};

async fn begin_task(tool: &Prepared, mode: TaskMode) -> TaskHandle {
    let mut cx = tool.context("{}");
    cx.extras.task = Some(mode);
    let (outcome, _) = invoke(tool, cx).await;
    match outcome {
        Ok(Outcome::Task(handle)) => *handle,
        other => panic!("{other:?}"),
    }
}

async fn ask(tool: &Prepared, task: &Task, request: TaskRequest) -> Result<Outcome, ToolError> {
    let mut cx = tool.context("{}");
    let Target::Tool(of_task) = cx.target.clone() else {
        unreachable!("it is a call of a tool")
    };
    cx.target = Target::Task {
        tool: of_task,
        task: task.clone(),
        request,
    };
    timeout(LONG, task.runner.invoke_boxed(&mut cx))
        .await
        .expect("it hangs")
}

async fn state(tool: &Prepared, task: &Task) -> TaskHandle {
    match ask(tool, task, TaskRequest::Get).await {
        Ok(Outcome::Task(handle)) => *handle,
        other => panic!("{other:?}"),
    }
}

fn status(state: &RawJson) -> String {
    state
        .get("status")
        .and_then(|status| status.string())
        .unwrap_or_default()
}

/// Asks for the state until the task has ended.
async fn ended(tool: &Prepared, task: &Task) -> TaskHandle {
    loop {
        let handle = state(tool, task).await;
        if status(&handle.state) != "working" {
            return handle;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_client_that_supports_tasks_gets_one() {
    let begin = (202, "Location: /jobs/7\r\n", "");
    let api = Api::start(begin, vec![(202, "", ""), (200, "", r#"{"n":1}"#)]).await;
    let tool = prepare_with(api.settings(&fast(json!({}))), &[]);

    // Of the modern era: the state has the result.
    let made = begin_task(&tool, TaskMode::Allowed).await;
    let described: Value = made.state.to().unwrap();
    assert_eq!(described["resultType"], "task");
    assert_eq!(described["status"], "working");
    assert_eq!(described["ttlMs"], 3_600_000);
    assert_eq!(described["pollIntervalMs"], 100);
    assert_eq!(described["createdAt"], "1994-11-06T08:49:37Z");
    // A state that is asked for too early costs the API nothing.
    assert_eq!(status(&state(&tool, &made.task).await.state), "working");
    assert_eq!(api.lines(), ["POST /jobs"]);
    let done = ended(&tool, &made.task).await;
    assert_eq!(status(&done.state), "completed");
    assert_eq!(done.result.expect("the result").text(), r#"{"n":1}"#);

    // Of 2025-11-25: the result is asked for.
    let api = Api::start(begin, vec![(202, "", ""), (200, "", r#"{"n":2}"#)]).await;
    let tool = prepare_with(api.settings(&fast(json!({}))), &[]);
    let made = begin_task(&tool, TaskMode::Requested(RawJson::object())).await;
    let described: Value = made.state.to().unwrap();
    assert_eq!(described["task"]["status"], "working");
    assert_eq!(described["task"]["pollInterval"], 100);
    match ask(&tool, &made.task, TaskRequest::Result).await {
        Ok(Outcome::Reply(reply)) => assert_eq!(reply.text(), r#"{"n":2}"#),
        other => panic!("{other:?}"),
    }
    let done = state(&tool, &made.task).await;
    assert_eq!(status(&done.state), "completed");
    assert!(done.result.is_none());
}

#[tokio::test]
async fn a_task_fails_and_is_cancelled() {
    let operation = fast(json!({"failed": "state == 'failed'"}));
    let statuses = vec![(200, "", r#"{"state":"failed"}"#)];
    let api = Api::start((202, "Location: /jobs/7\r\n", ""), statuses).await;
    let tool = prepare_with(api.settings(&operation), &[]);
    let made = begin_task(&tool, TaskMode::Allowed).await;
    let done = ended(&tool, &made.task).await;
    let described: Value = done.state.to().unwrap();
    assert_eq!(described["status"], "failed");
    assert!(
        described["error"]["message"]
            .as_str()
            .unwrap()
            .contains("upstream_error"),
        "{described}"
    );
    let result = ask(&tool, &made.task, TaskRequest::Result).await;
    assert_eq!(result.expect_err("it failed").kind(), ErrorKind::UpstreamError);

    let made = begin_task(&tool, TaskMode::Allowed).await;
    let n_requests = api.lines().len();
    assert!(ask(&tool, &made.task, TaskRequest::Cancel).await.is_ok());
    sleep(SHORT).await;
    assert_eq!(status(&state(&tool, &made.task).await.state), "cancelled");
    let result = ask(&tool, &made.task, TaskRequest::Result).await;
    assert_eq!(result.expect_err("it was cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!(api.lines().len(), n_requests, "nobody follows it any more");
    let update = ask(&tool, &made.task, TaskRequest::Update(RawJson::object())).await;
    assert_eq!(
        update.expect_err("it asks nothing").kind(),
        ErrorKind::InvalidArguments
    );
}
