//! Fallback steps in the standard stack: fallback tools, stale results, defaults.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, advance};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, executor};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{Caller, Descriptor, ErrorKind, Event, Observe, Outcome, Pattern, Reply, ToolError},
    manifest::Configuration,
    observe::Metrics,
    policy::ApprovalRule,
    policy::ApprovalVerdict,
    runtime::{CacheSettings, FailureStep, FallbackLadder, RetrySettings},
};

const SECOND: Duration = Duration::from_secs(1);
const KEY: &str = "dev.toolplane/degraded";

/// A toolplane in the making, with a script for each tool.
#[derive(Default)]
struct Setup {
    builder: toolplane::Builder,
    configuration: Configuration,
}

impl Setup {
    /// Adds a tool that does this, and falls back on these.
    fn tool(
        self,
        name: &'static str,
        steps: impl IntoIterator<Item = ScriptStep>,
        fallbacks: &[&str],
    ) -> (Self, ScriptedExecutor) {
        let steps = ScriptedExecutor::new(steps);
        let ladder: Vec<_> = fallbacks.iter().copied().map(fallback).collect();
        (self.add(name, &steps, &ladder, |_| {}), steps)
    }

    fn add(
        mut self,
        name: &'static str,
        script: &ScriptedExecutor,
        ladder: &[FailureStep],
        change: impl FnOnce(&mut Descriptor),
    ) -> Self {
        let mut tool = TestTool::new(name);
        tool.descriptor.executor.kind = name.to_owned();
        tool.descriptor.overrides.set(FallbackLadder(ladder.into()));
        change(&mut tool.descriptor);
        self.builder = self
            .builder
            .executor(executor(name, script.clone()))
            .tool(tool.descriptor);
        self
    }

    fn build(self) -> Toolplane {
        let builder = self.builder.configuration(self.configuration);
        builder.build().expect("it can be set up")
    }
}

fn fallback(name: &str) -> FailureStep {
    FailureStep::Fallback(name.into())
}

fn fails(kind: ErrorKind) -> ScriptStep {
    ScriptStep::Fail(ToolError::new(kind, "it is ill"))
}

fn down() -> ScriptStep {
    fails(ErrorKind::Unavailable)
}

/// Returns the value of a reply and its mark of a degraded result.
fn told(result: Result<Outcome, ToolError>) -> (Value, Value) {
    let Ok(Outcome::Reply(reply)) = result else {
        panic!("no reply: {result:?}");
    };
    let said = reply.meta().iter().find(|(key, _)| *key == KEY);
    let said = said.map(|(_, value)| value.to().expect("JSON"));
    (reply.raw().to().expect("JSON"), said.unwrap_or_default())
}

fn kind(result: Result<Outcome, ToolError>) -> ErrorKind {
    result.expect_err("it fails").kind()
}

/// Critical scenario 4 of the layered architecture: the primary fails, the fallback succeeds.
#[tokio::test(start_paused = true)]
async fn when_the_primary_fails_the_fallback_answers_and_it_is_told() {
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);
    impl Observe for Told {
        fn observe(&self, event: &Event<'_>) {
            let said = match event {
                Event::Degraded { cx, degraded, .. } => format!("{} {}", cx.tool().name(), degraded.step),
                Event::CallFinished { cx, result, .. } => {
                    let is_ok = result.is_some_and(Result::is_ok);
                    format!("{} ends {is_ok} {}", cx.tool().name(), cx.fallback_of.is_some())
                }
                _ => return,
            };
            self.0.lock().expect("no test panics with it").push(said);
        }
    }
    let told_events = Arc::new(Told::default());
    let metrics = Arc::new(Metrics::new());
    let (setup, primary) = Setup::default().tool("search", [down()], &["wiki", "bing"]);
    let (setup, wiki) = setup.tool("wiki", [fails(ErrorKind::RateLimited)], &[]);
    let (mut setup, bing) = setup.tool("bing", [ScriptStep::Value(json!("found"))], &[]);
    setup.builder = setup
        .builder
        .observer(told_events.clone())
        .observer(metrics.clone());
    let plane = setup.build();
    let explained = plane.call_explained(CallRequest::new("search")).await;
    let said = json!({
        "degraded": true, "step": "fallback", "source": "bing", "age_ms": 0,
        "errors": [
            {"tool": "search", "error": "unavailable"},
            {"tool": "wiki", "error": "rate_limited"},
        ],
    });
    assert_eq!(told(explained.result), (json!("found"), said));
    assert_eq!([primary.n_calls(), wiki.n_calls(), bing.n_calls()], [1, 1, 1]);
    let told_events = told_events.0.lock().unwrap().clone();
    assert_eq!(
        told_events,
        [
            "wiki ends false true",
            "bing ends true true",
            "search fallback",
            "search ends true false"
        ]
    );
    let line = r#"toolplane_degraded_total{tool="search",step="fallback"} 1"#;
    assert!(metrics.render().contains(line));
    let notes: Vec<_> = explained
        .decisions
        .iter()
        .filter(|note| note.layer == "fallback")
        .collect();
    assert_eq!(notes[0].decision, "tries `wiki` for 30 s");
    assert_eq!(
        notes.last().expect("noted").decision,
        "`bing` answered in its place"
    );
    let n_calls = explained
        .decisions
        .iter()
        .filter(|note| note.layer == "admission")
        .count();
    assert_eq!(n_calls, 3, "each is admitted as itself");
}

#[tokio::test(start_paused = true)]
async fn a_hung_primary_and_five_hung_fallbacks_end_at_the_deadline() {
    let names = ["a", "b", "c", "d", "e"];
    let (mut setup, _) = Setup::default().tool("search", [ScriptStep::Hang(false)], &names);
    let mut scripts = Vec::new();
    for name in names {
        let (next, script) = setup.tool(name, [ScriptStep::Hang(false)], &[]);
        setup = next;
        scripts.push(script);
    }
    let plane = setup.build();
    for deadline in [7 * SECOND, 600 * SECOND] {
        let start = Instant::now();
        let error = plane.call(CallRequest::new("search").deadline(deadline)).await;
        assert_eq!(kind(error), ErrorKind::Timeout);
        let late = start.elapsed().saturating_sub(deadline.min(60 * SECOND));
        assert!(late <= Duration::from_millis(50), "{late:?}");
    }
    for script in scripts {
        assert_eq!(
            (script.n_calls(), script.n_running()),
            (2, 0),
            "each has its part of the time"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn tools_that_stand_in_for_each_other_come_to_an_end() {
    let all = ["a", "b", "c", "d", "e", "f"];
    let (mut setup, mut scripts) = (Setup::default(), Vec::new());
    for name in all {
        let (next, script) = setup.tool(name, [down()], &all);
        setup = next;
        scripts.push(script);
    }
    let plane = setup.build();
    assert_eq!(
        kind(plane.call(CallRequest::new("c")).await),
        ErrorKind::Unavailable
    );
    for script in scripts {
        assert_eq!(script.n_calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallbacks_own_ladder_counts_and_both_are_told() {
    let (setup, _) = Setup::default().tool("a", [down()], &["b"]);
    let b = ScriptedExecutor::new([fails(ErrorKind::Timeout)]);
    let plane = setup
        .add("b", &b, &[FailureStep::Default(RawJson::from("usual"))], |_| {})
        .build();
    let (value, said) = told(plane.call(CallRequest::new("a")).await);
    assert_eq!((value, &said["source"]), (json!("usual"), &json!("b")));
    let inner = &said["meta"][KEY];
    assert_eq!(
        (&inner["step"], &inner["errors"][0]["error"]),
        (&json!("default"), &json!("timeout"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_key_gets_no_given_answer_by_a_detour_either() {
    let (setup, _) = Setup::default().tool("a", [down()], &["b"]);
    let b = ScriptedExecutor::new([down()]);
    let plane = setup
        .add("b", &b, &[FailureStep::Default(RawJson::from("usual"))], |_| {})
        .build();
    assert_eq!(told(plane.call(CallRequest::new("a")).await).0, json!("usual"));
    let keyed = CallRequest::new("a").idempotency_key("k");
    assert_eq!(kind(plane.call(keyed).await), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_the_caller_may_not_call_is_passed_over_and_not_named() {
    let (setup, _) = Setup::default().tool("a", [down()], &["secret", "blocked", "b"]);
    let (setup, secret) = setup.tool("secret", [ScriptStep::Echo], &[]);
    let (setup, blocked) = setup.tool("blocked", [ScriptStep::Echo], &[]);
    let (mut setup, _) = setup.tool("b", [ScriptStep::Value(json!("b"))], &[]);
    setup.configuration.policy.allowlist = Some(["a", "b", "blocked"].map(Pattern::new).to_vec());
    setup.configuration.policy.blocklist = vec![Pattern::new("blocked")];
    let plane = setup.build();
    let (value, said) = told(plane.call(CallRequest::new("a")).await);
    assert_eq!(value, json!("b"));
    assert_eq!(
        said["errors"],
        json!([{"tool": "a", "error": "unavailable"}, {"error": "denied"}, {"error": "denied"}])
    );
    assert_eq!((secret.n_calls(), blocked.n_calls()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_needs_approval_is_passed_over_and_nobody_is_asked() {
    let (setup, _) = Setup::default().tool("a", [down()], &["pay", "b"]);
    let pay = ScriptedExecutor::new([ScriptStep::Echo]);
    let setup = setup.add("pay", &pay, &[], |tool| {
        tool.overrides.set(ApprovalRule::Required);
    });
    let (setup, _) = setup.tool("b", [ScriptStep::Value(json!("b"))], &[]);
    let plane = setup.build();
    let explained = plane.call_explained(CallRequest::new("a")).await;
    assert_eq!(told(explained.result).0, json!("b"));
    assert_eq!(pay.n_calls(), 0);
    assert!(plane.approvals().list().await.expect("kept").is_empty());
    let is_said =
        |note: &&toolplane::core::LayerDecision| note.decision.contains("cannot be a fallback of `a`");
    assert!(
        explained.decisions.iter().any(|note| is_said(&note)),
        "{:?}",
        explained.decisions
    );
}

#[tokio::test(start_paused = true)]
async fn a_fallback_validates_arguments_as_itself() {
    let (setup, _) = Setup::default().tool("a", [down()], &["strict"]);
    let strict = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = setup
        .add("strict", &strict, &[], |tool| {
            tool.input_schema = RawJson::from(json!({"type": "object", "required": ["city"]}));
        })
        .build();
    let error = plane.call(CallRequest::new("a")).await.expect_err("no city");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("`strict` failed as `invalid_arguments`"));
    let with_city = CallRequest::new("a")
        .json(r#"{"city":"Oslo"}"#)
        .expect("an object");
    assert_eq!(told(plane.call(with_city).await).0, json!({"city": "Oslo"}));
    assert_eq!(strict.n_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_given_when_nobody_knows_what_the_tool_did() {
    let (setup, _) = Setup::default().tool("pay", [ScriptStep::Hang(true)], &["other"]);
    let (setup, other) = setup.tool("other", [ScriptStep::Echo], &[]);
    let plane = setup.build();
    assert_eq!(
        kind(plane.call(CallRequest::new("pay")).await),
        ErrorKind::OutcomeUnknown
    );
    assert_eq!(other.n_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn under_one_key_a_tool_and_its_fallback_never_both_run() {
    // The first has answered that it failed, and the other has done it.
    let (setup, first) = Setup::default().tool("pay", [down(), ScriptStep::Echo], &["other"]);
    let (setup, other) = setup.tool("other", [ScriptStep::Value(json!("done"))], &[]);
    let plane = setup.build();
    let request = || CallRequest::new("pay").idempotency_key("k");
    assert_eq!(told(plane.call(request()).await).0, json!("done"));
    let (value, said) = told(plane.call(request()).await);
    assert_eq!((value, &said["source"]), (json!("done"), &json!("other")));
    assert_eq!((first.n_calls(), other.n_calls()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_spent_when_nobody_knows_whether_a_fallback_ran() {
    let repeatable = |tool: &mut Descriptor| tool.metadata.idempotent = Some(true);
    let first = ScriptedExecutor::new([down()]);
    let setup = Setup::default().add("pay", &first, &[fallback("other")], repeatable);
    let (setup, other) = setup.tool("other", [ScriptStep::Hang(true)], &[]);
    let plane = setup.build();
    let request = |key: &str| CallRequest::new("pay").idempotency_key(key);
    for _ in 0..2 {
        assert_eq!(kind(plane.call(request("k")).await), ErrorKind::OutcomeUnknown);
    }
    assert_eq!((first.n_calls(), other.n_calls()), (1, 1));
    // Nor does a caller who goes free it.
    let gone = tokio::time::timeout(SECOND, plane.call(request("w"))).await;
    assert!(gone.is_err(), "it hangs");
    assert_eq!(kind(plane.call(request("w")).await), ErrorKind::OutcomeUnknown);
    assert_eq!((first.n_calls(), other.n_calls()), (2, 2));
}

/// Returns the answer of a tool that reports a failure: it ran.
fn reports() -> ScriptStep {
    ScriptStep::Reply(Reply::result(RawJson::object(), true))
}

#[tokio::test(start_paused = true)]
async fn a_key_is_spent_when_a_fallback_ran_however_the_primary_failed() {
    for primary in [down(), fails(ErrorKind::Auth), fails(ErrorKind::RateLimited)] {
        let (setup, _) = Setup::default().tool("pay", [primary.clone()], &["other"]);
        let (setup, other) = setup.tool("other", [reports()], &[]);
        let plane = setup.build();
        let request = || CallRequest::new("pay").idempotency_key("k");
        let first = kind(plane.call(request()).await);
        assert_eq!(kind(plane.call(request()).await), first);
        assert_eq!(other.n_calls(), 1, "{primary:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_spent_when_a_fallback_ran() {
    for (step, n_calls) in [(reports(), 1), (down(), 2)] {
        let first = ScriptedExecutor::new([down()]);
        let approved = |tool: &mut Descriptor| tool.overrides.set(ApprovalRule::Required);
        let setup = Setup::default().add("pay", &first, &[fallback("other")], approved);
        let (setup, other) = setup.tool("other", [step], &[]);
        let plane = setup.build();
        let Ok(Outcome::Pending(pending)) = plane.call(CallRequest::new("pay")).await else {
            panic!("it needs approval");
        };
        let desk = plane.approvals();
        let decided = desk.decide(&pending.handle, ApprovalVerdict::Approve, "operator");
        decided.await.expect("it can be decided");
        let expected = match n_calls {
            1 => ErrorKind::UpstreamError,
            _ => ErrorKind::Unavailable,
        };
        assert_eq!(kind(plane.call(CallRequest::new("pay")).await), expected);
        // A call that was not attempted may be repeated without another approval.
        let again = plane.call(CallRequest::new("pay")).await;
        assert_eq!(
            matches!(again, Ok(Outcome::Pending(_))),
            n_calls == 1,
            "{again:?}"
        );
        assert_eq!(other.n_calls(), n_calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallbacks_answer_is_not_kept_as_the_primarys() {
    let cached = |tool: &mut Descriptor| tool.overrides.set(CacheSettings::default());
    let first = ScriptedExecutor::new([down(), ScriptStep::Value(json!("own"))]);
    let setup = Setup::default().add("a", &first, &[fallback("b")], cached);
    let other = ScriptedExecutor::new([ScriptStep::Value(json!("b"))]);
    let plane = setup.add("b", &other, &[], cached).build();
    assert_eq!(told(plane.call(CallRequest::new("a")).await).0, json!("b"));
    assert_eq!(
        told(plane.call(CallRequest::new("a")).await),
        (json!("own"), Value::Null)
    );
    // The other one has it as its own.
    assert_eq!(
        told(plane.call(CallRequest::new("b")).await),
        (json!("b"), Value::Null)
    );
    assert_eq!((first.n_calls(), other.n_calls()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_comes_after_the_retries_and_belongs_to_its_principal() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("kept")), down()]);
    let steps = [
        FailureStep::Stale(3600 * SECOND),
        FailureStep::Default(RawJson::from(0_u64)),
    ];
    let plane = Setup::default()
        .add("a", &script, &steps, |tool| {
            tool.overrides.set(CacheSettings::default());
            tool.overrides.set(RetrySettings::default());
        })
        .build();
    let of = |caller: &str| CallRequest::new("a").caller(Arc::new(Caller::new(caller)));
    told(plane.call(of("ann")).await);
    advance(600 * SECOND).await;
    let (value, said) = told(plane.call(of("ann")).await);
    assert_eq!((value, &said["step"]), (json!("kept"), &json!("stale")));
    assert_eq!(script.n_calls(), 4, "three attempts before");
    let (value, said) = told(plane.call(of("ben")).await);
    assert_eq!((value, &said["step"]), (json!(0), &json!("default")));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_tried_again_as_itself() {
    // The last attempt of the first says that it is a repeated one; the other's first attempt is none.
    let retried = |tool: &mut Descriptor| tool.overrides.set(RetrySettings::default());
    let (first, other) = (
        ScriptedExecutor::new([down()]),
        ScriptedExecutor::new([down(), ScriptStep::Value(json!("b"))]),
    );
    let setup = Setup::default().add("a", &first, &[fallback("b")], retried);
    let plane = setup.add("b", &other, &[], retried).build();
    assert_eq!(told(plane.call(CallRequest::new("a")).await).0, json!("b"));
    assert_eq!((first.n_calls(), other.n_calls()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn the_unhealthy_fallback_is_tried_last() {
    let (setup, first) = Setup::default().tool("a", [down()], &["ill", "well"]);
    let (setup, ill) = setup.tool("ill", [down()], &[]);
    let (setup, well) = setup.tool("well", [ScriptStep::Value(json!("well"))], &[]);
    let plane = setup.build();
    for _ in 0..3 {
        assert_eq!(told(plane.call(CallRequest::new("a")).await).0, json!("well"));
    }
    assert_eq!(
        (first.n_calls(), ill.n_calls(), well.n_calls()),
        (3, 1, 3),
        "one failure of one call is enough"
    );
}

#[tokio::test(start_paused = true)]
async fn fallbacks_of_the_metadata_are_a_ladder() {
    let script = ScriptedExecutor::new([down()]);
    let setup = Setup::default().add("a", &script, &[], |tool| {
        tool.overrides.remove::<FallbackLadder>();
        tool.metadata.fallbacks = vec!["b".to_owned()];
    });
    let (setup, _) = setup.tool("b", [ScriptStep::Value(json!("b"))], &[]);
    let plane = setup.build();
    assert_eq!(told(plane.call(CallRequest::new("a")).await).0, json!("b"));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_takes_no_step() {
    let (setup, first) = Setup::default().tool("a", [down()], &["b"]);
    let (setup, other) = setup.tool("b", [ScriptStep::Echo], &[]);
    let plane = setup.build();
    let dry = plane.dry_run(CallRequest::new("a")).await;
    assert!(matches!(dry.result, Ok(Outcome::Pending(_))));
    let note = dry.decisions.iter().find(|note| note.layer == "fallback");
    assert_eq!(note.expect("noted").decision, "if it fails: `b`");
    assert_eq!((first.n_calls(), other.n_calls()), (0, 0));
}

#[cfg(feature = "exec-mock")]
#[tokio::test]
async fn a_reload_changes_what_is_given() {
    let load = |steps: &str| {
        let text = format!(
            "tools:\n  a:\n    description: Fails.\n    on_failure: {steps}\n    executor: {{kind: mock, error: {{kind: unavailable}}}}\n"
        );
        let options = toolplane::manifest::LoadOptions::new();
        let options = options.text("toolplane.yaml", toolplane::manifest::Syntax::Yaml, text);
        toolplane::manifest::load(&options).expect("usable")
    };
    let plane = Toolplane::builder()
        .loaded(&load("[default: 1]"))
        .build()
        .expect("can be set up");
    let first = plane.call(CallRequest::new("a")).await;
    plane.reload(&load("[default: {n: 2}]")).expect("usable");
    let second = plane.call(CallRequest::new("a")).await;
    assert_eq!((told(first).0, told(second).0), (json!(1), json!({"n": 2})));
    plane.reload(&load("[]")).expect("usable");
    plane
        .call(CallRequest::new("a"))
        .await
        .expect_err("nothing is given");
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("no test panics with it")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Both ways to an old answer are counted, warned of and marked in the same way.
#[tokio::test(start_paused = true)]
async fn an_old_answer_is_counted_and_warned_of_by_whichever_setting_it_is_given() {
    let of_cache = CacheSettings::default().with_stale_if_error(3600 * SECOND);
    let of_ladder = [FailureStep::Stale(3600 * SECOND)];
    for (cache, steps) in [(of_cache, &[][..]), (CacheSettings::default(), &of_ladder[..])] {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let metrics = Arc::new(Metrics::new());
        let script = ScriptedExecutor::new([ScriptStep::Value(json!("kept")), down()]);
        let mut setup = Setup::default().add("a", &script, steps, |tool| tool.overrides.set(cache));
        setup.builder = setup.builder.observer(metrics.clone());
        let plane = setup.build();
        told(plane.call(CallRequest::new("a")).await);
        advance(600 * SECOND).await;
        assert!(!metrics.render().contains("toolplane_degraded_total{"));
        let (value, said) = told(plane.call(CallRequest::new("a")).await);
        assert_eq!(
            (value, &said["step"], &said["age_ms"]),
            (json!("kept"), &json!("stale"), &json!(600_000))
        );
        let line = r#"toolplane_degraded_total{tool="a",step="stale"} 1"#;
        assert!(metrics.render().contains(line), "{}", metrics.render());
        let log = String::from_utf8(lines.0.lock().expect("no test panics with it").clone()).expect("text");
        let warnings: Vec<_> = log
            .lines()
            .filter(|line| line.contains("answered in another way"))
            .collect();
        assert_eq!(warnings.len(), 1, "{log}");
        for part in ["WARN", "tool=a", "step=\"stale\"", "age_ms=600000", "unavailable"] {
            assert!(warnings[0].contains(part), "{part}: {log}");
        }
    }
}
