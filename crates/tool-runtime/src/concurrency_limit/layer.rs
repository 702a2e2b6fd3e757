use crate::ConcurrencyLimits;
use std::{collections::HashMap, fmt, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use tool_core::{
    CallContext, Caller, ConcurrencySettings, ErrorKind, Event, Invoke, Layer, NamedLayer, Outcome, Scope,
    ToolError, format_duration,
};

use super::fair_semaphore::{Acquire, FairSemaphore, SemaphorePermit};
use crate::timeout::within;

/// Limits the attempts that run at once. Further attempts wait in bounded queues, in order of arrival. An attempt that finds a
/// queue full is refused at once as [`Overloaded`](ErrorKind::Overloaded), with a hint when to retry.
///
/// Does nothing for a tool until its `Settings` contain [`ConcurrencyLimits`](crate::ConcurrencyLimits).
///
/// An attempt takes up to four permits: its principal's, the tool's, that of the tool's upstream and that of all tools, in this
/// order, the narrowest first. An attempt that waits for a hanging tool thus holds no permit that other tools need, and a
/// principal that waits for its own permits holds none of a tool.
///
/// # How long an attempt waits
/// As long as the limit allows, or by default a quarter of the call's remaining time, so that it still has time to run. For a
/// call without a deadline, that is a quarter of the tool's call timeout. Then it is refused as overloaded, or as timed out if
/// its deadline comes first. Nothing was sent in either case.
///
/// An attempt is refused at once if its expected wait is longer than that, by the time for which permits were held lately. Under
/// sustained load, calls are thus answered or refused, and do not spend their time in a queue.
///
/// A hedge ([`CallContext::is_hedge`]) does not wait at all.
///
/// # Cancellation
/// An attempt that is dropped while it waits leaves the queue. One that is dropped while it runs passes its permits to the next
/// waiters.
///
/// # Examples
/// ```
/// use tool_core::{Arguments, CallContext, ConcurrencySettings, Invoke, Layer, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::json};
/// use tool_runtime::{ConcurrencyLimitLayer, ConcurrencyLimits};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let search = Tool::builder("search")
///     .setting(ConcurrencyLimits::for_tool(ConcurrencySettings::new(8)))
///     .run(invoke_fn(|_| async { Ok::<_, ToolError>(json!("found")) }));
/// let stack = ConcurrencyLimitLayer::new().layer(TargetBackend);
/// let mut cx = CallContext::local(&search, Arguments::none());
/// cx.record_decisions();
/// stack.invoke(&mut cx).await?;
/// assert_eq!(cx.decisions()[0].decision, "a permit at once");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ConcurrencyLimitLayer {
    shared: Arc<Shared>,
}

/// Service of [`ConcurrencyLimitLayer`].
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit<S> {
    settings: ConcurrencyLimitLayer,
    inner: S,
}

/// Semaphores that belong to no tool.
#[derive(Default)]
struct Shared {
    total: Arc<FairSemaphore>,
    principals: Mutex<Principals>,
}

/// One semaphore for each principal with calls.
#[derive(Default)]
struct Principals {
    semaphores: HashMap<(Arc<str>, Arc<str>), Arc<FairSemaphore>>,
    sweep_at: usize,
}

/// Permits of one attempt.
#[derive(Default)]
struct Permits {
    held: [Option<SemaphorePermit>; 4],
    waited: Duration,
}

/// An attempt in a queue. Notifies observers when it enters and when it leaves, also if its future is dropped.
struct QueueGuard<'a> {
    cx: &'a CallContext,
    start: Instant,
}

impl<'a> QueueGuard<'a> {
    fn enter(cx: &'a CallContext) -> Self {
        cx.observers.emit(&Event::queueing(cx));
        let start = Instant::now();
        Self { cx, start }
    }
}

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        let (cx, waited) = (self.cx, self.start.elapsed());
        cx.observers.emit(&Event::queued(cx, waited));
    }
}

impl ConcurrencyLimitLayer {
    /// Creates a layer in which nothing runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes all permits that an attempt needs.
    async fn acquire_all(&self, cx: &CallContext) -> Result<Permits, ToolError> {
        let limits = cx.tool().settings().get::<ConcurrencyLimits>();
        let ConcurrencyLimits(limits) = limits.copied().unwrap_or_default();
        let wanted = [
            (Scope::Principal, limits.principal),
            (Scope::Tool, limits.tool),
            (Scope::Upstream, limits.upstream),
            (Scope::Total, limits.total),
        ];
        let mut permits = Permits::default();
        for (slot, (scope, limit)) in wanted.into_iter().enumerate() {
            if let Some(limit) = limit
                && let Some(semaphore) = self.semaphore(scope, cx)
            {
                let permit = match semaphore.acquire(&limit) {
                    Acquire::Permit(permit) => permit,
                    Acquire::Full(hint) => {
                        cx.observers.emit(&Event::shed(cx, scope));
                        return Err(queue_full(scope, cx, &limit, hint));
                    }
                    Acquire::Queued(_) if cx.is_hedge => {
                        let message = format!("no permit is free for a hedge of {}", owner(scope, cx));
                        return Err(ToolError::new(ErrorKind::Overloaded, message));
                    }
                    Acquire::Queued(mut waiter) => {
                        let limit = WaitLimit::for_call(cx, &limit, permits.waited);
                        if let Some(expected) = waiter.expected_wait()
                            && expected > limit.wait
                        {
                            drop(waiter);
                            cx.observers.emit(&Event::shed(cx, scope));
                            let error = limit.too_short(scope, cx, expected);
                            return Err(error.with_retry_after(semaphore.retry_hint()));
                        }
                        let guard = QueueGuard::enter(cx);
                        // Boxed, so that calls which need not wait do not carry the size of its future.
                        let permit = Box::pin(limit.wait_for(waiter.permit())).await;
                        permits.waited += guard.start.elapsed();
                        drop(guard);
                        permit.ok_or_else(|| limit.expired(scope, cx, &semaphore))?
                    }
                };
                permits.held[slot] = Some(permit);
            }
        }
        Ok(permits)
    }

    fn semaphore(&self, scope: Scope, cx: &CallContext) -> Option<Arc<FairSemaphore>> {
        let tool = cx.tool();
        match scope {
            Scope::Principal => Some(self.shared.semaphore_of(&cx.origin.caller)),
            Scope::Tool => Some(tool.state().get_or_init(FairSemaphore::default)),
            Scope::Upstream => tool
                .state()
                .upstream()
                .map(|upstream| upstream.get_or_init(FairSemaphore::default)),
            Scope::Total => Some(self.shared.total.clone()),
        }
    }
}

/// Minimum number of principals before those without calls are dropped.
const MIN_SWEEP: usize = 1024;

impl Shared {
    fn semaphore_of(&self, caller: &Caller) -> Arc<FairSemaphore> {
        let mut principals = self.principals.lock();
        if principals.semaphores.len() >= principals.sweep_at.max(MIN_SWEEP) {
            // A call holds its semaphore: one without other owners has no calls.
            principals
                .semaphores
                .retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            principals.sweep_at = principals.semaphores.len() * 2;
        }
        let key = (caller.tenant.clone(), caller.principal.clone());
        principals.semaphores.entry(key).or_default().clone()
    }
}

/// Maximum wait of an attempt for a permit.
#[derive(Debug, Clone, Copy)]
struct WaitLimit {
    wait: Duration,
    /// `true` if the wait ends at the call's deadline.
    is_deadline: bool,
}

impl WaitLimit {
    fn for_call(cx: &CallContext, limit: &ConcurrencySettings, waited: Duration) -> Self {
        let left = cx.remaining();
        // A call without a deadline has the time that its tool's settings give it.
        let total = left.map_or(cx.tool().settings().call_timeout, |left| left + waited);
        let wait = limit.wait.unwrap_or((total / 4).saturating_sub(waited));
        Self {
            wait: left.map_or(wait, |left| wait.min(left)),
            is_deadline: left.is_some_and(|left| left <= wait),
        }
    }

    async fn wait_for(self, permit: impl Future<Output = SemaphorePermit>) -> Option<SemaphorePermit> {
        within(self.wait, None, pin!(permit)).await
    }

    /// Error of an attempt whose expected wait exceeds the limit.
    fn too_short(self, scope: Scope, cx: &CallContext, expected: Duration) -> ToolError {
        let message = format!(
            "too many calls of {} at once: the expected wait is about {}, and the call may wait for {}",
            owner(scope, cx),
            format_duration(expected),
            format_duration(self.wait)
        );
        ToolError::new(ErrorKind::Overloaded, message)
    }

    /// Error of an attempt that has waited for the whole limit.
    fn expired(self, scope: Scope, cx: &CallContext, semaphore: &FairSemaphore) -> ToolError {
        let waited = format_duration(self.wait);
        let message = format!(
            "no permit for another call of {} within {waited}",
            owner(scope, cx)
        );
        if self.is_deadline {
            return ToolError::new(ErrorKind::Timeout, message);
        }
        cx.observers.emit(&Event::shed(cx, scope));
        ToolError::new(ErrorKind::Overloaded, message).with_retry_after(semaphore.retry_hint())
    }
}

fn queue_full(scope: Scope, cx: &CallContext, limit: &ConcurrencySettings, hint: Duration) -> ToolError {
    let message = format!(
        "too many calls of {} at once: {} are running and {} are waiting",
        owner(scope, cx),
        limit.max,
        limit.queue
    );
    ToolError::new(ErrorKind::Overloaded, message).with_retry_after(hint)
}

/// Describes the owner of a limit.
fn owner(scope: Scope, cx: &CallContext) -> String {
    match scope {
        Scope::Principal => "this caller".to_owned(),
        Scope::Tool => format!("`{}`", cx.tool().name()),
        // Not the upstream's name, which may be an internal address.
        Scope::Upstream => format!("the backend of `{}`", cx.tool().name()),
        Scope::Total => "all tools".to_owned(),
    }
}

impl NamedLayer for ConcurrencyLimitLayer {
    const NAME: &'static str = "concurrency limit";
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Invoke = ConcurrencyLimit<S>;

    fn layer(self, inner: S) -> ConcurrencyLimit<S> {
        ConcurrencyLimit {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for ConcurrencyLimit<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.tool().settings().get::<ConcurrencyLimits>().is_none() {
            return self.inner.invoke(cx).await;
        }
        if cx.is_dry_run() {
            cx.explain(ConcurrencyLimitLayer::NAME, || {
                "no permit is taken in a dry run".to_owned()
            });
            return self.inner.invoke(cx).await;
        }
        let permits = match self.settings.acquire_all(cx).await {
            Ok(permits) => permits,
            Err(error) => {
                cx.explain(ConcurrencyLimitLayer::NAME, || format!("refused: {error}"));
                return Err(error);
            }
        };
        cx.explain(ConcurrencyLimitLayer::NAME, || match permits.waited {
            Duration::ZERO => "a permit at once".to_owned(),
            waited => format!("a permit after {}", format_duration(waited)),
        });
        let result = self.inner.invoke(cx).await;
        drop(permits);
        result
    }
}

impl fmt::Debug for ConcurrencyLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimitLayer").finish_non_exhaustive()
    }
}
