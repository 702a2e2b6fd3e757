//! Replacement of the configuration while calls are made.

use std::{sync::Arc, time::Duration};

use crate::health::{Told, Watched, fails};
#[cfg(feature = "outbound")]
use crate::outbound::{Raises, endpoint, with_endpoint};
use mcp_mock::{MockServer, MockTool};
use serde_json::{Value, json};
#[cfg(feature = "outbound")]
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;
use tool_testkit::{ScriptStep, ScriptedExecutor};
use toolplane::{
    BuildError, CallRequest, Toolplane,
    core::{Caller, ErrorKind, Feature, Health, Outcome, ToolError},
    manifest::{LoadOptions, Loaded, Syntax, load},
};
#[cfg(feature = "outbound")]
use toolplane::{core::Trust, policy::ApprovalVerdict};

const SECOND: Duration = Duration::from_secs(1);

fn loaded(yaml: &str) -> Loaded {
    load(&LoadOptions::new().text("configuration", Syntax::Yaml, yaml)).expect("usable")
}

fn plane(script: &ScriptedExecutor, yaml: &str) -> Toolplane {
    Toolplane::builder()
        .loaded(&loaded(yaml))
        .executor(Arc::new(script.clone()))
        .build()
        .expect("the primitives can be set up")
}

async fn names(plane: &Toolplane) -> Vec<String> {
    let view = plane.view(&Caller::local()).await;
    view.tools().iter().map(|tool| tool.name().to_string()).collect()
}

async fn kind(plane: &Toolplane, tool: &str) -> Option<ErrorKind> {
    let called = plane.call(CallRequest::new(tool)).await;
    called.err().map(|error| error.kind())
}

const ONE: &str = "
defaults: {breaker: {max_failures: 1}}
tools:
  a: {description: d, executor: {kind: scripted}}
  b: {description: d, executor: {kind: scripted}}
";

#[tokio::test(start_paused = true)]
async fn what_is_known_of_a_tool_is_kept() {
    let down = ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"));
    let script = ScriptedExecutor::new([down, ScriptStep::Echo]);
    let plane = plane(&script, ONE);
    assert_eq!(kind(&plane, "a").await, Some(ErrorKind::Unavailable));
    let other = ONE.replace("description: d", "description: other");
    plane.reload(&loaded(&other)).expect("usable");
    assert_eq!(
        (kind(&plane, "a").await, script.n_calls()),
        (Some(ErrorKind::Unavailable), 1),
        "its breaker is still open"
    );
    // Settings are those of now.
    plane
        .reload(&loaded(&ONE.replace("{max_failures: 1}", "{disabled: true}")))
        .expect("usable");
    assert_eq!((kind(&plane, "a").await, script.n_calls()), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_as_it_began_though_its_tool_is_gone() {
    let script = ScriptedExecutor::new([
        ScriptStep::After(Duration::from_secs(5), json!(1)),
        ScriptStep::Echo,
    ]);
    let plane = plane(&script, ONE);
    let running = tokio::spawn({
        let plane = plane.clone();
        async move { plane.call(CallRequest::new("a")).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    plane
        .reload(&loaded(
            "tools: {c: {description: d, executor: {kind: scripted}}}",
        ))
        .expect("usable");
    assert_eq!(names(&plane).await, ["c"]);
    assert_eq!(kind(&plane, "a").await, Some(ErrorKind::NotFound));
    running.await.expect("no panic").expect("the call is answered");
}

#[tokio::test]
async fn rules_and_permissions_are_those_of_now_and_clients_are_told_of_what_changes() {
    let plane = plane(&ScriptedExecutor::new([ScriptStep::Echo]), ONE);
    let shown = || plane.cached_view(&Caller::local()).revision_of(Feature::Tool);
    let before = shown();
    plane.reload(&loaded(ONE)).expect("usable");
    assert_eq!(shown(), before, "nothing that is shown has changed");
    plane
        .reload(&loaded(&format!("{ONE}policy: {{blocklist: [a]}}\n")))
        .expect("usable");
    assert!(shown() > before);
    assert_eq!(names(&plane).await, ["b"]);
    assert_eq!(kind(&plane, "a").await, Some(ErrorKind::Denied));
    let needs = ONE.replace("description: d,", "description: d, required_permissions: [x],");
    plane.reload(&loaded(&needs)).expect("usable");
    assert_eq!(kind(&plane, "a").await, Some(ErrorKind::Denied));
    plane
        .reload(&loaded(&format!(
            "{needs}policy: {{permissions: {{local: [x]}}}}\n"
        )))
        .expect("usable");
    assert_eq!(kind(&plane, "a").await, None);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_changes_nothing() {
    let plane = plane(&ScriptedExecutor::new([ScriptStep::Echo]), ONE);
    let twice = "
servers: {configuration: {command: none}}
policy: {blocklist: ['*']}
";
    let error = plane.reload(&loaded(twice)).expect_err("the name is taken");
    assert!(matches!(error, BuildError::SourceTwice(_)), "{error}");
    assert_eq!(names(&plane).await, ["a", "b"]);
    assert_eq!(kind(&plane, "a").await, None);
}

#[tokio::test]
async fn a_server_that_did_not_change_stays_connected_and_one_that_is_gone_ends_after_its_last_call() {
    let mocks = [(), ()].map(|()| {
        let slow = mcp_mock::MockReply::text("late").delay(Duration::from_millis(300));
        MockServer::builder()
            .tool(MockTool::new("quick").reply(mcp_mock::MockReply::text("soon")))
            .tool(MockTool::new("slow").reply(slow))
            .build()
    });
    let (stays, goes) = (mocks[0].http().await.unwrap(), mocks[1].http().await.unwrap());
    let both = format!(
        "servers: {{stays: {{url: '{}', era: legacy}}, goes: {{url: '{}', era: legacy}}}}",
        stays.url(),
        goes.url()
    );
    let plane = Toolplane::builder().loaded(&loaded(&both)).build().unwrap();
    assert_eq!(
        names(&plane).await,
        ["goes__quick", "goes__slow", "stays__quick", "stays__slow"]
    );
    let running = tokio::spawn({
        let plane = plane.clone();
        async move { plane.call(CallRequest::new("goes__slow")).await }
    });
    mocks[1].wait_for_calls("slow", 1).await;
    let one = format!("servers: {{stays: {{url: '{}', era: legacy}}}}", stays.url());
    plane.reload(&loaded(&one)).expect("usable");
    assert_eq!(names(&plane).await, ["stays__quick", "stays__slow"]);
    assert_eq!(kind(&plane, "stays__quick").await, None);
    assert_eq!(mocks[0].requests("initialize").len(), 1, "it stayed connected");
    let answered = running.await.expect("no panic").expect("the call is answered");
    assert!(matches!(answered, Outcome::Reply(_)));
    // Back again it is another server: the one before ended its session.
    plane.reload(&loaded(&both)).expect("usable");
    assert_eq!(kind(&plane, "goes__quick").await, None);
    assert_eq!(mocks[1].requests("initialize").len(), 2);
    plane.shutdown().await;
}

/// Its tools are not there until its lists are read, and are the same ones then.
#[tokio::test]
async fn what_is_known_of_the_tools_of_a_server_is_kept_when_its_settings_change() {
    let mock = MockServer::builder().tool(MockTool::new("x")).build();
    let http = mock.http().await.expect("it listens");
    let yaml = |settings: &str| loaded(&format!("servers: {{s: {{url: '{}'{settings}}}}}", http.url()));
    let plane = Toolplane::builder().loaded(&yaml("")).build().expect("usable");
    assert_eq!(kind(&plane, "s__x").await, None);
    // Twice, before anybody has needed it.
    for settings in [", timeout_ms: 5000", ", timeout_ms: 6000"] {
        plane.reload(&yaml(settings)).expect("usable");
        assert_eq!(plane.health().tool("s__x").n_calls, 1, "it is expected back");
    }
    assert_eq!(kind(&plane, "s__x").await, None);
    assert_eq!(plane.health().tool("s__x").n_calls, 2);
    // Removed tools are forgotten, and so are tools that their server has removed.
    for gone in [yaml(", exclude: [x]"), loaded("tools: {}")] {
        plane.reload(&gone).expect("usable");
        names(&plane).await;
        assert_eq!(plane.health().tool("s__x").n_calls, 0);
        plane.reload(&yaml("")).expect("usable");
        assert_eq!(kind(&plane, "s__x").await, None);
        assert_eq!(plane.health().tool("s__x").n_calls, 1);
    }
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn thresholds_and_the_window_are_those_of_now_and_what_fires_goes_on() {
    let yaml = |health: &str, alerts: &str| {
        loaded(&format!(
            "health: {{{health}}}
alerts: {{{alerts}}}
tools: {{a: {{description: d, executor: {{kind: scripted}}}}}}"
        ))
    };
    let told = Arc::new(Told::default());
    let steps = [fails(), fails(), ScriptStep::Echo];
    let plane = Toolplane::builder()
        .loaded(&yaml("", ""))
        .executor(Arc::new(ScriptedExecutor::new(steps)))
        .observer(told.clone())
        .build()
        .expect("usable");
    let _watched = Watched::begin(&plane);
    for _ in 0..4 {
        let _ = plane.call(CallRequest::new("a")).await;
    }
    sleep(6 * SECOND).await;
    assert_eq!(told.take(), [""; 0], "four calls are too few");
    plane.reload(&yaml("", "min_calls: 4")).expect("usable");
    sleep(6 * SECOND).await;
    assert_eq!(told.take(), ["tool `a` success_rate firing"]);
    // It goes on, though by these thresholds alone it would not have begun.
    plane
        .reload(&yaml(
            "window: 1h",
            "min_calls: 5, success_rate: 40%, cooldown: 1h",
        ))
        .expect("usable");
    sleep(400 * SECOND).await;
    assert_eq!(told.take(), [""; 0], "the attempts of five minutes ago count");
    let report = plane.health().tool("a");
    assert_eq!((report.n_calls, report.n_failures), (4, 2));
    plane
        .reload(&yaml("window: 1m", "min_calls: 4, cooldown: 1h"))
        .expect("usable");
    sleep(400 * SECOND).await;
    assert_eq!(told.take(), ["tool `a` success_rate resolved"]);
    assert_eq!(plane.health().tool("a").n_calls, 0);
}

/// The next message that an endpoint gets.
#[cfg(feature = "outbound")]
async fn next(received: &mut UnboundedReceiver<String>) -> Value {
    let request = tokio::time::timeout(30 * SECOND, received.recv()).await;
    let request = request.expect("it was sent").expect("the endpoint is there");
    let body = request.split_once("\r\n\r\n").expect("a request").1;
    serde_json::from_str(body).unwrap_or(Value::Null)
}

#[cfg(feature = "outbound")]
#[tokio::test]
async fn endpoints_are_asked_as_often_as_configured_now() {
    let (url, mut asked) = endpoint("204 No Content").await;
    let yaml = |interval: &str| loaded(&format!("health: {{interval: {interval}}}"));
    let plane = Toolplane::builder()
        .loaded(&yaml("1h"))
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Echo])))
        .tool(with_endpoint("a", &url, Trust::Operator))
        .build()
        .expect("usable");
    let _watched = Watched::begin(&plane);
    next(&mut asked).await;
    plane.reload(&yaml("20ms")).expect("usable");
    // Without it, the next one would be in an hour.
    next(&mut asked).await;
    next(&mut asked).await;
}

#[cfg(feature = "outbound")]
#[tokio::test]
async fn alerts_go_to_the_webhook_of_now() {
    let (one, mut at_one) = endpoint("200 OK").await;
    let (other, mut at_other) = endpoint("200 OK").await;
    let yaml = |alerts: &str| {
        loaded(&format!(
            "alerts: {{{alerts}}}
tools: {{a: {{description: d, executor: {{kind: scripted}}}}}}"
        ))
    };
    let plane = Toolplane::builder()
        .loaded(&yaml(""))
        .executor(tool_testkit::executor("scripted", Raises))
        .build()
        .expect("usable");
    let raise = async || plane.call(CallRequest::new("a")).await.expect("answered");
    raise().await;
    plane
        .reload(&yaml(&format!("webhook: {{url: '{one}'}}")))
        .expect("usable");
    raise().await;
    // Queued messages are sent, although another webhook exists by then.
    plane
        .reload(&yaml(&format!("webhook: {{url: '{other}'}}")))
        .expect("usable");
    assert_eq!(next(&mut at_one).await["data"]["alert"], "disabled");
    raise().await;
    assert_eq!(next(&mut at_other).await["data"]["alert"], "disabled");
    plane.reload(&yaml("")).expect("usable");
    raise().await;
    assert!(at_one.try_recv().is_err(), "it was told once");
    assert!(at_other.try_recv().is_err(), "it was told once");
}

#[cfg(feature = "outbound")]
#[tokio::test]
async fn an_open_approval_stays_and_whoever_is_called_now_is_told_what_was_decided() {
    let (one, mut at_one) = endpoint("200 OK").await;
    let (other, mut at_other) = endpoint("200 OK").await;
    let yaml = |url: &str| {
        loaded(&format!(
            "policy: {{approval: {{required: [a], callback: {{url: '{url}'}}}}}}
tools: {{a: {{description: d, executor: {{kind: scripted}}}}}}"
        ))
    };
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = Toolplane::builder()
        .loaded(&yaml(&one))
        .executor(Arc::new(script.clone()))
        .build()
        .expect("usable");
    let asked = plane.call(CallRequest::new("a")).await;
    let Ok(Outcome::Pending(pending)) = asked else {
        panic!("expected to wait: {asked:?}")
    };
    assert_eq!(next(&mut at_one).await["data"]["handle"], json!(&*pending.handle));
    plane.reload(&yaml(&other)).expect("usable");
    let decided = plane
        .approvals()
        .decide(&pending.handle, ApprovalVerdict::Approve, "operator");
    decided.await.expect("it is still open");
    assert_eq!(next(&mut at_other).await["data"]["state"], "approved");
    assert!(at_one.try_recv().is_err(), "it was told once");
    assert_eq!((kind(&plane, "a").await, script.n_calls()), (None, 1));
}

#[tokio::test]
async fn errors_are_told_in_the_words_of_now() {
    let yaml = |advice: &str| {
        loaded(&format!(
            "{ONE}policy: {{errors: {{unavailable: {{message: '{advice}'}}}}}}\n"
        ))
    };
    let plane = plane(&ScriptedExecutor::new([fails()]), ONE);
    let told = async |tool: &str| {
        let error = plane.call(CallRequest::new(tool)).await.expect_err("it fails");
        error.message().to_owned()
    };
    assert_eq!(told("a").await, "nobody answers");
    plane.reload(&yaml("come back on monday")).expect("usable");
    assert_eq!(told("b").await, "come back on monday");
}

#[cfg(all(feature = "exec-http", feature = "outbound"))]
#[tokio::test]
async fn what_is_counted_of_http_apis_goes_on() {
    let (url, _received) = endpoint("200 OK").await;
    let yaml = |timeout: &str| {
        loaded(&format!(
            "defaults: {{connect_timeout: {timeout}}}
tools: {{a: {{description: d, executor: {{kind: http, url: '{url}', allow_private: true}}}}}}"
        ))
    };
    let plane = Toolplane::builder().loaded(&yaml("4s")).build().expect("usable");
    for (timeout, n_opened) in [("4s", 1), ("3s", 2)] {
        plane.reload(&yaml(timeout)).expect("usable");
        assert_eq!(kind(&plane, "a").await, None);
        let http = plane.http_use();
        assert_eq!((http.n_opened, http.n_failed), (n_opened, 0));
        let host = url.trim_end_matches("/health").to_owned();
        assert_eq!(http.n_running, [(host, 0)]);
    }
}

/// R21: no call is lost to a reload, however many there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_reloads_lose_no_call() {
    const RELOADS: usize = 1_000;
    let variant = |index: usize| {
        let more = if index.is_multiple_of(2) {
            "  extra: {description: d, executor: {kind: mock, result: 1}}\n"
        } else {
            ""
        };
        format!(
            "defaults: {{call_timeout: {}s, retry: {{max_attempts: {}}}, breaker: {{}}}}\ntools:\n  echo:\n    description: \
             variant {}\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}}}\n    executor: {{kind: mock, \
             template: '{{\"n\": {{{{ n }}}}}}'}}\n{more}",
            20 + index % 3,
            1 + index % 2,
            index % 5,
        )
    };
    let variants: Vec<Loaded> = (0..30).map(|index| loaded(&variant(index))).collect();
    let plane = Toolplane::builder().loaded(&variants[0]).build().unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (plane, stopped) = (plane.clone(), stopped.clone());
            tokio::spawn(async move {
                let mut n_calls = 0_u64;
                while !*stopped.borrow() || n_calls < 100 {
                    let n = caller * 1_000_000 + n_calls;
                    let request = CallRequest::new("echo")
                        .json(json!({ "n": n }).to_string())
                        .unwrap();
                    let Ok(Outcome::Reply(reply)) = plane.call(request).await else {
                        panic!("call {n} was lost")
                    };
                    assert_eq!(reply.raw().to::<Value>().unwrap(), json!({ "n": n }));
                    n_calls += 1;
                    tokio::task::yield_now().await;
                }
                n_calls
            })
        })
        .collect();
    for index in 0..RELOADS {
        plane.reload(&variants[index % variants.len()]).expect("usable");
        tokio::task::yield_now().await;
    }
    stop.send_replace(true);
    for caller in callers {
        assert!(caller.await.expect("no call is lost") >= 100);
    }
}
