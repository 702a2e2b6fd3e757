//! Tasks of clients: the experiment of 2025-11-25, and the extension of the modern era.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_testkit::{self as testkit, TestTool};
use toolplane::{
    Toolplane,
    core::{
        CallContext, ClientKey, ErrorKind, InProcess, Invoke, Outcome, Question, Reply, Target, Task,
        TaskHandle, TaskMode, TaskRequest, ToolError, Update,
    },
};
use toolplane_gateway::{Gateway, GatewayOptions};

use crate::support::{ChangingSource, Client, Http, modern, raw};

/// Makes a task of every call whose caller supports tasks. The test scripts the state at each poll.
#[derive(Clone, Default)]
struct TaskExecutor(Arc<Seen>);

#[derive(Default)]
struct Seen {
    looks: Mutex<Vec<String>>,
    asked: Mutex<Vec<String>>,
    /// Created tasks, with their owners.
    made: Mutex<Vec<(Task, ClientKey)>>,
}

const ID: &str = "upstream's own";

impl TaskExecutor {
    fn with(looks: &[&str]) -> Self {
        let executor = Self::default();
        *executor.0.looks.lock().expect("no test panics with it") =
            looks.iter().rev().map(ToString::to_string).collect();
        executor
    }

    fn asked(&self) -> Vec<String> {
        self.0.asked.lock().expect("no test panics with it").clone()
    }

    /// Returns the next scripted state. The last one repeats.
    fn look(&self) -> RawJson {
        let mut looks = self.0.looks.lock().expect("no test panics with it");
        let look = match looks.len() {
            0 | 1 => looks.last().cloned().unwrap_or_default(),
            _ => looks.pop().expect("it is there"),
        };
        raw(&look)
    }

    fn task(&self) -> Task {
        Task::new(ID, Arc::new(InProcess(self.clone())))
    }

    /// Returns the created tasks, with their owners.
    fn made(&self) -> Vec<(Task, ClientKey)> {
        self.0.made.lock().expect("no test panics with it").clone()
    }

    fn handle(&self, state: RawJson) -> Outcome {
        handle(self.task(), state)
    }
}

/// Returns the handle of a task in this state. Its result has no `pin`, as if a layer had hidden it.
fn handle(task: Task, state: RawJson) -> Outcome {
    let result = state.get("result");
    let result =
        result.map(|result| Reply::result(result.without_members(&["pin"]).expect("an object"), false));
    Outcome::Task(Box::new(TaskHandle::new(task, state).with_result(result)))
}

impl Invoke for TaskExecutor {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let note = |note: String| self.0.asked.lock().expect("no test panics with it").push(note);
        let Target::Task { request, .. } = &cx.target else {
            note(match &cx.extras.task {
                Some(TaskMode::Requested(wanted)) => format!("call {wanted}"),
                _ => "call".to_owned(),
            });
            if cx.extras.task.is_some() {
                let task = self.task();
                let client = cx.origin.client.clone().expect("the gateway says whose it is");
                let made = (task.clone(), client);
                self.0.made.lock().expect("no test panics with it").push(made);
                let state = match &cx.extras.task {
                    Some(TaskMode::Requested(_)) => {
                        raw(&format!(r#"{{ "task":{},"_meta":{{"n":1e2}}}}"#, self.look()))
                    }
                    _ => self.look(),
                };
                return Ok(handle(task, state));
            }
            return Ok(Reply::value(RawJson::from(json!({"plain": true}))).into());
        };
        match request {
            TaskRequest::Get => {
                note("look".to_owned());
                Ok(self.handle(self.look()))
            }
            TaskRequest::Cancel => {
                note("cancel".to_owned());
                Ok(self.handle(self.look()))
            }
            TaskRequest::Update(given) => {
                note(format!("give {given}"));
                Ok(self.handle(RawJson::object()))
            }
            TaskRequest::Result => {
                note("result".to_owned());
                if let Some(asker) = &cx.origin.ask {
                    let question = Question::new(
                        "elicitation/create".to_owned(),
                        Some(raw(&format!(
                            r#"{{"message":"?","_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{ID}"}}}}}}"#
                        ))),
                    );
                    let answer = asker.ask(question).await.expect("it is there");
                    note(answer.to_string());
                }
                let result = format!(
                    r#"{{ "content":[],"n":1e2,"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{ID}"}},"own":1}}}}"#
                );
                Ok(Reply::result(raw(&result), false).into())
            }
            other => {
                let message = format!("no {other:?}");
                Err(ToolError::new(ErrorKind::Internal, message))
            }
        }
    }
}

/// Returns a gateway with one tool that supports tasks, and one that does not.
fn gateway(executor: &TaskExecutor) -> Gateway {
    telling(executor, &ChangingSource::new(&[]))
}

/// Returns the same gateway with a source that sends updates.
fn telling(executor: &TaskExecutor, source: &Arc<ChangingSource>) -> Gateway {
    let mut work = TestTool::new("work");
    let definition =
        r#"{"name":"work","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}}"#;
    work.descriptor.definition = Some(raw(definition));
    let plane = Toolplane::builder()
        .executor(testkit::executor("scripted", executor.clone()))
        .source(source.clone())
        .tool(work.descriptor)
        .tool(TestTool::new("plain").descriptor)
        .build()
        .expect("it is there");
    Gateway::new(plane, GatewayOptions::default())
}

fn state(status: &str) -> String {
    format!(r#"{{ "taskId":"{ID}","status":"{status}","ttl":60000,"pollInterval":1,"x":1e2 }}"#)
}

const CALL: &str = r#""name":"work","task":{"ttl":1e4}"#;

/// Creates a task, and returns the id that its client knows.
async fn make(client: &mut Client) -> String {
    let answer = client.result("tools/call", CALL).await;
    let id = raw(&answer)
        .get("task")
        .expect("it is there")
        .get("taskId")
        .expect("it is there")
        .string();
    id.expect("it is there")
}

fn of(id: &str) -> String {
    format!(r#""taskId":"{id}""#)
}

#[tokio::test]
async fn a_legacy_client_follows_a_task_under_an_id_of_ours() {
    let looks = [state("working"), state("working"), state("completed")];
    let executor = TaskExecutor::with(&looks.each_ref().map(String::as_str));
    let mut client = Client::on(gateway(&executor));
    client.initialize("{}").await;
    let made = client.result("tools/call", CALL).await;
    let id = raw(&made)
        .get("task")
        .expect("it is there")
        .get("taskId")
        .expect("it is there");
    let id = id.string().expect("it is there");
    assert_eq!(id.len(), 32, "{id}");
    assert_eq!(
        made,
        format!(
            r#"{{ "task":{},"_meta":{{"n":1e2}}}}"#,
            state("working").replace(ID, &id)
        )
    );
    let look = client.result("tasks/get", &of(&id)).await;
    assert_eq!(look, state("working").replace(ID, &id));
    let result = client.result("tasks/result", &of(&id)).await;
    assert_eq!(
        result,
        format!(
            r#"{{ "content":[],"n":1e2,"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}},"own":1}}}}"#
        )
    );
    let list = client.result("tasks/list", "").await;
    assert_eq!(
        list,
        format!(r#"{{"tasks":[{}]}}"#, state("completed").replace(ID, &id))
    );
    let cancelled = client.result("tasks/cancel", &of(&id)).await;
    assert_eq!(cancelled, state("completed").replace(ID, &id));
    assert_eq!(
        executor.asked(),
        [r#"call {"ttl":1e4}"#, "look", "look", "result", "look", "cancel"]
    );
}

#[tokio::test]
async fn questions_of_a_task_carry_the_id_that_the_client_knows() {
    let executor = TaskExecutor::with(&[&state("input_required")]);
    let mut client = Client::on(gateway(&executor));
    client.initialize(r#"{"elicitation":{}}"#).await;
    let id = make(&mut client).await;
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{{{}}}}}"#,
            of(&id)
        ))
        .await;
    let question: Value = serde_json::from_str(&client.receive().await).expect("it is there");
    let mark = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(mark, &json!({"taskId": id}));
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    client.send(&answer.to_string()).await;
    let result: Value = serde_json::from_str(&client.receive().await).expect("it is there");
    assert_eq!(result["id"], 7);
    assert_eq!(
        executor.asked().last().expect("it is there"),
        r#"{"action":"decline"}"#
    );
}

#[tokio::test]
async fn a_tool_without_task_support_is_not_run_as_a_task() {
    let executor = TaskExecutor::default();
    let mut client = Client::on(gateway(&executor));
    client.initialize("{}").await;
    let answer = client.value("tools/call", r#""name":"plain","task":{}"#).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert!(executor.asked().is_empty());
    let answer = client.value("tools/call", r#""name":"none","task":{}"#).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // Without `task`, the call is an ordinary one.
    let answer = client.value("tools/call", r#""name":"work""#).await;
    assert_eq!(answer["result"]["structuredContent"]["plain"], true, "{answer}");
}

#[tokio::test]
async fn a_task_of_another_client_is_unknown() {
    let executor = TaskExecutor::with(&[&state("working")]);
    let gateway = gateway(&executor);
    let mut owner = Client::on(gateway.clone());
    owner.initialize("{}").await;
    let id = make(&mut owner).await;
    let mut other = Client::on(gateway.clone());
    other.initialize("{}").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let theirs = other.ask(method, &of(&id)).await;
        assert!(theirs.contains("-32602"), "{theirs}");
        assert_eq!(theirs, other.ask(method, &of("never")).await, "{method}");
        // Clients cannot use the id of the server.
        assert_eq!(theirs, owner.ask(method, &of(ID)).await, "{method}");
    }
    assert_eq!(other.result("tasks/list", "").await, r#"{"tasks":[]}"#);
    assert_eq!(executor.asked().len(), 1, "only the call");
    assert_eq!(
        owner.value("tasks/get", &of(&id)).await["result"]["status"],
        "working"
    );
}

#[tokio::test]
async fn a_modern_task_over_http_belongs_to_its_principal() {
    let working = r#"{ "resultType":"task","taskId":"ID","status":"working","ttlMs":1e5 }"#.replace("ID", ID);
    let executor = TaskExecutor::with(&[&working]);
    let http = Http::on(&gateway(&executor));
    let call = format!(r#""name":"work",{}"#, modern(FOLLOWS));
    let made = http
        .ask(&[("x-principal", "alice")], "tools/call", "work", &call)
        .await;
    let id = made["result"]["taskId"].as_str().expect("a task");
    let about = async |principal: &str, method: &str, id: &str| {
        let params = format!(r#"{},"inputResponses":{{}},{}"#, of(id), modern(FOLLOWS));
        http.ask(&[("x-principal", principal)], method, id, &params).await
    };
    let n_asked = executor.asked().len();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let theirs = about("mallory", method, id).await;
        assert_eq!(theirs["error"]["code"], -32602, "{method}: {theirs}");
        assert_eq!(theirs, about("mallory", method, "never").await, "{method}");
        // Clients cannot use the id of the server.
        assert_eq!(theirs, about("alice", method, ID).await, "{method}");
    }
    assert_eq!(
        executor.asked().len(),
        n_asked,
        "the server is not asked for strangers"
    );
    let own = about("alice", "tasks/get", id).await;
    assert_eq!(own["result"]["status"], "working", "{own}");
}

/// The result in the state that a server sends has passed no layer.
#[tokio::test]
async fn the_state_of_a_modern_task_has_the_result_that_passed_the_layers() {
    let working = r#"{"resultType":"task","taskId":"ID","status":"working"}"#.replace("ID", ID);
    let done = r#"{"taskId":"ID","status":"completed","result":{"content":[],"n":1e2,"pin":1234}}"#
        .replace("ID", ID);
    let executor = TaskExecutor::with(&[&working, &done]);
    let http = Http::on(&gateway(&executor));
    let call = format!(r#""name":"work",{}"#, modern(FOLLOWS));
    let made = http.ask(&[], "tools/call", "work", &call).await;
    let id = made["result"]["taskId"].as_str().expect("a task");
    let params = format!("{},{}", of(id), modern(FOLLOWS));
    let done = http.ask(&[], "tasks/get", id, &params).await;
    assert_eq!(
        done["result"]["result"],
        json!({"content": [], "n": 1e2}),
        "{done}"
    );
}

#[tokio::test]
async fn a_list_of_tasks_over_http_belongs_to_a_session() {
    let executor = TaskExecutor::with(&[&state("working")]);
    let http = Http::on(&gateway(&executor));
    let of_session = |id| [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", id)];
    let (one, other) = (http.session().await, http.session().await);
    let (one, other) = (of_session(&*one), of_session(&*other));
    let none = &one[..1];
    let make = async |headers: &[(&str, &str)]| {
        let made = http.legacy_with(headers, "tools/call", CALL).await;
        let id = made["result"]["task"]["taskId"].as_str();
        id.expect("a task").to_owned()
    };
    let (own, unowned) = (make(&one).await, make(none).await);
    for (headers, expected) in [(&one, vec![&own]), (&other, Vec::new())] {
        let list = http.legacy_with(headers, "tasks/list", "").await;
        let tasks = list["result"]["tasks"].as_array().expect("a list");
        let ids: Vec<_> = tasks.iter().map(|task| &task["taskId"]).collect();
        assert_eq!(ids, expected);
    }
    // Without a session any client of the principal may use the id, so that no list may show it.
    let list = http.legacy_with(none, "tasks/list", "").await;
    assert_eq!(list["error"]["code"], -32601, "{list}");
    let get = async |headers: &[(&str, &str)], id: &str| {
        http.legacy_with(headers, "tasks/get", &of(id)).await["result"]["status"].clone()
    };
    assert_eq!(get(none, &unowned).await, "working");
    assert_eq!(get(&one, &own).await, "working");
    for (headers, id) in [(&other[..], &own), (none, &own), (&one, &unowned)] {
        assert_eq!(get(headers, id).await, Value::Null);
    }
}

#[tokio::test]
async fn the_list_has_pages_and_an_end() {
    let executor = TaskExecutor::with(&[&state("working")]);
    let mut client = Client::on(gateway(&executor));
    client.initialize("{}").await;
    let mut made = Vec::new();
    for _ in 0..64 {
        made.push(make(&mut client).await);
    }
    let full = client.value("tools/call", CALL).await;
    assert_eq!(full["error"]["message"], "too many tasks exist already", "{full}");
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page: Value =
            serde_json::from_str(&client.result("tasks/list", &cursor).await).expect("it is there");
        let tasks = page["tasks"].as_array().expect("it is there");
        listed.extend(
            tasks
                .iter()
                .map(|task| task["taskId"].as_str().expect("it is there").to_owned()),
        );
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        cursor = format!(r#""cursor":"{next}""#);
    }
    assert_eq!(listed, made);
    let answer = client.value("tasks/list", r#""cursor":"x""#).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_task_expires_after_its_lifetime_and_after_a_day_at_most() {
    for (ttl, told, kept) in [("3600000", "3600000", 3600), ("null", "86400000", 86_400)] {
        let executor = TaskExecutor::with(&[&state("working").replace("60000", ttl)]);
        let mut client = Client::on(gateway(&executor));
        client.initialize("{}").await;
        let id = make(&mut client).await;
        let look = client.result("tasks/get", &of(&id)).await;
        assert!(look.contains(&format!(r#""ttl":{told},"#)), "{look}");
        tokio::time::sleep(std::time::Duration::from_secs(kept - 5)).await;
        let look = client.ask("tasks/get", &of(&id)).await;
        assert!(look.contains("working"), "{look}");
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        let look = client.ask("tasks/get", &of(&id)).await;
        assert!(look.contains("-32602"), "{look}");
    }
}

const FOLLOWS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}"#;

#[tokio::test]
async fn a_modern_client_follows_a_task_if_it_declares_the_extension() {
    let asking = r#"{"resultType":"complete","taskId":"ID","status":"input_required","ttlMs":1e5,"inputRequests":{"q":{"method":"METHOD"}}}"#
        .replace("ID", ID);
    let made = r#"{ "resultType":"task","taskId":"ID","status":"working","ttlMs":1e5 }"#.replace("ID", ID);
    let looks = [
        made.clone(),
        asking.replace("METHOD", "elicitation/create"),
        asking.replace("METHOD", "roots/list"),
    ];
    let executor = TaskExecutor::with(&looks.each_ref().map(String::as_str));
    let mut client = Client::on(gateway(&executor));
    // Without the extension, no method supports tasks.
    let plain = client
        .value("tools/call", &format!(r#""name":"work",{}"#, modern("{}")))
        .await;
    assert_eq!(plain["result"]["structuredContent"]["plain"], true, "{plain}");
    let answer = client
        .value("tasks/get", &format!(r#""taskId":"x",{}"#, modern("{}")))
        .await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    let required = &answer["error"]["data"]["requiredCapabilities"]["extensions"];
    assert_eq!(required, &json!({"io.modelcontextprotocol/tasks": {}}));

    let call = format!(r#""name":"work",{}"#, modern(FOLLOWS));
    let answer = client.result("tools/call", &call).await;
    let id = raw(&answer)
        .get("taskId")
        .expect("it is there")
        .string()
        .expect("it is there");
    assert_eq!(answer, made.replace(ID, &id));
    let about = format!("{},{}", of(&id), modern(FOLLOWS));
    let look = client.result("tasks/get", &about).await;
    assert_eq!(look, looks[1].replace(ID, &id));
    let given = format!(r#"{about},"inputResponses":{{ "q":{{"n":1e2}} }}"#);
    assert_eq!(
        client.result("tasks/update", &given).await,
        r#"{"resultType":"complete"}"#
    );
    assert_eq!(
        executor.asked().last().expect("it is there"),
        r#"give { "q":{"n":1e2} }"#
    );
    // The client is not asked what it did not declare.
    let answer = client.value("tasks/get", &about).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    for (method, params, code) in [
        ("tasks/update", about.clone(), -32602),
        ("tasks/list", modern(FOLLOWS), -32601),
        ("tasks/result", about, -32601),
    ] {
        let answer = client.value(method, &params).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_legacy_client_is_notified_of_its_task_by_the_id_that_it_knows() {
    let (executor, source) = (TaskExecutor::with(&[&state("working")]), ChangingSource::new(&[]));
    let gateway = telling(&executor, &source);
    let mut other = Client::on(gateway.clone());
    other.initialize("{}").await;
    make(&mut other).await;
    let mut owner = Client::on(gateway);
    owner.initialize("{}").await;
    let id = make(&mut owner).await;
    let (task, _) = executor.made().remove(1);
    source.tell(&Update::Task {
        task,
        state: raw(&state("completed")),
    });
    // An update of an unknown task is dropped.
    source.tell(&Update::Task {
        task: executor.task(),
        state: raw(&state("failed")),
    });
    assert_eq!(
        owner.receive().await,
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{}}}"#,
            state("completed").replace(ID, &id)
        )
    );
    for client in [&mut owner, &mut other] {
        assert_eq!(client.result("ping", "").await, "{}", "nothing else came");
    }
}

#[tokio::test]
async fn a_client_is_notified_when_its_page_visit_is_complete() {
    let (executor, source) = (TaskExecutor::with(&[&state("working")]), ChangingSource::new(&[]));
    let gateway = telling(&executor, &source);
    let mut other = Client::on(gateway.clone());
    other.initialize("{}").await;
    let mut owner = Client::on(gateway);
    owner.initialize("{}").await;
    make(&mut owner).await;
    let params = r#"{ "elicitationId":"e1", "n":1e2 }"#;
    let of_nobody = ClientKey::Principal("local".into());
    for client in [executor.made().remove(0).1, of_nobody] {
        let params = raw(params);
        source.tell(&Update::PageVisited { client, params });
    }
    assert_eq!(
        owner.receive().await,
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{params}}}"#)
    );
    for client in [&mut owner, &mut other] {
        assert_eq!(client.result("ping", "").await, "{}", "nothing else came");
    }
}

/// Subscribes to tasks, and returns the acknowledgement.
async fn watch(client: &mut Client, ids: &Value, capabilities: &str) -> Value {
    let filter = format!(r#""notifications":{{"taskIds":{ids}}},{}"#, modern(capabilities));
    client.value("subscriptions/listen", &filter).await
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_is_notified_of_the_tasks_that_it_watches() {
    let made = r#"{ "resultType":"task","taskId":"ID","status":"working","ttlMs":1e5 }"#.replace("ID", ID);
    let look = |status: &str, more: &str| {
        r#"{"resultType":"complete","taskId":"ID","status":"STATUS"MORE}"#
            .replace("ID", ID)
            .replace("STATUS", status)
            .replace("MORE", more)
    };
    let asks = |method: &str| format!(r#","inputRequests":{{"q":{{"method":"{method}"}}}}"#);
    let looks = [
        made,
        look("working", ""),
        look("working", ""),
        look("input_required", &asks("roots/list")),
        look("input_required", &asks("elicitation/create")),
        look("completed", r#","result":{"n":1e2}"#),
        look("failed", ""),
    ];
    let executor = TaskExecutor::with(&looks.each_ref().map(String::as_str));
    let gateway = gateway(&executor);
    let mut client = Client::on(gateway.clone());
    let call = format!(r#""name":"work",{}"#, modern(FOLLOWS));
    let made: Value = serde_json::from_str(&client.result("tools/call", &call).await).expect("it is there");
    let id = made["taskId"].as_str().expect("it is there");
    let watched = json!([id, ID, "another"]);

    let refused = watch(&mut client, &watched, "{}").await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let required = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
    assert_eq!(required, &json!({"io.modelcontextprotocol/tasks": {}}));
    let mut other = Client::on(gateway);
    let acknowledged = watch(&mut other, &watched, FOLLOWS).await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({}),
        "{acknowledged}"
    );
    let acknowledged = watch(&mut client, &watched, FOLLOWS).await;
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"taskIds": [id]}),
        "{acknowledged}"
    );

    for (status, more) in [
        ("working", String::new()),
        // A state with a question that the client did not declare is left out.
        ("input_required", asks("elicitation/create")),
        ("completed", r#","result":{"n":1e2}"#.to_owned()),
    ] {
        let mark = r#""_meta":{"io.modelcontextprotocol/subscriptionId":1}"#;
        assert_eq!(
            client.receive().await,
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{"taskId":"{id}","status":"{status}"{more},{mark}}}}}"#
            )
        );
    }
    // The task has ended, and is not polled any more.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(executor.asked().len(), 6, "{:?}", executor.asked());
}

#[tokio::test(start_paused = true)]
async fn a_task_without_subscribers_is_not_polled_any_more() {
    let working = r#"{ "resultType":"task","taskId":"ID","status":"working","ttlMs":1e8 }"#.replace("ID", ID);
    let executor = TaskExecutor::with(&[&working]);
    let mut client = Client::on(gateway(&executor));
    let call = format!(r#""name":"work",{}"#, modern(FOLLOWS));
    let made: Value = serde_json::from_str(&client.result("tools/call", &call).await).expect("it is there");
    watch(&mut client, &json!([made["taskId"]]), FOLLOWS).await;
    client.receive().await;
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,META}}"#;
    client.send(&cancelled.replace("META", &modern(FOLLOWS))).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looked = executor.asked().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(executor.asked().len(), looked);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_at_the_interval_of_its_server() {
    let slow = |status| state(status).replace(r#""pollInterval":1"#, r#""pollInterval":30000"#);
    let looks = [slow("working"), slow("working"), slow("completed")];
    let executor = TaskExecutor::with(&looks.each_ref().map(String::as_str));
    let mut client = Client::on(gateway(&executor));
    client.initialize("{}").await;
    let id = make(&mut client).await;
    let start = tokio::time::Instant::now();
    client.result("tasks/result", &of(&id)).await;
    assert_eq!(start.elapsed().as_secs(), 30);
}
