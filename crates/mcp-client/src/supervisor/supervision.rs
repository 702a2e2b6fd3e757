//! State machine of a supervised server.

use std::{mem, sync::Arc, time::Duration};

use mcp_wire::Era;
use tokio::{sync::watch, task::AbortHandle, time::Instant};

use super::{OnStatus, ServerState, ServerStatus, StartBudget, start_limit::StartTicket};
use crate::{ClientError, ClientErrorKind, Connection, ServerInfo};

pub(super) struct Supervision {
    phase: Phase,
    budget: StartBudget,
    pub(super) starts: u64,
    /// Number of suspensions, which are not failures.
    pub(super) suspensions: u64,
    /// Number of endpoint changes. A start that belongs to an earlier generation connects to an old endpoint.
    pub(super) generation: u64,
    last_start: Option<Instant>,
    /// Last failure, kept for the status.
    failure: Option<Failure>,
    pub(super) server: Option<ServerInfo>,
    /// Era of the server, remembered so that the next start need not detect it.
    pub(super) era: Option<Era>,
    on_status: Option<OnStatus>,
}

pub(super) enum Phase {
    NotStarted,
    Starting {
        outcome: Outcome,
        task: AbortHandle,
        ticket: Arc<StartTicket>,
    },
    Ready {
        connection: Connection,
    },
    /// Failed; not restarted before this instant.
    Waiting {
        until: Instant,
    },
    Stopped,
}

pub(super) type Outcome = watch::Receiver<Option<Result<Connection, ClientError>>>;

#[derive(Clone)]
struct Failure {
    error: ClientError,
    stderr: Option<String>,
}

impl Supervision {
    pub(super) fn new(budget: StartBudget, on_status: Option<OnStatus>) -> Self {
        Self {
            phase: Phase::NotStarted,
            budget,
            starts: 0,
            suspensions: 0,
            generation: 0,
            last_start: None,
            failure: None,
            server: None,
            era: None,
            on_status,
        }
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Changes the phase and reports it; the only transition function. Returns the previous phase.
    pub(super) fn enter(&mut self, phase: Phase) -> Phase {
        let before = mem::replace(&mut self.phase, phase);
        if let Some(callback) = &self.on_status {
            callback.notify(&self.status());
        }
        before
    }

    /// `true` if a connection of this generation can still be used.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        self.generation == generation && !matches!(self.phase, Phase::Stopped)
    }

    /// Records the beginning of a start.
    pub(super) fn record_start(&mut self, now: Instant) {
        self.starts += 1;
        self.last_start = Some(now);
    }

    /// Detects that the connection has closed since the last check, or that a start was aborted.
    pub(super) fn detect_end(&mut self) {
        let ended = match &self.phase {
            Phase::Ready { connection } if connection.is_closed() => {
                Some((connection.close_reason(), connection.stderr_tail()))
            }
            Phase::Starting { outcome, .. }
                if outcome.has_changed().is_err() && outcome.borrow().is_none() =>
            {
                Some(((interrupted(), Instant::now()), None))
            }
            _ => None,
        };
        if let Some(((error, since), stderr)) = ended {
            self.record_failure(&error, stderr, since);
        }
    }

    /// Error for callers during the pause.
    pub(super) fn unavailable(&self, retry_in: Duration) -> ClientError {
        let failure = self.failure.as_ref();
        ClientError::unavailable(
            failure.map_or_else(interrupted, |failure| failure.error.clone()),
            retry_in,
        )
    }

    /// Begins a pause for a failure of another connection.
    pub(super) fn pause_for(&mut self, retry_in: Duration) {
        let until = Instant::now() + retry_in;
        self.enter(Phase::Waiting { until });
    }

    /// Begins the pause before the next start, for a server that failed at `since`.
    pub(super) fn record_failure(&mut self, error: &ClientError, stderr: Option<String>, since: Instant) {
        let stderr = match error.kind() {
            ClientErrorKind::StartFailed { stderr, .. } => Some(stderr.clone()),
            _ => stderr,
        };
        self.failure = Some(Failure {
            error: error.clone(),
            stderr: stderr.filter(|stderr| !stderr.is_empty()),
        });
        let was_open = matches!(self.phase, Phase::Ready { .. });
        let until = self
            .budget
            .record_failure(error, self.last_start, since, was_open);
        self.enter(Phase::Waiting { until });
    }

    pub(super) fn status(&self) -> ServerStatus {
        let retry_in = match self.phase {
            Phase::Waiting { until } => until
                .checked_duration_since(Instant::now())
                .filter(|left| *left > Duration::ZERO),
            _ => None,
        };
        let (state, stderr) = match &self.phase {
            Phase::NotStarted => (ServerState::NotStarted, None),
            Phase::Starting { .. } => (ServerState::Starting, None),
            Phase::Ready { connection } => (ServerState::Ready, connection.stderr_tail()),
            Phase::Waiting { .. } if retry_in.is_some() => (ServerState::Backoff, None),
            Phase::Waiting { .. } => (ServerState::Failed, None),
            Phase::Stopped => (ServerState::Stopped, None),
        };
        let failure = self.failure.clone();
        ServerStatus {
            state,
            retry_in,
            stderr: stderr.or_else(|| failure.as_ref()?.stderr.clone()),
            reason: failure.map(|failure| failure.error.to_string()),
            restarts: self.starts.saturating_sub(1 + self.suspensions),
            server: self.server.clone(),
        }
    }
}

pub(super) fn interrupted() -> ClientError {
    ClientError::closed("the server was shut down while it started")
}
