//! Quota: number and cost of the calls of a turn and a conversation.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::timeout;
use tool_core::{
    CallContext, Caller, ClientKey, Clock, Degraded, DegradedStep, ErrorKind, InputRequest, Invoke, Layer,
    Metadata, Mode, Outcome, PendingCall, Reply, Settings, Target, ToolError, Trust,
};
use tool_policy::{MicroDollars, Quota, QuotaLayer, QuotaLimits, Rules};
use tool_runtime::TokioClock;
use tool_runtime::{CacheSettings, HedgeAfter, HedgeSettings};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

/// The layer around a scripted tool.
struct Bench {
    stack: Quota<ScriptedExecutor>,
    script: ScriptedExecutor,
    clock: Arc<dyn Clock>,
}

fn limits(change: impl FnOnce(&mut QuotaLimits)) -> Rules {
    let mut rules = Rules::default();
    change(&mut rules.limits);
    rules
}

impl Bench {
    fn new(change: impl FnOnce(&mut QuotaLimits)) -> Self {
        Self::with([ScriptStep::Echo], change)
    }

    fn with(steps: impl IntoIterator<Item = ScriptStep>, change: impl FnOnce(&mut QuotaLimits)) -> Self {
        let script = ScriptedExecutor::new(steps);
        Self {
            stack: QuotaLayer::new(limits(change)).layer(script.clone()),
            script,
            clock: Arc::new(TokioClock::new()),
        }
    }

    fn context(&self, meta: Value) -> CallContext {
        let tool = TestTool::new("search").build(self.script.clone());
        let mut cx = call(tool, json!({}), self.clock.clone());
        cx.extras.meta = Some(RawJson::from(meta));
        cx
    }

    async fn call(&self, meta: Value) -> Option<ErrorKind> {
        let result = self.stack.invoke(&mut self.context(meta)).await;
        result.err().map(|error| error.kind())
    }

    /// Makes this many calls, and returns how many of them run.
    async fn n_made(&self, n_calls: usize, meta: Value) -> usize {
        let mut n_made = 0;
        for _ in 0..n_calls {
            n_made += usize::from(self.call(meta.clone()).await.is_none());
        }
        n_made
    }
}

fn of(conversation: impl Into<Value>, turn: impl Into<Value>) -> Value {
    json!({QuotaLayer::CONVERSATION: conversation.into(), QuotaLayer::TURN: turn.into()})
}

#[tokio::test]
async fn turns_and_conversations_have_their_limits() {
    let bench = Bench::new(|limits| {
        limits.calls_per_turn = Some(3);
        limits.calls_per_conversation = Some(5);
    });
    for (meta, expected) in [
        (of("a", 1), 3),
        (of("a", 2), 2),
        (of("b", 1), 3),
        // A text differs from a number, and a call without a turn belongs to none.
        (of("b", "1"), 2),
        (json!({QuotaLayer::CONVERSATION: "c"}), 5),
        // Without a conversation, all calls belong to one.
        (json!({}), 5),
        (json!({"other": 1}), 0),
    ] {
        assert_eq!(bench.n_made(9, meta.clone()).await, expected, "{meta}");
    }
}

#[tokio::test]
async fn each_of_many_turns_at_once_has_its_limit() {
    let bench = Bench::new(|limits| limits.calls_per_turn = Some(3));
    let mut n_made = [0; 400];
    for _ in 0..5 {
        for (turn, n_made) in n_made.iter_mut().enumerate() {
            *n_made += usize::from(bench.call(json!({QuotaLayer::TURN: turn})).await.is_none());
        }
    }
    assert!(n_made.iter().all(|n_made| *n_made == 3), "{n_made:?}");
}

#[tokio::test]
async fn a_session_is_a_conversation_and_everybody_has_their_own() {
    let bench = Bench::new(|limits| limits.calls_per_conversation = Some(2));
    let context = |principal: &str, client: Option<ClientKey>| {
        let mut cx = bench.context(json!({}));
        cx.origin.caller = Arc::new(Caller::new(principal));
        cx.origin.client = client;
        cx
    };
    let session = |name: &str| Some(ClientKey::Session(name.into()));
    let principal = |name: &str| Some(ClientKey::Principal(name.into()));
    for (who, client, expected) in [
        ("ann", session("1"), 2),
        ("ann", session("2"), 2),
        ("ann", session("1"), 0),
        ("bob", session("1"), 2),
        ("ann", principal("ann"), 2),
        ("ann", None, 0),
    ] {
        let mut n_made = 0;
        for _ in 0..4 {
            n_made += usize::from(
                bench
                    .stack
                    .invoke(&mut context(who, client.clone()))
                    .await
                    .is_ok(),
            );
        }
        assert_eq!(n_made, expected, "{who} {client:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_thousand_calls_at_once_as_many_are_made_as_the_limit_says() {
    let bench = Arc::new(Bench::new(|limits| limits.calls_per_turn = Some(100)));
    let n_made = Arc::new(AtomicUsize::new(0));
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let (bench, n_made) = (bench.clone(), n_made.clone());
            tokio::spawn(async move {
                if bench.call(of("a", 1)).await.is_none() {
                    n_made.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(
        (n_made.load(Ordering::SeqCst), bench.script.n_calls()),
        (100, 100)
    );
}

#[tokio::test]
async fn the_same_call_is_made_no_more_often_than_is_said() {
    let bench = Bench::new(|limits| limits.identical_calls = Some(2));
    let call = async |arguments: &str, conversation: &str| {
        let mut cx = bench.context(json!({QuotaLayer::CONVERSATION: conversation}));
        cx.arguments = Arc::new(tool_core::Arguments::parse(arguments.to_owned()).unwrap());
        bench
            .stack
            .invoke(&mut cx)
            .await
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(call(r#"{"q":"a","n":1}"#, "x").await, None);
    assert_eq!(call(r#"{ "n": 1.0, "q": "a" }"#, "x").await, None);
    assert_eq!(
        call(r#"{"q":"a","n":1}"#, "x").await.as_deref(),
        Some("the same call was already made 2 times in this conversation")
    );
    assert_eq!(call(r#"{"q":"b","n":1}"#, "x").await, None);
    assert_eq!(call(r#"{"q":"a","n":1}"#, "y").await, None);
}

#[tokio::test]
async fn what_calls_cost_is_summed_exactly() {
    let bench = Bench::new(|limits| {
        limits.cost_per_turn = Some(MicroDollars::from_dollars(0.3));
        limits.cost_per_conversation = Some(MicroDollars::from_dollars(0.5));
    });
    let context = |cost: Option<f64>, trust: Trust, turn: u32| {
        let mut tool = TestTool::new("search").metadata({
            let mut metadata = Metadata::default();
            metadata.cost_per_call = cost;
            metadata
        });
        tool.descriptor.origin.trust = trust;
        let mut cx = bench.context(of("a", turn));
        cx.target = Target::Tool(tool.build(bench.script.clone()));
        cx
    };
    // As a sum of floating-point numbers, three tenths are more than 0.3.
    for (cost, trust, turn, is_made) in [
        (Some(0.1), Trust::Operator, 1, true),
        (Some(0.1), Trust::Operator, 1, true),
        (Some(0.1), Trust::Operator, 1, true),
        (Some(0.000_001), Trust::Operator, 1, false),
        // A free tool can always be called, and a cost that a server declares is ignored.
        (None, Trust::Operator, 1, true),
        (Some(9.0), Trust::Upstream, 1, true),
        (Some(0.15), Trust::Operator, 2, true),
        (Some(0.051), Trust::Operator, 2, false),
        (Some(0.05), Trust::Operator, 2, true),
        (Some(0.01), Trust::Operator, 3, false),
    ] {
        let result = bench.stack.invoke(&mut context(cost, trust, turn)).await;
        assert_eq!(result.is_ok(), is_made, "{cost:?} {trust:?} {turn}: {result:?}");
    }
    let error = bench
        .stack
        .invoke(&mut context(Some(0.01), Trust::Operator, 3))
        .await;
    assert_eq!(
        error.unwrap_err().message(),
        "the limit of 0.50 US dollars in one conversation would be exceeded: 0.50 are used and the call costs 0.01"
    );
}

#[test]
fn dollars_become_whole_millionths() {
    for (dollars, micros, shown) in [
        (0.0, 0, "0.00"),
        (-1.0, 0, "0.00"),
        (f64::NAN, 0, "0.00"),
        (0.1, 100_000, "0.10"),
        (0.000_001, 1, "0.000001"),
        (1e-9, 1, "0.000001"),
        (12.345, 12_345_000, "12.345"),
        (1e300, u64::MAX, "18446744073709.551615"),
    ] {
        let amount = MicroDollars::from_dollars(dollars);
        assert_eq!(
            (amount, amount.to_string().as_str()),
            (MicroDollars(micros), shown),
            "{dollars}"
        );
    }
}

/// Ends with this result.
struct Ends(Result<Outcome, ToolError>);

impl Invoke for Ends {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let message = self.0.as_ref().err().map_or("", ToolError::message);
        if message.starts_with("begun") || message == "sent" {
            cx.begin_attempt();
        }
        if message == "sent" {
            cx.dispatch().sent();
        }
        self.0.clone()
    }
}

#[tokio::test]
async fn what_is_not_made_is_not_counted() {
    let error = |kind, message: &str| Err(ToolError::new(kind, message));
    let kept = |step| {
        let mut reply = Reply::value(RawJson::object());
        reply.add_meta(Degraded::META_KEY, Degraded::new(step, "from there").record());
        Ok(reply.into())
    };
    let cases: [(Result<Outcome, ToolError>, bool); 15] = [
        // A fallback that answers counts as its own call.
        (kept(DegradedStep::Fallback), false),
        (kept(DegradedStep::Stale), true),
        (
            Ok(Outcome::NeedsInput(Box::new(
                InputRequest::new(RawJson::object()),
            ))),
            false,
        ),
        (
            Ok(Outcome::Pending(Box::new(PendingCall::new("h", "a decision")))),
            false,
        ),
        (error(ErrorKind::Denied, "not approved"), false),
        (error(ErrorKind::ToolChanged, "changed"), false),
        (error(ErrorKind::RateLimited, "too often"), false),
        (error(ErrorKind::Overloaded, "too many"), false),
        // A failed call counts, and so does one that its server refuses.
        (error(ErrorKind::Unavailable, "begun: no connection"), true),
        (error(ErrorKind::RateLimited, "begun: a limit of ours"), false),
        (error(ErrorKind::Timeout, "begun: no answer"), true),
        // No attempt began: blocked by a breaker, disabled, or timed out in a queue.
        (error(ErrorKind::Unavailable, "held back"), false),
        (error(ErrorKind::Auth, "switched off"), false),
        (error(ErrorKind::Timeout, "sent"), true),
        (error(ErrorKind::RateLimited, "sent"), true),
    ];
    for (ended, counts) in cases {
        let shown = format!("{ended:?}");
        let bench = Bench::new(|_| {});
        let change = |limits: &mut QuotaLimits| {
            limits.calls_per_turn = Some(1);
            limits.identical_calls = Some(1);
            limits.calls_per_conversation = Some(1);
        };
        let stack = QuotaLayer::new(limits(change)).layer(Ends(ended));
        let first = stack.invoke(&mut bench.context(of("a", 1))).await;
        let again = stack.invoke(&mut bench.context(of("a", 1))).await;
        let is_refused = again.is_err_and(|error| error.message().starts_with("the limit of 1 calls"));
        assert_eq!(is_refused, counts, "{shown}: {first:?}");
    }
}

/// Waits forever, before its first attempt or within it.
struct Waits {
    has_begun: bool,
}

impl Invoke for Waits {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if self.has_begun {
            cx.begin_attempt();
        }
        pending().await
    }
}

const HEDGED: HedgeSettings = HedgeSettings::new(HedgeAfter::Time(Duration::from_secs(1)));

#[tokio::test]
async fn what_is_given_up_counts_if_an_attempt_may_have_begun() {
    type Change = fn(&mut Settings);
    let cases: [(bool, Change, bool); 4] = [
        (false, |_| {}, false),
        (true, |_| {}, true),
        // Others may run it.
        (false, |settings| settings.set(CacheSettings::default()), true),
        (false, |settings| settings.set(HEDGED), true),
    ];
    for (number, (has_begun, change, counts)) in cases.into_iter().enumerate() {
        let stack =
            QuotaLayer::new(limits(|limits| limits.calls_per_turn = Some(1))).layer(Waits { has_begun });
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let mut tool = TestTool::new("search");
        change(&mut tool.settings);
        let tool = tool.build(ScriptedExecutor::new([ScriptStep::Echo]));
        let context = || {
            let mut cx = call(tool.clone(), json!({}), clock.clone());
            cx.extras.meta = Some(RawJson::from(of("a", 1)));
            cx
        };
        let given_up = timeout(Duration::ZERO, stack.invoke(&mut context())).await;
        assert!(given_up.is_err(), "{number}");
        let again = timeout(Duration::ZERO, stack.invoke(&mut context())).await;
        assert_eq!(again.is_ok_and(|refused| refused.is_err()), counts, "{number}");
    }
}

#[tokio::test]
async fn a_dry_run_counts_nothing_and_says_what_would_be_refused() {
    let bench = Bench::new(|_| {});
    let layer = QuotaLayer::new(limits(|limits| limits.calls_per_conversation = Some(1)));
    let stack = layer.layer(bench.script.clone());
    let context = |mode: Mode| {
        let mut cx = bench.context(json!({}));
        cx.mode = mode;
        cx
    };
    for _ in 0..5 {
        assert!(stack.invoke(&mut context(Mode::DryRun)).await.is_ok());
    }
    assert!(stack.invoke(&mut context(Mode::Live)).await.is_ok());
    for mode in [Mode::Live, Mode::DryRun] {
        let error = stack.invoke(&mut context(mode)).await.unwrap_err();
        assert_eq!(
            error.message(),
            "the limit of 1 calls in one conversation is reached"
        );
    }
}

#[tokio::test]
async fn only_calls_of_tools_count() {
    let bench = Bench::new(|limits| limits.calls_per_conversation = Some(1));
    for _ in 0..5 {
        let mut cx = bench.context(json!({}));
        cx.target = Target::Prompt(cx.tool().clone());
        assert!(bench.stack.invoke(&mut cx).await.is_ok());
    }
    assert_eq!(bench.n_made(5, json!({})).await, 1);
}
