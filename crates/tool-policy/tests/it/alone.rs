//! Each layer keeps its promise without its siblings. Where another test shows that, it is named here and not repeated.
//!
//! | layer | promise | test |
//! |---|---|---|
//! | error policy | callers see no internals, and operators get alerts | `error_policy.rs`: `what_is_nobodys_business_outside_is_hidden`, `operators_are_told_of_what_should_not_happen_and_not_of_each` |
//! | admission | a refused call reaches nothing | `main.rs`: `rules_admit_and_refuse`, and here [`rules_hold_around_a_closure`] |
//! | argument size | larger arguments reach nothing | `argument_size.rs` |
//! | validation | arguments that do not fit reach nothing | `main.rs`: `arguments_that_do_not_fit_reach_nothing` |
//! | quota | as many calls are made as the limits say | `quota.rs` |
//! | quota | a call counts that was made, however it ended | [`a_call_that_was_made_counts_without_anybody_who_numbers_attempts`] |
//! | approval | an approved call is made once | `approval.rs`: `what_is_approved_is_called_once` |
//! | approval | it can be used again only if nothing was sent | `approval.rs`: `an_approval_is_given_back_only_when_nothing_was_begun` |
//! | credential refresh | rejected credentials are renewed, once | `credential_refresh.rs`: `other_credentials_are_got_once_and_the_call_is_made_again` |
//! | credential refresh | both attempts are numbered | [`the_attempts_of_a_credential_refresh_are_numbered`] |
//! | rate limit | calls beyond the limit are refused with the time to wait | `rate_limit.rs`: `who_waits_as_told_passes` |
//! | rate limit, breaker | state lives on between calls that share only their tool | [`limits_and_breakers_hold_for_calls_that_share_only_their_tool`] |
//! | breaker | failures open it | `breaker.rs` with [`a_breaker_that_is_disabled_never_opens`] |
//! | breaker | an abandoned attempt counts if it ran for its time | `breaker.rs`: `an_impatient_caller_does_not_count_and_a_hung_tool_does` |
//! | breaker peek | needs a breaker, and refuses nothing without it | [`a_peek_refuses_what_its_breaker_refuses`] |
//! | redaction | secrets are hidden in results, progress, logs and errors | `redaction.rs` |
//! | result validation | results that do not fit are refused | `main.rs`: `results_that_do_not_fit_are_refused_without_their_values` |
//! | partial results | incomplete results are marked or refused | `partial_results.rs` |

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tool_core::{
    Arguments, Backend, CallContext, ErrorKind, Invoke, Layer, Layers, Outcome, Pattern, RateLimitSettings,
    Refresh, Tool, ToolError, invoke_fn,
};
use tool_policy::{
    AdmissionLayer, BreakerLayer, BreakerPeekLayer, BreakerSettings, Breakers, CredentialRefreshLayer,
    QuotaLayer, QuotaLimits, RateLimitLayer, RateLimits, Rules,
};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::chains::assert_no_repetition;

/// Time that no test takes.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MILLISECOND: Duration = Duration::from_millis(1);

fn fails(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "as scripted")
}

/// Makes a call that shares nothing with others but its tool. Returns the kind of its error.
async fn call(stack: &impl Invoke, tool: &Arc<Tool>) -> Option<ErrorKind> {
    let mut cx = CallContext::local(tool, Arguments::none());
    let error = stack.invoke(&mut cx).await.err()?;
    assert_no_repetition(&error);
    Some(error.kind())
}

#[tokio::test]
async fn rules_hold_around_a_closure() {
    let works = || invoke_fn(|_| async { Ok::<_, ToolError>(json!("done")) });
    let rules = Rules::default().with_blocklist([Pattern::new("wipe_*")]);
    let stack = AdmissionLayer::new(rules).layer(works());
    for (name, expected) in [("read", None), ("wipe_disk", Some(ErrorKind::Denied))] {
        assert_eq!(call(&stack, &Tool::builder(name).run(works())).await, expected);
    }
}

#[tokio::test]
async fn a_call_that_was_made_counts_without_anybody_who_numbers_attempts() {
    for (step, is_counted) in [
        (ScriptStep::Fail(fails(ErrorKind::Unavailable)), false),
        (ScriptStep::FailSent(fails(ErrorKind::Unavailable)), true),
        (ScriptStep::FailAnswered(fails(ErrorKind::UpstreamError)), true),
        (ScriptStep::Echo, true),
    ] {
        let script = ScriptedExecutor::new([step.clone()]);
        let limits = QuotaLimits::default().with_calls_per_conversation(1);
        let stack = QuotaLayer::new(Rules::default().with_limits(limits)).layer(script.clone());
        let tool = Tool::builder("t").run(script.clone());
        call(&stack, &tool).await;
        call(&stack, &tool).await;
        assert_eq!(script.n_calls(), if is_counted { 1 } else { 2 }, "{step:?}");
    }
}

/// Backend that needs other credentials each time, and records the numbers of its attempts.
#[derive(Clone, Default)]
struct Expired(Arc<Mutex<Vec<u32>>>);

impl Invoke for Expired {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.0.lock().expect("no test panics with it").push(cx.attempt);
        cx.dispatch().not_taken();
        Err(fails(ErrorKind::Auth))
    }
}

impl Backend for Expired {
    async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        refresh == Refresh::Force
    }
}

#[tokio::test]
async fn the_attempts_of_a_credential_refresh_are_numbered() {
    let backend = Expired::default();
    let tool = Tool::builder("t").run_on(backend.clone());
    let stack = CredentialRefreshLayer.layer(backend.clone());
    assert_eq!(call(&stack, &tool).await, Some(ErrorKind::Auth));
    assert_eq!(*backend.0.lock().expect("no test panics with it"), [1, 2]);
}

/// The system's clock, a new context for each call: only the tool's state is common.
#[tokio::test]
async fn limits_and_breakers_hold_for_calls_that_share_only_their_tool() {
    let script = ScriptedExecutor::new([ScriptStep::FailAnswered(fails(ErrorKind::Unavailable))]);
    let twice = BreakerSettings::default()
        .with_max_failures(2)
        .with_pause(DAY)
        .with_max_pause(DAY);
    let tool = Tool::builder("t")
        .setting(Breakers::from(twice))
        .run(script.clone());
    let stack = BreakerLayer::default().layer(script.clone());
    for _ in 0..5 {
        assert_eq!(call(&stack, &tool).await, Some(ErrorKind::Unavailable));
    }
    assert_eq!(script.n_calls(), 2);

    // Each call has a clock of its own, and all agree on when the pause is over.
    let twice = twice.with_pause(MILLISECOND).with_max_pause(MILLISECOND);
    let tool = Tool::builder("t")
        .setting(Breakers::from(twice))
        .run(script.clone());
    for _ in 0..2 {
        call(&stack, &tool).await;
    }
    tokio::time::sleep(20 * MILLISECOND).await;
    call(&stack, &tool).await;
    assert_eq!(script.n_calls(), 5, "the probe");

    let script = ScriptedExecutor::new([]);
    let limit = RateLimits::for_tool(RateLimitSettings::new(2, DAY));
    let tool = Tool::builder("t").setting(limit).run(script.clone());
    let stack = RateLimitLayer::new().layer(script.clone());
    for expected in [None, None, Some(ErrorKind::RateLimited)] {
        assert_eq!(call(&stack, &tool).await, expected);
    }
}

#[tokio::test]
async fn a_breaker_that_is_disabled_never_opens() {
    for (disabled, n_calls) in [(true, 3), (false, 1)] {
        let script = ScriptedExecutor::new([ScriptStep::FailAnswered(fails(ErrorKind::Unavailable))]);
        // Settings that nobody fitted to the tool.
        let mut tool = TestTool::new("t");
        let settings = BreakerSettings::default()
            .with_max_failures(1)
            .with_disabled(disabled);
        tool.settings.set(Breakers::from(settings));
        let tool = tool.build(script.clone());
        let stack = BreakerLayer::default().layer(script.clone());
        for _ in 0..3 {
            call(&stack, &tool).await;
        }
        assert_eq!(script.n_calls(), n_calls, "disabled: {disabled}");
    }
}

#[tokio::test]
async fn a_peek_refuses_what_its_breaker_refuses() {
    let script = ScriptedExecutor::new([ScriptStep::FailAnswered(fails(ErrorKind::Unavailable))]);
    let once = BreakerSettings::default()
        .with_max_failures(1)
        .with_pause(DAY)
        .with_max_pause(DAY);
    let tool = Tool::builder("t")
        .setting(Breakers::from(once))
        .run(script.clone());
    let breaker = BreakerLayer::default();
    let peek = BreakerPeekLayer::for_breaker(&breaker);
    let alone = peek.layer(script.clone());
    for n_calls in [1, 2] {
        call(&alone, &tool).await;
        assert_eq!(script.n_calls(), n_calls, "nobody has opened a circuit");
    }
    // The queue is in between.
    let queued = Arc::new(Mutex::new(0));
    let n_queued = queued.clone();
    let queue = move |inner| Queue { n_queued, inner };
    let stack = Layers::outermost(peek)
        .then(queue)
        .then(breaker)
        .around(script.clone());
    for _ in 0..3 {
        assert_eq!(call(&stack, &tool).await, Some(ErrorKind::Unavailable));
    }
    assert_eq!(*queued.lock().expect("no test panics with it"), 1);
    assert_eq!(script.n_calls(), 3);
}

/// Layer that counts the calls which reach it.
struct Queue<S> {
    n_queued: Arc<Mutex<u32>>,
    inner: S,
}

impl<S: Invoke> Invoke for Queue<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        *self.n_queued.lock().expect("no test panics with it") += 1;
        self.inner.invoke(cx).await
    }
}
