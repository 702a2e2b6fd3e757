use std::{fmt, sync::Arc, time::Duration};

use crate::{
    AdaptedArguments, Alert, CacheOutcome, CallContext, Caller, Degraded, Instant, Outcome, SourceChange,
    ToolError,
};

/// Event, in most cases of one call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call has started.
    CallStarted {
        /// Call.
        cx: &'a CallContext,
    },
    /// A call has ended.
    CallFinished {
        /// Call.
        cx: &'a CallContext,
        /// Result; `None` if the future of the call was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// Duration of the call.
        elapsed: Duration,
    },
    /// One attempt of a call has ended.
    AttemptFinished {
        /// Call; [`CallContext::attempt`] is the number of the attempt.
        cx: &'a CallContext,
        /// Result; `None` if the future of the attempt was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// Duration of the attempt.
        elapsed: Duration,
        /// Time of its end, by the clock of the call.
        at: Instant,
    },
    /// An operator switched a tool off or on.
    Switched {
        /// Name of the tool.
        tool: &'a str,
        /// `true` if the tool is on now.
        is_on: bool,
        /// Reason that the operator gave.
        reason: Option<&'a str>,
    },
    /// An alert fires or resolves, on whichever call revealed it.
    Alert {
        /// Alert.
        alert: &'a Alert,
    },
    /// A source of tools, such as a server, changed its state.
    SourceChanged {
        /// Change of state.
        change: &'a SourceChange,
    },
    /// A call could not be resolved: there is no such tool, or its server did not start. No other event of this call
    /// follows.
    Unresolved {
        /// Caller.
        caller: &'a Caller,
        /// Error of the call.
        error: &'a ToolError,
    },
    /// The arguments of a call were changed to satisfy the schema.
    Adapted {
        /// Call, with its original arguments.
        cx: &'a CallContext,
        /// Changes.
        adapted: &'a AdaptedArguments,
    },
    /// A layer refused the call because of its kind, its caller or earlier calls, whatever its tool would do.
    Refused {
        /// Call.
        cx: &'a CallContext,
        /// Name of the layer in explanations.
        layer: &'static str,
        /// Reason: one of a few fixed words, without data of the caller.
        reason: &'static str,
    },
    /// A failed attempt is about to be retried.
    Retried {
        /// Call.
        cx: &'a CallContext,
        /// Error of the attempt.
        error: &'a ToolError,
        /// Pause before the next attempt.
        pause: Duration,
    },
    /// A hedged attempt is about to start in parallel with a slow one.
    Hedged {
        /// Call, as the new attempt has it.
        cx: &'a CallContext,
        /// Time for which the earlier attempts have run.
        after: Duration,
    },
    /// A hedged attempt answered before the slow one.
    HedgeWon {
        /// Call.
        cx: &'a CallContext,
    },
    /// A rate limit rejected an attempt.
    RateLimited {
        /// Call.
        cx: &'a CallContext,
        /// Scope of the limit.
        scope: Scope,
    },
    /// An attempt starts to wait for a permit. [`Event::Queued`] follows in every case.
    Queueing {
        /// Call.
        cx: &'a CallContext,
    },
    /// An attempt has waited for a permit, whether it got one, was rejected or was cancelled.
    Queued {
        /// Call.
        cx: &'a CallContext,
        /// Time waited.
        waited: Duration,
    },
    /// An attempt was shed because its queue is full.
    Shed {
        /// Call.
        cx: &'a CallContext,
        /// Scope of the limit.
        scope: Scope,
    },
    /// An open circuit breaker rejected an attempt.
    BreakerRejected {
        /// Call.
        cx: &'a CallContext,
        /// Scope of the breaker: the tool, or its upstream.
        scope: Scope,
    },
    /// A circuit breaker changed its state.
    BreakerChanged {
        /// Call that caused the change.
        cx: &'a CallContext,
        /// Scope of the breaker: the tool, or its upstream.
        scope: Scope,
        /// Change of state and its reason.
        change: &'a BreakerChange,
    },
    /// A call with an idempotency key was answered with the result of an earlier call. Its tool did not run.
    Replayed {
        /// Call.
        cx: &'a CallContext,
    },
    /// A call of a tool with a cache was answered.
    CacheUsed {
        /// Call.
        cx: &'a CallContext,
        /// Origin of the answer.
        outcome: CacheOutcome,
    },
    /// A failed call was answered by a fallback step.
    Degraded {
        /// Call.
        cx: &'a CallContext,
        /// Fallback step and the failures before it.
        degraded: &'a Degraded,
    },
}

/// Scope of a limit or a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Calling principal.
    Principal,
    /// Tool.
    Tool,
    /// Upstream, which may run other tools as well.
    Upstream,
    /// All calls.
    Total,
}

impl Scope {
    /// All scopes, narrowest first.
    pub const ALL: [Self; 4] = [Self::Principal, Self::Tool, Self::Upstream, Self::Total];

    /// Returns the name in settings, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Tool => "tool",
            Self::Upstream => "upstream",
            Self::Total => "total",
        }
    }
}

/// State of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// All attempts pass.
    Closed,
    /// One attempt passes as a probe.
    HalfOpen,
    /// No attempt passes.
    Open,
}

/// Change of state of a circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerChange {
    /// State before the change.
    pub from: BreakerState,
    /// State after the change.
    pub to: BreakerState,
    /// Reason: a lower-case fragment.
    pub reason: String,
    /// Time for which no attempt passes, if the breaker opened.
    pub pause: Option<Duration>,
}

impl BreakerState {
    /// Returns the name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// Port that receives events: metrics, health, audit and breakers implement it.
///
/// It is called on the path of every call. Return at once and never block.
pub trait Observe: Send + Sync {
    /// Receives an event.
    fn observe(&self, event: &Event<'_>);
}

/// Observers of a call. The call carries them, so layers can emit events without knowing who listens:
/// `cx.observers.emit(&Event::…)`.
#[derive(Clone, Default)]
pub struct Observers {
    all: Option<Arc<[Arc<dyn Observe>]>>,
    own: Option<Arc<dyn Observe>>,
}

impl Observers {
    /// Returns `true` if there is no observer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.own.is_none()
    }

    /// Sets the observer of one call, which replaces any earlier one.
    #[must_use]
    pub fn with_call_observer(self, own: Arc<dyn Observe>) -> Self {
        Self {
            own: Some(own),
            ..self
        }
    }

    /// Passes an event to all observers.
    pub fn emit(&self, event: &Event<'_>) {
        let all = self.all.iter().flat_map(|observers| observers.iter());
        for observer in all.chain(&self.own) {
            observer.observe(event);
        }
    }
}

impl Observe for Observers {
    fn observe(&self, event: &Event<'_>) {
        self.emit(event);
    }
}

impl FromIterator<Arc<dyn Observe>> for Observers {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Observe>>>(observers: I) -> Self {
        let observers: Arc<[_]> = observers.into_iter().collect();
        Self {
            all: (!observers.is_empty()).then_some(observers),
            own: None,
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_all = self.all.as_ref().map_or(0, |observers| observers.len());
        write!(f, "Observers({})", n_all + usize::from(self.own.is_some()))
    }
}
