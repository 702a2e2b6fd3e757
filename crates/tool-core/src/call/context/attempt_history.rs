use std::sync::Arc;

use crate::{Dispatch, DispatchHistory, DispatchState, SideEffect};

/// History of the attempts of one call, and of the calls of fallbacks made for it.
#[derive(Debug)]
pub(super) struct AttemptHistory {
    /// Mark of the current attempt.
    present: Arc<Dispatch>,
    /// Marks of all attempts of the call, including those of its forks.
    own: Arc<DispatchHistory>,
    /// Marks of shared work that this call waits for.
    followed: Option<Arc<DispatchHistory>>,
    /// Number of attempts that passed all limits and breakers.
    n_begun: u32,
    /// Furthest dispatch state of the fallbacks.
    fallback_dispatch: DispatchState,
    /// Side effects of fallbacks.
    fallback_effect: SideEffect,
}

impl Default for AttemptHistory {
    fn default() -> Self {
        Self::within(Arc::default())
    }
}

impl AttemptHistory {
    /// Creates an empty history whose marks count in `own`.
    pub(super) fn within(own: Arc<DispatchHistory>) -> Self {
        Self {
            present: Arc::new(Dispatch::within(own.clone())),
            own,
            followed: None,
            n_begun: 0,
            fallback_dispatch: DispatchState::NotSent,
            fallback_effect: SideEffect::Impossible,
        }
    }

    /// Creates a history for forked work, whose marks count as this call's.
    pub(super) fn fork(&self) -> Self {
        Self::within(self.own.clone())
    }

    pub(super) fn present(&self) -> &Arc<Dispatch> {
        &self.present
    }

    pub(super) fn own(&self) -> &Arc<DispatchHistory> {
        &self.own
    }

    pub(super) fn n_begun(&self) -> u32 {
        self.n_begun
    }

    /// Gives the next attempt a mark of its own.
    pub(super) fn next(&mut self) {
        self.present = Arc::new(Dispatch::within(self.own.clone()));
    }

    pub(super) fn begin(&mut self) {
        self.n_begun += 1;
    }

    pub(super) fn follow(&mut self, history: Arc<DispatchHistory>) {
        self.followed = Some(history);
    }

    /// Returns the side effects of fallbacks alone.
    pub(super) fn fallback_effect(&self) -> SideEffect {
        self.fallback_effect
    }

    /// Returns the side effect of the call: the greatest of its fallbacks' and its own.
    ///
    /// Attempts of a tool that `may_run_twice` have none, unless a fallback had one: then the whole call must not be
    /// repeated. Shared work counts as [`SideEffect::Possible`] at most, since the call that started it reports what
    /// became of it.
    pub(super) fn effect(&self, may_run_twice: bool) -> SideEffect {
        if may_run_twice && self.fallback_effect == SideEffect::Impossible {
            return SideEffect::Impossible;
        }
        let followed = self.followed.as_ref().map(|followed| followed.effect());
        let followed = followed.unwrap_or_default().min(SideEffect::Possible);
        self.fallback_effect.max(self.own.effect()).max(followed)
    }

    /// Returns the furthest dispatch state of all attempts, including fallbacks.
    pub(super) fn max_dispatch(&self) -> DispatchState {
        let followed = self
            .followed
            .as_ref()
            .map(|followed| followed.max_dispatch_state());
        self.fallback_dispatch
            .max(self.own.max_dispatch_state())
            .max(followed.unwrap_or(DispatchState::NotSent))
    }

    /// Merges forked work, which continues as this call.
    pub(super) fn merge_fork(&mut self, fork: &Self) {
        self.n_begun += fork.n_begun;
        self.fallback_dispatch = self.fallback_dispatch.max(fork.fallback_dispatch);
        self.fallback_effect = self.fallback_effect.max(fork.fallback_effect);
        self.present = fork.present.clone();
    }

    /// Merges a hedged attempt that lost. Its marks are in this history already.
    pub(super) fn merge_hedge(&mut self, hedge: &Self) {
        self.n_begun += hedge.n_begun;
    }

    /// Merges the call of a fallback that had this effect.
    pub(super) fn merge_fallback(&mut self, fallback: &Self, effect: SideEffect) {
        self.fallback_dispatch = self.fallback_dispatch.max(fallback.max_dispatch());
        self.fallback_effect = self.fallback_effect.max(effect);
    }
}
