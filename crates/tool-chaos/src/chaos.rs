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
use tool_core::{CallContext, ErrorKind, Invoke, Layer, Outcome, Target, ToolError, format_duration};

use crate::{ChaosPlan, InjectedFault, partial::halve};

/// What an upstream asks to wait that says that it is called too often.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Has attempts fail on purpose, as a [`ChaosPlan`] says. Cloning shares it. Without a plan, which is the default, it
/// does nothing.
///
/// Whatever it does is logged, noted for who has the call explained, and said in the error: `injected fault: …`.
///
/// # Order
/// Innermost, in the place of the world: every other layer meets its faults as it would meet real ones. Questions about
/// tasks pass untouched.
#[derive(Clone, Default)]
pub struct ChaosLayer(Option<Arc<Inner>>);

struct Inner {
    plan: ChaosPlan,
    is_over: AtomicBool,
}

/// The layer of [`ChaosLayer`].
#[derive(Debug, Clone)]
pub struct Chaos<S> {
    chaos: ChaosLayer,
    inner: S,
}

/// How many attempts of a tool there were.
#[derive(Debug, Default)]
struct Attempts(AtomicU64);

impl ChaosLayer {
    /// Chaos by this plan.
    #[must_use]
    pub fn new(plan: ChaosPlan) -> Self {
        Self(Some(Arc::new(Inner {
            plan,
            is_over: AtomicBool::new(false),
        })))
    }

    /// The plan, if there is one and it was not stopped.
    #[must_use]
    pub fn plan(&self) -> Option<&ChaosPlan> {
        let inner = self.0.as_ref()?;
        (!inner.is_over.load(Ordering::Relaxed)).then_some(&inner.plan)
    }

    /// Ends it: from now on, nothing goes wrong on purpose.
    pub fn stop(&self) {
        if let Some(inner) = &self.0 {
            inner.is_over.store(true, Ordering::Relaxed);
        }
    }
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
        let attempts = cx.tool().state().get_or_init(Attempts::default);
        let number = attempts.0.fetch_add(1, Ordering::Relaxed);
        let fate = plan.fate(&cx.target.name(), number);
        if !fate.delay.is_zero() {
            tell(cx, number, &format!("a delay of {}", format_duration(fate.delay)));
            sleep(fate.delay).await;
        }
        match fate.fault {
            None => self.inner.invoke(cx).await,
            Some(fault) => {
                tell(cx, number, &format!("`{fault}`"));
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
                let message = "injected fault: nobody can be reached";
                Err(ToolError::new(ErrorKind::Unavailable, message))
            }
            InjectedFault::Auth => not_taken(ErrorKind::Auth, "the credentials are refused"),
            InjectedFault::RateLimit => not_taken(ErrorKind::RateLimited, "it is called too often")
                .map_err(|error| error.with_retry_after(RETRY_AFTER)),
            InjectedFault::ServerError => answered(ErrorKind::UpstreamError, "the upstream is at fault"),
            InjectedFault::Timeout => {
                cx.dispatch().sent();
                Err(cx.unanswered(ErrorKind::Timeout, "injected fault: no answer came"))
            }
            InjectedFault::Hang => {
                cx.dispatch().sent();
                pending().await
            }
            InjectedFault::UnknownOutcome => {
                cx.dispatch().sent();
                // With marks of its own: as far as anyone knows, there was no answer.
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

/// Says what is done to an attempt, so that nobody takes it for the world's doing.
fn tell(cx: &mut CallContext, number: u64, what: &str) {
    let tool = cx.target.name().into_owned();
    tracing::info!(tool, attempt = number, "chaos injects {what}");
    cx.explain("chaos", || {
        format!("injects {what} into attempt {number} of the tool")
    });
}

impl fmt::Debug for ChaosLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chaos").field(&self.plan()).finish()
    }
}
