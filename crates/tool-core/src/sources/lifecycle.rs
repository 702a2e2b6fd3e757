use std::{fmt, sync::Arc, time::Duration};

use crate::{Instant, SourceStatus};

/// State of a source.
///
/// ```text
/// not started -> starting -> ready
///                  |  ^        |
///                  v  |        |
///                 failed <-----+
/// ```
///
/// A source may be stopped in any state. A source that needs no start is ready from the beginning. A source whose
/// endpoint was replaced, for example by one with other credentials, is not started again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// Nothing has used it yet.
    NotStarted,
    /// It is starting.
    Starting,
    /// It answers.
    Ready,
    /// It failed, for this reason.
    Failed(String),
    /// It was stopped on purpose and is not started again.
    Stopped,
}

/// Change of state of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceChange {
    /// Name of the source.
    pub source: Arc<str>,
    /// State before the change.
    pub from: SourceState,
    /// State after the change.
    pub to: SourceState,
    /// Time spent in the previous state; for a completed start, its duration.
    pub after: Duration,
    /// Number of attempts of the start, including this one; 0 if the change belongs to no start.
    pub n_attempts: u32,
}

/// State of a source and its history.
///
/// [`Lifecycle::enter`] is the only transition function. It holds no lock and reads no clock; its owner decides what
/// a change is observed with.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    source: Arc<str>,
    state: SourceState,
    since: Instant,
    n_attempts: u32,
    last_error: Option<String>,
}

impl SourceState {
    /// Words of [`SourceState::as_str`], in the order of the numbers that represent states in metrics.
    pub const WORDS: &'static [&'static str] = &["not started", "starting", "ready", "failed", "stopped"];

    /// Returns the state as a word for lists.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        Self::WORDS[self.place()]
    }

    /// Returns the index in [`SourceState::WORDS`].
    #[must_use]
    pub fn place(&self) -> usize {
        match self {
            Self::NotStarted => 0,
            Self::Starting => 1,
            Self::Ready => 2,
            Self::Failed(_) => 3,
            Self::Stopped => 4,
        }
    }
}

impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Lifecycle {
    /// Creates the life cycle of a source that nothing has used yet.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, now: Instant) -> Self {
        Self {
            source: source.into(),
            state: SourceState::NotStarted,
            since: now,
            n_attempts: 0,
            last_error: None,
        }
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> &SourceState {
        &self.state
    }

    /// Enters a state. Returns the change, or `None` if the state is the same. A repeated failure with another reason
    /// replaces the reason and is no change.
    ///
    /// Attempts are counted from the first one after the source was ready, or was first used, to the one that makes
    /// it ready.
    pub fn enter(&mut self, state: SourceState, now: Instant) -> Option<SourceChange> {
        if let SourceState::Failed(reason) = &state {
            self.last_error = Some(reason.clone());
        }
        if self.state.place() == state.place() {
            self.state = state;
            return None;
        }
        self.n_attempts = match (&self.state, &state) {
            (SourceState::Failed(_), SourceState::Starting) => self.n_attempts.saturating_add(1),
            (_, SourceState::Starting) => 1,
            // The failure happened before any attempt to start.
            (SourceState::NotStarted, SourceState::Failed(_)) => 1,
            (_, SourceState::NotStarted | SourceState::Stopped)
            | (SourceState::Ready, SourceState::Failed(_)) => 0,
            _ => self.n_attempts,
        };
        let after = now.since(self.since);
        self.since = now;
        Some(SourceChange {
            source: self.source.clone(),
            from: std::mem::replace(&mut self.state, state.clone()),
            to: state,
            after,
            n_attempts: self.n_attempts,
        })
    }

    /// Returns the status that follows from the state.
    #[must_use]
    pub fn status(&self, now: Instant) -> SourceStatus {
        SourceStatus {
            in_state: Some(now.since(self.since)),
            n_attempts: self.n_attempts,
            last_error: self.last_error.clone(),
            ..SourceStatus::new(self.state.clone())
        }
    }
}
