use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU32, Ordering},
};

/// Dispatch mark of one attempt: how far it got towards its backend. Decides whether the request may be sent again,
/// also after the future was dropped.
///
/// An executor marks [`Dispatch::sent`] immediately before the first byte is sent, [`Dispatch::answered`] when the
/// answer has arrived, and [`Dispatch::not_taken`] when the answer says that the request was not accepted. Marks only
/// move forward.
#[derive(Debug, Default)]
pub struct Dispatch {
    mark: AtomicU8,
    history: Arc<DispatchHistory>,
}

/// States of a [`Dispatch`], in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DispatchState {
    /// No byte was sent: the tool cannot have run.
    NotSent,
    /// At least one byte may have been sent: the tool may have run.
    Sent,
    /// The backend has answered.
    Answered,
}

/// Side effect of a call whose tool must run at most once, from the best case to the worst. The side effect of
/// several attempts is the greatest of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SideEffect {
    /// None: nothing was sent, or the answer says that the request was not accepted.
    #[default]
    Impossible,
    /// Possible: the request was sent and answered.
    Possible,
    /// Unknown: the request was sent and not answered.
    Unknown,
}

/// Returns `true` if an HTTP status says that the request was not accepted, so the tool has not run: 401, 408, 421,
/// 425, 429 and 503 (RFC 9110, sections 15.5.2, 15.5.9, 15.5.20 and 15.6.4; RFC 8470, section 5.2; RFC 6585, section
/// 4).
#[must_use]
pub const fn is_status_not_taken(status: u16) -> bool {
    matches!(status, 401 | 408 | 421 | 425 | 429 | 503)
}

/// Counters of the dispatch marks of all attempts of one call.
///
/// Calls that share work share its history, so each of them can tell whether the tool may have run, even while the
/// work continues.
#[derive(Debug, Default)]
pub struct DispatchHistory {
    n_sent: AtomicU32,
    n_answered: AtomicU32,
    n_not_taken: AtomicU32,
    /// History of the call for which this one is made.
    outer: Option<Arc<Self>>,
}

const SENT: u8 = DispatchState::Sent as u8;
const ANSWERED: u8 = DispatchState::Answered as u8;
const NOT_TAKEN: u8 = ANSWERED + 1;

impl Dispatch {
    /// Creates the mark of another attempt of the call that has this history.
    #[must_use]
    pub fn within(history: Arc<DispatchHistory>) -> Self {
        Self {
            mark: AtomicU8::new(0),
            history,
        }
    }

    /// Marks that the first byte is about to be sent.
    pub fn sent(&self) {
        self.raise(SENT);
    }

    /// Marks that the answer has arrived.
    pub fn answered(&self) {
        self.raise(ANSWERED);
    }

    /// Marks that an answer has arrived which says that the request was not accepted: it was sent, and the tool has
    /// not run.
    pub fn not_taken(&self) {
        self.raise(NOT_TAKEN);
    }

    fn raise(&self, mark: u8) {
        let before = self.mark.fetch_max(mark, Ordering::AcqRel);
        let mut history = Some(&*self.history);
        while let Some(DispatchHistory {
            n_sent,
            n_answered,
            n_not_taken,
            outer,
        }) = history
        {
            for (reached, counter) in [(SENT, n_sent), (ANSWERED, n_answered), (NOT_TAKEN, n_not_taken)] {
                if before < reached && reached <= mark {
                    counter.fetch_add(1, Ordering::AcqRel);
                }
            }
            history = outer.as_deref();
        }
    }

    /// Returns the state of the attempt.
    #[must_use]
    pub fn state(&self) -> DispatchState {
        match self.mark.load(Ordering::Acquire) {
            0 => DispatchState::NotSent,
            SENT => DispatchState::Sent,
            _ => DispatchState::Answered,
        }
    }
}

impl DispatchHistory {
    /// Creates the history of a call that is made for another one: its marks count in the history of that call as well, also if
    /// both are dropped.
    #[must_use]
    pub fn within(outer: Arc<Self>) -> Self {
        Self {
            outer: Some(outer),
            ..Self::default()
        }
    }

    /// Returns the furthest state of any attempt.
    #[must_use]
    pub fn max_dispatch_state(&self) -> DispatchState {
        match (self.sent(), self.answered()) {
            (0, _) => DispatchState::NotSent,
            (_, 0) => DispatchState::Sent,
            _ => DispatchState::Answered,
        }
    }

    /// Returns the side effect of the attempts, for a tool that must run at most once.
    #[must_use]
    pub fn effect(&self) -> SideEffect {
        if self.sent() > self.answered() {
            SideEffect::Unknown
        } else if self.sent() > self.n_not_taken.load(Ordering::Acquire) {
            SideEffect::Possible
        } else {
            SideEffect::Impossible
        }
    }

    fn sent(&self) -> u32 {
        self.n_sent.load(Ordering::Acquire)
    }

    fn answered(&self) -> u32 {
        self.n_answered.load(Ordering::Acquire)
    }
}
