use std::time::Duration;

use crate::{
    AccessDecision, AdaptedArguments, Alert, AuthoringChange, BreakerChange, CacheOutcome, CallContext,
    Caller, DefinitionChange, Degraded, Instant, Outcome, Scope, SourceChange, ToolError,
};

/// Event, in most cases of one call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call has started.
    #[non_exhaustive]
    CallStarted {
        /// Call.
        cx: &'a CallContext,
    },
    /// A call has ended.
    #[non_exhaustive]
    CallFinished {
        /// Call.
        cx: &'a CallContext,
        /// Result; `None` if the future of the call was dropped.
        result: Option<&'a Result<Outcome, ToolError>>,
        /// Duration of the call.
        elapsed: Duration,
    },
    /// One attempt of a call has ended.
    #[non_exhaustive]
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
    #[non_exhaustive]
    Switched {
        /// Name of the tool.
        tool: &'a str,
        /// `true` if the tool is on now.
        is_on: bool,
        /// Reason that the operator gave.
        reason: Option<&'a str>,
    },
    /// An alert fires or resolves, on whichever call revealed it.
    #[non_exhaustive]
    Alert {
        /// Alert.
        alert: &'a Alert,
    },
    /// A source of tools, such as a server, changed its state.
    #[non_exhaustive]
    SourceChanged {
        /// Change of state.
        change: &'a SourceChange,
    },
    /// A definition of a source is withheld from agents, or an operator accepted it.
    #[non_exhaustive]
    DefinitionChanged {
        /// Definition and its state.
        change: &'a DefinitionChange,
    },
    /// An agent changed one of its tools.
    #[non_exhaustive]
    Authored {
        /// Change.
        change: &'a AuthoringChange,
    },
    /// A call could not be resolved: there is no such tool, or its server did not start. No other event of this call
    /// follows.
    #[non_exhaustive]
    Unresolved {
        /// Caller.
        caller: &'a Caller,
        /// Error of the call.
        error: &'a ToolError,
    },
    /// The arguments of a call were changed to satisfy the schema.
    #[non_exhaustive]
    Adapted {
        /// Call, with its original arguments.
        cx: &'a CallContext,
        /// Changes.
        adapted: &'a AdaptedArguments,
    },
    /// A layer refused the call because of its kind, its caller or earlier calls, whatever its tool would do.
    #[non_exhaustive]
    Refused {
        /// Call.
        cx: &'a CallContext,
        /// Name of the layer in explanations.
        layer: &'static str,
        /// Reason: one of a few fixed words, without data of the caller.
        reason: &'static str,
    },
    /// A failed attempt is about to be retried.
    #[non_exhaustive]
    Retried {
        /// Call.
        cx: &'a CallContext,
        /// Error of the attempt.
        error: &'a ToolError,
        /// Pause before the next attempt.
        pause: Duration,
    },
    /// A hedged attempt is about to start in parallel with a slow one.
    #[non_exhaustive]
    Hedged {
        /// Call, as the new attempt has it.
        cx: &'a CallContext,
        /// Time for which the earlier attempts have run.
        after: Duration,
    },
    /// A hedged attempt answered before the slow one.
    #[non_exhaustive]
    HedgeWon {
        /// Call.
        cx: &'a CallContext,
    },
    /// A rate limit rejected an attempt.
    #[non_exhaustive]
    RateLimited {
        /// Call.
        cx: &'a CallContext,
        /// Scope of the limit.
        scope: Scope,
    },
    /// An attempt starts to wait for a permit. [`Event::Queued`] follows in every case.
    #[non_exhaustive]
    Queueing {
        /// Call.
        cx: &'a CallContext,
    },
    /// An attempt has waited for a permit, whether it got one, was rejected or was cancelled.
    #[non_exhaustive]
    Queued {
        /// Call.
        cx: &'a CallContext,
        /// Time waited.
        waited: Duration,
    },
    /// An attempt was shed because its queue is full.
    #[non_exhaustive]
    Shed {
        /// Call.
        cx: &'a CallContext,
        /// Scope of the limit.
        scope: Scope,
    },
    /// An open circuit breaker rejected an attempt.
    #[non_exhaustive]
    BreakerRejected {
        /// Call.
        cx: &'a CallContext,
        /// Scope of the breaker: the tool, or its upstream.
        scope: Scope,
    },
    /// A circuit breaker changed its state.
    #[non_exhaustive]
    BreakerChanged {
        /// Call that caused the change.
        cx: &'a CallContext,
        /// Scope of the breaker: the tool, or its upstream.
        scope: Scope,
        /// Change of state and its reason.
        change: &'a BreakerChange,
    },
    /// A call with an idempotency key was answered with the result of an earlier call. Its tool did not run.
    #[non_exhaustive]
    Replayed {
        /// Call.
        cx: &'a CallContext,
    },
    /// A call of a tool with a cache was answered.
    #[non_exhaustive]
    CacheUsed {
        /// Call.
        cx: &'a CallContext,
        /// Origin of the answer.
        outcome: CacheOutcome,
    },
    /// A failed call was answered by a fallback step.
    #[non_exhaustive]
    Degraded {
        /// Call.
        cx: &'a CallContext,
        /// Fallback step and the failures before it.
        degraded: &'a Degraded,
    },
    /// A sandbox decided about an access that the program of a tool or of a server asked for. An allowed access is reported
    /// before it takes place.
    #[non_exhaustive]
    AccessDecided {
        /// Decision, with the call that the program ran for.
        access: &'a AccessDecision,
    },
}

impl Event<'_> {
    /// Returns the name of the event for logs, such as `call_finished`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::CallStarted { .. } => "call_started",
            Self::CallFinished { .. } => "call_finished",
            Self::AttemptFinished { .. } => "attempt_finished",
            Self::Switched { .. } => "switched",
            Self::Alert { .. } => "alert",
            Self::SourceChanged { .. } => "source_changed",
            Self::DefinitionChanged { .. } => "definition_changed",
            Self::Authored { .. } => "authored",
            Self::Unresolved { .. } => "unresolved",
            Self::Adapted { .. } => "adapted",
            Self::Refused { .. } => "refused",
            Self::Retried { .. } => "retried",
            Self::Hedged { .. } => "hedged",
            Self::HedgeWon { .. } => "hedge_won",
            Self::RateLimited { .. } => "rate_limited",
            Self::Queueing { .. } => "queueing",
            Self::Queued { .. } => "queued",
            Self::Shed { .. } => "shed",
            Self::BreakerRejected { .. } => "breaker_rejected",
            Self::BreakerChanged { .. } => "breaker_changed",
            Self::Replayed { .. } => "replayed",
            Self::CacheUsed { .. } => "cache_used",
            Self::Degraded { .. } => "degraded",
            Self::AccessDecided { .. } => "access_decided",
        }
    }

    /// Returns the call that the event belongs to; `None` if it belongs to no call, or has only a record of it.
    #[must_use]
    pub fn cx(&self) -> Option<&CallContext> {
        match self {
            Self::CallStarted { cx, .. }
            | Self::CallFinished { cx, .. }
            | Self::AttemptFinished { cx, .. }
            | Self::Adapted { cx, .. }
            | Self::Refused { cx, .. }
            | Self::Retried { cx, .. }
            | Self::Hedged { cx, .. }
            | Self::HedgeWon { cx, .. }
            | Self::RateLimited { cx, .. }
            | Self::Queueing { cx, .. }
            | Self::Queued { cx, .. }
            | Self::Shed { cx, .. }
            | Self::BreakerRejected { cx, .. }
            | Self::BreakerChanged { cx, .. }
            | Self::Replayed { cx, .. }
            | Self::CacheUsed { cx, .. }
            | Self::Degraded { cx, .. } => Some(cx),
            Self::Switched { .. }
            | Self::Alert { .. }
            | Self::SourceChanged { .. }
            | Self::DefinitionChanged { .. }
            | Self::Authored { .. }
            | Self::AccessDecided { .. }
            | Self::Unresolved { .. } => None,
        }
    }
}
