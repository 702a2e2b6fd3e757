use std::sync::Arc;

use crate::{Dispatch, DispatchHistory, DispatchState, SideEffect};

/// What is known of the attempts of one call, and of the calls of fallbacks made for it.
#[derive(Debug)]
pub(super) struct AttemptHistory {
    /// Mark of the present attempt.
    present: Arc<Dispatch>,
    /// Marks of all attempts of the call, those of its forks included.
    own: Arc<DispatchHistory>,
    /// Marks of work for other calls as well, for which this one waits.
    followed: Option<Arc<DispatchHistory>>,
    /// Number of attempts that nothing held back any more.
    n_begun: u32,
    /// How far fallbacks got.
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
    /// A history of no attempt, whose marks count in `own`.
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

    /// A history for forked work, whose marks count as this call's.
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

    /// Side effects of fallbacks alone.
    pub(super) fn fallback_effect(&self) -> SideEffect {
        self.fallback_effect
    }

    /// Side effects of the call: the worst of its fallbacks' and its own.
    ///
    /// Attempts of a tool that `may_run_twice` have none, unless a fallback had one: then the call as a whole must not be
    /// made again. Of work for others it is known at most that it was sent: its own call is told what came of it.
    pub(super) fn effect(&self, may_run_twice: bool) -> SideEffect {
        if may_run_twice && self.fallback_effect == SideEffect::Impossible {
            return SideEffect::Impossible;
        }
        let followed = self.followed.as_ref().map(|followed| followed.effect());
        let followed = followed.unwrap_or_default().min(SideEffect::Possible);
        self.fallback_effect.max(self.own.effect()).max(followed)
    }

    /// How far any attempt got, or a fallback.
    pub(super) fn max_dispatch(&self) -> DispatchState {
        let followed = self
            .followed
            .as_ref()
            .map(|followed| followed.max_dispatch_state());
        self.fallback_dispatch
            .max(self.own.max_dispatch_state())
            .max(followed.unwrap_or(DispatchState::NotSent))
    }

    /// Takes over forked work, which goes on as this call.
    pub(super) fn merge_fork(&mut self, fork: &Self) {
        self.n_begun += fork.n_begun;
        self.fallback_dispatch = self.fallback_dispatch.max(fork.fallback_dispatch);
        self.fallback_effect = self.fallback_effect.max(fork.fallback_effect);
        self.present = fork.present.clone();
    }

    /// Takes over a hedged attempt that lost: its marks are known here.
    pub(super) fn merge_hedge(&mut self, hedge: &Self) {
        self.n_begun += hedge.n_begun;
    }

    /// Takes over the call of a fallback with this effect.
    pub(super) fn merge_fallback(&mut self, fallback: &Self, effect: SideEffect) {
        self.fallback_dispatch = self.fallback_dispatch.max(fallback.max_dispatch());
        self.fallback_effect = self.fallback_effect.max(effect);
    }
}
