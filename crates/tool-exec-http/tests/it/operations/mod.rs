//! Work that goes on after the first answer: waiting, and parked work.

mod callbacks;
mod tasks;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::timeout;
use tool_core::{CallContext, Caller, DispatchState, ErrorKind, Outcome, Progress, ToolError};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions};

use crate::{
    server::{Answer, Received, Server, answer},
    support::{LONG, Prepared, Values, descriptor, executor, prepare_by, prepare_with, problems},
};

/// Time that a call has which is to end before its operation does.
const SHORT: Duration = Duration::from_millis(150);

/// API that works on one request: answers it with 202 and `begin`, and requests for the status with `statuses`, the last of
/// them again and again.
struct Api {
    server: Server,
}

type Scripted = (u16, &'static str, &'static str);

impl Api {
    async fn start(begin: Scripted, statuses: Vec<Scripted>) -> Self {
        let n_asked = AtomicUsize::new(0);
        let server = Server::start(move |request: &Received| {
            if !request.line().starts_with("GET ") {
                return scripted(begin);
            }
            let n = n_asked.fetch_add(1, Ordering::SeqCst);
            scripted(statuses[n.min(statuses.len() - 1)])
        });
        Self { server: server.await }
    }

    fn settings(&self, operation: &Value) -> Value {
        json!({"url": self.server.url("/jobs"), "method": "POST", "async": operation})
    }

    fn lines(&self) -> Vec<String> {
        self.server
            .requests()
            .iter()
            .map(|request| request.line().to_owned())
            .collect()
    }

    fn n_begun(&self) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.starts_with("POST "))
            .count()
    }
}

/// Answer with a status, headers and a JSON body.
fn scripted((status, headers, body): Scripted) -> Answer {
    let headers = headers.lines().filter_map(|line| line.split_once(": "));
    let headers: Vec<_> = [("content-type", "application/json")]
        .into_iter()
        .chain(headers)
        .collect();
    Answer::Keep(answer(&format!("{status} Status"), &headers, body))
}

fn fast(mut operation: Value) -> Value {
    operation["interval"] = "100ms".into();
    operation
}

async fn invoke(tool: &Prepared, mut cx: CallContext) -> (Result<Outcome, ToolError>, CallContext) {
    let outcome = timeout(LONG, tool.invoke().invoke_boxed(&mut cx)).await;
    (outcome.expect("the call hangs"), cx)
}

fn context_within(tool: &Prepared, arguments: &str, limit: Duration) -> CallContext {
    let mut cx = tool.context(arguments);
    cx.tighten_deadline(limit);
    cx
}

#[tokio::test]
async fn a_call_waits_until_the_work_is_done() {
    let begin = (202, "Location: /jobs/7\r\n", "");
    let statuses = vec![
        (202, "", r#"{"state":"queued"}"#),
        (200, "", r#"{"rows":[1,2.50]}"#),
    ];
    let api = Api::start(begin, statuses).await;
    let mut settings = api.settings(&fast(json!({})));
    settings["headers"] = json!({"Authorization": "Bearer ${secret:KEY}"});
    let tool = prepare_with(settings, &[("${secret:KEY}", "hunter2-hunter2")]);
    let done = tool.call(json!({"table": "orders"})).await;
    assert_eq!(done.text(), r#"{"rows":[1,2.50]}"#);
    assert_eq!(done.dispatch, DispatchState::Answered);
    assert_eq!(api.lines(), ["POST /jobs", "GET /jobs/7", "GET /jobs/7"]);
    for request in api.server.requests() {
        let authorization = request.header("authorization");
        assert_eq!(
            authorization.as_deref(),
            Some("Bearer hunter2-hunter2"),
            "{}",
            request.head
        );
    }
    let status = api.server.last();
    assert!(
        status.body.is_empty() && status.header("content-type").is_none(),
        "{}",
        status.head
    );
}

#[tokio::test]
async fn the_url_of_the_status_comes_from_a_header_a_value_or_a_template() {
    for (operation, headers, body, expected) in [
        (json!({}), "Location: status/1\r\n", "", "GET /status/1"),
        (
            json!({}),
            "Location: /result\r\nOperation-Location: /operations/1?v=2\r\n",
            "",
            "GET /operations/1?v=2",
        ),
        (
            json!({"status_url": "$.links.self"}),
            "",
            r#"{"links":{"self":"/by/path"}}"#,
            "GET /by/path",
        ),
        (
            json!({"status_url": "${BASE}/tables/{table}/jobs/{id}?part={part}"}),
            "",
            r#"{"id":"a/b c"}"#,
            "GET /tables/orders/jobs/a%2Fb%20c",
        ),
    ] {
        let api = Api::start((202, headers, body), vec![(200, "", "true")]).await;
        let base = api.server.url("");
        let tool = prepare_with(api.settings(&fast(operation.clone())), &[("${BASE}", &base)]);
        let done = tool.call(json!({"table": "orders"})).await;
        assert_eq!(done.text(), "true", "{operation}");
        assert_eq!(api.lines(), ["POST /jobs", expected], "{operation}");
    }
}

/// A relative URL is relative to the request that was answered, after redirects (RFC 9110, section 10.2.2).
#[tokio::test]
async fn a_relative_location_begins_at_the_target_of_a_redirect() {
    let server = Server::start(|request: &Received| match request.line() {
        "POST /jobs" => scripted((307, "Location: /v2/jobs\r\n", "")),
        "POST /v2/jobs" => scripted((202, "Location: 7\r\n", "")),
        "GET /v2/7" => scripted((200, "", "true")),
        line => panic!("{line}"),
    })
    .await;
    let settings = json!({"url": server.url("/jobs"), "method": "POST", "async": {"interval": "100ms"}});
    assert_eq!(prepare_with(settings, &[]).call(json!({})).await.text(), "true");
}

#[tokio::test]
async fn conditions_say_when_work_is_done_and_the_result_is_a_part_of_the_answer() {
    let operation = json!({
        "status_url": "$.self", "done": "state == 'done' || state == 'failed'", "failed": "state == 'failed'",
        "result": "$.output.url"
    });
    // Without 202: the first answer is judged as well.
    let begin = (201, "", r#"{"self":"/jobs/7","state":"new"}"#);
    let statuses = vec![
        (200, "", r#"{"state":"running"}"#),
        (
            200,
            "",
            r#"{"state":"done","output":{"url":"https://files.example/1"}}"#,
        ),
    ];
    let api = Api::start(begin, statuses).await;
    let tool = prepare_with(api.settings(&fast(operation.clone())), &[]);
    assert_eq!(tool.call(json!({})).await.text(), r#""https://files.example/1""#);
    assert_eq!(api.lines().len(), 3);

    let failed = (
        200,
        "",
        r#"{"state":"failed","reason":"no such table","pin":"1234"}"#,
    );
    let at_once = Api::start(failed, vec![failed]).await;
    let later = Api::start(begin, vec![failed]).await;
    for (api, n_requests) in [(at_once, 1), (later, 2)] {
        let mut settings = api.settings(&fast(operation.clone()));
        settings["redact"] = json!(["pin"]);
        let done = prepare_with(settings, &[]).call(json!({})).await;
        assert_eq!(done.kind(), ErrorKind::UpstreamError);
        assert_eq!(done.dispatch, DispatchState::Answered);
        let shown = format!("{} {:?}", done.error(), done.error().detail());
        assert!(
            shown.contains("no such table") && !shown.contains("1234"),
            "{shown}"
        );
        assert_eq!(api.lines().len(), n_requests);
    }

    // Done at once: no operation.
    let done = (200, "", r#"{"state":"done","output":{"url":1}}"#);
    let api = Api::start(done, vec![done]).await;
    let tool = prepare_with(api.settings(&fast(operation)), &[]);
    assert_eq!(tool.call(json!({})).await.text(), "1");
    assert_eq!(api.lines(), ["POST /jobs"]);
}

#[tokio::test]
async fn work_whose_status_cannot_be_found_has_an_unknown_outcome() {
    for (operation, headers, body, expected) in [
        (json!({}), "", "", "async.status_url"),
        (
            json!({}),
            "Location: https://elsewhere.example/1\r\n",
            "",
            "another origin",
        ),
        (json!({"status_url": "$.self"}), "", r#"{"self":7}"#, "no text"),
        (
            json!({"status_url": "$.self"}),
            "",
            r#"{"self":"http://[::"}"#,
            "no valid URL",
        ),
        (json!({"done": "length(@) > `1`"}), "Location: /1\r\n", "{}", "/1"),
    ] {
        let api = Api::start((202, headers, body), vec![(200, "", "7")]).await;
        let done = prepare_with(api.settings(&fast(operation.clone())), &[])
            .call(json!({}))
            .await;
        if expected == "/1" {
            // `length(7)`: the condition does not fit the last answer, which did arrive.
            assert_eq!(done.kind(), ErrorKind::ResultInvalid);
            assert!(done.error().message().contains("`async`"), "{}", done.error());
            continue;
        }
        assert_eq!(
            done.kind(),
            ErrorKind::OutcomeUnknown,
            "{operation}: {}",
            done.error()
        );
        assert!(
            done.error().message().contains(expected),
            "{operation}: {}",
            done.error()
        );
        assert_eq!(done.dispatch, DispatchState::Sent);
    }
}

#[tokio::test]
async fn a_failed_request_for_the_status_is_made_again_if_it_may_succeed() {
    let begin = (202, "Location: /jobs/7\r\n", "");
    let statuses = vec![
        (503, "Retry-After: 0\r\n", "{}"),
        (429, "", "{}"),
        (500, "", "{}"),
        (200, "", "1"),
    ];
    let api = Api::start(begin, statuses).await;
    let tool = prepare_with(api.settings(&fast(json!({}))), &[]);
    assert_eq!(tool.call(json!({})).await.text(), "1");
    assert_eq!(api.lines().len(), 5);

    let api = Api::start(begin, vec![(404, "", r#"{"error":"gone"}"#)]).await;
    let done = prepare_with(api.settings(&fast(json!({}))), &[])
        .call(json!({}))
        .await;
    assert_eq!(done.kind(), ErrorKind::OutcomeUnknown);
    assert!(done.error().message().contains("404"), "{}", done.error());
    assert_eq!(api.lines().len(), 2);
}

/// A status is asked for with the credentials of that time.
#[tokio::test]
async fn refused_credentials_are_renewed_for_the_status() {
    let values = Values::new(&[("${secret:KEY}", "before-before")]);
    let renewed = Arc::clone(&values);
    let server = Server::start(move |request: &Received| {
        if request.line().starts_with("POST ") {
            renewed.set("${secret:KEY}", "after-after");
            return scripted((202, "Location: /jobs/7\r\n", ""));
        }
        match request.header("authorization").as_deref() {
            Some("after-after") => scripted((200, "", "1")),
            _ => scripted((401, "", "{}")),
        }
    })
    .await;
    let settings = json!({
        "url": server.url("/"), "method": "POST", "headers": {"Authorization": "${secret:KEY}"},
        "async": {"interval": "100ms"}
    });
    let tool = prepare_by(&executor(values), descriptor(settings)).expect("a tool");
    assert_eq!(tool.call(json!({})).await.text(), "1");
}

#[tokio::test]
async fn the_same_call_goes_on_with_work_that_it_began() {
    let begin = (202, "Location: /jobs/7\r\n", "");
    let statuses = vec![
        (202, "", ""),
        (202, "", ""),
        (202, "", ""),
        (202, "", ""),
        (200, "", r#"{"n":1}"#),
    ];
    let api = Api::start(begin, statuses).await;
    let tool = prepare_with(api.settings(&fast(json!({}))), &[]);

    let (outcome, cx) = invoke(&tool, context_within(&tool, r#"{"a":1}"#, SHORT)).await;
    let Ok(Outcome::Pending(pending)) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        pending.is_at_work() && pending.advice().contains("make the same call again"),
        "{pending:?}"
    );
    assert_eq!(cx.dispatch().state(), DispatchState::Sent);

    // Other arguments and another principal begin work of their own.
    let (_, _) = invoke(&tool, context_within(&tool, r#"{"a":2}"#, SHORT)).await;
    assert_eq!(api.n_begun(), 2);
    let mut cx = context_within(&tool, r#"{"a":1}"#, SHORT);
    cx.origin.caller = Arc::new(Caller::new("somebody-else"));
    let (_, _) = invoke(&tool, cx).await;
    assert_eq!(api.n_begun(), 3);

    // The order of members and spaces do not matter.
    let done = tool.call_text(r#"{ "a": 1 }"#).await;
    assert_eq!(done.text(), r#"{"n":1}"#);
    assert_eq!(api.n_begun(), 3);
    // What is done is not parked.
    let done = tool.call_text(r#"{"a":1}"#).await;
    assert_eq!(done.text(), r#"{"n":1}"#);
    assert_eq!(api.n_begun(), 4);
}

#[tokio::test]
async fn work_of_a_dropped_call_is_parked() {
    let api = Api::start((202, "Location: /jobs/7\r\n", ""), vec![(202, "", "")]).await;
    let executor = executor(Values::new(&[]));
    let tool = prepare_by(&executor, descriptor(api.settings(&fast(json!({}))))).expect("a tool");
    let mut cx = tool.context("{}");
    let dropped = timeout(SHORT, tool.invoke().invoke_boxed(&mut cx)).await;
    assert!(dropped.is_err(), "{dropped:?}");
    drop(dropped);
    assert_eq!(api.n_begun(), 1);
    // Another executor, as after a reload, with the operations of the first one.
    let options = HttpExecutorOptions::default().with_allow_private_networks(["127.0.0.1".parse().unwrap()]);
    let next = HttpExecutor::new(options, Values::new(&[])).with_operations(executor.operations().clone());
    let tool = prepare_by(&next, descriptor(api.settings(&fast(json!({}))))).expect("a tool");
    let (outcome, _) = invoke(&tool, context_within(&tool, "{}", SHORT)).await;
    assert!(matches!(outcome, Ok(Outcome::Pending(_))), "{outcome:?}");
    assert_eq!(api.n_begun(), 1);
}

#[tokio::test]
async fn work_that_takes_too_long_is_given_up() {
    let api = Api::start((202, "Location: /jobs/7\r\n", ""), vec![(202, "", "")]).await;
    let operation = json!({"interval": "100ms", "expires": "250ms"});
    let done = prepare_with(api.settings(&operation), &[]).call(json!({})).await;
    assert_eq!(done.kind(), ErrorKind::OutcomeUnknown);
    assert!(
        done.error().message().contains("did not finish its work"),
        "{}",
        done.error()
    );
}

/// Collects reports.
#[derive(Default)]
struct Reports(Mutex<Vec<RawJson>>);

impl Progress for Reports {
    fn report(&self, report: RawJson) {
        self.0.lock().unwrap().push(report);
    }
}

#[tokio::test]
async fn each_look_at_the_status_is_reported() {
    let begin = (202, "Location: /jobs/7\r\n", "");
    let statuses = vec![(202, "", ""), (503, "", "{}"), (202, "", ""), (200, "", "1")];
    let api = Api::start(begin, statuses).await;
    let tool = prepare_with(api.settings(&fast(json!({}))), &[]);
    let reports = Arc::new(Reports::default());
    let mut cx = tool.context("{}");
    cx.origin.progress = Some(Arc::clone(&reports) as Arc<dyn Progress>);
    let (outcome, _) = invoke(&tool, cx).await;
    assert!(matches!(outcome, Ok(Outcome::Reply(_))), "{outcome:?}");
    let reports = reports.0.lock().unwrap();
    let n: Vec<u64> = reports
        .iter()
        .map(|report| report.get("progress").unwrap().to().unwrap())
        .collect();
    assert_eq!(n, [1, 2, 3]);
    let second = reports[1].to_string();
    assert!(second.contains("503"), "{second}");
}

#[test]
fn wrong_settings_are_refused_with_their_place() {
    let url = "http://127.0.0.1:1/jobs";
    let found = |operation: Value| problems(json!({"url": url, "method": "POST", "async": operation}));
    for (operation, place, part) in [
        (json!({"interval": "1ms"}), "/async/interval", "100ms"),
        (json!({"interval": "2h"}), "/async/interval", "1h"),
        (json!({"interval": "soon"}), "/async/interval", "30s"),
        (json!({"expires": "2d"}), "/async/expires", "1d"),
        (json!({"done": "a =="}), "/async/done", "JMESPath"),
        (json!({"failed": "("}), "/async/failed", "JMESPath"),
        (json!({"result": "rows"}), "/async/result", "JSONPath"),
        (json!({"status_url": "jobs/{id}"}), "/async/status_url", "http://"),
        (
            json!({"status_url": "http://127.0.0.1:2/jobs/{id}"}),
            "/async/status_url",
            "the scheme, host and port",
        ),
        (
            json!({"status_url": "${UNSET}/{id}"}),
            "/async/status_url",
            "UNSET",
        ),
        (json!({"intervall": "1s"}), "/async/intervall", "interval"),
        (json!({"callback": true}), "/async/callback", "{callback_url}"),
    ] {
        let found = found(operation.clone());
        let expected = found
            .iter()
            .any(|problem| problem.starts_with(&format!("{place}: ")) && problem.contains(part));
        assert!(expected && found.len() == 1, "{operation}: {found:#?}");
    }
    assert!(found(json!({"status_url": "http://127.0.0.1:1/jobs/{id}"})).is_empty());
    let with = |extra: Value| {
        let mut settings = json!({"url": url, "method": "POST", "async": {"result": "$"}});
        settings
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        problems(settings)
    };
    for (extra, place) in [
        (json!({"stream": "sse"}), "/stream"),
        (json!({"response_path": "$.a"}), "/async/result"),
        (json!({"method": "HEAD"}), "/async"),
    ] {
        let found = with(extra.clone());
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{place}: ")),
            "{extra}: {found:#?}"
        );
    }
}
