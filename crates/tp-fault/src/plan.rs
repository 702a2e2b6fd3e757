use std::io;

use crate::{ConnectionEnding, Direction, Fault};

/// Selection of exchanges, and their faults.
///
/// # What an exchange is
/// A message of the client and its answer, until the client's next message: over HTTP a request and its response, over
/// a wrapped program's pipes a line and the output after it, over plain TCP a whole connection. Exchanges are numbered
/// as they begin.
///
/// # Which exchanges have faults
/// Of those whose request contains the [text](Self::matching), some are [skipped](Self::skip); each of the rest has the
/// faults with a [probability](Self::percent), until a [maximum number](Self::times) is reached. Without any of these,
/// all have them.
///
/// # Examples
///
/// ```
/// use tp_fault::{Fault, Plan};
///
/// let plan = Plan::new([Fault::BlackHole]).matching("pay").skip(1).times(2).seed(7);
/// # let _ = plan;
/// ```
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
    /// Creates a plan by which every exchange has all of these faults.
    pub fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self {
            faults: faults.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a plan without faults.
    pub fn without_faults() -> Self {
        Self::default()
    }

    /// Selects exchanges whose request contains these bytes, such as a tool's name.
    pub fn matching(self, text: impl Into<Vec<u8>>) -> Self {
        Self {
            matching: Some(text.into()),
            ..self
        }
    }

    /// Skips the first matching exchanges.
    pub fn skip(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    /// Sets the maximum number of exchanges with faults.
    pub fn times(self, times: u64) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }

    /// Sets the percentage of exchanges with faults.
    pub fn percent(self, percent: f64) -> Self {
        Self {
            percent: Some(percent),
            ..self
        }
    }

    /// Sets the seed of random choices; 0 by default.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Refuses faults that do not apply to the target.
    pub(crate) fn check(&self, target: FaultTarget) -> io::Result<()> {
        let odd = self.faults.iter().find(|fault| !target.has(fault));
        let Some(fault) = odd else { return Ok(()) };
        let message = match target {
            FaultTarget::Connection => {
                format!("`{fault}` applies to wrapped programs, not to connections")
            }
            FaultTarget::Stream => {
                format!("`{fault}` applies to HTTP and wrapped programs, not to plain TCP")
            }
            FaultTarget::Program => {
                format!("`{fault}` applies to connections, not to wrapped programs")
            }
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

/// Target of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultTarget {
    /// A connection with HTTP.
    Connection,
    /// A connection with any protocol.
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
            // The output of a process ends with the process.
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
