//! Breakers and health count separately and agree about failures.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::timeout;
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};
use toolplane::{
    RawJson,
    core::{
        Clock, ErrorKind, Health, HealthReport, Invoke, Layers, Observe, Observers, Outcome, PendingCall,
        Reply, ToolError, UpstreamState,
    },
    observe::{HealthTracker, WatchAttemptLayer},
    policy::{BreakerLayer, Breakers, Circuit},
    policy::{BreakerScope, BreakerSettings},
};

const SECOND: Duration = Duration::from_secs(1);

/// Judgement of health and breaker about an attempt.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    /// For a failure, by health: `None` if it did not count.
    by_health: Option<bool>,
    /// For a failure, by the breaker.
    by_breaker: bool,
}

impl Taken {
    fn new(report: &HealthReport, circuit: &Circuit, clock: TokioClock) -> Self {
        Self {
            by_health: (report.n_calls > 0).then_some(report.n_failures > 0),
            by_breaker: circuit.peek(clock.now()).is_err(),
        }
    }
}

/// Returns the judgements about an attempt with this outcome and patience: of the tool and of its upstream. One
/// failure is enough for the breakers.
async fn taken(step: ScriptStep, patience: Duration) -> [Taken; 2] {
    let clock = TokioClock::new();
    let book = Arc::new(HealthTracker::new(Arc::new(clock), HealthTracker::DEFAULT_WINDOW));
    let observers: Observers = [book.clone() as Arc<dyn Observe>].into_iter().collect();
    let upstream = Arc::new(UpstreamState::new("office"));
    let mut tool = TestTool::new("weather");
    tool.upstream = Some(upstream.clone());
    let once = BreakerSettings::default()
        .with_max_failures(1)
        .with_per(BreakerScope::Upstream);
    tool.settings.set(Breakers::from(once));
    let script = ScriptedExecutor::new([step]);
    let tool = tool.build(script.clone());
    let stack = Layers::outermost(BreakerLayer::default())
        .then(WatchAttemptLayer::new(observers))
        .around(script);
    let mut cx = call(tool.clone(), json!({}), Arc::new(clock));
    // Only the counters matter here.
    let _ = timeout(patience, stack.invoke(&mut cx)).await;
    let circuit = tool.state().get_or_init(Circuit::default);
    let upstreams = upstream.get_or_init(Circuit::default);
    [
        Taken::new(&book.tool("weather"), &circuit, clock),
        Taken::new(&Health::upstream(&*book, "office"), &upstreams, clock),
    ]
}

#[tokio::test(start_paused = true)]
async fn no_kind_of_error_is_a_failure_to_one_and_none_to_the_other() {
    for &kind in ErrorKind::ALL {
        let error = ToolError::new(kind, "as scripted");
        for step in [ScriptStep::Fail(error.clone()), ScriptStep::FailSent(error)] {
            let [tool, upstream] = taken(step, SECOND).await;
            for (of, taken) in [("tool", &tool), ("upstream", &upstream)] {
                let by_health = taken.by_health == Some(true);
                // Credentials that were refused: it does not work, and waiting is of no use.
                let differs = kind == ErrorKind::Auth;
                assert_eq!(by_health != taken.by_breaker, differs, "{kind}, {of}: {taken:?}");
            }
            assert_eq!(tool.by_health, kind.counts_for_health().then_some(true), "{kind}");
            assert_eq!(tool.by_breaker, kind.counts_for_breaker(), "{kind}");
            let is_tools_own = matches!(kind, ErrorKind::UpstreamError | ErrorKind::ResultInvalid);
            let expected = kind.counts_for_health().then_some(!is_tools_own);
            assert_eq!(upstream.by_health, expected, "{kind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_error_and_what_is_given_up_is_the_same_to_both() {
    let counted = |is_failure| Taken {
        by_health: Some(is_failure),
        by_breaker: is_failure,
    };
    let ignored = || Taken {
        by_health: None,
        by_breaker: false,
    };
    let reported = Reply::result(RawJson::object(), true);
    let pending = Outcome::Pending(Box::new(PendingCall::new("handle", "a person must decide")));
    let (long, short) = (29 * SECOND, 5 * SECOND);
    for (what, step, patience, expected) in [
        ("an answer", ScriptStep::Echo, long, counted(false)),
        (
            "a failure in its own words",
            ScriptStep::Reply(reported),
            long,
            counted(false),
        ),
        ("one that waits", ScriptStep::Outcome(pending), long, ignored()),
        (
            "one that had its time",
            ScriptStep::Hang(true),
            long,
            counted(true),
        ),
        ("one that was given up", ScriptStep::Hang(true), short, ignored()),
        ("one that was not sent", ScriptStep::Hang(false), long, ignored()),
    ] {
        let [tool, upstream] = taken(step, patience).await;
        assert_eq!(tool, expected, "{what}");
        assert_eq!(upstream, expected, "{what}, upstream");
    }
}
