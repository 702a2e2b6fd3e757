use std::{
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;
use tool_core::{
    CallContext, ErrorKind, Invoke, Layer, NamedLayer, Outcome, Target, ToolError, format_duration,
};

use crate::{ChaosPlan, InjectedFault, partial_reply::halve};

/// Retry hint of an injected rate limit.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Makes attempts fail on purpose, as a [`ChaosPlan`] says. Clones share the plan. Without a plan, which is the default, the layer
/// does nothing.
///
/// Each injection is logged, appears in `--explain`, and is named in the error: `injected fault: …`.
///
/// # Order
/// Innermost, instead of the backend: every other layer sees an injected fault as it would see a real one. Requests about tasks
/// pass unchanged. It needs no other layer, except that only a time limit ends an attempt with
/// [`InjectedFault::Hang`].
///
/// # Examples
/// ```
/// use tool_chaos::{ChaosLayer, ChaosPlan, ChaosRule};
/// use tool_core::Layer;
///
/// # fn stack<S>(executor: S) {
/// let chaos = ChaosLayer::new(ChaosPlan::new(42, [ChaosRule::default()]));
/// let stack = chaos.clone().layer(executor);
/// chaos.stop();
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ChaosLayer(Option<Arc<Inner>>);

struct Inner {
    plan: ChaosPlan,
    is_stopped: AtomicBool,
}

/// Service of [`ChaosLayer`].
#[derive(Debug, Clone)]
pub struct Chaos<S> {
    chaos: ChaosLayer,
    inner: S,
}

/// Number of attempts of a tool so far.
#[derive(Debug, Default)]
struct AttemptCounter(AtomicU64);

impl ChaosLayer {
    /// Creates a layer that follows this plan.
    #[must_use]
    pub fn new(plan: ChaosPlan) -> Self {
        Self(Some(Arc::new(Inner {
            plan,
            is_stopped: AtomicBool::new(false),
        })))
    }

    /// Returns the plan, or `None` if there is none or the layer was stopped.
    #[must_use]
    pub fn plan(&self) -> Option<&ChaosPlan> {
        let inner = self.0.as_ref()?;
        (!inner.is_stopped.load(Ordering::Relaxed)).then_some(&inner.plan)
    }

    /// Stops the layer: it injects no further faults.
    pub fn stop(&self) {
        if let Some(inner) = &self.0 {
            inner.is_stopped.store(true, Ordering::Relaxed);
        }
    }
}

impl NamedLayer for ChaosLayer {
    const NAME: &'static str = "chaos";
}

impl<S> Layer<S> for ChaosLayer {
    type Invoke = Chaos<S>;

    fn layer(self, inner: S) -> Chaos<S> {
        Chaos { chaos: self, inner }
    }
}

impl<S: Invoke> Invoke for Chaos<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let plan = self
            .chaos
            .plan()
            .filter(|_| !cx.is_dry_run() && !matches!(cx.target, Target::Task { .. }));
        let Some(plan) = plan else {
            return self.inner.invoke(cx).await;
        };
        let attempts = cx.tool().state().get_or_init(AttemptCounter::default);
        let number = attempts.0.fetch_add(1, Ordering::Relaxed);
        let injection = plan.injection(&cx.target.name(), number);
        if !injection.delay.is_zero() {
            report(
                cx,
                number,
                &format!("a delay of {}", format_duration(injection.delay)),
            );
            sleep(injection.delay).await;
        }
        match injection.fault {
            None => self.inner.invoke(cx).await,
            Some(fault) => {
                report(cx, number, &format!("`{fault}`"));
                self.inject(fault, cx).await
            }
        }
    }
}

impl<S: Invoke> Chaos<S> {
    async fn inject(&self, fault: InjectedFault, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let answered = |kind, message: &str| {
            cx.dispatch().sent();
            cx.dispatch().answered();
            Err(ToolError::new(kind, format!("injected fault: {message}")))
        };
        let not_taken = |kind, message: &str| {
            cx.dispatch().not_taken();
            answered(kind, message)
        };
        match fault {
            InjectedFault::Network => {
                let message = "injected fault: the network is unreachable";
                Err(ToolError::new(ErrorKind::Unavailable, message))
            }
            InjectedFault::Auth => not_taken(ErrorKind::Auth, "the credentials are refused"),
            InjectedFault::RateLimit => not_taken(ErrorKind::RateLimited, "too many requests")
                .map_err(|error| error.with_retry_after(RETRY_AFTER)),
            InjectedFault::ServerError => answered(ErrorKind::UpstreamError, "the upstream failed"),
            InjectedFault::Timeout => {
                cx.dispatch().sent();
                Err(cx.unanswered(ErrorKind::Timeout, "injected fault: no answer"))
            }
            InjectedFault::Hang => {
                cx.dispatch().sent();
                pending().await
            }
            InjectedFault::UnknownOutcome => {
                cx.dispatch().sent();
                // A detached fork has its own dispatch marks: this call does not learn of the answer.
                let _ = self.inner.invoke(&mut cx.fork_detached(Arc::default())).await;
                Err(cx.unanswered(ErrorKind::Unavailable, "injected fault: the answer is lost"))
            }
            InjectedFault::Partial => {
                let mut outcome = self.inner.invoke(cx).await?;
                if let Outcome::Reply(reply) = &mut outcome {
                    halve(reply);
                }
                Ok(outcome)
            }
        }
    }
}

/// Logs and explains an injection, so that nobody takes it for a real fault.
fn report(cx: &mut CallContext, number: u64, injected: &str) {
    let tool = cx.target.name().into_owned();
    tracing::info!(tool, attempt = number, "chaos injects {injected}");
    cx.explain(ChaosLayer::NAME, || {
        format!("injects {injected} into attempt {number} of the tool")
    });
}

impl fmt::Debug for ChaosLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChaosLayer").field(&self.plan()).finish()
    }
}
