//! Attempts of a call, and the rules for what may follow them.

use std::sync::Arc;

use super::{CallContext, LayerDecision, Target};
use crate::{Dispatch, DispatchHistory, DispatchState, ErrorKind, Feature, SideEffect, ToolError};

impl CallContext {
    /// Returns the dispatch mark of the current attempt.
    #[must_use]
    pub fn dispatch(&self) -> &Arc<Dispatch> {
        self.attempts.present()
    }

    /// Returns the furthest dispatch state of any attempt of the call, including fallbacks.
    #[must_use]
    pub fn max_dispatch_state(&self) -> DispatchState {
        self.attempts.max_dispatch()
    }

    /// Starts another attempt: counts it and gives it a mark of its own. Each layer that makes attempts calls this
    /// before it makes one. An unknown outcome of an earlier attempt stays unknown, even if this attempt is never
    /// sent: see [`CallContext::unanswered`].
    pub fn next_attempt(&mut self) {
        self.attempt += 1;
        self.attempts.next();
    }

    /// Records that the current attempt passed all limits and breakers. Starts an attempt if no outer layer did.
    pub fn begin_attempt(&mut self) {
        if self.attempt <= self.attempts.n_begun() {
            self.next_attempt();
        }
        self.attempts.begin();
    }

    /// Returns the number of attempts that were made, at least 1 if one was sent. Attempts that a limit or a breaker
    /// rejected do not count.
    #[must_use]
    pub fn n_begun(&self) -> u32 {
        let is_sent = self.attempts.own().max_dispatch_state() != DispatchState::NotSent;
        self.attempts.n_begun().max(is_sent.into())
    }

    /// Returns the error of an attempt without an answer: of this kind if the tool cannot have run in any attempt or
    /// may run twice, [`ErrorKind::OutcomeUnknown`] otherwise.
    ///
    /// A tool may run twice if its operator declared it idempotent or read-only. Declarations of a server do not
    /// count.
    #[must_use]
    pub fn unanswered(&self, kind: ErrorKind, message: impl Into<String>) -> ToolError {
        let error = if self.side_effect() == SideEffect::Unknown {
            let message = format!("{}; whether the tool ran is not known", message.into());
            ToolError::new(ErrorKind::OutcomeUnknown, message).with_ledger_id(self.ledger_id())
        } else {
            ToolError::new(kind, message)
        };
        self.mark(error)
    }

    /// Returns the side effect of the call: see [`CallContext::may_have_run`] for the rule.
    #[must_use]
    pub fn side_effect(&self) -> SideEffect {
        self.attempts.effect(self.is_repeatable_tool())
    }

    /// Returns `true` if a tool that must run at most once may have run for this call. This is the one rule for what
    /// may follow a failure: after it, no fallback, no cached reply and no default is returned.
    ///
    /// | attempt | may run twice ([`CallContext::may_run_twice`]) | must not run twice |
    /// |---|---|---|
    /// | not sent | no | no |
    /// | sent, and the answer says that the request was not accepted ([`Dispatch::not_taken`]) | no | no |
    /// | sent, with any other answer or none | no | **yes** |
    ///
    /// One such attempt is enough, of this tool or of a fallback. An idempotency key that the backend receives allows
    /// another call of the same tool ([`CallContext::may_be_repeated`]), but of no other tool.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.side_effect() != SideEffect::Impossible
    }

    /// Returns `true` if the call may be sent to its tool again. Stricter than [`CallContext::may_have_run`]: once a
    /// byte was sent, only a declaration of the operator or an idempotency key that the backend receives makes it
    /// safe.
    #[must_use]
    pub fn may_be_sent_again(&self) -> bool {
        self.max_dispatch_state() == DispatchState::NotSent || self.may_be_repeated()
    }

    /// Marks the error if the tool may have run: see [`CallContext::may_have_run`].
    #[must_use]
    pub fn mark(&self, error: ToolError) -> ToolError {
        if self.may_have_run() {
            error.with_may_have_run()
        } else {
            error
        }
    }

    /// Returns the marks of all attempts of the call, for calls that share its work: see [`CallContext::follow`].
    #[must_use]
    pub fn history(&self) -> &Arc<DispatchHistory> {
        self.attempts.own()
    }

    /// Follows shared work whose attempts count in `history`: the tool may have run for this call if it may have run
    /// for that work.
    pub fn follow(&mut self, history: Arc<DispatchHistory>) {
        self.attempts.follow(history);
    }

    /// Returns `true` if the tool may run twice for one call: the operator declared it idempotent or read-only.
    /// Prompts and resources are reads by protocol, and requests about a task can be repeated. Returns `false` after
    /// a fallback that must run at most once may have run.
    #[must_use]
    pub fn may_run_twice(&self) -> bool {
        !self.side_effect_by_fallback() && self.is_repeatable_tool()
    }

    /// Returns `true` if the tool of the call may run twice, regardless of fallbacks.
    fn is_repeatable_tool(&self) -> bool {
        is_repeatable(&self.target)
    }

    /// Returns `true` if a fallback may have run that must run at most once: see [`CallContext::merge_fallback`].
    #[must_use]
    pub fn side_effect_by_fallback(&self) -> bool {
        self.attempts.fallback_effect() != SideEffect::Impossible
    }

    /// Returns `true` if the tool may be called again after an attempt whose outcome is unknown: it may run twice, or
    /// the backend receives the idempotency key of the call and deduplicates by it.
    #[must_use]
    pub fn may_be_repeated(&self) -> bool {
        self.may_run_twice() || self.is_keyed() && !self.side_effect_by_fallback()
    }

    /// Returns `true` if the backend receives the idempotency key of the call.
    fn is_keyed(&self) -> bool {
        let settings = self.tool().settings();
        let is_tool = matches!(self.target, Target::Tool(_));
        settings.passes_key && is_tool && self.extras.idempotency_key.is_some()
    }

    /// Merges the call of a fallback: its decisions and dispatch states. If the fallback must run at most once and
    /// may have run, the current call must not be repeated either: see [`CallContext::may_run_twice`].
    pub fn merge_fallback(&mut self, fallback: Self) {
        let effect = fallback.side_effect();
        self.attempts.merge_fallback(&fallback.attempts, effect);
        self.merge_decisions(fallback.decisions);
    }

    /// Merges the call of a step of this call's workflow: its decisions. Its attempts count already: see
    /// [`CallContext::fork_step`].
    pub fn merge_step(&mut self, step: Self) {
        self.merge_decisions(step.decisions);
    }

    /// Merges forked work: its decisions, attempts and dispatch states.
    pub fn merge_fork(&mut self, fork: Self) {
        self.attempt = self.attempt.max(fork.attempt);
        self.attempts.merge_fork(&fork.attempts);
        self.merge_decisions(fork.decisions);
    }

    /// Merges a hedged attempt that lost: its decisions and its number.
    pub fn merge_hedge(&mut self, hedge: Self) {
        self.attempt = self.attempt.max(hedge.attempt);
        self.attempts.merge_hedge(&hedge.attempts);
        self.merge_decisions(hedge.decisions);
    }

    fn merge_decisions(&mut self, more: Option<Vec<LayerDecision>>) {
        if let (Some(decisions), Some(more)) = (&mut self.decisions, more) {
            decisions.extend(more);
        }
    }
}

/// Returns `true` if a target may run twice for one call.
pub(super) fn is_repeatable(target: &Target) -> bool {
    let descriptor = target.tool().descriptor();
    let metadata = &descriptor.metadata;
    let is_declared = descriptor.origin.declarations_count()
        && (metadata.idempotent == Some(true) || metadata.read_only == Some(true));
    is_declared || descriptor.feature != Feature::Tool || matches!(target, Target::Task { .. })
}
