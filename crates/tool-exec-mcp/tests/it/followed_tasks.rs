//! Tasks that callers follow themselves, and tasks of modern servers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    Descriptor, ErrorKind, Outcome, Target, Task, TaskHandle, TaskMode, TaskRequest, ToolError, Update,
};
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, until},
    fixture::{Call, Fixture, NoSecrets, load},
};

fn legacy() -> Fixture {
    let fixture = Fixture::new(&[
        json!({"name": "work", "execution": {"taskSupport": "optional"}, "inputSchema": {"type": "object"}}),
    ]);
    fixture.offers(&json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}));
    fixture
}

fn modern() -> Fixture {
    let fixture = Fixture::new(&[json!("insists")]);
    fixture.offers(&json!({"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}));
    fixture
}

async fn listed(server: &Arc<McpServer>) -> Descriptor {
    (*load(server).await.tools[0]).clone()
}

fn state(status: &str) -> Value {
    json!({"taskId": "t1", "status": status, "pollInterval": 1, "pollIntervalMs": 1, "ttl": null})
}

/// Makes a call that becomes a task.
async fn made(call: &mut Call, wish: TaskMode) -> TaskHandle {
    call.cx.extras.task = Some(wish);
    match call.come().await.unwrap() {
        Outcome::Task(handle) => *handle,
        other => panic!("{other:?}"),
    }
}

/// Returns the outcome of a request about a task, made for this call's client.
async fn asked(call: &mut Call, task: &Task, request: TaskRequest) -> Result<Outcome, ToolError> {
    call.cx.target = Target::Task {
        tool: call.cx.tool().clone(),
        task: task.clone(),
        request,
    };
    let answer = tokio::time::timeout(Duration::from_secs(60), task.runner.invoke_boxed(&mut call.cx));
    answer.await.unwrap()
}

fn wanted() -> TaskMode {
    TaskMode::Requested(RawJson::from(json!({"ttl": 7})))
}

#[tokio::test]
async fn a_legacy_task_is_made_as_the_caller_wants_it_and_asked_about() {
    let fixture = legacy();
    let server = fixture.server("");
    let arguments =
        json!({"made": state("working"), "looks": [state("completed")], "result": {"isError": true, "n": 1}});
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    let handle = made(&mut call, wanted()).await;
    assert_eq!(&*handle.task.id, "t1");
    assert_eq!(handle.task.runner.dyn_protocol(), Some("mcp"));
    assert_eq!(
        handle.state.as_str(),
        format!(r#"{{"task":{}}}"#, state("working"))
    );
    let Ok(Outcome::Task(look)) = asked(&mut call, &handle.task, TaskRequest::Get).await else {
        panic!("a look is no reply");
    };
    assert_eq!(look.state.as_str(), state("completed").to_string());
    let Ok(Outcome::Reply(reply)) = asked(&mut call, &handle.task, TaskRequest::Result).await else {
        panic!("the result is a reply");
    };
    assert!(reply.is_error);
    assert_eq!(reply.raw().as_str(), r#"{"isError":true,"n":1}"#);
    let given = TaskRequest::Update(RawJson::object());
    let error = asked(&mut call, &handle.task, given).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(fixture.notes("tasks"), ["tasks/get t1", "tasks/result t1"]);
    server.shutdown().await;
}

#[tokio::test]
async fn notifications_of_a_task_reach_the_caller_that_follows_it() {
    let fixture = legacy();
    let server = fixture.server("");
    let told = Arc::new(Mutex::new(Vec::new()));
    let news = told.clone();
    server.source().on_update(Arc::new(move |update| {
        if !matches!(update, Update::State(_)) {
            news.lock().unwrap().push(update.clone());
        }
    }));
    let arguments = json!({"made": state("working"), "looks": []});
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    let task = made(&mut call, wanted()).await.task;
    let tell = |id: &str| {
        let params = json!({"status": "completed", "taskId": id});
        Call::new(
            &server,
            "tell",
            json!({"method": "notifications/tasks/status", "params": params}),
        )
    };
    for id in ["t2", "t1"] {
        tell(id).make().await.unwrap();
    }
    {
        let told = told.lock().unwrap();
        let [Update::Task { task: of, state }] = &told[..] else {
            panic!("{told:?}")
        };
        assert!(Arc::ptr_eq(&of.runner, &task.runner));
        assert_eq!(
            (&*of.id, state.as_str()),
            ("t1", r#"{"status":"completed","taskId":"t1"}"#)
        );
    }
    told.lock().unwrap().clear();
    drop(task);
    tell("t1").make().await.unwrap();
    assert!(told.lock().unwrap().is_empty());
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_that_is_gone_is_an_error_and_no_server_is_started_for_it() {
    let fixture = legacy();
    let server = fixture.server("");
    let arguments = json!({"made": state("working"), "looks": ["gone"]});
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    let task = made(&mut call, wanted()).await.task;
    let error = asked(&mut call, &task, TaskRequest::Get).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    let ended = Call::new(&server, "exit", json!({})).make().await.unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::OutcomeUnknown, "{ended}");
    // Another process may have another task with this id.
    let error = asked(&mut call, &task, TaskRequest::Get).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.message().contains("is gone"), "{error}");
    assert_eq!(fixture.notes("starts").len(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_stays_on_the_connection_of_its_client_which_is_kept_for_it() {
    let fixture = legacy();
    let server = fixture.server("");
    let client = Client::session("anna", r#"{"elicitation":{}}"#).answers(1);
    let arguments = json!({"made": state("working"), "asks": {"message": "?"}, "result": {"content": []}});
    let tool = listed(&server).await;
    let mut call = Call::for_tool(&server, tool, arguments);
    call.cx.origin.ask = client.call(&server, "echo", json!({})).cx.origin.ask;
    let handle = made(&mut call, wanted()).await;
    assert_eq!(server.n_dedicated_connections(), 1);
    let key = tool_core::ClientKey::Session("anna".into());
    server.release_client(&key);
    assert_eq!(server.n_dedicated_connections(), 1, "something still runs there");
    // A question during the request for the result reaches the client.
    asked(&mut call, &handle.task, TaskRequest::Result).await.unwrap();
    assert_eq!(client.asked(), ["elicitation/create"]);
    drop((call, handle));
    server.release_client(&key);
    until(|| server.n_dedicated_connections() == 0).await;
    server.shutdown().await;
}

#[tokio::test]
async fn no_other_client_uses_the_connection_of_a_task() {
    let fixture = legacy();
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
    let handle = made(&mut call("anna", json!({"made": state("working")})), wanted()).await;
    drop(handle);
    // One of the processes serves the shared connection.
    for (name, n_starts) in [("anna", 2), ("otto", 3)] {
        call(name, json!({})).make().await.unwrap();
        assert_eq!(fixture.notes("starts").len(), n_starts, "{name}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_modern_task_is_followed_by_a_caller_that_says_so() {
    let fixture = modern();
    let server = fixture.server("modern");
    let mut seed = state("working");
    seed["resultType"] = json!("task");
    let mut done = state("completed");
    done["result"] = json!({"content": [], "isError": true});
    let arguments = json!({"made": seed, "looks": [done]});
    let mut call = Call::for_tool(&server, listed(&server).await, arguments);
    let handle = made(&mut call, TaskMode::Allowed).await;
    assert_eq!(handle.state.as_str(), seed.to_string());
    let given = TaskRequest::Update(RawJson::from(json!({"q": 1})));
    asked(&mut call, &handle.task, given).await.unwrap();
    let Ok(Outcome::Task(look)) = asked(&mut call, &handle.task, TaskRequest::Get).await else {
        panic!("a look is no reply");
    };
    assert_eq!(look.state.as_str(), done.to_string());
    assert!(look.result.unwrap().is_error, "the result is there to be checked");
    assert_eq!(
        fixture.notes("tasks"),
        [r#"tasks/update {"q":1}"#, "tasks/get t1"]
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_task_that_a_modern_server_requires_is_followed_for_any_caller() {
    let fixture = modern();
    let server = fixture.server("modern");
    let mut seed = state("working");
    seed["resultType"] = json!("task");
    let mut asking = state("input_required");
    asking["inputRequests"] = json!({"who": {"method": "elicitation/create", "params": {"message": "?"}}});
    let mut done = state("completed");
    done["result"] = json!({"content": ["done"]});
    let arguments = json!({"made": seed, "looks": [state("working"), asking, asking, done]});
    let client = Client::session("anna", r#"{"elicitation":{}}"#).answers(1);
    let tool = listed(&server).await;
    let mut call = Call::for_tool(&server, tool.clone(), arguments.clone());
    call.cx.origin.ask = client.call(&server, "echo", json!({})).cx.origin.ask;
    let reply = call.make().await.unwrap();
    assert_eq!(reply.raw().as_str(), r#"{"content":["done"]}"#);
    assert_eq!(
        client.asked(),
        ["elicitation/create"],
        "the same question is not put twice"
    );
    let get = "tasks/get t1";
    let update = r#"tasks/update {"who":{"by":"anna","n":1e2}}"#;
    assert_eq!(fixture.notes("tasks"), [get, get, update, get, get]);
    // If nobody can be asked, the task is abandoned.
    let error = Call::for_tool(&server, tool, arguments).make().await.unwrap_err();
    assert!(error.message().contains("there is no client to ask"), "{error}");
    fixture.noted("tasks", "tasks/cancel t1").await;
    server.shutdown().await;
}

#[tokio::test]
async fn modern_tasks_that_fail() {
    let fixture = modern();
    let server = fixture.server("modern");
    let mut seed = state("working");
    seed["resultType"] = json!("task");
    let mut failed = state("failed");
    failed["error"] = json!({"code": -32603, "message": "broken", "data": 7});
    let mut other = state("input_required");
    other["inputRequests"] = json!({"q": {"method": "tools/call"}});
    for (look, kind, words) in [
        (failed, ErrorKind::UpstreamError, "the error -32603: broken"),
        (state("completed"), ErrorKind::Protocol, "without a result"),
        (state("cancelled"), ErrorKind::UpstreamError, "has cancelled"),
        (other, ErrorKind::OutcomeUnknown, "no client answers"),
    ] {
        let arguments = json!({"made": seed, "looks": [look]});
        let error = Call::for_tool(&server, listed(&server).await, arguments)
            .make()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{look}: {error}");
        assert!(error.message().contains(words), "{look}: {error}");
    }
    server.shutdown().await;
}
