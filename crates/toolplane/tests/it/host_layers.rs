//! Layers of the host program in the standard stack.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, executor};
use toolplane::{
    Builder, CallRequest, LAYERS, Place, Toolplane,
    core::{CallContext, DynInvoke, ErrorKind, Invoke, Layer, Outcome, Pattern, Reply, ToolError},
    faults::{ChaosLayer, ChaosPlan, ChaosRule, InjectedFault},
    manifest::{Configuration, LoadOptions, Syntax, load},
    policy::Redactor,
    runtime::{CacheSettings, FailureStep, FallbackLadder, RetrySettings},
};

const SECOND: Duration = Duration::from_secs(1);

/// Records what passes it, and explains each call.
#[derive(Clone)]
struct Recorder {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

struct Recorded {
    settings: Recorder,
    inner: Arc<dyn DynInvoke>,
}

impl Recorder {
    fn new(name: &'static str) -> Self {
        let lines = Arc::default();
        Self { name, lines }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().expect("no test panics with it"))
    }
}

impl Layer<Arc<dyn DynInvoke>> for Recorder {
    type Invoke = Recorded;

    fn layer(self, inner: Arc<dyn DynInvoke>) -> Recorded {
        Recorded {
            settings: self,
            inner,
        }
    }
}

impl Invoke for Recorded {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let name = cx.tool().name().clone();
        cx.explain(self.settings.name, || format!("passes {name}"));
        let result = self.inner.invoke(cx).await;
        let end = match &result {
            Ok(Outcome::Reply(reply)) => reply.text(),
            Ok(_) => "no reply".to_owned(),
            Err(error) => error.kind().to_string(),
        };
        let line = format!("{name} {end}");
        self.settings
            .lines
            .lock()
            .expect("no test panics with it")
            .push(line);
        result
    }
}

/// Does something with each call instead of passing it on.
struct Instead<F>(F);

impl<F: Fn(&mut CallContext) -> Result<Value, ToolError> + Send + Sync> Invoke for Instead<F> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        (self.0)(cx).map(Outcome::from)
    }
}

fn builder(script: &ScriptedExecutor, tool: TestTool) -> Builder {
    Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
}

fn retried() -> TestTool {
    let mut tool = TestTool::new("t");
    tool.descriptor.overrides.set(RetrySettings::default());
    tool.descriptor.metadata.idempotent = Some(true);
    tool
}

fn down() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

fn kind(result: Result<Outcome, ToolError>) -> ErrorKind {
    result.expect_err("an error").kind()
}

#[tokio::test(start_paused = true)]
async fn layers_stand_at_their_places_in_the_order_in_which_they_are_given() {
    let script = ScriptedExecutor::new([]);
    let plane = builder(&script, TestTool::new("t"))
        .layer(Place::Attempt, Recorder::new("outer attempt"))
        .layer(Place::Call, Recorder::new("outer call"))
        .layer(Place::Attempt, Recorder::new("inner attempt"))
        .layer(Place::Call, |inner| Recorder::new("inner call").layer(inner))
        .build()
        .expect("usable");
    let explained = plane.call_explained(CallRequest::new("t")).await;
    explained.result.expect("answered");
    let names: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    assert_eq!(
        names,
        [
            "watch",
            "deadline",
            "admission",
            "validation",
            "outer call",
            "inner call",
            "attempt",
            "timeout",
            "outer attempt",
            "inner attempt",
            "executor",
            "result validation"
        ]
    );
    let place = |name| LAYERS.iter().position(|layer| *layer == name).expect("named");
    assert_eq!(place(Place::Call.name()), place("validation") + 1);
    assert_eq!(place(Place::Call.name()), place("idempotency") - 1);
    assert_eq!(place(Place::Attempt.name()), place("partial results") + 1);
    assert_eq!(place(Place::Attempt.name()), place("chaos") - 1);
    assert_eq!(Place::ALL.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_passes_once_and_each_attempt_by_itself() {
    let script = ScriptedExecutor::new([down(), down(), ScriptStep::Value(json!(7))]);
    let (call, attempt) = (Recorder::new("call"), Recorder::new("attempt layer"));
    let plane = builder(&script, retried())
        .layer(Place::Call, call.clone())
        .layer(Place::Attempt, attempt.clone())
        .build()
        .expect("usable");
    plane.call(CallRequest::new("t")).await.expect("answered");
    assert_eq!(call.take(), ["t 7"]);
    assert_eq!(attempt.take(), ["t unavailable", "t unavailable", "t 7"]);
}

#[tokio::test(start_paused = true)]
async fn only_valid_calls_of_permitted_callers_reach_a_layer() {
    let script = ScriptedExecutor::new([]);
    let tool = TestTool::new("t").input(json!({"type": "object", "required": ["n"]}));
    let call = Recorder::new("call");
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = vec![Pattern::new("no")];
    let plane = builder(&script, tool)
        .tool(TestTool::new("no").descriptor)
        .configuration(configuration)
        .layer(Place::Call, call.clone())
        .build()
        .expect("usable");
    assert_eq!(kind(plane.call(CallRequest::new("no")).await), ErrorKind::Denied);
    assert_eq!(
        kind(plane.call(CallRequest::new("t")).await),
        ErrorKind::InvalidArguments
    );
    assert!(call.take().is_empty());
    let valid = CallRequest::new("t").args(&json!({"n": 1})).expect("an object");
    plane.call(valid).await.expect("answered");
    assert_eq!(call.take(), [r#"t {"n":1}"#]);
}

#[tokio::test(start_paused = true)]
async fn answers_of_the_cache_and_of_the_ledger_pass_the_call_and_are_no_attempts() {
    let script = ScriptedExecutor::new([]);
    let mut cached = TestTool::new("t");
    cached.descriptor.metadata.read_only = Some(true);
    cached.descriptor.overrides.set(CacheSettings::default());
    let (call, attempt) = (Recorder::new("call"), Recorder::new("attempt layer"));
    let plane = builder(&script, cached)
        .tool(TestTool::new("pay").descriptor)
        .layer(Place::Call, call.clone())
        .layer(Place::Attempt, attempt.clone())
        .build()
        .expect("usable");
    for request in [
        CallRequest::new("t"),
        CallRequest::new("pay").idempotency_key("k"),
    ] {
        for _ in 0..2 {
            plane.call(request.clone()).await.expect("answered");
        }
    }
    assert_eq!(call.take(), ["t {}", "t {}", "pay {}", "pay {}"]);
    assert_eq!(attempt.take(), ["t {}", "pay {}"]);
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_refuse_and_nothing_behind_it_runs() {
    let script = ScriptedExecutor::new([]);
    let plane = builder(&script, retried())
        .layer(Place::Call, |_| {
            Instead(|_: &mut CallContext| Err(ToolError::new(ErrorKind::Denied, "closed on Sundays")))
        })
        .build()
        .expect("usable");
    let refused = plane.call(CallRequest::new("t").idempotency_key("k")).await;
    assert_eq!(refused.expect_err("refused").message(), "closed on Sundays");
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn time_that_a_layer_takes_counts_for_the_attempt() {
    struct Slow(Arc<dyn DynInvoke>);
    impl Invoke for Slow {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            sleep(100 * SECOND).await;
            self.0.invoke(cx).await
        }
    }
    let script = ScriptedExecutor::new([]);
    let mut tool = TestTool::new("t");
    tool.descriptor.timeout = Some(3 * SECOND);
    let plane = builder(&script, tool)
        .layer(Place::Attempt, Slow)
        .build()
        .expect("usable");
    let start = Instant::now();
    assert_eq!(kind(plane.call(CallRequest::new("t")).await), ErrorKind::Timeout);
    assert_eq!((start.elapsed(), script.n_calls()), (3 * SECOND, 0));
}

#[tokio::test(start_paused = true)]
async fn secrets_in_what_a_layer_adds_are_hidden() {
    const SECRET: &str = "hunter2-hunter2";
    let redactor = Redactor::default();
    redactor.learn(SECRET);
    let script = ScriptedExecutor::new([]);
    let plane = builder(&script, TestTool::new("t"))
        .redactor(redactor)
        .layer(Place::Attempt, |_| {
            Instead(|_: &mut CallContext| Ok(json!({"token": SECRET})))
        })
        .build()
        .expect("usable");
    let reply = plane.call(CallRequest::new("t")).await.expect("answered");
    let text = reply.into_reply().expect("a reply").text();
    assert!(!text.contains(SECRET) && text.contains("redacted"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_a_layer_changes_is_checked() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!({"t": 1}))]);
    let schema = json!({"type": "object", "properties": {"t": {"type": "number"}}});
    let plane = builder(&script, TestTool::new("t").output(schema))
        .layer(Place::Attempt, |_| {
            Instead(|_: &mut CallContext| Ok(json!({"t": "warm"})))
        })
        .build()
        .expect("usable");
    assert_eq!(
        kind(plane.call(CallRequest::new("t")).await),
        ErrorKind::ResultInvalid
    );
}

#[tokio::test(start_paused = true)]
async fn a_layer_around_attempts_meets_injected_faults() {
    let mut rule = ChaosRule::default();
    rule.failure_rate = 1.0;
    rule.faults = vec![InjectedFault::RateLimit];
    let attempt = Recorder::new("attempt layer");
    let script = ScriptedExecutor::new([]);
    let plane = builder(&script, TestTool::new("t"))
        .chaos(ChaosLayer::new(ChaosPlan::new(1, [rule])))
        .layer(Place::Attempt, attempt.clone())
        .build()
        .expect("usable");
    assert_eq!(
        kind(plane.call(CallRequest::new("t")).await),
        ErrorKind::RateLimited
    );
    assert_eq!(attempt.take(), ["t rate_limited"]);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_tool_passes_the_layers_as_itself() {
    let failing = ScriptedExecutor::new([down()]);
    let mut first = TestTool::new("first");
    let ladder: Vec<_> = vec![FailureStep::Fallback("second".into())];
    first.descriptor.overrides.set(FallbackLadder(ladder.into()));
    let mut second = TestTool::new("second");
    second.descriptor.executor.kind = "other".to_owned();
    let (call, attempt) = (Recorder::new("call"), Recorder::new("attempt layer"));
    let other = ScriptedExecutor::new([ScriptStep::Value(json!("instead"))]);
    let plane = builder(&failing, first)
        .executor(executor("other", other))
        .tool(second.descriptor)
        .layer(Place::Call, call.clone())
        .layer(Place::Attempt, attempt.clone())
        .build()
        .expect("usable");
    plane.call(CallRequest::new("first")).await.expect("answered");
    assert_eq!(attempt.take(), ["first unavailable", "second instead"]);
    // The call of the fallback ends within the other one.
    assert_eq!(call.take(), ["second instead", "first instead"]);
}

/// Tests that a dry run passes the layers, which decide about it and change the request that it shows.
#[cfg(feature = "exec-http")]
#[tokio::test(start_paused = true)]
async fn a_dry_run_passes_the_layers_of_both_places() {
    use toolplane::core::Arguments;

    struct Tenant(Arc<dyn DynInvoke>);
    impl Invoke for Tenant {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            cx.arguments = Arc::new(Arguments::from_serialize(&json!({"tenant": "north"}))?);
            self.0.invoke(cx).await
        }
    }
    let call = Recorder::new("call");
    let plane = Toolplane::builder()
        .yaml("tools: {t: {description: d, executor: {kind: http, url: 'https://api.example/x'}}}")
        .expect("usable")
        .layer(Place::Call, call.clone())
        .layer(Place::Attempt, Tenant)
        .build()
        .expect("usable");
    let explained = plane.dry_run(CallRequest::new("t")).await;
    let Ok(Outcome::Pending(pending)) = explained.result else {
        panic!("{explained:?}");
    };
    let detail = pending.detail.expect("a preview");
    assert!(detail.as_str().contains("tenant=north"), "{detail}");
    assert_eq!(call.take(), ["t no reply"]);
}

#[tokio::test(start_paused = true)]
async fn layers_stay_when_the_configuration_is_reloaded() {
    let call = Recorder::new("call");
    let script = ScriptedExecutor::new([]);
    let plane = builder(&script, TestTool::new("t"))
        .layer(Place::Call, call.clone())
        .build()
        .expect("usable");
    let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, "policy: {blocklist: [x]}"));
    plane.reload(&loaded.expect("usable")).expect("usable");
    plane.call(CallRequest::new("t")).await.expect("answered");
    assert_eq!(call.take(), ["t {}"]);
}

#[cfg(feature = "exec-mcp")]
#[tokio::test]
async fn tools_and_prompts_of_servers_pass_the_layers() {
    use mcp_mock::{MockPrompt, MockReply, MockServer, MockTool};

    let server = MockServer::builder()
        .tool(MockTool::new("echo").reply(MockReply::text("there")))
        .prompt(MockPrompt::new("greet"))
        .build();
    let http = server.http().await.expect("it listens");
    let (call, attempt) = (Recorder::new("call"), Recorder::new("attempt layer"));
    let plane = Toolplane::builder()
        .yaml(format!("servers: {{s: {{url: '{}'}}}}", http.url()))
        .expect("usable")
        .layer(Place::Call, call.clone())
        .layer(Place::Attempt, attempt.clone())
        .build()
        .expect("usable");
    plane.call(CallRequest::new("s__echo")).await.expect("answered");
    assert_eq!(
        (call.take(), attempt.take()),
        (vec!["s__echo there".to_owned()], vec!["s__echo there".to_owned()])
    );
    plane
        .call(CallRequest::prompt("s__greet"))
        .await
        .expect("rendered");
    assert!(call.take()[0].starts_with("s__greet "));
    assert_eq!(attempt.take().len(), 1);
    plane.shutdown().await;
}

/// Tests that what a layer adds to a reply reaches the caller.
#[tokio::test(start_paused = true)]
async fn a_layer_around_calls_changes_replies() {
    struct Signed(Arc<dyn DynInvoke>);
    impl Invoke for Signed {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            let Outcome::Reply(reply) = self.0.invoke(cx).await? else {
                return Err(ToolError::new(ErrorKind::Internal, "a live call is answered"));
            };
            Ok(Reply::from(json!({"signed": reply.text()})).into())
        }
    }
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("a text"))]);
    let plane = builder(&script, TestTool::new("t"))
        .layer(Place::Call, Signed)
        .build()
        .expect("usable");
    let reply = plane.call(CallRequest::new("t")).await.expect("answered");
    assert_eq!(
        reply.into_reply().expect("a reply").text(),
        r#"{"signed":"a text"}"#
    );
}
