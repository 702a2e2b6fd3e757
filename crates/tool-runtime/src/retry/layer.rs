use std::{fmt, sync::Arc, time::Duration};

use crate::RetrySettings;
use raw_json::RawJson;
use tokio::time::sleep;
use tool_core::{
    Asker, CallContext, ErrorKind, Event, Invoke, Jitter, Layer, Outcome, ToolError, Trust, format_duration,
};

use super::{Backoff, RetryBudget};

/// Tries failed calls again, where the tool's [`RetrySettings`] say so and it is safe.
///
/// # When a call is tried again
/// All of this must hold: the failure is of a kind that may pass ([`Backoff::of`]); the tool cannot have run, or the
/// operator declared that it may run twice, or what runs it is told the call's idempotency key
/// ([`CallContext::may_be_sent_again`]); the caller was not asked for anything; the
/// pause ends before the deadline; and the upstream's [`RetryBudget`] has something left. An answer is never tried
/// again, also not one in which the tool reports a failure.
///
/// # What is not known
/// Where nobody knows whether the tool ran, only an answer of a later attempt says so. The failure of one that was not
/// sent, or was refused, does not, and the call ends as [`ErrorKind::OutcomeUnknown`] all the same.
///
/// # Retries of retries
/// A second attempt says that it is one, in the call's `_meta` under [`RetryLayer::META_KEY`]. A call that arrives with that is
/// not tried again here, so that attempts do not multiply where one gateway stands before another.
///
/// # Order
/// Inside whatever shares or replaces results, outside what guards a single attempt.
#[derive(Debug, Clone, Default)]
pub struct RetryLayer {
    jitter: Arc<Jitter>,
}

/// The layer of [`RetryLayer`].
#[derive(Debug, Clone)]
pub struct Retry<S> {
    jitter: Arc<Jitter>,
    inner: S,
}

/// Why a failed call is not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    AllUsed,
    Hopeless,
    Refused,
    WasSent,
    Declared,
    Asked,
    TooLate(Duration),
    NoBudget,
}

impl RetryLayer {
    /// Where a repeated attempt says that it is one: the number of attempts before it.
    pub const META_KEY: &'static str = "dev.toolplane/retry-attempt";

    /// A layer whose pauses are a sequence that can be repeated.
    #[must_use]
    pub fn with_jitter(jitter: Jitter) -> Self {
        Self {
            jitter: Arc::new(jitter),
        }
    }
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
        let settings = cx.tool().settings().get::<RetrySettings>().copied();
        // A dry run makes no attempt, so it earns no retries for others either.
        let settings = settings.filter(|_| !cx.is_dry_run() && !is_repeated(cx));
        let plan = settings.map(|settings| (settings, budget(cx)));
        if let Some((_, budget)) = &plan {
            budget.deposit(cx.clock.now());
        }
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
            match decide(cx, error, n_attempts, settings, budget, &self.jitter) {
                Ok(pause) => {
                    cx.explain("retry", || {
                        format!("again in {}, after `{}`", format_duration(pause), error.kind())
                    });
                    cx.observers.tell(&Event::Retried { cx, error, pause });
                    sleep(pause).await;
                    mark(cx, n_attempts);
                    if error.kind() == ErrorKind::OutcomeUnknown {
                        unknown = result.err();
                    }
                }
                Err(stop) => {
                    cx.explain("retry", || format!("not again: {stop}"));
                    return result.map_err(|error| told(error, unknown));
                }
            }
        }
    }
}

/// The last error, unless an attempt before it may have run: that one's then, with what became of the others.
fn told(error: ToolError, unknown: Option<ToolError>) -> ToolError {
    match unknown.filter(|_| error.kind() != ErrorKind::OutcomeUnknown) {
        Some(unknown) => {
            let message = format!("{unknown} (and when tried again, {error})");
            unknown.with_message(message)
        }
        None => error,
    }
}

/// The pause before the next attempt, or why there is none.
fn decide(
    cx: &CallContext,
    error: &ToolError,
    n_attempts: u32,
    settings: &RetrySettings,
    budget: &RetryBudget,
    jitter: &Jitter,
) -> Result<Duration, Stop> {
    let descriptor = cx.tool().descriptor();
    let backoff = match error.kind() {
        // What runs the tool knows the key, and does once what it is told twice.
        ErrorKind::OutcomeUnknown if cx.may_be_repeated() && !cx.may_run_twice() => Backoff::Exponential,
        kind => Backoff::of(kind),
    };
    if n_attempts >= settings.max_attempts {
        return Err(Stop::AllUsed);
    }
    if backoff == Backoff::Never {
        return Err(Stop::Hopeless);
    }
    if !error.allows_retry() {
        return Err(Stop::Refused);
    }
    if !cx.may_be_sent_again() {
        return Err(Stop::WasSent);
    }
    if descriptor.origin.trust == Trust::Operator && descriptor.metadata.retryable == Some(false) {
        return Err(Stop::Declared);
    }
    if cx.origin.ask.as_ref().is_some_and(Asker::has_asked) {
        return Err(Stop::Asked);
    }
    let pause = backoff
        .pause(n_attempts, error, settings, jitter)
        .ok_or(Stop::Hopeless)?;
    if cx.remaining().is_some_and(|left| pause >= left) {
        return Err(Stop::TooLate(pause));
    }
    if !budget.withdraw(cx.clock.now(), pause) {
        return Err(Stop::NoBudget);
    }
    Ok(pause)
}

/// That of the tool's upstream, or its own where it stands for itself.
pub(crate) fn budget(cx: &CallContext) -> Arc<RetryBudget> {
    let state = cx.tool().state();
    match state.upstream() {
        Some(upstream) => upstream.get_or_init(RetryBudget::default),
        None => state.get_or_init(RetryBudget::default),
    }
}

/// Whether the call is one that is repeated already, here or by its caller.
pub(crate) fn is_repeated(cx: &CallContext) -> bool {
    cx.extras
        .meta
        .as_ref()
        .is_some_and(|meta| meta.get(RetryLayer::META_KEY).is_some())
}

/// Says that what follows is a repeated attempt.
pub(crate) fn mark(cx: &mut CallContext, n_attempts: u32) {
    let before = RawJson::from(serde_json::Value::from(n_attempts));
    let meta = cx.extras.meta.take().unwrap_or_else(RawJson::object);
    // What is no object cannot say it, and stays as it is.
    cx.extras.meta = Some(
        meta.with_members(&[(RetryLayer::META_KEY, before)])
            .unwrap_or(meta),
    );
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllUsed => f.write_str("this was the last attempt that the settings allow"),
            Self::Hopeless => f.write_str("this does not pass by itself"),
            Self::Refused => f.write_str("it is said not to help now"),
            Self::WasSent => f.write_str(
                "it was sent, and the tool is neither declared `idempotent` or `read_only` nor told an idempotency key",
            ),
            Self::Declared => f.write_str("the tool is declared not `retryable`"),
            Self::Asked => f.write_str("the caller would be asked twice"),
            Self::TooLate(pause) => write!(
                f,
                "the deadline comes before the pause of {} is over",
                format_duration(*pause)
            ),
            Self::NoBudget => f.write_str("the upstream's share of retries is used up"),
        }
    }
}
