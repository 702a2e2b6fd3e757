//! Tools that can be called as a task only.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tool_core::{Descriptor, DispatchState, ErrorKind};
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, until},
    fixture::{Call, Fixture, NoSecrets, Reports, load},
};

const TASKS: &str =
    r#"{"name":"work","execution":{ "x":1, "taskSupport":"required" },"inputSchema":{"type":"object"}}"#;

/// A server with a tool whose tasks follow the arguments of a call.
fn fixture() -> Fixture {
    let fixture = Fixture::new(&[]);
    fixture.has("tools", &format!("[{TASKS}]"));
    fixture.offers(&json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}));
    fixture
}

async fn listed(server: &Arc<McpServer>) -> Descriptor {
    (*load(server).await.tools[0]).clone()
}

/// A task in this state.
fn task(status: &str, message: Option<&str>) -> Value {
    let mut task = json!({"taskId": "t1", "status": status, "pollInterval": 1, "ttl": null});
    if let Some(message) = message {
        task["statusMessage"] = json!(message);
    }
    task
}

#[tokio::test]
async fn a_tool_that_needs_tasks_is_shown_as_it_can_be_called_here() {
    let fixture = fixture();
    let server = fixture.server("");
    let tool = listed(&server).await;
    assert_eq!(
        tool.definition.unwrap().as_str(),
        TASKS.replace("required", "optional")
    );
    assert_eq!(tool.executor.config["task"], true);
    server.shutdown().await;
}

#[tokio::test]
async fn a_tool_whose_tasks_its_server_does_not_run_is_left_out() {
    for capabilities in [json!({"tools": {}}), json!({"tools": {}, "tasks": {"list": {}}})] {
        let fixture = fixture();
        fixture.offers(&capabilities);
        let server = fixture.server("");
        let catalogue = load(&server).await;
        assert!(catalogue.tools.is_empty());
        let reason = &catalogue.rejected[0].reason;
        assert!(reason.contains("does not offer to run tasks"), "{reason}");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn tools_that_need_no_tasks_are_shown_and_called_as_ever() {
    let fixture = fixture();
    for support in ["optional", "forbidden", "later"] {
        let definition = TASKS.replace("required", support).replace("work", "echo");
        fixture.has("tools", &format!("[{definition}]"));
        let server = fixture.server("");
        let tool = listed(&server).await;
        assert_eq!(tool.definition.as_ref().unwrap().as_str(), definition);
        let reply = Call::for_tool(&server, tool, json!({})).make().await.unwrap();
        assert_eq!(reply.raw().get("task"), None);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_task_is_followed_to_its_result() {
    let fixture = fixture();
    let server = fixture.server("");
    let related = json!({"taskId": "t1"});
    let arguments = json!({
        "made": task("working", Some("began")),
        "looks": [
            task("working", Some("began")),
            task("working", Some("half")),
            task("working", None),
            task("completed", Some("done")),
        ],
        "result": {
            "content": [], "isError": true,
            "_meta": {"io.modelcontextprotocol/related-task": related, "own": 1},
        },
    });
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    let reports = Arc::new(Reports::default());
    call.cx.origin.progress = Some(reports.clone());
    let reply = call.make().await.unwrap();
    assert!(reply.is_error, "the result is that of the call");
    let result: Value = reply.raw().to().unwrap();
    assert_eq!(
        result,
        json!({"content": [], "isError": true, "_meta": {"own": 1}})
    );
    let reports: Vec<_> = reports
        .0
        .lock()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        reports,
        [
            r#"{"progress":1,"message":"began"}"#,
            r#"{"progress":2,"message":"half"}"#,
            r#"{"progress":3,"message":"done"}"#,
        ]
    );
    let get = "tasks/get t1";
    assert_eq!(fixture.notes("tasks"), [get, get, get, get, "tasks/result t1"]);
    assert_eq!(call.cx.dispatch().state(), DispatchState::Answered);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_that_a_task_reports_comes_before_its_result() {
    let fixture = fixture();
    let server = fixture.server("");
    let tool = listed(&server).await;
    for _ in 0..20 {
        let arguments = json!({
            "made": task("working", Some("began")),
            "looks": [task("completed", None)],
            "progress": [10, 1e2],
            "result": {"content": []},
        });
        let mut call = Call::for_tool(&server, tool.clone(), arguments);
        let reports = Arc::new(Reports::default());
        call.cx.origin.progress = Some(reports.clone());
        call.make().await.unwrap();
        let reports: Vec<_> = reports
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|report| report.get("progress").unwrap().to_string())
            .collect();
        assert_eq!(reports, ["1", "10", "100.0"]);
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_that_needs_input_asks_for_it_when_its_result_is_fetched() {
    let fixture = fixture();
    let server = fixture.server("");
    let arguments = json!({"made": task("input_required", None), "result": {"content": []}});
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    assert_eq!(call.make().await.unwrap().raw().as_str(), r#"{"content":[]}"#);
    assert_eq!(fixture.notes("tasks"), ["tasks/result t1"]);
    server.shutdown().await;
}

#[tokio::test]
async fn what_a_task_asks_reaches_the_client_of_its_call() {
    let fixture = fixture();
    let server = fixture.server("");
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t1"}});
    let arguments = json!({
        "made": task("working", None),
        "looks": [task("input_required", Some("needs a name"))],
        "asks": {"message": "who?", "_meta": related},
        "result": {"content": []},
    });
    let client = Client::session("anna", r#"{"elicitation":{}}"#).answers(1);
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    call.cx.origin.ask = client.call(&server, "echo", json!({})).cx.origin.ask;
    assert_eq!(call.make().await.unwrap().raw().as_str(), r#"{"content":[]}"#);
    assert_eq!(client.asked(), ["elicitation/create"]);
    let answer: Value = serde_json::from_str(&fixture.notes("answers")[0]).unwrap();
    assert_eq!(
        answer["result"],
        json!({"by": "anna", "n": 1e2, "_meta": related})
    );
    // A question that nobody answers is withdrawn, and its task cancelled.
    let arguments = json!({"made": task("input_required", None), "asks": {"message": "?"}});
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    call.cx.origin.ask = client.call(&server, "echo", json!({})).cx.origin.ask;
    tokio::select! {
        result = call.make() => panic!("{result:?}"),
        () = client.was_asked(2) => {}
    }
    drop(call);
    fixture.noted("tasks", "tasks/cancel t1").await;
    until(|| client.withdrawn() == 1).await;
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_may_answer_at_once() {
    let fixture = fixture();
    let server = fixture.server("");
    let mut call = Call::for_tool(&server, listed(&server).await, json!({}));
    let reply = call.make().await.unwrap();
    assert_eq!(reply.raw().as_str(), r#"{"content":["at once"]}"#);
    assert_eq!(call.cx.dispatch().state(), DispatchState::Answered);
    server.shutdown().await;
}

#[tokio::test]
async fn tasks_that_fail() {
    let fixture = fixture();
    let server = fixture.server("");
    let failed = task("failed", Some("no\u{7} disk"));
    let rpc = json!({"code": -32603, "message": "internal", "data": 7});
    let cases = [
        (
            json!({"made": failed, "error": rpc}),
            ErrorKind::UpstreamError,
            "says that the task failed: no disk",
            vec!["tasks/result t1"],
        ),
        (
            json!({"made": task("failed", None), "error": rpc}),
            ErrorKind::UpstreamError,
            "the error -32603: internal",
            vec!["tasks/result t1"],
        ),
        (
            json!({"made": task("cancelled", Some("by hand"))}),
            ErrorKind::UpstreamError,
            "has cancelled the task: by hand",
            vec![],
        ),
        // The following ones may still be running.
        (
            json!({"made": task("dreaming", None)}),
            ErrorKind::OutcomeUnknown,
            "an unknown status",
            vec!["tasks/cancel t1"],
        ),
        (
            json!({"made": {"status": "working"}}),
            ErrorKind::OutcomeUnknown,
            "a task that has no id",
            vec![],
        ),
    ];
    let tool = listed(&server).await;
    for (arguments, kind, message, asked) in cases {
        let seen = fixture.notes("tasks").len();
        let error = Call::for_tool(&server, tool.clone(), arguments.clone())
            .make()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{arguments}: {error}");
        assert!(error.message().contains(message), "{arguments}: {error}");
        if arguments["error"].is_object() {
            assert_eq!(error.detail().unwrap().get("data").unwrap().as_str(), "7");
        }
        // A notification was sent when the next call is answered, and read before the one after.
        for _ in 0..2 {
            Call::new(&server, "echo", json!({})).make().await.unwrap();
        }
        assert_eq!(fixture.notes("tasks").split_off(seen), asked, "{arguments}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_that_is_lost_may_have_run() {
    let fixture = fixture();
    let server = fixture.server("");
    let tool = listed(&server).await;
    let arguments = json!({"made": task("working", None), "looks": ["gone"]});
    let error = Call::for_tool(&server, tool, arguments).make().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(
        error
            .message()
            .contains("no longer knows the task: Task not found"),
        "{error}"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_that_nobody_waits_for_is_cancelled() {
    let fixture = fixture();
    let server = fixture.server("");
    let tool = listed(&server).await;
    // Dropped between two polls, and while the result is waited for.
    for (made, waits) in [
        (task("working", None), "tasks/get t1"),
        (task("input_required", None), "tasks/result t1"),
    ] {
        let arguments = json!({"made": made, "looks": [made]});
        let mut call = Call::for_tool(&server, tool.clone(), arguments);
        let dispatch = call.cx.dispatch().clone();
        tokio::select! {
            result = call.make() => panic!("{result:?}"),
            () = fixture.noted("tasks", waits) => {}
        }
        drop(call);
        fixture.noted("tasks", "tasks/cancel t1").await;
        assert_eq!(dispatch.state(), DispatchState::Sent);
        std::fs::remove_file(fixture.path("tasks")).unwrap();
    }
    server.shutdown().await;
}

#[tokio::test]
async fn no_other_client_uses_the_connection_of_an_abandoned_task() {
    let fixture = fixture();
    let mut settings = fixture.settings("");
    settings.isolation = Isolation::Principal;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let tool = listed(&server).await;
    let call = |name: &'static str, arguments: Value| {
        let mut call = Call::for_tool(&server, tool.clone(), arguments);
        let client = Client::session(name, r#"{"elicitation":{}}"#);
        call.cx.origin.ask = client.call(&server, "echo", json!({})).cx.origin.ask;
        call
    };
    let mut made = task("working", Some("at it"));
    made["pollInterval"] = json!(60_000);
    let mut given_up = call("anna", json!({"made": made}));
    let reports = Arc::new(Reports::default());
    given_up.cx.origin.progress = Some(reports.clone());
    // Between two polls: no request is in progress.
    tokio::select! {
        result = given_up.make() => panic!("{result:?}"),
        () = until(|| !reports.0.lock().unwrap().is_empty()) => {}
    }
    drop(given_up);
    // One of the processes serves the shared connection.
    for (name, n_starts) in [("anna", 2), ("otto", 3)] {
        call(name, json!({})).make().await.unwrap();
        assert_eq!(fixture.notes("starts").len(), n_starts, "{name}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_cancelled() {
    let fixture = fixture();
    let server = fixture.server("");
    let tool = listed(&server).await;
    let arguments = json!({"made": task("input_required", None)});
    let mut call = Call::for_tool(&server, tool, arguments).within(Duration::from_millis(200));
    let error = call.make().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    fixture.noted("tasks", "tasks/cancel t1").await;
    server.shutdown().await;
}
