use std::{fmt::Write, time::Duration};

use toolplane::core::{DegradedStep, ErrorKind};

/// Record of one simulation.
#[derive(Debug, Default)]
pub struct SimulationRecord {
    /// Operations of the clients.
    pub operations: Vec<OperationRecord>,
    /// Calls of the workflow.
    pub flows: Vec<FlowRecord>,
    /// Attempts that arrived in the world, in the order of time.
    pub attempts: Vec<AttemptRecord>,
    /// Answers of the world.
    pub answers: Vec<AttemptEnd>,
    /// Broken connections, after which the outcome is unknown.
    pub losses: Vec<AttemptEnd>,
    /// Number of reloads before the current configuration.
    pub generation: u64,
    /// Duration, in the simulation's time.
    pub elapsed: Duration,
    /// Tools that did not recover after the faults.
    pub leaks: Vec<String>,
    /// All events as lines of text.
    pub history: String,
}

/// An operation of a client: called once, or several times with the same key. For a cached tool, a question that any
/// client may ask.
#[derive(Debug, Clone, Default)]
pub struct OperationRecord {
    /// Name of the tool.
    pub tool: &'static str,
    /// `true` if twice has the effect of once.
    pub is_repeatable: bool,
    /// `true` if its calls have an idempotency key.
    pub has_key: bool,
    /// `true` if its answers are cached.
    pub is_kept: bool,
    /// Calls of the operation.
    pub invocations: Vec<CallRecord>,
    /// Number of executions.
    pub n_effects: usize,
}

/// A call of the workflow of two steps, neither of which may be done twice. The second one begins once the first has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRecord {
    /// Indexes of the operations of its steps.
    pub steps: [usize; 2],
    /// Time of the start.
    pub began: Duration,
    /// Time limit.
    pub limit: Duration,
    /// Time and result of the end; `None` if it never ended.
    pub ended: Option<(Duration, FlowResult)>,
}

/// Result of a call of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowResult {
    /// Completed.
    Completed,
    /// Failed with an error that says whether a step may have run.
    Failed {
        /// Kind of the error.
        kind: ErrorKind,
        /// `true` if a step may have run.
        may_have_run: bool,
    },
    /// Given up by the client.
    Withdrawn,
}

/// A call and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRecord {
    /// Time of the start.
    pub began: Duration,
    /// Time limit.
    pub limit: Duration,
    /// Generation of the configuration at the start.
    pub generation: u64,
    /// Time and result of the end; `None` if it never ended.
    pub ended: Option<(Duration, CallResult)>,
    /// Answer of the world that the call received, if any.
    pub given: Option<ReceivedAnswer>,
}

/// An answer of the world, as a client received it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedAnswer {
    /// Index in [`SimulationRecord::answers`]: two answers can have the same time.
    pub answer: usize,
    /// Age that the reply states.
    pub said: ReplyFreshness,
}

/// Age of an answer, as its reply states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFreshness {
    /// No statement: the answer was made for this call.
    Unmarked,
    /// Cached or shared, with this age.
    Cached(Duration),
    /// Stale with this age, because the call failed with this error.
    Stale(Duration, Option<ErrorKind>),
}

/// Result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// Answered.
    Answered,
    /// Answered by a step of the fallback ladder.
    Degraded(DegradedStep),
    /// Failed with an error.
    Failed(ErrorKind),
    /// Given up by the client.
    Withdrawn,
}

/// An attempt that arrived in the world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Index of the operation.
    pub operation: usize,
    /// Time of arrival.
    pub at: Duration,
    /// Number among the attempts of its call, from 1.
    pub number: u32,
    /// `true` if its tool is a fallback for another.
    pub stands_in: bool,
    /// `true` if it is a hedge.
    pub is_hedge: bool,
    /// Correlation id of the call; a fallback has that of the original call.
    pub call: u128,
    /// `true` if its tool may run twice.
    pub is_repeatable: bool,
    /// Time of sending, if it was sent.
    pub sent: Option<Duration>,
    /// Time of the end: answered, lost or given up.
    pub over: Option<Duration>,
    /// `true` if the world answered that it did not accept the attempt.
    pub is_not_taken: bool,
}

impl AttemptRecord {
    /// Returns `true` if its tool may have run by this time and must not run twice.
    #[must_use]
    pub fn may_have_run(&self, by: Duration) -> bool {
        !self.is_repeatable && !self.is_not_taken && self.sent.is_some_and(|sent| sent <= by)
    }
}

/// End of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Index of the operation.
    pub operation: usize,
    /// Time of the end.
    pub at: Duration,
    /// Generation of the configuration at the start of the call.
    pub generation: u64,
}

impl CallResult {
    /// Returns `true` if the result tells the caller that nothing was done.
    #[must_use]
    pub fn says_not_done(self) -> bool {
        match self {
            Self::Failed(kind) => kind != ErrorKind::OutcomeUnknown,
            Self::Degraded(step) => step != DegradedStep::Fallback,
            Self::Answered | Self::Withdrawn => false,
        }
    }

    /// Returns `true` if the result tells the caller that the operation was done.
    #[must_use]
    pub fn says_done(self) -> bool {
        matches!(self, Self::Answered | Self::Degraded(DegradedStep::Fallback))
    }
}

impl SimulationRecord {
    /// Adds a line to the history.
    pub(crate) fn line(&mut self, at: Duration, operation: usize, what: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.history, "{:>10} op{operation} {what}", at.as_micros());
    }
}
