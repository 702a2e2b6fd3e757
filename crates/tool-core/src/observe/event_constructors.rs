//! Constructors of events, for layers and sources. The variants may get more members, so only this crate builds them
//! literally.

use std::time::Duration;

use crate::{
    AccessDecision, AdaptedArguments, Alert, AuthoringChange, BreakerChange, CacheOutcome, CallContext,
    Caller, DefinitionChange, Degraded, Event, Instant, Outcome, Scope, SourceChange, ToolError,
};

impl<'a> Event<'a> {
    /// Creates [`Event::CallStarted`].
    #[must_use]
    pub fn call_started(cx: &'a CallContext) -> Self {
        Self::CallStarted { cx }
    }

    /// Creates [`Event::Authored`].
    #[must_use]
    pub fn authored(change: &'a AuthoringChange) -> Self {
        Self::Authored { change }
    }

    /// Creates [`Event::CallFinished`].
    #[must_use]
    pub fn call_finished(
        cx: &'a CallContext,
        result: Option<&'a Result<Outcome, ToolError>>,
        elapsed: Duration,
    ) -> Self {
        Self::CallFinished { cx, result, elapsed }
    }

    /// Creates [`Event::AttemptFinished`].
    #[must_use]
    pub fn attempt_finished(
        cx: &'a CallContext,
        result: Option<&'a Result<Outcome, ToolError>>,
        elapsed: Duration,
        at: Instant,
    ) -> Self {
        Self::AttemptFinished {
            cx,
            result,
            elapsed,
            at,
        }
    }

    /// Creates [`Event::Switched`].
    #[must_use]
    pub fn switched(tool: &'a str, is_on: bool, reason: Option<&'a str>) -> Self {
        Self::Switched { tool, is_on, reason }
    }

    /// Creates [`Event::Alert`].
    #[must_use]
    pub fn alert(alert: &'a Alert) -> Self {
        Self::Alert { alert }
    }

    /// Creates [`Event::SourceChanged`].
    #[must_use]
    pub fn source_changed(change: &'a SourceChange) -> Self {
        Self::SourceChanged { change }
    }

    /// Creates [`Event::DefinitionChanged`].
    #[must_use]
    pub fn definition_changed(change: &'a DefinitionChange) -> Self {
        Self::DefinitionChanged { change }
    }

    /// Creates [`Event::Unresolved`].
    #[must_use]
    pub fn unresolved(caller: &'a Caller, error: &'a ToolError) -> Self {
        Self::Unresolved { caller, error }
    }

    /// Creates [`Event::Adapted`].
    #[must_use]
    pub fn adapted(cx: &'a CallContext, adapted: &'a AdaptedArguments) -> Self {
        Self::Adapted { cx, adapted }
    }

    /// Creates [`Event::Refused`].
    #[must_use]
    pub fn refused(cx: &'a CallContext, layer: &'static str, reason: &'static str) -> Self {
        Self::Refused { cx, layer, reason }
    }

    /// Creates [`Event::Retried`].
    #[must_use]
    pub fn retried(cx: &'a CallContext, error: &'a ToolError, pause: Duration) -> Self {
        Self::Retried { cx, error, pause }
    }

    /// Creates [`Event::Hedged`].
    #[must_use]
    pub fn hedged(cx: &'a CallContext, after: Duration) -> Self {
        Self::Hedged { cx, after }
    }

    /// Creates [`Event::HedgeWon`].
    #[must_use]
    pub fn hedge_won(cx: &'a CallContext) -> Self {
        Self::HedgeWon { cx }
    }

    /// Creates [`Event::RateLimited`].
    #[must_use]
    pub fn rate_limited(cx: &'a CallContext, scope: Scope) -> Self {
        Self::RateLimited { cx, scope }
    }

    /// Creates [`Event::Queueing`].
    #[must_use]
    pub fn queueing(cx: &'a CallContext) -> Self {
        Self::Queueing { cx }
    }

    /// Creates [`Event::Queued`].
    #[must_use]
    pub fn queued(cx: &'a CallContext, waited: Duration) -> Self {
        Self::Queued { cx, waited }
    }

    /// Creates [`Event::Shed`].
    #[must_use]
    pub fn shed(cx: &'a CallContext, scope: Scope) -> Self {
        Self::Shed { cx, scope }
    }

    /// Creates [`Event::BreakerRejected`].
    #[must_use]
    pub fn breaker_rejected(cx: &'a CallContext, scope: Scope) -> Self {
        Self::BreakerRejected { cx, scope }
    }

    /// Creates [`Event::BreakerChanged`].
    #[must_use]
    pub fn breaker_changed(cx: &'a CallContext, scope: Scope, change: &'a BreakerChange) -> Self {
        Self::BreakerChanged { cx, scope, change }
    }

    /// Creates [`Event::Replayed`].
    #[must_use]
    pub fn replayed(cx: &'a CallContext) -> Self {
        Self::Replayed { cx }
    }

    /// Creates [`Event::CacheUsed`].
    #[must_use]
    pub fn cache_used(cx: &'a CallContext, outcome: CacheOutcome) -> Self {
        Self::CacheUsed { cx, outcome }
    }

    /// Creates [`Event::Degraded`].
    #[must_use]
    pub fn degraded(cx: &'a CallContext, degraded: &'a Degraded) -> Self {
        Self::Degraded { cx, degraded }
    }

    /// Creates [`Event::AccessDecided`].
    #[must_use]
    pub fn access_decided(access: &'a AccessDecision) -> Self {
        Self::AccessDecided { access }
    }
}
