use std::{fmt::Write, time::Duration};

use toolplane::core::{DegradedStep, ErrorKind};

/// All that happened in one simulation.
#[derive(Debug, Default)]
pub struct SimulationRecord {
    /// What clients wanted done.
    pub operations: Vec<OperationRecord>,
    /// What arrived in the world, in the order of time.
    pub attempts: Vec<AttemptRecord>,
    /// Where the world's answer came.
    pub answers: Vec<AttemptEnd>,
    /// Where the connection broke: nobody knows whether it was done.
    pub losses: Vec<AttemptEnd>,
    /// How many configurations there were before the present one.
    pub generation: u64,
    /// How long it took, in the simulation's time.
    pub elapsed: Duration,
    /// What was not as it should be when all was over.
    pub leaks: Vec<String>,
    /// The same as lines of text.
    pub history: String,
}

/// Something that a client wants done: called once, or several times with the same key. Or what a tool is asked whose
/// answers are kept: called by whoever wants to know.
#[derive(Debug, Clone, Default)]
pub struct OperationRecord {
    /// The tool.
    pub tool: &'static str,
    /// Whether doing it twice is as good as once.
    pub is_repeatable: bool,
    /// Whether its calls have an idempotency key.
    pub has_key: bool,
    /// Whether answers are kept for later calls.
    pub is_kept: bool,
    /// The calls.
    pub invocations: Vec<CallRecord>,
    /// How often it was done.
    pub n_effects: usize,
}

/// A call, and how it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRecord {
    /// When it began.
    pub began: Duration,
    /// How long it was to take at most.
    pub limit: Duration,
    /// Under which configuration it began.
    pub generation: u64,
    /// When it ended, and how; nothing if it never did.
    pub ended: Option<(Duration, CallResult)>,
    /// What was given, if it is an answer of the world.
    pub given: Option<ReceivedAnswer>,
}

/// An answer of the world, as it came to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedAnswer {
    /// Which of [`SimulationRecord::answers`] it is: two can come at the same time.
    pub answer: usize,
    /// What is said of it.
    pub said: ReplyFreshness,
}

/// What a reply says of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFreshness {
    /// Nothing: it was made for the call.
    Unmarked,
    /// It was kept, or made for others as well, so long ago.
    Cached(Duration),
    /// It is what was kept so long ago, since the call failed like this.
    Stale(Duration, Option<ErrorKind>),
}

/// How a call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// With an answer.
    Answered,
    /// With an answer that says that it was found in another way.
    Degraded(DegradedStep),
    /// With an error.
    Failed(ErrorKind),
    /// The client gave up.
    Withdrawn,
}

/// An attempt that arrived in the world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Of which operation.
    pub operation: usize,
    /// When.
    pub at: Duration,
    /// Which attempt of its call it is, from 1.
    pub number: u32,
    /// Whether its tool stands in for another.
    pub stands_in: bool,
    /// Whether it was made beside another one.
    pub is_hedge: bool,
    /// For which call: a stand-in's is that of the call that it is made for.
    pub call: u128,
    /// Whether its tool may run twice.
    pub is_repeatable: bool,
    /// When it was sent, if it was.
    pub sent: Option<Duration>,
    /// When it was over: answered, lost or given up.
    pub over: Option<Duration>,
    /// Whether the world answered that it did not take it.
    pub is_not_taken: bool,
}

impl AttemptRecord {
    /// Whether its tool may have run by this time, and must not run twice.
    #[must_use]
    pub fn may_have_run(&self, by: Duration) -> bool {
        !self.is_repeatable && !self.is_not_taken && self.sent.is_some_and(|sent| sent <= by)
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Of which operation.
    pub operation: usize,
    /// When.
    pub at: Duration,
    /// Under which configuration its call began.
    pub generation: u64,
}

impl CallResult {
    /// Whether the caller knows by it that nothing was done.
    #[must_use]
    pub fn says_not_done(self) -> bool {
        match self {
            Self::Failed(kind) => kind != ErrorKind::OutcomeUnknown,
            Self::Degraded(step) => step != DegradedStep::Fallback,
            Self::Answered | Self::Withdrawn => false,
        }
    }

    /// Whether the caller knows by it that it was done.
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
