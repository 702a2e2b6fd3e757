use std::{fmt, sync::Arc, time::Duration};

use crate::{
    Adapted, Alert, CacheOutcome, CallContext, Caller, Degraded, Instant, Outcome, SourceChange, ToolError,
};

/// Something that happened, mostly to a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call has begun.
    CallStarted {
        /// The call.
        cx: &'a CallContext,
    },
    /// A call has ended.
    CallFinished {
        /// The call.
        cx: &'a CallContext,
        /// How it ended; nothing if its future was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// How long it took.
        elapsed: Duration,
    },
    /// One attempt of a call has ended.
    AttemptFinished {
        /// The call; [`CallContext::attempt`] tells which attempt.
        cx: &'a CallContext,
        /// How it ended; nothing if its future was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// How long it took.
        elapsed: Duration,
        /// When it ended, by the call's clock.
        at: Instant,
    },
    /// An operator switched a tool off or on by hand.
    Switched {
        /// The tool's name.
        tool: &'a str,
        /// `true` if it is on now.
        is_on: bool,
        /// The operator's reason.
        reason: Option<&'a str>,
    },
    /// An operator should know something, whatever call it was that showed it.
    Alert {
        /// What.
        alert: &'a Alert,
    },
    /// A source of tools, such as a server, is in another state than before, whatever call it was that needed it.
    SourceChanged {
        /// What changed.
        change: &'a SourceChange,
    },
    /// A call found nothing to be addressed to: there is no such tool, or its server did not start. No other event of
    /// such a call follows.
    Unresolved {
        /// On whose behalf it was made.
        caller: &'a Caller,
        /// Why it came to nothing.
        error: &'a ToolError,
    },
    /// The arguments of a call were changed so that they fit.
    Adapted {
        /// The call, with the arguments that it came with.
        cx: &'a CallContext,
        /// What was changed.
        adapted: &'a Adapted,
    },
    /// A layer has refused the call for what it is, who makes it or what was called before, whatever its tool would do.
    Refused {
        /// The call.
        cx: &'a CallContext,
        /// Which layer, by the name that it has where a call is explained.
        layer: &'static str,
        /// Why, in one of few words: nothing of a caller's.
        reason: &'static str,
    },
    /// A failed attempt is about to be followed by another.
    Retried {
        /// The call.
        cx: &'a CallContext,
        /// Why the attempt failed.
        error: &'a ToolError,
        /// How long until the next.
        pause: Duration,
    },
    /// An attempt is about to be made beside one that is slow.
    Hedged {
        /// The call, as the new attempt has it.
        cx: &'a CallContext,
        /// How long the attempts before it have been under way without it.
        after: Duration,
    },
    /// An attempt that was made beside a slow one has answered before it.
    HedgeWon {
        /// The call.
        cx: &'a CallContext,
    },
    /// A limit on how often calls may come has refused an attempt.
    RateLimited {
        /// The call.
        cx: &'a CallContext,
        /// Whose limit.
        scope: Scope,
    },
    /// An attempt waits for its turn from now on: [`Event::Queued`] follows, however that ends.
    Queueing {
        /// The call.
        cx: &'a CallContext,
    },
    /// An attempt has waited for its turn, whether it got it, was refused or was withdrawn.
    Queued {
        /// The call.
        cx: &'a CallContext,
        /// For how long.
        waited: Duration,
    },
    /// An attempt was refused since too many others run and wait.
    Shed {
        /// The call.
        cx: &'a CallContext,
        /// Whose limit.
        scope: Scope,
    },
    /// A circuit breaker has refused an attempt.
    HeldBack {
        /// The call.
        cx: &'a CallContext,
        /// Whose breaker: of the tool, or of its upstream.
        scope: Scope,
    },
    /// A circuit breaker is in another state than before.
    BreakerChanged {
        /// The call that it changed by.
        cx: &'a CallContext,
        /// Whose breaker: of the tool, or of its upstream.
        scope: Scope,
        /// From which state into which, and why.
        change: &'a BreakerChange,
    },
    /// A call with an idempotency key came to what an earlier one with its key has come to, and made nothing run.
    Replayed {
        /// The call.
        cx: &'a CallContext,
    },
    /// A call of a tool with a cache was answered from it, or not.
    CacheUsed {
        /// The call.
        cx: &'a CallContext,
        /// Where its answer comes from.
        outcome: CacheOutcome,
    },
    /// A call has failed, and something else is given in the place of its answer.
    Degraded {
        /// The call.
        cx: &'a CallContext,
        /// What, and why.
        degraded: &'a Degraded,
    },
}

/// What a limit or a breaker is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The principal that calls.
    Principal,
    /// The tool.
    Tool,
    /// What runs the tool, and others with it.
    Upstream,
    /// Everything.
    Total,
}

impl Scope {
    /// All of them, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Principal, Self::Tool, Self::Upstream, Self::Total];

    /// Its name in settings, logs and metrics.
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

/// What a circuit breaker lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// One call, which tries it out.
    HalfOpen,
    /// Nothing.
    Open,
}

/// A circuit breaker's way from one state into another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerChange {
    /// Its state before.
    pub from: BreakerState,
    /// Its state from now on.
    pub to: BreakerState,
    /// Why: a lower-case fragment.
    pub reason: String,
    /// For how long nothing passes, if it is open now.
    pub pause: Option<Duration>,
}

impl BreakerState {
    /// Its name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// The port through which what happens is told: metrics, health, audit and breakers listen here.
///
/// It is called on the path of every call: return at once and never block.
pub trait Observe: Send + Sync {
    /// Takes note of an event.
    fn observe(&self, event: &Event<'_>);
}

/// Who is told what happens. A call carries them along, so that layers can tell of what they do without knowing who
/// listens: `cx.observers.emit(&Event::…)`.
#[derive(Clone, Default)]
pub struct Observers {
    all: Option<Arc<[Arc<dyn Observe>]>>,
    own: Option<Arc<dyn Observe>>,
}

impl Observers {
    /// Whether there is no one to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.own.is_none()
    }

    /// The same, and one beside them who is told of a single call alone, in the place of any such before.
    #[must_use]
    pub fn beside(self, own: Arc<dyn Observe>) -> Self {
        Self {
            own: Some(own),
            ..self
        }
    }

    /// Tells all of them.
    pub fn tell(&self, event: &Event<'_>) {
        let all = self.all.iter().flat_map(|observers| observers.iter());
        for observer in all.chain(&self.own) {
            observer.observe(event);
        }
    }
}

impl Observe for Observers {
    fn observe(&self, event: &Event<'_>) {
        self.tell(event);
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
