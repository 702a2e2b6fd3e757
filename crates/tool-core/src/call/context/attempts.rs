//! What is known of the attempts of a call, and what may follow from it.

use std::sync::Arc;

use super::{CallContext, LayerDecision, Target};
use crate::{Dispatch, DispatchHistory, DispatchState, ErrorKind, Feature, SideEffect, ToolError, Trust};

impl CallContext {
    /// How far the present attempt got towards its tool.
    #[must_use]
    pub fn dispatch(&self) -> &Arc<Dispatch> {
        self.attempts.present()
    }

    /// How far any attempt of the call got, or of a call instead of it.
    #[must_use]
    pub fn max_dispatch_state(&self) -> DispatchState {
        self.attempts.max_dispatch()
    }

    /// Starts another attempt: counts it and gives it a mark of its own. Called by each layer that makes attempts,
    /// before it makes one. What is not known of the attempts before stays so, also if this one comes to nothing: see
    /// [`CallContext::unanswered`].
    pub fn next_attempt(&mut self) {
        self.attempt += 1;
        self.attempts.next();
    }

    /// Notes that the present attempt is made: nothing holds it back any more. It starts one, if no layer around did.
    pub fn begin_attempt(&mut self) {
        if self.attempt <= self.attempts.n_begun() {
            self.next_attempt();
        }
        self.attempts.begin();
    }

    /// Returns how many attempts were made, or at least 1 if one was sent. Attempts that were held back, by a limit or a
    /// breaker, do not count.
    #[must_use]
    pub fn n_begun(&self) -> u32 {
        let is_sent = self.attempts.own().max_dispatch_state() != DispatchState::NotSent;
        self.attempts.n_begun().max(is_sent.into())
    }

    /// The error for an attempt that was not answered: of this kind if the tool cannot have run, in this attempt or in one
    /// before, or may run twice; [`ErrorKind::OutcomeUnknown`] otherwise.
    ///
    /// A tool may run twice when its operator declared it idempotent or read-only; what a server says of its own
    /// tools does not count.
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

    /// Decides whether a tool that must not run twice may have run for this call: the one rule for what may follow a
    /// failure. If it may have run, nothing else is given: no fallback, no kept and no given answer.
    ///
    /// | attempt | may run twice ([`CallContext::may_run_twice`]) | must not run twice |
    /// |---|---|---|
    /// | not sent | no | no |
    /// | sent, and the answer says that it was not taken ([`Dispatch::not_taken`]) | no | no |
    /// | sent, with any other answer or none | no | **yes** |
    ///
    /// One attempt of the call that may have run is enough, and so is one of a tool that was called instead. An
    /// idempotency key that is passed on lets the same tool be called again ([`CallContext::may_be_repeated`]), and no
    /// other.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.side_effect() != SideEffect::Impossible
    }

    /// Decides whether the call may be sent to its tool once more. Stricter than [`CallContext::may_have_run`]: after a
    /// byte has left, no answer makes it safe, but only the operator's word or a key that is passed on.
    #[must_use]
    pub fn may_be_sent_again(&self) -> bool {
        self.max_dispatch_state() == DispatchState::NotSent || self.may_be_repeated()
    }

    /// Returns the error of this call, saying whether the tool may have run: see [`CallContext::may_have_run`].
    #[must_use]
    pub fn mark(&self, error: ToolError) -> ToolError {
        if self.may_have_run() {
            error.with_may_have_run()
        } else {
            error
        }
    }

    /// Returns the marks of all attempts of the call, for calls that wait for the same work: see
    /// [`CallContext::follow`].
    #[must_use]
    pub fn history(&self) -> &Arc<DispatchHistory> {
        self.attempts.own()
    }

    /// Waits for work that is done for other calls as well, and whose attempts are counted there: the tool may have run
    /// for this call when it may have run for that.
    pub fn follow(&mut self, history: Arc<DispatchHistory>) {
        self.attempts.follow(history);
    }

    /// Whether the tool may run twice for one call: the operator declared it idempotent or read-only. Prompts and
    /// resources are read, by the protocol's own word. What is asked about a task can be asked again. A call for which
    /// another tool has run already that must not run twice cannot be made again.
    #[must_use]
    pub fn may_run_twice(&self) -> bool {
        !self.side_effect_by_fallback() && self.is_repeatable_tool()
    }

    /// Whether the tool of the call may run twice, whatever other tools did for it.
    fn is_repeatable_tool(&self) -> bool {
        let descriptor = self.tool().descriptor();
        let metadata = &descriptor.metadata;
        let is_declared = descriptor.origin.trust == Trust::Operator
            && (metadata.idempotent == Some(true) || metadata.read_only == Some(true));
        is_declared || descriptor.feature != Feature::Tool || matches!(self.target, Target::Task { .. })
    }

    /// Whether a tool may have run in the place of this one that must not run twice: see
    /// [`CallContext::merge_fallback`].
    #[must_use]
    pub fn side_effect_by_fallback(&self) -> bool {
        self.attempts.fallback_effect() != SideEffect::Impossible
    }

    /// Whether the tool may be called again after an attempt of which nobody knows whether it ran: it may run twice, or
    /// what runs it is told the call's idempotency key and so does once what it is told twice.
    #[must_use]
    pub fn may_be_repeated(&self) -> bool {
        self.may_run_twice() || self.is_keyed() && !self.side_effect_by_fallback()
    }

    /// Whether what runs the tool is told the call's idempotency key.
    fn is_keyed(&self) -> bool {
        let settings = self.tool().settings();
        let is_tool = matches!(self.target, Target::Tool(_));
        settings.passes_key && is_tool && self.extras.idempotency_key.is_some()
    }

    /// Takes over what the call of a fallback reports back: its notes, and how far it got. If it must not run twice and
    /// may have run, the present call must not either: see [`CallContext::may_run_twice`].
    pub fn merge_fallback(&mut self, fallback: Self) {
        let effect = fallback.side_effect();
        self.attempts.merge_fallback(&fallback.attempts, effect);
        self.merge_decisions(fallback.decisions);
    }

    /// Takes over what forked work reports back: its notes, its attempts and how far it got.
    pub fn merge_fork(&mut self, fork: Self) {
        self.attempt = self.attempt.max(fork.attempt);
        self.attempts.merge_fork(&fork.attempts);
        self.merge_decisions(fork.decisions);
    }

    /// Takes over what a hedged attempt reports back that came to nothing: its notes and its number.
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
