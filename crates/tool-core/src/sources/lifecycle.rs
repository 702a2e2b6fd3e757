use std::{fmt, sync::Arc, time::Duration};

use crate::{Instant, SourceStatus};

/// Where a source stands.
///
/// ```text
/// not started -> starting -> ready
///                  |  ^        |
///                  v  |        |
///                 failed <-----+
/// ```
///
/// From each of them it may be stopped. A source that is never started is ready from the beginning; one that is to be reached in another way from now on, such
/// as with other credentials, is not started again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// Nothing has asked for it yet.
    NotStarted,
    /// It is being started.
    Starting,
    /// It answers.
    Ready,
    /// It does not, and why.
    Failed(String),
    /// It was ended on purpose, and is not started again.
    Stopped,
}

/// A source is in another state than before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceChange {
    /// The source's name.
    pub source: Arc<str>,
    /// Its state before.
    pub from: SourceState,
    /// Its state from now on.
    pub to: SourceState,
    /// How long it was in the state before: a start that has ended took as long.
    pub after: Duration,
    /// How many tries the start took, this one included; 0 for what is no start and no end of one.
    pub n_attempts: u32,
}

/// The state of a source, with what is known of how it came there.
///
/// [`Lifecycle::enter`] is the only way from one state to another. It holds no lock and reads no clock, so whoever keeps it
/// decides what a change is seen with.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    source: Arc<str>,
    state: SourceState,
    since: Instant,
    n_attempts: u32,
    last_error: Option<String>,
}

impl SourceState {
    /// All the words of [`SourceState::as_str`], in the order of the numbers that stand for the states in metrics.
    pub const WORDS: [&'static str; 5] = ["not started", "starting", "ready", "failed", "stopped"];

    /// The word for it in lists.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        Self::WORDS[self.place()]
    }

    /// Its place among [`SourceState::WORDS`].
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
    /// That of a source that nothing has asked for yet.
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

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> &SourceState {
        &self.state
    }

    /// Puts it into this state; tells of it unless it was there already. A failure that is told again with another reason
    /// takes its place and is no change.
    ///
    /// Tries are counted from the first one after it was ready, or was never asked for, to the one that makes it ready.
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
            // What it was that failed came before any try to start it.
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

    /// How the source is, as far as its state says.
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
