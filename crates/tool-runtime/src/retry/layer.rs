use std::{fmt, sync::Arc, time::Duration};

use crate::RetrySettings;
use raw_json::RawJson;
use tokio::time::sleep;
use tool_core::{
    Asker, CallContext, ErrorKind, Event, Instant, Invoke, Jitter, Layer, NamedLayer, Outcome, ToolError,
    format_duration,
};

use super::{Backoff, RetryBudget};

/// Re-attempts failed calls, where it is safe.
///
/// Does nothing for a tool until its `Settings` contain [`RetrySettings`].
///
/// # When a call is attempted again
/// All of this must hold: the failure is of a transient kind ([`Backoff::for_kind`]); the tool cannot have run, or the operator
/// declared that it may run twice, or the backend receives the call's idempotency key ([`CallContext::may_be_sent_again`]); the
/// caller was asked no question; the pause ends before the deadline, or within the tool's call timeout if the call has no deadline;
/// and the upstream's [`RetryBudget`] has a retry left. A reply is never attempted again, even if the tool reports a failure in
/// it.
///
/// # Unknown outcomes
/// If it is unknown whether the tool ran, only a reply to a later attempt settles it. A later attempt that was not sent or was
/// refused does not, and the call still ends as [`ErrorKind::OutcomeUnknown`].
///
/// # Retries of retries
/// A tool that calls other tools has no retries but those that it sets itself, or that its own call sets: the others are for the
/// tools that it calls. A repeated attempt says that it is one, in the call's `_meta` under [`RetryLayer::META_KEY`]. A call that arrives with this key
/// is not retried here, so that attempts do not multiply along a chain of gateways.
///
/// # Order
/// Inside the layers that share or replace results, outside those that guard a single attempt.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::json};
/// use tool_runtime::{RetryLayer, RetrySettings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let n_calls = AtomicU32::new(0);
/// let flaky = Tool::builder("flaky")
///     .idempotent(true) // or it may not be called again after it may have run
///     .setting(RetrySettings::default())
///     .run(invoke_fn(move |_| {
///         let is_up = n_calls.fetch_add(1, Relaxed) > 0;
///         async move { is_up.then(|| json!("done")).ok_or(ToolError::new(ErrorKind::Unavailable, "busy")) }
///     }));
/// let stack = RetryLayer::default().layer(TargetBackend);
/// let mut cx = CallContext::local(&flaky, Arguments::none());
/// assert_eq!(stack.invoke(&mut cx).await?.into_reply()?.text(), "done");
/// assert_eq!(cx.attempt, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RetryLayer {
    jitter: Arc<Jitter>,
}

/// Service of [`RetryLayer`].
#[derive(Debug, Clone)]
pub struct Retry<S> {
    jitter: Arc<Jitter>,
    inner: S,
}

/// Reason for which a failed call is not attempted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    AttemptsExhausted,
    NotTransient,
    UpstreamForbids,
    WasSent,
    DeclaredNotRetryable,
    CallerWasAsked,
    AfterDeadline(Duration),
    BudgetExhausted,
}

impl RetryLayer {
    /// Key in `_meta` of a repeated attempt. Its value is the number of attempts before it.
    pub const META_KEY: &'static str = "dev.toolplane/retry-attempt";

    /// Creates a layer whose pauses have this jitter, such as a seeded one for reproducible tests.
    #[must_use]
    pub fn with_jitter(jitter: Jitter) -> Self {
        Self {
            jitter: Arc::new(jitter),
        }
    }
}

impl NamedLayer for RetryLayer {
    const NAME: &'static str = "retry";
}

impl<S> Layer<S> for RetryLayer {
    type Invoke = Retry<S>;

    fn layer(self, inner: S) -> Retry<S> {
        Retry {
            jitter: self.jitter,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Retry<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let settings = cx.setting::<RetrySettings>().copied();
        // A dry run makes no attempt, so it earns no retries for others either.
        let settings = settings.filter(|_| !cx.is_dry_run() && !is_repeated(cx) && is_retried_itself(cx));
        let plan = settings.map(|settings| (settings, budget_of(cx)));
        if let Some((_, budget)) = &plan {
            budget.deposit(cx.clock.now());
        }
        let start = cx.clock.now();
        let mut n_attempts = 0;
        let mut unknown = None;
        loop {
            cx.next_attempt();
            let result = self.inner.invoke(cx).await;
            let result = result.map_err(|error| cx.mark(error));
            let (Some((settings, budget)), Err(error)) = (&plan, &result) else {
                return result;
            };
            n_attempts += 1;
            let left = time_left(cx, start);
            match decide(cx, error, n_attempts, left, settings, budget, &self.jitter) {
                Ok(pause) => {
                    cx.explain(RetryLayer::NAME, || {
                        format!("again in {}, after `{}`", format_duration(pause), error.kind())
                    });
                    cx.observers.emit(&Event::retried(cx, error, pause));
                    sleep(pause).await;
                    mark_repeated(cx, n_attempts);
                    if error.kind() == ErrorKind::OutcomeUnknown {
                        unknown = result.err();
                    }
                }
                Err(stop) => {
                    cx.explain(RetryLayer::NAME, || format!("not again: {stop}"));
                    return result.map_err(|error| final_error(error, unknown));
                }
            }
        }
    }
}

/// Returns `false` if the retries are those of the tools that this one calls, so that attempts do not multiply: it calls some, and
/// nothing says that the whole is attempted again.
fn is_retried_itself(cx: &CallContext) -> bool {
    let tool = cx.tool();
    let (settings, descriptor) = (tool.settings(), tool.descriptor());
    let of_tool =
        || descriptor.origin.declarations_count() && descriptor.overrides.get::<RetrySettings>().is_some();
    let of_call = || {
        cx.overrides
            .as_deref()
            .is_some_and(|own| own.get::<RetrySettings>().is_some())
    };
    !settings.calls_tools || of_tool() || of_call()
}

/// Returns the last error, or that of an earlier attempt which may have run, extended by the last one.
fn final_error(error: ToolError, unknown: Option<ToolError>) -> ToolError {
    match unknown.filter(|_| error.kind() != ErrorKind::OutcomeUnknown) {
        Some(unknown) => {
            let message = format!("{unknown} (and when tried again, {error})");
            unknown.with_message(message)
        }
        None => error,
    }
}

/// Returns the time left for further attempts of a call that began at `start`: until its deadline or, without one, until the
/// tool's call timeout.
fn time_left(cx: &CallContext, start: Instant) -> Duration {
    let elapsed = cx.clock.now().since(start);
    let limit = cx.tool().settings().call_timeout;
    cx.remaining().unwrap_or(limit.saturating_sub(elapsed))
}

/// Decides whether a failed call is attempted again, and after which pause.
fn decide(
    cx: &CallContext,
    error: &ToolError,
    n_attempts: u32,
    left: Duration,
    settings: &RetrySettings,
    budget: &RetryBudget,
    jitter: &Jitter,
) -> Result<Duration, Stop> {
    let descriptor = cx.tool().descriptor();
    let backoff = match error.kind() {
        // The backend knows the idempotency key, and runs a repeated call once.
        ErrorKind::OutcomeUnknown if cx.may_be_repeated() && !cx.may_run_twice() => Backoff::Exponential,
        kind => Backoff::for_kind(kind),
    };
    if n_attempts >= settings.max_attempts {
        return Err(Stop::AttemptsExhausted);
    }
    if backoff == Backoff::Never {
        return Err(Stop::NotTransient);
    }
    if !error.allows_retry() {
        return Err(Stop::UpstreamForbids);
    }
    if !cx.may_be_sent_again() {
        return Err(Stop::WasSent);
    }
    if descriptor.origin.declarations_count() && descriptor.metadata.retryable == Some(false) {
        return Err(Stop::DeclaredNotRetryable);
    }
    if cx.origin.ask.as_ref().is_some_and(Asker::has_asked) {
        return Err(Stop::CallerWasAsked);
    }
    let pause = backoff
        .pause(n_attempts, error, settings, jitter)
        .ok_or(Stop::NotTransient)?;
    if pause >= left {
        return Err(Stop::AfterDeadline(pause));
    }
    if !budget.withdraw(cx.clock.now(), pause) {
        return Err(Stop::BudgetExhausted);
    }
    Ok(pause)
}

/// Returns the budget of the tool's upstream, or the tool's own if it has none.
pub(crate) fn budget_of(cx: &CallContext) -> Arc<RetryBudget> {
    let state = cx.tool().state();
    match state.upstream() {
        Some(upstream) => upstream.get_or_init(RetryBudget::default),
        None => state.get_or_init(RetryBudget::default),
    }
}

/// Returns `true` if the call is a repeated attempt already, of this layer or of its caller.
pub(crate) fn is_repeated(cx: &CallContext) -> bool {
    cx.extras
        .meta
        .as_ref()
        .is_some_and(|meta| meta.get(RetryLayer::META_KEY).is_some())
}

/// Marks the next attempt as a repeated one.
pub(crate) fn mark_repeated(cx: &mut CallContext, n_attempts: u32) {
    let before = RawJson::from(serde_json::Value::from(n_attempts));
    let meta = cx.extras.meta.take().unwrap_or_else(RawJson::object);
    // A `_meta` that is not an object cannot hold the mark, and stays unchanged.
    cx.extras.meta = Some(
        meta.with_members(&[(RetryLayer::META_KEY, before)])
            .unwrap_or(meta),
    );
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AttemptsExhausted => f.write_str("this was the last attempt that the settings allow"),
            Self::NotTransient => f.write_str("not a transient failure"),
            Self::UpstreamForbids => f.write_str("the upstream asked not to retry"),
            Self::WasSent => f.write_str(
                "it was sent, the tool is not declared `idempotent` or `read_only`, and its backend receives no idempotency key",
            ),
            Self::DeclaredNotRetryable => f.write_str("the tool is declared not `retryable`"),
            Self::CallerWasAsked => f.write_str("the caller would be asked twice"),
            Self::AfterDeadline(pause) => write!(
                f,
                "the deadline comes before the pause of {} ends",
                format_duration(*pause)
            ),
            Self::BudgetExhausted => f.write_str("the upstream's retry budget is used up"),
        }
    }
}
