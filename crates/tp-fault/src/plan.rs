use std::io;

use crate::{ConnectionEnding, Direction, Fault};

/// Which faults which exchanges meet.
///
/// # What an exchange is
/// What a client says and what it is answered, until it speaks again: over HTTP a request and its response, over a wrapped
/// program's pipes a line and what comes back, over plain TCP a whole connection. They are numbered as they begin.
///
/// # Which exchanges meet the faults
/// Of those whose request holds the [text](Self::matching) that is looked for, some are [skipped](Self::skip); of the rest
/// each meets the faults by [chance](Self::percent), until [so many](Self::times) have. Without any of these, all do.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Plan {
    pub(crate) faults: Vec<Fault>,
    pub(crate) matching: Option<Vec<u8>>,
    pub(crate) skip: u64,
    pub(crate) times: Option<u64>,
    pub(crate) percent: Option<f64>,
    pub(crate) seed: u64,
}

impl Plan {
    /// A plan by which every exchange meets all of these faults.
    pub fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self {
            faults: faults.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A plan by which nothing goes wrong.
    pub fn without_faults() -> Self {
        Self::default()
    }

    /// Only exchanges whose request holds these bytes, such as a tool's name.
    pub fn matching(self, text: impl Into<Vec<u8>>) -> Self {
        Self {
            matching: Some(text.into()),
            ..self
        }
    }

    /// Not the first ones of those that match.
    pub fn skip(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    /// No more than so many.
    pub fn times(self, times: u64) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }

    /// Only so many of a hundred, by the seed.
    pub fn percent(self, percent: f64) -> Self {
        Self {
            percent: Some(percent),
            ..self
        }
    }

    /// What chance is computed from; 0 if this is not said.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Refuses faults that make no sense there.
    pub(crate) fn check(&self, target: FaultTarget) -> io::Result<()> {
        let odd = self.faults.iter().find(|fault| !target.has(fault));
        let Some(fault) = odd else { return Ok(()) };
        let message = match target {
            FaultTarget::Connection => {
                format!("`{fault}` is for a wrapped program: a connection has no such fault")
            }
            FaultTarget::Stream => {
                format!("`{fault}` is for HTTP or a wrapped program: plain TCP has no such fault")
            }
            FaultTarget::Program => {
                format!("`{fault}` is for connections: a wrapped program has no such fault")
            }
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

/// What faults are done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultTarget {
    /// A connection that holds HTTP.
    Connection,
    /// A connection that holds anything.
    Stream,
    Program,
}

impl FaultTarget {
    fn has(self, fault: &Fault) -> bool {
        match fault {
            Fault::Garbage(_) | Fault::Exit(_) | Fault::Crash(_) | Fault::StopReading => {
                self == Self::Program
            }
            Fault::Status { .. } => self == Self::Connection,
            // The output of a process ends with it.
            Fault::Cut {
                direction: Direction::Response,
                ending: ConnectionEnding::HalfClose,
                ..
            } => self != Self::Program,
            Fault::Delay { .. }
            | Fault::Rate { .. }
            | Fault::Drip { .. }
            | Fault::Cut { .. }
            | Fault::BlackHole => true,
        }
    }
}
